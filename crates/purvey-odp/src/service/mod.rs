//! The Service Document (ODP §2).
//!
//! The document and its `http` object are open: members that the protocol does not define are kept and come back, except
//! those that would claim an identity. Every other object within is closed.

mod authentication;
mod http;
mod keywords;
mod operation;
mod protocols;

pub use authentication::Authentication;
pub use http::{EndpointBase, Http, McpEndpoint};
pub use keywords::{Keyword, Keywords};
pub use operation::{Operation, OperationDescriptor};
pub use protocols::{Payment, PaymentOption, PaymentProtocol, Protocols};

use crate::identity::ServiceOrigin;
use crate::image::BrandingImage;
use crate::language::{LanguageTag, Localizations};
use crate::reference::ResourceReference;
use crate::report::{Invalid, Place, Report};
use crate::text::{Description, Name};
use crate::version::{self, ProtocolVersion};
use crate::{limits, shape};
use serde_json::{Map, Value};

/// What a Service says about itself. It is public, and valid as a whole or not at all.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceDocument {
    name: Name,
    description: Description,
    language: LanguageTag,
    localizations: Localizations,
    operations: Vec<OperationDescriptor>,
    http: Http,
    branding: Option<Branding>,
    keywords: Keywords,
    links: Links,
    mcp: Vec<McpEndpoint>,
    payment_origins: Vec<ServiceOrigin>,
    protocols: Option<Protocols>,
    extra: Map<String, Value>,
}

/// `branding`: always both images. The object is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branding {
    /// A mark for a square.
    pub icon: BrandingImage,
    /// A mark for a canvas of 4:1.
    pub logo: BrandingImage,
}

/// The links of a Service, all for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// How the Service is used.
    pub documentation_url: Option<ResourceReference>,
    /// Whether it is up.
    pub status_url: Option<ResourceReference>,
    /// Where to ask.
    pub support_url: Option<ResourceReference>,
    /// Its site or storefront.
    pub website_url: Option<ResourceReference>,
}

/// Members by which a Service would name itself; its identity is its origin alone.
const FORBIDDEN: [&str; 3] = ["web_url", "id", "service_id"];

impl ServiceDocument {
    /// The Service Document that `value` is.
    ///
    /// # Errors
    /// Every rule that it breaks, those on bytes (65,536) and depth (8) included.
    pub fn validate(value: Value) -> Result<Self, Invalid> {
        let mut report = Report::new();
        if !fits_depth(&value, limits::SERVICE_DOCUMENT_DEPTH) {
            report.add(
                &Place::ROOT,
                "Must not be nested deeper than 8 objects and arrays.",
            );
        }
        if !fits_bytes(&value, limits::SERVICE_DOCUMENT_BYTES) {
            report.add(&Place::ROOT, "Must not exceed 65536 bytes.");
        }
        let document = Self::read(&mut report, &Place::ROOT, value);
        report.finish(document)
    }

    fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let mut map = shape::object(report, place, value)?;
        let before = report.len();
        ProtocolVersion::take(report, place, &mut map);
        let name = shape::required(report, place, &mut map, "name", Name::read);
        let description =
            shape::required(report, place, &mut map, "description", Description::read);
        let language = shape::required(report, place, &mut map, "language", LanguageTag::read);
        let localizations = shape::required(
            report,
            place,
            &mut map,
            "localizations",
            Localizations::read,
        );
        if let (Some(localizations), Some(language)) = (&localizations, &language) {
            localizations.check_language(report, &place.key("localizations"), language);
        }
        let operations = shape::required(
            report,
            place,
            &mut map,
            "operations",
            OperationDescriptor::read_list,
        );
        let http = shape::required(report, place, &mut map, "http", Http::read);
        let branding = shape::optional(report, place, &mut map, "branding", Branding::read);
        let keywords = shape::optional(report, place, &mut map, "keywords", Keywords::read);
        let links = Links::take(report, place, &mut map);
        let mcp = shape::optional(report, place, &mut map, "mcp", |report, place, value| {
            if value.as_array().is_some_and(Vec::is_empty) {
                report.add(place, "Must be omitted rather than empty.");
                return None;
            }
            shape::list(report, place, value, 1..=usize::MAX, McpEndpoint::read)
        });
        let payment_origins = shape::optional(
            report,
            place,
            &mut map,
            "payment_origins",
            |report, place, value| {
                shape::list(
                    report,
                    place,
                    value,
                    1..=limits::PAYMENT_ORIGINS,
                    ServiceOrigin::read,
                )
            },
        );
        let has_protocols = map.contains_key("protocols");
        let protocols = shape::optional(report, place, &mut map, "protocols", Protocols::read);
        let operations_here = operations.as_deref().unwrap_or_default();
        // Protocols that could not be read were noted; whether they have enrollment is then unknown.
        if protocols
            .as_ref()
            .map_or(!has_protocols, |protocols| !protocols.enrollment())
        {
            check_enrollment(report, &place.key("operations"), operations_here);
        }
        if map.contains_key("search_capabilities")
            && operations.is_some()
            && !searches(operations_here)
        {
            report.add(
                &place.key("search_capabilities"),
                "Must be omitted, since search-offerings is not advertised.",
            );
        }
        for member in FORBIDDEN {
            if map.contains_key(member) {
                report.add(&place.key(member), "Must not be in a Service Document.");
            }
        }
        let document = Self {
            name: name?,
            description: description?,
            language: language?,
            localizations: localizations?,
            operations: operations?,
            http: http?,
            branding,
            keywords: keywords.unwrap_or_default(),
            links,
            mcp: mcp.unwrap_or_default(),
            payment_origins: payment_origins.unwrap_or_default(),
            protocols,
            extra: map,
        };
        (report.len() == before).then_some(document)
    }

    /// The Service's name, 1 through 128 code points.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// What the Service is, 1 through 1,024 code points.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// The language of this document.
    pub fn language(&self) -> &LanguageTag {
        &self.language
    }

    /// The languages in which this document exists, [`Self::language`] among them.
    pub fn localizations(&self) -> &Localizations {
        &self.localizations
    }

    /// The advertised operations, each once, `list-offerings` and `get-offering` among them.
    pub fn operations(&self) -> &[OperationDescriptor] {
        &self.operations
    }

    /// How `operation` is advertised, if it is.
    pub fn operation(&self, operation: Operation) -> Option<OperationDescriptor> {
        self.operations
            .iter()
            .copied()
            .find(|descriptor| descriptor.name == operation)
    }

    /// Where the operations are.
    pub fn http(&self) -> &Http {
        &self.http
    }

    /// Icon and logo.
    pub fn branding(&self) -> Option<&Branding> {
        self.branding.as_ref()
    }

    /// Hints for discovery, in [`Self::language`]; empty stands for an absent member too.
    pub fn keywords(&self) -> &Keywords {
        &self.keywords
    }

    /// Links for people.
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// MCP endpoints; empty stands for an absent member. Reading this document never connects to them.
    pub fn mcp(&self) -> &[McpEndpoint] {
        &self.mcp
    }

    /// Origins from which payment challenges can come, at most 16, with duplicates; empty stands for an absent member.
    pub fn payment_origins(&self) -> &[ServiceOrigin] {
        &self.payment_origins
    }

    /// Protocols beside this one.
    pub fn protocols(&self) -> Option<&Protocols> {
        self.protocols.as_ref()
    }

    /// Members that the protocol does not define.
    pub fn extra(&self) -> &Map<String, Value> {
        &self.extra
    }

    /// The wire form.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert(version::MEMBER.into(), "1.0".into());
        map.insert("name".into(), self.name.as_str().into());
        map.insert("description".into(), self.description.as_str().into());
        map.insert("language".into(), self.language.as_str().into());
        map.insert(
            "localizations".into(),
            array(self.localizations.tags(), |tag| tag.as_str().into()),
        );
        map.insert(
            "operations".into(),
            array(&self.operations, |descriptor| descriptor.to_value()),
        );
        map.insert("http".into(), self.http.to_value());
        if let Some(branding) = &self.branding {
            map.insert("branding".into(), branding.to_value());
        }
        if !self.keywords.as_slice().is_empty() {
            map.insert(
                "keywords".into(),
                array(self.keywords.as_slice(), |keyword| keyword.as_str().into()),
            );
        }
        self.links.insert_into(&mut map);
        if !self.mcp.is_empty() {
            map.insert("mcp".into(), array(&self.mcp, McpEndpoint::to_value));
        }
        if !self.payment_origins.is_empty() {
            map.insert(
                "payment_origins".into(),
                array(&self.payment_origins, |origin| origin.as_str().into()),
            );
        }
        if let Some(protocols) = &self.protocols {
            map.insert("protocols".into(), protocols.to_value());
        }
        map.extend(self.extra.clone());
        Value::Object(map)
    }
}

impl Branding {
    fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let mut map = shape::object(report, place, value)?;
        let before = report.len();
        let icon = shape::required(report, place, &mut map, "icon", BrandingImage::read);
        let logo = shape::required(report, place, &mut map, "logo", BrandingImage::read);
        shape::closed(report, place, &map);
        let branding = Self {
            icon: icon?,
            logo: logo?,
        };
        (report.len() == before).then_some(branding)
    }

    fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("icon".into(), self.icon.to_value());
        map.insert("logo".into(), self.logo.to_value());
        Value::Object(map)
    }
}

impl Links {
    fn take(report: &mut Report, place: &Place<'_>, map: &mut Map<String, Value>) -> Self {
        let mut link = |name| shape::optional(report, place, map, name, ResourceReference::read);
        Self {
            documentation_url: link("documentation_url"),
            status_url: link("status_url"),
            support_url: link("support_url"),
            website_url: link("website_url"),
        }
    }

    fn insert_into(&self, map: &mut Map<String, Value>) {
        let links = [
            ("documentation_url", &self.documentation_url),
            ("status_url", &self.status_url),
            ("support_url", &self.support_url),
            ("website_url", &self.website_url),
        ];
        for (name, link) in links {
            if let Some(link) = link {
                map.insert(name.into(), link.as_str().into());
            }
        }
    }
}

fn array<T>(items: &[T], value: impl Fn(&T) -> Value) -> Value {
    Value::Array(items.iter().map(value).collect())
}

fn searches(operations: &[OperationDescriptor]) -> bool {
    operations
        .iter()
        .any(|descriptor| descriptor.name == Operation::SearchOfferings)
}

fn check_enrollment(report: &mut Report, place: &Place<'_>, operations: &[OperationDescriptor]) {
    for (i, descriptor) in operations.iter().enumerate() {
        if descriptor.authentication != Authentication::NotRequired {
            report.add(
                &place.index(i).key("authentication"),
                "Must be not-required, since no enrollment protocol is advertised.",
            );
        }
    }
}

/// Whether `value` has at most `depth` nested containers; looks no deeper than that.
fn fits_depth(value: &Value, depth: usize) -> bool {
    match value {
        Value::Array(items) => depth > 0 && items.iter().all(|item| fits_depth(item, depth - 1)),
        Value::Object(map) => depth > 0 && map.values().all(|item| fits_depth(item, depth - 1)),
        _ => true,
    }
}

/// Whether `value` fits `limit` bytes at its most compact.
fn fits_bytes(value: &Value, limit: usize) -> bool {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    serde_json::to_writer(&mut counter, value).is_ok() && counter.0 <= limit
}

#[cfg(test)]
mod tests;
