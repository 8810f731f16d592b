//! Resource References: where a link may point (ODP §1).

use crate::identity::{LocalDevelopment, ServiceOrigin, is_loopback_host};
use crate::report::{Invalid, Place, Report};
use crate::shape;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::fmt;
use url::Url;

/// A Resource Reference: a path of the Service Origin (one leading `/`), or an absolute `https` URL; no user information, no
/// fragment, only the ASCII characters of a URI (ODP §1). Compared as text.
#[derive(Clone, Debug)]
pub struct ResourceReference {
    text: Box<str>,
    /// Nothing for a path of the Service Origin. Boxed: a URL is large, and references are many.
    absolute: Option<Box<Url>>,
}

impl ResourceReference {
    /// The reference, when `text` is one.
    ///
    /// # Errors
    /// The rule that `text` breaks, at the pointer `""`.
    pub fn parse(text: &str, local: LocalDevelopment) -> Result<Self, Invalid> {
        match absolute(text, local) {
            Ok(absolute) => Ok(Self {
                text: text.into(),
                absolute,
            }),
            Err(reason) => Err(Invalid::one("", reason)),
        }
    }

    /// Reads a JSON string, without local development; notes what breaks the rule.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        Self::read_with(report, place, value, LocalDevelopment::Refused)
    }

    /// Reads a JSON string; notes what breaks the rule.
    pub fn read_with(
        report: &mut Report,
        place: &Place<'_>,
        value: Value,
        local: LocalDevelopment,
    ) -> Option<Self> {
        let text = shape::string(report, place, value)?;
        match absolute(&text, local) {
            Ok(absolute) => Some(Self {
                text: text.into_boxed_str(),
                absolute,
            }),
            Err(reason) => {
                report.add(place, reason);
                None
            }
        }
    }

    /// The reference as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The URL that the reference means at the Service `origin`. The path of the document that holds it plays no part.
    pub fn resolve(&self, origin: &ServiceOrigin) -> Url {
        if let Some(url) = &self.absolute {
            return Url::clone(url);
        }
        let (path, query) = match self.text.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (&*self.text, None),
        };
        let mut url = origin.as_url().clone();
        url.set_path(path);
        url.set_query(query);
        url
    }

    /// Whether the reference stays at `origin`: the same scheme, host and effective port.
    pub fn is_same_origin(&self, origin: &ServiceOrigin) -> bool {
        self.absolute
            .as_ref()
            .is_none_or(|url| origin.is_origin_of(url))
    }

    /// Whether the reference is a path of the Service Origin.
    pub fn is_origin_relative(&self) -> bool {
        self.absolute.is_none()
    }
}

/// The URL of an absolute reference, nothing for a path; or the rule that `text` breaks.
fn absolute(text: &str, local: LocalDevelopment) -> Result<Option<Box<Url>>, &'static str> {
    if !is_uri_text(text) {
        return Err("Must hold only the ASCII characters of a URI, without a fragment.");
    }
    if text.starts_with('/') {
        if text.starts_with("//") {
            return Err("Must not begin with two slashes.");
        }
        if text.contains(['[', ']']) {
            return Err("Must have brackets percent-encoded in a path or query.");
        }
        return Ok(None);
    }
    let rest = match text.split_once("://") {
        Some(("https", rest)) => rest,
        Some(("http", rest)) if is_local(rest) => match local {
            LocalDevelopment::Allowed => rest,
            LocalDevelopment::Refused => return Err("Must use https outside local development."),
        },
        _ => return Err("Must be a path that begins with one slash, or an absolute https URL."),
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    if authority.is_empty() || authority.contains('@') {
        return Err("Must name a host, without user information.");
    }
    if tail.contains(['[', ']']) {
        return Err("Must have brackets percent-encoded in a path or query.");
    }
    match Url::parse(text) {
        Ok(url) => Ok(Some(Box::new(url))),
        Err(_) => Err("Must be a well-formed URL."),
    }
}

/// Whether the authority that begins `rest` is a literal loopback host, with or without a port.
fn is_local(rest: &str) -> bool {
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let authority = rest.get(..end).unwrap_or_default();
    is_loopback_host(authority)
        || authority.rsplit_once(':').is_some_and(|(host, port)| {
            is_loopback_host(host) && !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit())
        })
}

/// Whether `text` holds only URI characters (RFC 3986) other than `#`, every `%` followed by two hexadecimal digits.
fn is_uri_text(text: &str) -> bool {
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        let fine = match b {
            b'%' => (0..2).all(|_| bytes.next().is_some_and(|b| b.is_ascii_hexdigit())),
            b'-' | b'.' | b'_' | b'~' | b':' | b'/' | b'?' | b'@' | b'[' | b']' => true,
            b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' => true,
            b => b.is_ascii_alphanumeric(),
        };
        if !fine {
            return false;
        }
    }
    true
}

/// Whether `text` is a URI reference of any kind (RFC 3986), relative ones and fragments included.
pub(crate) fn is_uri_reference(text: &str) -> bool {
    let (resource, fragment) = text.split_once('#').unwrap_or((text, ""));
    // A colon in the first segment can only end a scheme.
    let first = resource.split(['/', '?']).next().unwrap_or_default();
    let scheme = first.split_once(':').is_none_or(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
    });
    scheme && is_uri_text(resource) && is_uri_text(fragment)
}

impl PartialEq for ResourceReference {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for ResourceReference {}

impl PartialOrd for ResourceReference {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ResourceReference {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.text.cmp(&other.text)
    }
}

impl std::hash::Hash for ResourceReference {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl fmt::Display for ResourceReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl AsRef<str> for ResourceReference {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl Serialize for ResourceReference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ResourceReference, Invalid> {
        ResourceReference::parse(text, LocalDevelopment::Refused)
    }

    fn origin(text: &str) -> ServiceOrigin {
        ServiceOrigin::parse(text, LocalDevelopment::Refused).unwrap()
    }

    #[test]
    fn accepted() {
        for text in [
            "/",
            "/odp/offerings/123",
            "/odp/offerings?cursor=abc",
            "/a%20b;c=d/@:!$&'()*+,?x=/?",
            "https://catalog.example.net/odp/offerings/123",
            "https://catalog.example.net",
            "https://Catalog.Example:8443?q",
            "https://[2001:db8::1]/x",
            "https://a.example/p/@user",
        ] {
            let reference = parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(reference.as_str(), text);
            assert_eq!(serde_json::to_value(&reference).unwrap(), text);
        }
    }

    #[test]
    fn refused() {
        for text in [
            "",
            "offerings/123",
            "../offerings/123",
            "./x",
            "?x",
            "//catalog.example.net/offerings/123",
            "/\\catalog.example.net",
            "http://catalog.example.net/offerings/123",
            "HTTPS://catalog.example.net/",
            "/odp/offerings/123#details",
            "https://a.example/#",
            "https://user@catalog.example.net/offerings/123",
            "https://@a.example/",
            "https://",
            "https:///a.example",
            "https:/a.example",
            "https:a.example",
            "https://?x",
            "https://a.example:99999/",
            "https://a b.example/",
            "/a b",
            "/a\tb",
            "/caf\u{e9}",
            "https://caf\u{e9}.example/",
            "/a%2",
            "/a%zz",
            "/a[0]",
            "https://a.example/?a[]=1",
            "/a\"b",
            "/{id}",
            "ftp://a.example/",
            "javascript:alert(1)",
            "data:text/plain,x",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn uri_references_of_any_kind() {
        for text in [
            "",
            "#a",
            "/problems/1#x",
            "a/b:c",
            "urn:uuid:0f",
            "https://a.example/?x#y",
            "?a:b",
            "./1:2",
        ] {
            assert!(is_uri_reference(text), "{text}");
        }
        for text in ["a b", "1:2", ":a", "#a#b", "caf\u{e9}", "%", "a_b:c"] {
            assert!(!is_uri_reference(text), "{text}");
        }
    }

    #[test]
    fn local_development() {
        let local = |text| ResourceReference::parse(text, LocalDevelopment::Allowed);
        for text in [
            "http://127.0.0.1:8080/odp/offerings/123",
            "http://localhost",
            "http://[::1]:1/x",
        ] {
            assert!(local(text).is_ok(), "{text}");
            assert!(parse(text).is_err(), "{text}");
        }
        for text in [
            "http://catalog.example.net/offerings/123",
            "http://localhost.example/",
            "http://localhost@evil.example/",
            "http://127.1/",
            "http://localhost:x/",
            "http://LOCALHOST/",
        ] {
            assert!(local(text).is_err(), "{text}");
        }
    }

    #[test]
    fn resolution_uses_the_origin_alone() {
        let at = origin("https://market.example:8443");
        let resolve = |text| parse(text).unwrap().resolve(&at).to_string();
        assert_eq!(resolve("/a?b=/c?"), "https://market.example:8443/a?b=/c?");
        assert_eq!(resolve("/a/../b"), "https://market.example:8443/b");
        assert_eq!(
            resolve("/.//evil.example"),
            "https://market.example:8443//evil.example"
        );
        assert_eq!(
            resolve("/a%2Fb?%20"),
            "https://market.example:8443/a%2Fb?%20"
        );
        assert_eq!(resolve("https://other.example"), "https://other.example/");
    }

    #[test]
    fn same_origin() {
        let at = origin("https://market.example");
        let same = |text| parse(text).unwrap().is_same_origin(&at);
        assert!(same("/pages/abc"));
        assert!(same("https://market.example/pages/abc"));
        assert!(same("https://MARKET.example:443/pages/abc"));
        assert!(!same("https://other.example/pages/abc"));
        assert!(!same("https://market.example:8443/pages/abc"));
        assert!(!same("https://market.example.evil.example/"));
    }

    #[test]
    fn reading_notes_the_place() {
        let mut report = Report::new();
        let place = Place::ROOT.key("web_url");
        assert!(ResourceReference::read(&mut report, &place, "x/y".into()).is_none());
        assert!(ResourceReference::read(&mut report, &place, 7.into()).is_none());
        let invalid = report.finish::<()>(None).unwrap_err();
        assert!(invalid.violations().iter().all(|v| v.pointer == "/web_url"));
        assert_eq!(invalid.violations().len(), 2);
    }
}
