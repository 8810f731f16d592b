//! Images: of Collections and Offerings, and of a Service's branding (ODP §2, §4).

use crate::limits;
use crate::reference::ResourceReference;
use crate::report::{Place, Report};
use crate::shape;
use crate::text::Description;
use serde_json::{Map, Number, Value};
use std::collections::HashSet;

/// The media types an image may announce. A Service's branding takes only PNG, SVG and WebP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImageType {
    /// `image/avif`
    Avif,
    /// `image/jpeg`
    Jpeg,
    /// `image/png`
    Png,
    /// `image/svg+xml`
    Svg,
    /// `image/webp`
    Webp,
}

impl ImageType {
    /// The type with the wire name `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "image/avif" => Self::Avif,
            "image/jpeg" => Self::Jpeg,
            "image/png" => Self::Png,
            "image/svg+xml" => Self::Svg,
            "image/webp" => Self::Webp,
            _ => return None,
        })
    }

    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Avif => "image/avif",
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
            Self::Svg => "image/svg+xml",
            Self::Webp => "image/webp",
        }
    }

    /// Whether `icon` and `logo` of a Service may be of this type.
    pub fn is_for_branding(self) -> bool {
        matches!(self, Self::Png | Self::Svg | Self::Webp)
    }

    fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let name = shape::string(report, place, value)?;
        let found = Self::from_name(&name);
        if found.is_none() {
            report.add(
                place,
                "Must be image/avif, image/jpeg, image/png, image/svg+xml or image/webp.",
            );
        }
        found
    }

    fn read_branding(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let name = shape::string(report, place, value)?;
        let found = Self::from_name(&name).filter(|image| image.is_for_branding());
        if found.is_none() {
            report.add(place, "Must be image/png, image/svg+xml or image/webp.");
        }
        found
    }
}

/// One image of a Collection or an Offering. The object is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceImage {
    /// Where the image is.
    pub src: ResourceReference,
    /// What it shows, in the language of the representation.
    pub alt: Option<Description>,
    /// Intrinsic height in CSS pixels.
    pub height: Option<Pixels>,
    /// Intrinsic width in CSS pixels.
    pub width: Option<Pixels>,
    /// Hint about the media type; the response is authoritative.
    pub media_type: Option<ImageType>,
}

/// An extent of 1 through 65,535 CSS pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pixels(std::num::NonZeroU16);

impl Pixels {
    /// The extent `pixels`, unless it is zero.
    pub fn new(pixels: u16) -> Option<Self> {
        std::num::NonZeroU16::new(pixels).map(Self)
    }

    /// The extent.
    pub fn get(self) -> u16 {
        self.0.get()
    }

    /// Reads a JSON integer; `1200.0` is the integer 1200, as JSON Schema has it.
    fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let found = match value {
            Value::Number(number) => integer(&number)
                .and_then(|n| u16::try_from(n).ok())
                .and_then(Self::new),
            _ => None,
        };
        if found.is_none() {
            report.add(
                place,
                format!(
                    "Must be an integer from 1 through {}.",
                    limits::IMAGE_PIXELS
                ),
            );
        }
        found
    }
}

fn integer(number: &Number) -> Option<u64> {
    number.as_u64().or_else(|| {
        let text = number.to_string();
        let (whole, fraction) = text.split_once('.')?;
        if fraction.bytes().all(|b| b == b'0') {
            whole.parse().ok()
        } else {
            None
        }
    })
}

impl ResourceImage {
    /// Reads one image and notes every rule that it breaks.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let mut map = shape::object(report, place, value)?;
        let before = report.len();
        let src = shape::required(report, place, &mut map, "src", ResourceReference::read);
        let alt = shape::optional(report, place, &mut map, "alt", Description::read);
        let height = shape::optional(report, place, &mut map, "height", Pixels::read);
        let width = shape::optional(report, place, &mut map, "width", Pixels::read);
        let media_type = shape::optional(report, place, &mut map, "type", ImageType::read);
        shape::closed(report, place, &map);
        let image = Self {
            src: src?,
            alt,
            height,
            width,
            media_type,
        };
        (report.len() == before).then_some(image)
    }

    /// Reads `images`: 1 through 16, no `src` twice.
    pub fn read_list(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Vec<Self>> {
        let images = shape::list(report, place, value, 1..=limits::IMAGES, Self::read)?;
        let before = report.len();
        let mut seen = HashSet::with_capacity(images.len());
        for (i, image) in images.iter().enumerate() {
            if !seen.insert(image.src.as_str()) {
                report.add(
                    &place.index(i).key("src"),
                    "Must not be the source of an earlier image.",
                );
            }
        }
        (report.len() == before).then_some(images)
    }

    /// The wire form.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        if let Some(alt) = &self.alt {
            map.insert("alt".into(), alt.as_str().into());
        }
        if let Some(height) = self.height {
            map.insert("height".into(), height.get().into());
        }
        map.insert("src".into(), self.src.as_str().into());
        if let Some(media_type) = self.media_type {
            map.insert("type".into(), media_type.as_str().into());
        }
        if let Some(width) = self.width {
            map.insert("width".into(), width.get().into());
        }
        Value::Object(map)
    }
}

/// `icon` or `logo` of a Service. The object is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrandingImage {
    src: ResourceReference,
    media_type: Option<ImageType>,
}

impl BrandingImage {
    /// An image of a type that branding may have; `None` for AVIF and JPEG.
    pub fn new(src: ResourceReference, media_type: Option<ImageType>) -> Option<Self> {
        media_type
            .is_none_or(ImageType::is_for_branding)
            .then_some(Self { src, media_type })
    }

    /// Where the image is.
    pub fn src(&self) -> &ResourceReference {
        &self.src
    }

    /// Hint about the media type, always one for which [`ImageType::is_for_branding`] holds.
    pub fn media_type(&self) -> Option<ImageType> {
        self.media_type
    }

    /// Reads one image and notes every rule that it breaks.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let mut map = shape::object(report, place, value)?;
        let before = report.len();
        let src = shape::required(report, place, &mut map, "src", ResourceReference::read);
        let media_type = shape::optional(report, place, &mut map, "type", ImageType::read_branding);
        shape::closed(report, place, &map);
        let image = Self {
            src: src?,
            media_type,
        };
        (report.len() == before).then_some(image)
    }

    /// The wire form.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("src".into(), self.src.as_str().into());
        if let Some(media_type) = self.media_type {
            map.insert("type".into(), media_type.as_str().into());
        }
        Value::Object(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pointers(value: Value) -> Vec<String> {
        let mut report = Report::new();
        let images = ResourceImage::read_list(&mut report, &Place::ROOT, value);
        let invalid = report.finish(images).unwrap_err();
        invalid
            .into_violations()
            .into_iter()
            .map(|v| v.pointer)
            .collect()
    }

    #[test]
    fn a_whole_image_comes_back() {
        let value = json!([{"alt": "Walnut standing desk", "height": 900, "src": "/images/desk.webp", "type": "image/webp", "width": 65535}]);
        let mut report = Report::new();
        let images = ResourceImage::read_list(&mut report, &Place::ROOT, value.clone()).unwrap();
        assert!(report.is_empty());
        assert_eq!(
            Value::Array(images.iter().map(ResourceImage::to_value).collect()),
            value
        );
    }

    #[test]
    fn a_pixel_count_is_an_integer_in_bounds() {
        let read = |text: &str| {
            let mut report = Report::new();
            Pixels::read(
                &mut report,
                &Place::ROOT,
                serde_json::from_str(text).unwrap(),
            )
            .map(Pixels::get)
        };
        assert_eq!(read("1"), Some(1));
        assert_eq!(read("1200.0"), Some(1200));
        for text in [
            "0",
            "65536",
            "-3",
            "1.5",
            "1e3",
            "\"12\"",
            "12.00000000000000000001",
            "99999999999999999999999",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn sources_are_unique_and_objects_closed() {
        assert_eq!(
            pointers(json!([{"src": "/desk.webp"}, {"alt": "Another view", "src": "/desk.webp"}])),
            ["/1/src"]
        );
        assert_eq!(
            pointers(
                json!([{"src": "/desk.gif", "type": "image/gif", "future": 1, "alt": ""}, {}])
            ),
            ["/0/alt", "/0/type", "/0/future", "/1"]
        );
        assert_eq!(pointers(json!([])), [""]);
        let many: Vec<Value> = (0..17)
            .map(|i| json!({"src": format!("/{i}.png")}))
            .collect();
        assert_eq!(pointers(Value::Array(many)), [""]);
    }

    #[test]
    fn branding_takes_three_types() {
        let read = |value| {
            let mut report = Report::new();
            BrandingImage::read(&mut report, &Place::ROOT, value)
        };
        let logo = json!({"src": "https://cdn.example/logo.webp", "type": "image/webp"});
        assert_eq!(read(logo.clone()).unwrap().to_value(), logo);
        assert!(read(json!({"src": "/logo.jpg", "type": "image/jpeg"})).is_none());
        assert!(read(json!({"type": "image/png"})).is_none());
    }
}
