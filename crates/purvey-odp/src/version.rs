//! The protocol version that every top-level document carries (ODP §1).

use crate::report::{Invalid, Place, Report};
use crate::shape;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::fmt;

/// Name of the member that carries the version.
pub const MEMBER: &str = "odp_version";

/// A protocol version, `MAJOR.MINOR` in decimal without leading zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProtocolVersion {
    major: u32,
    minor: u32,
}

impl ProtocolVersion {
    /// The version that is implemented here, and the only one that is accepted.
    pub const V1_0: Self = Self { major: 1, minor: 0 };

    /// The version written as `text`, supported or not.
    ///
    /// # Errors
    /// When `text` is not two unsigned decimal integers (of at most 32 bits) without leading zeros, joined by a period.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        text.split_once('.')
            .and_then(|(major, minor)| {
                Some(Self {
                    major: number(major)?,
                    minor: number(minor)?,
                })
            })
            .ok_or_else(|| Invalid::one("", "Must be MAJOR.MINOR without leading zeros."))
    }

    /// The major version.
    pub fn major(self) -> u32 {
        self.major
    }

    /// The minor version.
    pub fn minor(self) -> u32 {
        self.minor
    }

    /// Whether documents of this version are accepted: exactly `1.0` is.
    pub fn is_supported(self) -> bool {
        self == Self::V1_0
    }

    /// Reads the version of a top-level document; one that is not supported is a violation.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let text = shape::string(report, place, value)?;
        match Self::parse(&text) {
            Ok(version) if version.is_supported() => Some(version),
            Ok(_) => {
                report.add(place, "Must be 1.0, the only supported version.");
                None
            }
            Err(_) => {
                report.add(place, "Must be MAJOR.MINOR without leading zeros.");
                None
            }
        }
    }

    /// Takes the version out of a top-level document; a missing one is a violation.
    pub fn take(
        report: &mut Report,
        place: &Place<'_>,
        map: &mut Map<String, Value>,
    ) -> Option<Self> {
        shape::required(report, place, map, MEMBER, Self::read)
    }

    /// Notes a version on a nested object, which inherits that of its document; takes it out.
    pub fn refuse(report: &mut Report, place: &Place<'_>, map: &mut Map<String, Value>) {
        if map.shift_remove(MEMBER).is_some() {
            report.add(
                &place.key(MEMBER),
                "Must not repeat the version inside a document.",
            );
        }
    }
}

/// An unsigned decimal integer without leading zeros.
fn number(text: &str) -> Option<u32> {
    let plain = text == "0" || !text.starts_with('0');
    (plain && text.bytes().all(|b| b.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl Serialize for ProtocolVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn syntax() {
        for text in ["1.0", "1.7", "2.0", "0.0", "10.12"] {
            assert_eq!(ProtocolVersion::parse(text).unwrap().to_string(), text);
        }
        for text in [
            "1",
            "01.0",
            "1.00",
            "1.0.0",
            "",
            ".",
            "1.",
            ".0",
            "+1.0",
            "-1.0",
            "1.0 ",
            "1,0",
            "v1.0",
            "99999999999.0",
            "١.٠",
        ] {
            assert!(ProtocolVersion::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn exactly_one_version_is_supported() {
        assert!(ProtocolVersion::parse("1.0").unwrap().is_supported());
        for text in ["1.7", "2.0", "0.1"] {
            assert!(
                !ProtocolVersion::parse(text).unwrap().is_supported(),
                "{text}"
            );
        }
        assert_eq!(serde_json::to_value(ProtocolVersion::V1_0).unwrap(), "1.0");
    }

    #[test]
    fn placement() {
        let mut report = Report::new();
        let mut map = json!({"odp_version": "1.0"}).as_object().unwrap().clone();
        assert_eq!(
            ProtocolVersion::take(&mut report, &Place::ROOT, &mut map),
            Some(ProtocolVersion::V1_0)
        );
        assert!(report.is_empty() && map.is_empty());
        ProtocolVersion::refuse(&mut report, &Place::ROOT, &mut map);
        assert!(report.is_empty());
        ProtocolVersion::take(&mut report, &Place::ROOT, &mut map);
        assert_eq!(report.len(), 1);
        for version in [json!("1.7"), json!("1"), json!(1.0)] {
            let before = report.len();
            assert_eq!(
                ProtocolVersion::read(&mut report, &Place::ROOT, version),
                None
            );
            assert_eq!(report.len(), before + 1);
        }
        map.insert(MEMBER.to_owned(), json!("1.0"));
        let before = report.len();
        ProtocolVersion::refuse(&mut report, &Place::ROOT, &mut map);
        assert_eq!((report.len(), map.len()), (before + 1, 0));
    }
}
