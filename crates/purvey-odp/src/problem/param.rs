//! Which parameter of a request was wrong.

use super::shortened;
use crate::pointer::Pointer;
use crate::report::{Place, Report, Violation};
use crate::text::Text;
use crate::{limits, shape};
use serde::Serialize;
use serde_json::Value;

/// Where a parameter stands in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum In {
    /// The URL's query; the name is the parameter's.
    Query,
    /// The body; the name is a JSON Pointer.
    Body,
    /// The header; the name is the field's.
    Header,
    /// The URL's path; the name is the template variable's.
    Path,
}

impl In {
    /// The place named `text`; nothing for an unknown name.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "query" => Some(Self::Query),
            "body" => Some(Self::Body),
            "header" => Some(Self::Header),
            "path" => Some(Self::Path),
            _ => None,
        }
    }

    fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let text = shape::string(report, place, value)?;
        let location = Self::parse(&text);
        if location.is_none() {
            report.add(place, "Must be query, body, header or path.");
        }
        location
    }
}

/// Whether an entry says `in` with a name that this version does not know.
pub(super) fn has_unknown_place(entry: &Value) -> bool {
    let location = entry.get("in").and_then(Value::as_str);
    location.is_some_and(|text| In::parse(text).is_none())
}

/// A parameter that was wrong, and why.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct InvalidParam {
    #[serde(rename = "in")]
    location: In,
    name: String,
    reason: String,
}

type Reason = Text<{ limits::INVALID_PARAM_REASON_CHARS }>;

impl InvalidParam {
    /// A parameter of the URL's query. Name and reason are cut to what fits.
    pub fn query(name: &str, reason: &str) -> Self {
        Self::new(In::Query, name, reason)
    }

    /// A field of the header. Name and reason are cut to what fits.
    pub fn header(name: &str, reason: &str) -> Self {
        Self::new(In::Header, name, reason)
    }

    /// A variable of the path. Name and reason are cut to what fits.
    pub fn path(name: &str, reason: &str) -> Self {
        Self::new(In::Path, name, reason)
    }

    /// A member of the body by its JSON Pointer; `""` for the body itself. A pointer that is too long becomes that of the
    /// nearest member around it, and so does what follows a token that cannot be.
    pub fn body(pointer: &str, reason: &str) -> Self {
        let mut name = pointer;
        while name.chars().count() > limits::INVALID_PARAM_NAME_CHARS
            || Pointer::parse(name).is_err()
        {
            name = name.rsplit_once('/').map_or("", |(outer, _)| outer);
        }
        Self::new(In::Body, name, reason)
    }

    fn new(location: In, name: &str, reason: &str) -> Self {
        // Both are never empty but for the body itself; these words stand in for a caller's slip.
        let name = match name {
            "" if location != In::Body => "unnamed",
            name => name,
        };
        let reason = match reason {
            "" => "Is not valid.",
            reason => reason,
        };
        Self {
            location,
            name: shortened(name, limits::INVALID_PARAM_NAME_CHARS).to_owned(),
            reason: shortened(reason, limits::INVALID_PARAM_REASON_CHARS).to_owned(),
        }
    }

    /// Where the parameter stands.
    pub fn location(&self) -> In {
        self.location
    }

    /// The parameter's name, a JSON Pointer in a body; at most 256 code points.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is wrong, for people; from 1 through 1,024 code points.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Reads an entry of `invalid_params`; notes every fault. Unknown members are ignored.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let mut map = shape::object(report, place, value)?;
        let location = shape::required(report, place, &mut map, "in", In::read);
        let name = shape::required(report, place, &mut map, "name", |report, place, value| {
            let name = shape::string(report, place, value)?;
            if let Some(rule) = location.and_then(|location| broken_name(location, &name)) {
                report.add(place, rule);
                return None;
            }
            Some(name)
        });
        let reason = shape::required(report, place, &mut map, "reason", Reason::read);
        Some(Self {
            location: location?,
            name: name?,
            reason: reason?.to_string(),
        })
    }
}

/// The rule that `name` breaks, if any.
fn broken_name(location: In, name: &str) -> Option<&'static str> {
    if name.chars().count() > limits::INVALID_PARAM_NAME_CHARS {
        return Some("Must have at most 256 Unicode code points.");
    }
    match location {
        In::Body => Pointer::parse(name)
            .is_err()
            .then_some("Must be a JSON Pointer."),
        _ => name.is_empty().then_some("Must not be empty."),
    }
}

impl From<&Violation> for InvalidParam {
    fn from(violation: &Violation) -> Self {
        Self::body(&violation.pointer, &violation.reason)
    }
}
