//! The origin of a Service.

use super::LocalDevelopment;
use crate::report::{Invalid, Place, Report};
use crate::shape;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::fmt;
use url::Url;

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

/// Whether `host`, as written in a URL, is one of the three that local development may reach over `http`. A name that merely
/// resolves to a loopback address is not.
pub(crate) fn is_loopback_host(host: &str) -> bool {
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
