//! Search capabilities: what a Service or Collection advertises, and what is effective for one search (ODP §5).

mod effective;
mod linked;
#[cfg(test)]
mod tests;

pub use effective::{EffectiveCapabilities, Fetched, Issue, Kind, Scope, ScopeCapabilities};
pub use linked::{LinkedFault, LinkedSource};

use crate::filter::FilterDefinition;
use crate::identity::{CapabilityId, LocalDevelopment, ServiceOrigin};
use crate::reference::ResourceReference;
use crate::report::{Invalid, Place, Report};
use crate::sort::SortDefinition;
use crate::version::ProtocolVersion;
use crate::{limits, shape};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// A Filter or Sort Definition: what a capability source holds.
pub trait Definition: Sized {
    /// Which of the two it is.
    const KIND: Kind;
    /// Definitions of an inline source at most.
    const INLINE: usize;
    /// Definitions that are effective at most.
    const EFFECTIVE: usize;

    /// The identifier.
    fn id(&self) -> &CapabilityId;
    /// Reads a definition; notes every fault.
    fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self>;
    /// The wire value.
    fn to_value(&self) -> Value;
}

impl Definition for FilterDefinition {
    const KIND: Kind = Kind::Filters;
    const INLINE: usize = limits::INLINE_FILTERS;
    const EFFECTIVE: usize = limits::EFFECTIVE_FILTERS;

    fn id(&self) -> &CapabilityId {
        self.id()
    }

    fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        Self::read(report, place, value)
    }

    fn to_value(&self) -> Value {
        self.to_value()
    }
}

impl Definition for SortDefinition {
    const KIND: Kind = Kind::Sorts;
    const INLINE: usize = limits::INLINE_SORTS;
    const EFFECTIVE: usize = limits::EFFECTIVE_SORTS;

    fn id(&self) -> &CapabilityId {
        self.id()
    }

    fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        Self::read(report, place, value)
    }

    fn to_value(&self) -> Value {
        self.to_value()
    }
}

/// Where definitions of one kind come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CapabilitySource<T> {
    /// They stand in the document; each identifier once, 1 through 32 filters or 16 sorts.
    Inline(Vec<T>),
    /// They are behind a same-origin link, on pages. [`LinkedSource`] collects them.
    Linked(ResourceReference),
}

impl<T: Definition> CapabilitySource<T> {
    fn read(
        report: &mut Report,
        place: &Place<'_>,
        value: Value,
        local: LocalDevelopment,
    ) -> Option<Self> {
        let mut map = shape::object(report, place, value)?;
        if map.contains_key("inline") == map.contains_key("linked") {
            report.add(
                place,
                "Must have exactly one of the members inline and linked.",
            );
        }
        let before = report.len();
        let inline = shape::optional(report, place, &mut map, "inline", |report, place, value| {
            let definitions = shape::list(report, place, value, 1..=T::INLINE, T::read)?;
            let before = report.len();
            let mut seen = HashSet::new();
            for (i, definition) in definitions.iter().enumerate() {
                if !seen.insert(definition.id()) {
                    report.add(
                        &place.index(i).key("id"),
                        "Must not be the identifier of another definition here.",
                    );
                }
            }
            (report.len() == before).then_some(definitions)
        });
        let linked = shape::optional(report, place, &mut map, "linked", |report, place, value| {
            let mut map = shape::object(report, place, value)?;
            shape::required(report, place, &mut map, "href", |report, place, value| {
                ResourceReference::read_with(report, place, value, local)
            })
        });
        if report.len() != before {
            return None;
        }
        match (inline, linked) {
            (Some(definitions), None) => Some(Self::Inline(definitions)),
            (None, Some(href)) => Some(Self::Linked(href)),
            _ => None,
        }
    }

    /// The wire value.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Inline(definitions) => {
                json!({"inline": definitions.iter().map(T::to_value).collect::<Value>()})
            }
            Self::Linked(href) => json!({"linked": {"href": href.as_str()}}),
        }
    }

    fn check_origin(&self, report: &mut Report, place: &Place<'_>, origin: &ServiceOrigin) {
        if let Self::Linked(href) = self
            && !href.is_same_origin(origin)
        {
            report.add(
                &place.key("linked").key("href"),
                format!("Must stay at the Service Origin {origin}."),
            );
        }
    }
}

/// `search_capabilities` of a Service Document or a Full Collection; has at least one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchCapabilities {
    filters: Option<CapabilitySource<FilterDefinition>>,
    sorts: Option<CapabilitySource<SortDefinition>>,
}

impl SearchCapabilities {
    /// Capabilities with these inline definitions; nothing when there are none.
    ///
    /// # Errors
    /// When there are more definitions than an inline source holds, or an identifier occurs twice.
    pub fn inline(
        filters: &[FilterDefinition],
        sorts: &[SortDefinition],
    ) -> Result<Option<Self>, Invalid> {
        let mut map = Map::new();
        if !filters.is_empty() {
            let source = json!({"inline": filters.iter().map(FilterDefinition::to_value).collect::<Value>()});
            map.insert("filters".into(), source);
        }
        if !sorts.is_empty() {
            let source =
                json!({"inline": sorts.iter().map(SortDefinition::to_value).collect::<Value>()});
            map.insert("sorts".into(), source);
        }
        if map.is_empty() {
            return Ok(None);
        }
        let mut report = Report::new();
        let capabilities = Self::read(&mut report, &Place::ROOT, Value::Object(map));
        report.finish(capabilities).map(Some)
    }

    /// Where Filter Definitions come from.
    pub fn filters(&self) -> Option<&CapabilitySource<FilterDefinition>> {
        self.filters.as_ref()
    }

    /// Where Sort Definitions come from.
    pub fn sorts(&self) -> Option<&CapabilitySource<SortDefinition>> {
        self.sorts.as_ref()
    }

    /// Reads an advertisement, without local development; notes every fault. Further members are ignored. That links stay
    /// at the Service Origin is for [`check_origin`](Self::check_origin) to say.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        Self::read_with(report, place, value, LocalDevelopment::Refused)
    }

    /// Like [`read`](Self::read), with or without local development.
    pub fn read_with(
        report: &mut Report,
        place: &Place<'_>,
        value: Value,
        local: LocalDevelopment,
    ) -> Option<Self> {
        let mut map = shape::object(report, place, value)?;
        let before = report.len();
        ProtocolVersion::refuse(report, place, &mut map);
        if !map.contains_key("filters") && !map.contains_key("sorts") {
            report.add(
                place,
                "Must have at least one of the members filters and sorts.",
            );
        }
        let filters = shape::optional(
            report,
            place,
            &mut map,
            "filters",
            |report, place, value| CapabilitySource::read(report, place, value, local),
        );
        let sorts = shape::optional(report, place, &mut map, "sorts", |report, place, value| {
            CapabilitySource::read(report, place, value, local)
        });
        (report.len() == before).then_some(Self { filters, sorts })
    }

    /// Notes every link that leaves the Service Origin.
    pub fn check_origin(&self, report: &mut Report, place: &Place<'_>, origin: &ServiceOrigin) {
        if let Some(source) = &self.filters {
            source.check_origin(report, &place.key("filters"), origin);
        }
        if let Some(source) = &self.sorts {
            source.check_origin(report, &place.key("sorts"), origin);
        }
    }

    /// The wire value.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        if let Some(source) = &self.filters {
            map.insert("filters".into(), source.to_value());
        }
        if let Some(source) = &self.sorts {
            map.insert("sorts".into(), source.to_value());
        }
        Value::Object(map)
    }
}

impl Serialize for SearchCapabilities {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}
