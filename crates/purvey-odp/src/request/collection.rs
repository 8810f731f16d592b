//! `search-collections` requests.

use super::{Query, body, read_limit, with_limit};
use crate::identity::LocalId;
use crate::report::{Invalid, Place, Report};
use crate::shape;
use crate::version::ProtocolVersion;
use serde_json::{Value, json};

/// Where in the hierarchy a `search-collections` request looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParentConstraint {
    /// Anywhere (the member is absent).
    Anywhere,
    /// Among Collections without a parent (the member is `null`).
    Roots,
    /// Among the direct children of this Collection.
    ChildrenOf(LocalId),
}

impl ParentConstraint {
    /// Whether a Collection with these parents is where to look.
    pub fn admits(&self, parent_ids: &[LocalId]) -> bool {
        match self {
            Self::Anywhere => true,
            Self::Roots => parent_ids.is_empty(),
            Self::ChildrenOf(id) => parent_ids.contains(id),
        }
    }
}

/// A `search-collections` request. Members that the protocol does not know are ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectionSearchRequest {
    query: Option<Query>,
    parent: ParentConstraint,
    limit: Option<u8>,
}

impl CollectionSearchRequest {
    /// Reads the body; there is no capability step.
    ///
    /// # Errors
    /// Every fault, each at its member.
    pub fn validate(value: Value) -> Result<Self, Invalid> {
        let mut report = Report::new();
        let request = Self::read(&mut report, value);
        report.finish(request)
    }

    fn read(report: &mut Report, value: Value) -> Option<Self> {
        let place = &Place::ROOT;
        let mut map = shape::object(report, place, value)?;
        let before = report.len();
        ProtocolVersion::take(report, place, &mut map);
        if !map.contains_key("query") && !map.contains_key("parent_id") {
            report.add(
                place,
                "Must have at least one of the members query and parent_id.",
            );
        }
        let query = shape::optional(report, place, &mut map, "query", Query::read);
        let parent = shape::optional(
            report,
            place,
            &mut map,
            "parent_id",
            |report, place, value| match value {
                Value::Null => Some(ParentConstraint::Roots),
                Value::String(_) => {
                    LocalId::read(report, place, value).map(ParentConstraint::ChildrenOf)
                }
                other => {
                    report.add(
                        place,
                        format!("Must be a string or null, not {}.", shape::kind(&other)),
                    );
                    None
                }
            },
        );
        let limit = shape::optional(report, place, &mut map, "limit", |report, place, value| {
            read_limit(report, place, &value)
        });
        (report.len() == before).then(|| Self {
            query,
            parent: parent.unwrap_or(ParentConstraint::Anywhere),
            limit,
        })
    }

    /// The text to search for.
    pub fn query(&self) -> Option<&Query> {
        self.query.as_ref()
    }

    /// Where to look.
    pub fn parent(&self) -> &ParentConstraint {
        &self.parent
    }

    /// Items of a page at most, 1 through 100.
    pub fn limit(&self) -> Option<u8> {
        self.limit
    }

    /// The wire value.
    pub fn to_value(&self) -> Value {
        let mut map = body(self.query.as_ref());
        match &self.parent {
            ParentConstraint::Anywhere => {}
            ParentConstraint::Roots => {
                map.insert("parent_id".into(), Value::Null);
            }
            ParentConstraint::ChildrenOf(id) => {
                map.insert("parent_id".into(), json!(id.as_str()));
            }
        }
        with_limit(map, self.limit)
    }
}
