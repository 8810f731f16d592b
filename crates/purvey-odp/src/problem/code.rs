//! Problem codes.

use crate::report::{Invalid, Place, Report};
use crate::{limits, shape};
use serde_json::Value;
use std::fmt;

/// What the `type` of every problem begins with.
pub const TYPE_BASE: &str = "https://offeringprotocol.org/problems/";

/// What went wrong, for machines.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// The request's syntax or values are invalid (400).
    InvalidRequest,
    /// Authentication is missing or not accepted (401).
    NotAuthenticated,
    /// The caller may not do this (403).
    NotAuthorized,
    /// There is no such resource (404).
    NotFound,
    /// No representation is acceptable (406).
    NotAcceptable,
    /// The continuation no longer works (410).
    ContinuationExpired,
    /// The request is larger than its limit (413).
    RequestTooLarge,
    /// The request's media type is not supported (415).
    UnsupportedMediaType,
    /// Too many requests (429).
    RateLimited,
    /// The Service cannot answer now (503).
    ServiceUnavailable,
    /// A code that is not of ODP 1.0: only the HTTP status tells what it means.
    Other(OtherCode),
}

/// A well-formed code that is not of ODP 1.0.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OtherCode(Box<str>);

const KNOWN: [(Code, &str, u16); 10] = [
    (Code::InvalidRequest, "INVALID_REQUEST", 400),
    (Code::NotAuthenticated, "NOT_AUTHENTICATED", 401),
    (Code::NotAuthorized, "NOT_AUTHORIZED", 403),
    (Code::NotFound, "NOT_FOUND", 404),
    (Code::NotAcceptable, "NOT_ACCEPTABLE", 406),
    (Code::ContinuationExpired, "CONTINUATION_EXPIRED", 410),
    (Code::RequestTooLarge, "REQUEST_TOO_LARGE", 413),
    (Code::UnsupportedMediaType, "UNSUPPORTED_MEDIA_TYPE", 415),
    (Code::RateLimited, "RATE_LIMITED", 429),
    (Code::ServiceUnavailable, "SERVICE_UNAVAILABLE", 503),
];

impl Code {
    const RULE: &'static str =
        "Must begin with A-Z and go on with at most 63 of the characters A-Z 0-9 _.";

    /// The code written as `text`, known or not.
    ///
    /// # Errors
    /// When `text` is not an upper-case letter and at most 63 of `A-Z 0-9 _`; at the pointer `""`.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        if let Some((code, ..)) = KNOWN.iter().find(|(_, name, _)| *name == text) {
            return Ok(code.clone());
        }
        let well_formed = text.len() <= limits::PROBLEM_CODE_CHARS
            && text.starts_with(|c: char| c.is_ascii_uppercase())
            && text
                .bytes()
                .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
        if well_formed {
            Ok(Self::Other(OtherCode(text.into())))
        } else {
            Err(Invalid::one("", Self::RULE))
        }
    }

    /// Reads a JSON string; notes what breaks the rule.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let text = shape::string(report, place, value)?;
        let code = Self::parse(&text).ok();
        if code.is_none() {
            report.add(place, Self::RULE);
        }
        code
    }

    /// The code as it is written.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Other(OtherCode(text)) => text,
            known => known.known().map_or("", |(_, name, _)| name),
        }
    }

    /// The HTTP status that goes with the code; nothing for a code that is not of ODP 1.0.
    pub fn status(&self) -> Option<u16> {
        self.known().map(|&(_, _, status)| status)
    }

    fn known(&self) -> Option<&'static (Self, &'static str, u16)> {
        KNOWN.iter().find(|(code, ..)| code == self)
    }

    /// The `type` that goes with the code, whether it is known or not.
    pub fn type_url(&self) -> String {
        let class = self.as_str().to_ascii_lowercase().replace('_', "-");
        format!("{TYPE_BASE}{class}")
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_codes() {
        for (text, status) in [
            ("INVALID_REQUEST", 400),
            ("NOT_AUTHENTICATED", 401),
            ("NOT_AUTHORIZED", 403),
            ("NOT_FOUND", 404),
            ("NOT_ACCEPTABLE", 406),
            ("CONTINUATION_EXPIRED", 410),
            ("REQUEST_TOO_LARGE", 413),
            ("UNSUPPORTED_MEDIA_TYPE", 415),
            ("RATE_LIMITED", 429),
            ("SERVICE_UNAVAILABLE", 503),
        ] {
            let code = Code::parse(text).unwrap();
            assert!(!matches!(code, Code::Other(_)), "{text}");
            assert_eq!((code.as_str(), code.status()), (text, Some(status)));
        }
        assert_eq!(
            Code::UnsupportedMediaType.type_url(),
            "https://offeringprotocol.org/problems/unsupported-media-type"
        );
    }

    #[test]
    fn other_codes() {
        let code = Code::parse("CATALOG_2_").unwrap();
        assert_eq!((code.as_str(), code.status()), ("CATALOG_2_", None));
        assert_eq!(
            code.type_url(),
            "https://offeringprotocol.org/problems/catalog-2-"
        );
        assert!(Code::parse(&"A".repeat(64)).is_ok());
        for text in [
            "",
            "_A",
            "2A",
            "not_found",
            "NOT-FOUND",
            "A B",
            &"A".repeat(65),
        ] {
            assert!(Code::parse(text).is_err(), "{text}");
        }
    }
}
