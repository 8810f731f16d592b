//! Search requests, judged in two steps (ODP §5): `validate` sees what the body alone can tell; `resolve` then holds it
//! against the capabilities that are effective. Between the two a Service looks for the named Collection.

mod collection;
mod offering;
#[cfg(test)]
mod tests;

pub use collection::{CollectionSearchRequest, ParentConstraint};
pub use offering::{OfferingSearchRequest, ResolvedSearch};

use crate::limits;
use crate::report::{Place, Report};
use crate::text::Text;
use crate::value::{Scalar, ScalarType};
use crate::version::{self, ProtocolVersion};
use serde_json::{Map, Value, json};

/// Search text: 1 through 256 Unicode code points, at least one of them not white space. The Service decides what it means.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Query(Text<{ limits::QUERY_CHARS }>);

impl Query {
    /// The query, when `text` is one.
    pub fn new(text: &str) -> Option<Self> {
        Text::new(text).filter(says_something).map(Self)
    }

    /// The text as the caller wrote it.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Reads a JSON string; notes what breaks the rule.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let text = Text::read(report, place, value)?;
        if !says_something(&text) {
            report.add(place, "Must have a character that is not white space.");
            return None;
        }
        Some(Self(text))
    }
}

/// White space is Unicode's and U+FEFF, which the protocol's schema counts too.
fn says_something(text: &Text<{ limits::QUERY_CHARS }>) -> bool {
    text.as_str()
        .chars()
        .any(|c| !c.is_whitespace() && c != '\u{feff}')
}

fn body(query: Option<&Query>) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert(
        version::MEMBER.into(),
        json!(ProtocolVersion::V1_0.to_string()),
    );
    if let Some(query) = query {
        map.insert("query".into(), json!(query.as_str()));
    }
    map
}

fn with_limit(mut map: Map<String, Value>, limit: Option<u8>) -> Value {
    if let Some(limit) = limit {
        map.insert("limit".into(), json!(limit));
    }
    Value::Object(map)
}

fn read_limit(report: &mut Report, place: &Place<'_>, value: &Value) -> Option<u8> {
    let (min, max) = (limits::PAGE_LIMIT.start(), limits::PAGE_LIMIT.end());
    let limit = match ScalarType::Integer.scalar(value) {
        Some(Scalar::Integer(number)) => number.to_u64(),
        _ => None,
    };
    let limit = limit.filter(|limit| limits::PAGE_LIMIT.contains(limit));
    if limit.is_none() {
        report.add(
            place,
            format!("Must be an integer from {min} through {max}."),
        );
    }
    limit.and_then(|limit| u8::try_from(limit).ok())
}
