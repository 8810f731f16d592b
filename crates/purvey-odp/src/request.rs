//! Search requests, judged in two steps (ODP §5): `validate` sees what the body alone can tell; `resolve` then holds it
//! against the capabilities that are effective. Between the two a Service looks for the named Collection.

#[cfg(test)]
mod tests;

use crate::capability::EffectiveCapabilities;
use crate::filter::{FilterDefinition, FilterExpression, UncheckedExpression};
use crate::identity::{CapabilityId, LocalId};
use crate::report::{Invalid, Place, Report};
use crate::sort::SortDefinition;
use crate::text::Text;
use crate::value::{Scalar, ScalarType};
use crate::version::{self, ProtocolVersion};
use crate::{limits, shape};
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

/// A `search-offerings` request whose syntax holds. Members that the protocol does not know are ignored.
#[derive(Clone, Debug, PartialEq)]
pub struct OfferingSearchRequest {
    query: Option<Query>,
    filters: Vec<UncheckedExpression>,
    collection_id: Option<LocalId>,
    include_descendants: bool,
    sort: Option<CapabilityId>,
    refinements: Vec<CapabilityId>,
    limit: Option<u8>,
}

impl OfferingSearchRequest {
    /// The syntax step.
    ///
    /// # Errors
    /// Every fault that the body alone shows, each at its member.
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
        if !map.contains_key("query") && !map.contains_key("filters") {
            report.add(
                place,
                "Must have at least one of the members query and filters.",
            );
        }
        if map.contains_key("include_descendants") && !map.contains_key("collection_id") {
            report.add(
                &place.key("include_descendants"),
                "Must be absent without the member collection_id.",
            );
        }
        let query = shape::optional(report, place, &mut map, "query", Query::read);
        let filters = shape::optional(
            report,
            place,
            &mut map,
            "filters",
            |report, place, value| {
                read_all(
                    report,
                    place,
                    value,
                    limits::FILTER_EXPRESSIONS,
                    UncheckedExpression::read,
                )
            },
        );
        let collection_id =
            shape::optional(report, place, &mut map, "collection_id", LocalId::read);
        let include_descendants = shape::optional(
            report,
            place,
            &mut map,
            "include_descendants",
            |report, place, value| read_boolean(report, place, &value),
        );
        let sort = shape::optional(report, place, &mut map, "sort", CapabilityId::read);
        let refinements = shape::optional(report, place, &mut map, "refinements", read_refinements);
        let limit = shape::optional(report, place, &mut map, "limit", |report, place, value| {
            read_limit(report, place, &value)
        });
        (report.len() == before).then(|| Self {
            query,
            filters: filters.unwrap_or_default(),
            collection_id,
            include_descendants: include_descendants.unwrap_or(false),
            sort,
            refinements: refinements.unwrap_or_default(),
            limit,
        })
    }

    /// The capability step: every filter, sort and refinement must be among the effective capabilities of this search, which
    /// are those of the Service, and of the Collection that the request names.
    ///
    /// # Errors
    /// Every fault, each at its member.
    pub fn resolve(&self, effective: &EffectiveCapabilities) -> Result<ResolvedSearch, Invalid> {
        let mut report = Report::new();
        let root = Place::ROOT;
        let at_filters = root.key("filters");
        let mut filters = Vec::with_capacity(self.filters.len());
        for (i, expression) in self.filters.iter().enumerate() {
            let place = at_filters.index(i);
            let Some(definition) = effective.filter(expression.id().as_str()) else {
                report.add(&place.key("id"), "Is not a filter that this search offers.");
                continue;
            };
            filters.extend(expression.check(&mut report, &place, definition));
        }
        let sort = self.sort.as_ref().and_then(|id| {
            let sort = effective.sort(id.as_str());
            if sort.is_none() {
                report.add(&root.key("sort"), "Is not a sort that this search offers.");
            }
            sort.cloned()
        });
        let at_refinements = root.key("refinements");
        let mut refinements = Vec::with_capacity(self.refinements.len());
        for (i, id) in self.refinements.iter().enumerate() {
            let place = at_refinements.index(i);
            match effective.filter(id.as_str()) {
                Some(definition) if definition.is_refinable() => {
                    refinements.push(definition.clone());
                }
                Some(_) => report.add(&place, "Is not a refinable filter."),
                None => report.add(&place, "Is not a filter that this search offers."),
            }
        }
        report.finish(Some(ResolvedSearch {
            filters,
            sort,
            refinements,
        }))
    }

    /// The text to search for.
    pub fn query(&self) -> Option<&Query> {
        self.query.as_ref()
    }

    /// The Filter Expressions, at most 32, not checked against their definitions yet.
    pub fn filters(&self) -> &[UncheckedExpression] {
        &self.filters
    }

    /// The Collection whose members are searched.
    pub fn collection_id(&self) -> Option<&LocalId> {
        self.collection_id.as_ref()
    }

    /// Whether members of the Collection's descendants are searched too.
    pub fn include_descendants(&self) -> bool {
        self.include_descendants
    }

    /// The Sort Definition to order by; nothing for the Service's own order.
    pub fn sort(&self) -> Option<&CapabilityId> {
        self.sort.as_ref()
    }

    /// The filters to count values of, at most 16, each once.
    pub fn refinements(&self) -> &[CapabilityId] {
        &self.refinements
    }

    /// Items of a page at most, 1 through 100.
    pub fn limit(&self) -> Option<u8> {
        self.limit
    }

    /// The wire value.
    pub fn to_value(&self) -> Value {
        let mut map = body(self.query.as_ref());
        if !self.filters.is_empty() {
            let filters = self
                .filters
                .iter()
                .map(UncheckedExpression::to_value)
                .collect();
            map.insert("filters".into(), filters);
        }
        if let Some(id) = &self.collection_id {
            map.insert("collection_id".into(), json!(id.as_str()));
        }
        if self.include_descendants {
            map.insert("include_descendants".into(), json!(true));
        }
        if let Some(id) = &self.sort {
            map.insert("sort".into(), json!(id.as_str()));
        }
        if !self.refinements.is_empty() {
            let ids = self
                .refinements
                .iter()
                .map(|id| json!(id.as_str()))
                .collect();
            map.insert("refinements".into(), ids);
        }
        with_limit(map, self.limit)
    }
}

/// What a `search-offerings` request asks of the capabilities, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedSearch {
    filters: Vec<FilterExpression>,
    sort: Option<SortDefinition>,
    refinements: Vec<FilterDefinition>,
}

impl ResolvedSearch {
    /// The Filter Expressions, in the request's order; an Offering must match all of them.
    pub fn filters(&self) -> &[FilterExpression] {
        &self.filters
    }

    /// The recipe to order by.
    pub fn sort(&self) -> Option<&SortDefinition> {
        self.sort.as_ref()
    }

    /// The filters to count values of, in the request's order; all refinable.
    pub fn refinements(&self) -> &[FilterDefinition] {
        &self.refinements
    }

    /// Whether an Offering matches, whose values of a filter are `values`: all expressions must hold.
    pub fn matches<'a>(&self, values: impl Fn(&CapabilityId) -> &'a [Scalar]) -> bool {
        self.matches_but(None, values)
    }

    /// Whether an Offering counts for a refinement of the filter `refined`: all expressions on other filters must hold.
    pub fn matches_beside<'a>(
        &self,
        refined: &CapabilityId,
        values: impl Fn(&CapabilityId) -> &'a [Scalar],
    ) -> bool {
        self.matches_but(Some(refined), values)
    }

    fn matches_but<'a>(
        &self,
        except: Option<&CapabilityId>,
        values: impl Fn(&CapabilityId) -> &'a [Scalar],
    ) -> bool {
        self.filters
            .iter()
            .filter(|expression| except != Some(expression.id()))
            .all(|expression| expression.matches(values(expression.id())))
    }
}

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

/// Reads every element of an array, which must have 1 through `max` of them; a wrong number does not hide other faults.
fn read_all<T>(
    report: &mut Report,
    place: &Place<'_>,
    value: Value,
    max: usize,
    mut read: impl FnMut(&mut Report, &Place<'_>, Value) -> Option<T>,
) -> Option<Vec<T>> {
    let items = shape::array(report, place, value)?;
    if items.is_empty() || items.len() > max {
        report.add(
            place,
            format!(
                "Must have from 1 through {max} elements, not {}.",
                items.len()
            ),
        );
    }
    let items = items.into_iter().enumerate();
    Some(
        items
            .filter_map(|(i, item)| read(report, &place.index(i), item))
            .collect(),
    )
}

fn read_refinements(
    report: &mut Report,
    place: &Place<'_>,
    value: Value,
) -> Option<Vec<CapabilityId>> {
    let mut seen: Vec<CapabilityId> = Vec::new();
    read_all(
        report,
        place,
        value,
        limits::REFINEMENTS,
        |report, place, value| {
            let id = CapabilityId::read(report, place, value)?;
            if seen.contains(&id) {
                report.add(place, "Must not be listed twice.");
            }
            seen.push(id.clone());
            Some(id)
        },
    )
}

fn read_boolean(report: &mut Report, place: &Place<'_>, value: &Value) -> Option<bool> {
    let boolean = value.as_bool();
    if boolean.is_none() {
        report.add(
            place,
            format!("Must be a boolean, not {}.", shape::kind(value)),
        );
    }
    boolean
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
