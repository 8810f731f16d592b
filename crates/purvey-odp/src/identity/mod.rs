//! Who a resource belongs to and what it is called: Service Origin, identifiers, Resource Identity (ODP §1).

mod origin;

pub use origin::ServiceOrigin;
pub(crate) use origin::is_loopback_host;

use crate::report::{Invalid, Place, Report};
use crate::{limits, shape};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Borrow;
use std::fmt;

/// Whether `http` on a literal loopback host is acceptable; off in production.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LocalDevelopment {
    /// Only `https`.
    #[default]
    Refused,
    /// Also `http` when the host is literally `localhost`, `127.0.0.1` or `[::1]`.
    Allowed,
}

/// Whether every character may stand in an identifier.
fn is_identifier_text(text: &str) -> bool {
    text.bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~'))
}

/// What both kinds of identifier share besides their rule.
macro_rules! identifier {
    ($name:ident, $rule:path) => {
        impl $name {
            /// The identifier, when `text` is one.
            ///
            /// # Errors
            /// The rule that `text` breaks, at the pointer `""`.
            pub fn parse(text: &str) -> Result<Self, Invalid> {
                match $rule(text) {
                    Ok(()) => Ok(Self(text.into())),
                    Err(reason) => Err(Invalid::one("", reason)),
                }
            }

            /// The identifier, verbatim.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Reads a JSON string; notes the rule that it breaks.
            pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
                let text = shape::string(report, place, value)?;
                match $rule(&text) {
                    Ok(()) => Some(Self(text.into_boxed_str())),
                    Err(reason) => {
                        report.add(place, reason);
                        None
                    }
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = Invalid;

            fn from_str(text: &str) -> Result<Self, Invalid> {
                Self::parse(text)
            }
        }
    };
}

/// A Local Resource Identifier: 1 through 128 of `A-Z a-z 0-9 - . _ ~`, but not `.` or `..` (ODP §1). Opaque, compared byte
/// for byte, and put into paths as it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct LocalId(Box<str>);

fn local_id_rule(text: &str) -> Result<(), &'static str> {
    if text.is_empty() || text.len() > limits::IDENTIFIER_CHARS || !is_identifier_text(text) {
        Err("Must be from 1 through 128 of the characters A-Z a-z 0-9 - . _ ~.")
    } else if matches!(text, "." | "..") {
        Err("Must not be . or .. as an identifier.")
    } else {
        Ok(())
    }
}

identifier!(LocalId, local_id_rule);

/// A capability identifier (of a filter, a sort, a service unit): 1 through 64 of `A-Z a-z 0-9 - . _ ~` (ODP §5). Opaque and
/// compared byte for byte.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct CapabilityId(Box<str>);

fn capability_id_rule(text: &str) -> Result<(), &'static str> {
    if text.is_empty()
        || text.len() > limits::CAPABILITY_IDENTIFIER_CHARS
        || !is_identifier_text(text)
    {
        Err("Must be from 1 through 64 of the characters A-Z a-z 0-9 - . _ ~.")
    } else {
        Ok(())
    }
}

identifier!(CapabilityId, capability_id_rule);

/// What a resource is. Collections and Offerings have separate identifier namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ResourceType {
    /// A group of Offerings.
    Collection,
    /// A thing offered.
    Offering,
}

impl ResourceType {
    /// The type named `text`; nothing for an unknown name.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "collection" => Some(Self::Collection),
            "offering" => Some(Self::Offering),
            _ => None,
        }
    }

    /// The protocol's name of the type.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Collection => "collection",
            Self::Offering => "offering",
        }
    }

    /// Reads a JSON string; an unknown type is a violation.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let text = shape::string(report, place, value)?;
        let kind = Self::parse(&text);
        if kind.is_none() {
            report.add(place, "Must be collection or offering.");
        }
        kind
    }
}

impl fmt::Display for ResourceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The identity of a resource: equal only when all three members are (ODP §1). URLs, names and content do not count.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct ResourceIdentity {
    /// The Service that publishes the resource.
    pub service: ServiceOrigin,
    /// What the resource is.
    #[serde(rename = "type")]
    pub resource_type: ResourceType,
    /// Its identifier among the Service's resources of that type.
    pub id: LocalId,
}

impl ResourceIdentity {
    /// Reads the closed object `{service, type, id}`; notes every fault.
    pub fn read(
        report: &mut Report,
        place: &Place<'_>,
        value: Value,
        local: LocalDevelopment,
    ) -> Option<Self> {
        let mut map = shape::object(report, place, value)?;
        let service = shape::required(report, place, &mut map, "service", |r, p, v| {
            ServiceOrigin::read_with(r, p, v, local)
        });
        let resource_type = shape::required(report, place, &mut map, "type", ResourceType::read);
        let id = shape::required(report, place, &mut map, "id", LocalId::read);
        shape::closed(report, place, &map);
        if !map.is_empty() {
            return None;
        }
        Some(Self {
            service: service?,
            resource_type: resource_type?,
            id: id?,
        })
    }

    /// The identity in `value`.
    ///
    /// # Errors
    /// Every rule that `value` breaks.
    pub fn validate(value: Value, local: LocalDevelopment) -> Result<Self, Invalid> {
        let mut report = Report::new();
        let identity = Self::read(&mut report, &Place::ROOT, value, local);
        report.finish(identity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn local_identifiers() {
        for id in [
            "4821",
            "catalog.Offering~4821",
            "...",
            "-_~.",
            &"a".repeat(128),
        ] {
            assert_eq!(LocalId::parse(id).unwrap().as_str(), id);
        }
        for id in [
            ".",
            "..",
            "商品-東京-42",
            "",
            "offering\n42",
            "a b",
            "a/b",
            "%41",
            &"a".repeat(129),
        ] {
            assert!(LocalId::parse(id).is_err(), "{id}");
        }
        assert!(LocalId::parse("ABC").unwrap() != LocalId::parse("abc").unwrap());
        assert!(LocalId::parse("B").unwrap() < LocalId::parse("a").unwrap());
    }

    #[test]
    fn capability_identifiers_may_be_dots_and_stop_at_64() {
        assert!(CapabilityId::parse(".").is_ok());
        assert!(CapabilityId::parse(&"a".repeat(64)).is_ok());
        assert!(CapabilityId::parse(&"a".repeat(65)).is_err());
        assert!(CapabilityId::parse("").is_err());
        assert!(CapabilityId::parse("a:b").is_err());
    }

    fn identity(service: &str, kind: &str, id: &str) -> ResourceIdentity {
        let value = json!({"service": service, "type": kind, "id": id});
        ResourceIdentity::validate(value, LocalDevelopment::Refused).unwrap()
    }

    #[test]
    fn identities_compare_as_a_tuple() {
        let a = identity("https://market.example", "offering", "123");
        assert_eq!(a, identity("https://market.example", "offering", "123"));
        assert_ne!(a, identity("https://market.example", "collection", "123"));
        assert_ne!(a, identity("https://other.example", "offering", "123"));
        assert_ne!(
            identity("https://market.example", "offering", "ABC"),
            identity("https://market.example", "offering", "abc")
        );
        assert_eq!(
            serde_json::to_value(a).unwrap(),
            json!({"service": "https://market.example", "type": "offering", "id": "123"})
        );
    }

    #[test]
    fn an_identity_is_closed_and_its_type_known() {
        let value =
            json!({"service": "https://market.example", "type": "service", "id": "..", "url": "/"});
        let invalid = ResourceIdentity::validate(value, LocalDevelopment::Refused).unwrap_err();
        let pointers: Vec<&str> = invalid
            .violations()
            .iter()
            .map(|v| v.pointer.as_str())
            .collect();
        assert_eq!(pointers, ["/type", "/id", "/url"]);
    }
}
