//! How complete a representation is, and where it stands.

use crate::limits;
use crate::report::{Invalid, Place, Report};
use crate::shape;
use serde_json::Value;
use std::collections::HashSet;

/// How much of a Collection or an Offering a representation carries (ODP §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Representation {
    /// `id`, `name` and what the Service chose to add.
    Terse,
    /// Everything that the caller may see.
    Full,
}

impl Representation {
    /// The representation that a `representation` parameter asks for.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "terse" => Some(Self::Terse),
            "full" => Some(Self::Full),
            _ => None,
        }
    }

    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Terse => "terse",
            Self::Full => "full",
        }
    }
}

/// Where a representation stands: by itself it carries `odp_version`, within a page it must not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// A document by itself.
    TopLevel,
    /// An item of a page.
    Embedded,
}

/// `detail_fields` of a Terse Representation: 1 through 32 distinct JSON Pointers of at most 256 printable ASCII characters,
/// none of them within another. What they point at is absent from the Terse Representation; that they are exhaustive can only
/// be told beside the Full one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetailFields(Vec<String>);

impl DetailFields {
    /// The pointers `pointers`.
    ///
    /// # Errors
    /// Every pointer that breaks a rule, at its index.
    pub fn new(pointers: Vec<String>) -> Result<Self, Invalid> {
        let mut report = Report::new();
        let value = pointers.into_iter().map(Value::String).collect();
        let fields = Self::read(&mut report, &Place::ROOT, value);
        report.finish(fields)
    }

    /// The pointers in their order.
    pub fn as_slice(&self) -> &[String] {
        &self.0
    }

    /// Reads the array and notes every rule that it breaks.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let pointers = shape::list(
            report,
            place,
            value,
            1..=limits::DETAIL_FIELDS,
            |report, place, value| {
                let text = shape::string(report, place, value)?;
                if is_detail_field(&text) {
                    return Some(text);
                }
                report.add(
                    place,
                    "Must be a JSON Pointer of at most 256 printable ASCII characters.",
                );
                None
            },
        )?;
        let before = report.len();
        let all: HashSet<&str> = pointers.iter().map(String::as_str).collect();
        let mut seen = HashSet::with_capacity(pointers.len());
        for (i, pointer) in pointers.iter().enumerate() {
            let covered = pointer
                .match_indices('/')
                .skip(1)
                .filter_map(|(end, _)| pointer.get(..end))
                .any(|prefix| all.contains(prefix));
            if covered {
                report.add(
                    &place.index(i),
                    "Must not be within the subtree of another pointer.",
                );
            }
            if !seen.insert(pointer.as_str()) {
                report.add(&place.index(i), "Must not be listed twice.");
            }
        }
        (report.len() == before).then_some(Self(pointers))
    }

    pub(crate) fn into_value(self) -> Value {
        self.0.into()
    }
}

fn is_detail_field(text: &str) -> bool {
    let bytes = text.as_bytes();
    text.starts_with('/')
        && text.len() <= limits::DETAIL_FIELD_CHARS
        && bytes.iter().enumerate().all(|(i, b)| match b {
            b'~' => matches!(bytes.get(i + 1), Some(b'0' | b'1')),
            b' '..=b'}' => true,
            _ => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pointers: &[&str]) -> Result<DetailFields, Invalid> {
        DetailFields::new(pointers.iter().map(|&p| p.to_owned()).collect())
    }

    #[test]
    fn pointers_have_a_form() {
        let long = format!("/{}", "a".repeat(255));
        for ok in [
            "/actions",
            "/attributes/a~1b~0c",
            "/",
            "/a//b",
            "/with space",
            &long,
        ] {
            assert!(check(&[ok]).is_ok(), "{ok}");
        }
        let longer = format!("/{}", "a".repeat(256));
        for bad in [
            "",
            "#/attributes/region",
            "attributes",
            "/a~",
            "/a~2",
            "/é",
            "/a\u{7f}",
            "/a\tb",
            &longer,
        ] {
            assert!(check(&[bad]).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_list_is_bounded_distinct_and_minimal() {
        assert!(check(&[]).is_err());
        assert!(check(&["/attributes/cpu", "/attributes/cpus"]).is_ok());
        let nested = check(&["/attributes/cpu/cores", "/attributes"]).unwrap_err();
        assert_eq!(nested.violations()[0].pointer, "/0");
        let twice = check(&["/actions", "/actions"]).unwrap_err();
        assert_eq!(twice.violations()[0].pointer, "/1");
        let many: Vec<String> = (0..33).map(|i| format!("/a{i}")).collect();
        assert!(DetailFields::new(many[..32].to_vec()).is_ok());
        assert!(DetailFields::new(many).is_err());
    }
}
