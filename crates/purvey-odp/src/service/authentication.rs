//! Authentication requirements of operations and Actions.

use crate::report::{Place, Report};
use crate::shape;
use serde_json::Value;

/// Whether an operation or an Action wants authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Authentication {
    /// Usable without authentication.
    NotRequired,
    /// Usable anonymously; authentication can expand what is seen.
    Optional,
    /// Only with authentication.
    Required,
}

impl Authentication {
    /// The requirement with the wire name `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "not-required" => Some(Self::NotRequired),
            "optional" => Some(Self::Optional),
            "required" => Some(Self::Required),
            _ => None,
        }
    }

    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotRequired => "not-required",
            Self::Optional => "optional",
            Self::Required => "required",
        }
    }

    /// Reads a JSON string; notes what is none of the three.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let name = shape::string(report, place, value)?;
        let found = Self::from_name(&name);
        if found.is_none() {
            report.add(place, "Must be not-required, optional or required.");
        }
        found
    }
}
