//! Who a resource belongs to and what it is called: Service Origin, identifiers, Resource Identity (ODP §1).

use crate::report::{Invalid, Place, Report};
use crate::{limits, shape};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::borrow::Borrow;
use std::fmt;
use url::Url;

/// Whether `http` on a literal loopback host is acceptable; off in production.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LocalDevelopment {
    /// Only `https`.
    #[default]
    Refused,
    /// Also `http` when the host is literally `localhost`, `127.0.0.1` or `[::1]`.
    Allowed,
}

/// Whether `host`, as written in a URL, is one of the three that local development may reach over `http`. A name that merely
/// resolves to a loopback address is not.
pub(crate) fn is_loopback_host(host: &str) -> bool {
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
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

/// A Service Origin: the ASCII serialization (RFC 6454) of the origin of a Service Document's final URL (ODP §1). It is the
/// Service's identity: scheme and host in lower case, no default port, nothing after the port.
#[derive(Clone, Debug)]
pub struct ServiceOrigin {
    text: Box<str>,
    url: Url,
}

impl ServiceOrigin {
    /// The origin, when `text` is exactly its canonical serialization.
    ///
    /// # Errors
    /// The rule that `text` breaks, at the pointer `""`.
    pub fn parse(text: &str, local: LocalDevelopment) -> Result<Self, Invalid> {
        let canonical = Url::parse(text)
            .ok()
            .and_then(|url| Self::from_url(&url, local).ok())
            .filter(|origin| origin.as_str() == text);
        canonical.ok_or_else(|| Invalid::one("", Self::RULE))
    }

    const RULE: &'static str =
        "Must be an https origin in canonical form: lower case, no default port, nothing after it.";

    /// The origin of `url`, the final URL of a Service Document.
    ///
    /// # Errors
    /// When the scheme is not `https` (or `http` on a literal loopback host, in local development), or the host is not a
    /// plain ASCII name or address.
    pub fn from_url(url: &Url, local: LocalDevelopment) -> Result<Self, Invalid> {
        let host = url.host_str().unwrap_or_default();
        let secure = match url.scheme() {
            "https" => true,
            "http" => local == LocalDevelopment::Allowed && is_loopback_host(host),
            _ => false,
        };
        if !secure || !is_plain_host(host) {
            return Err(Invalid::one("", Self::RULE));
        }
        let mut root = url.clone();
        root.set_path("/");
        root.set_query(None);
        root.set_fragment(None);
        // Neither can fail for a URL that has a host.
        if root.set_username("").is_err() || root.set_password(None).is_err() {
            return Err(Invalid::one("", Self::RULE));
        }
        Ok(Self {
            text: root.origin().ascii_serialization().into_boxed_str(),
            url: root,
        })
    }

    /// Reads a JSON string that holds an origin, `https` only; notes what breaks the rule.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        Self::read_with(report, place, value, LocalDevelopment::Refused)
    }

    /// Reads a JSON string that holds an origin; notes what breaks the rule.
    pub fn read_with(
        report: &mut Report,
        place: &Place<'_>,
        value: Value,
        local: LocalDevelopment,
    ) -> Option<Self> {
        let text = shape::string(report, place, value)?;
        match Self::parse(&text, local) {
            Ok(origin) => Some(origin),
            Err(_) => {
                report.add(place, Self::RULE);
                None
            }
        }
    }

    /// The serialization, without a trailing slash.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The origin as a URL whose path is `/`.
    pub fn as_url(&self) -> &Url {
        &self.url
    }

    /// Whether `url` has this origin: the same scheme, host and effective port.
    pub fn is_origin_of(&self, url: &Url) -> bool {
        self.url.scheme() == url.scheme()
            && self.url.host() == url.host()
            && self.url.port_or_known_default() == url.port_or_known_default()
    }
}

/// Whether `host` is a bracketed address, or letters, digits, `.` and `-` with a letter or digit at both ends.
fn is_plain_host(host: &str) -> bool {
    if host.starts_with('[') {
        return true;
    }
    let ends = host
        .bytes()
        .next()
        .into_iter()
        .chain(host.bytes().next_back());
    !host.is_empty()
        && ends.into_iter().all(|b| b.is_ascii_alphanumeric())
        && host
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-'))
}

impl PartialEq for ServiceOrigin {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for ServiceOrigin {}

impl PartialOrd for ServiceOrigin {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ServiceOrigin {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.text.cmp(&other.text)
    }
}

impl std::hash::Hash for ServiceOrigin {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl fmt::Display for ServiceOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for ServiceOrigin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

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

    #[test]
    fn origins_are_canonical() {
        let ok = |text| ServiceOrigin::parse(text, LocalDevelopment::Refused).is_ok();
        for text in [
            "https://market.example",
            "https://market.example:8443",
            "https://[2001:db8::1]",
            "https://192.0.2.7:1",
            "https://xn--bcher-kva.example",
            "https://localhost",
        ] {
            assert!(ok(text), "{text}");
        }
        for text in [
            "https://Market.Example",
            "HTTPS://market.example",
            "https://market.example:443",
            "https://market.example:08443",
            "https://market.example:99999",
            "https://market.example/",
            "https://market.example?",
            "https://market.example#",
            "http://market.example",
            "https://market.example/odp",
            "https://user@market.example",
            "https://@market.example",
            "https://bücher.example",
            "https://market.example.",
            "https://0x7f.1",
            " https://market.example",
            "https:market.example",
            "https:///market.example",
            "wss://market.example",
            "https://",
            "null",
            "",
        ] {
            assert!(!ok(text), "{text}");
        }
    }

    #[test]
    fn http_needs_local_development_and_a_literal_loopback_host() {
        let parse = ServiceOrigin::parse;
        for text in [
            "http://localhost:3000",
            "http://127.0.0.1",
            "http://[::1]:8080",
        ] {
            assert!(parse(text, LocalDevelopment::Allowed).is_ok(), "{text}");
            assert!(parse(text, LocalDevelopment::Refused).is_err(), "{text}");
        }
        for text in [
            "http://localhost:80",
            "http://127.1:3000",
            "http://127.0.0.2",
            "http://dev.localhost",
            "http://dev.example:8080",
            "http://0.0.0.0",
        ] {
            assert!(parse(text, LocalDevelopment::Allowed).is_err(), "{text}");
        }
    }

    #[test]
    fn the_origin_of_a_final_url() {
        let url = Url::parse("https://u:p@Market.Example:443/a/.well-known/odp?x#y").unwrap();
        let origin = ServiceOrigin::from_url(&url, LocalDevelopment::Refused).unwrap();
        assert_eq!(origin.as_str(), "https://market.example");
        assert_eq!(origin.as_url().as_str(), "https://market.example/");
        assert!(origin.is_origin_of(&url));
        for other in [
            "https://market.example:444",
            "http://market.example",
            "https://other.example",
        ] {
            assert!(!origin.is_origin_of(&Url::parse(other).unwrap()), "{other}");
        }
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
