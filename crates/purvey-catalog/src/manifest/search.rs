//! `[search]`, `[[filters]]` and `[[sorts]]`.

use super::closed;
use crate::render::TersePlan;
use purvey_odp::capability::{Fetched, Kind, ScopeCapabilities};
use purvey_odp::filter::FilterDefinition;
use purvey_odp::identity::ResourceType;
use purvey_odp::limits;
use purvey_odp::pointer::Pointer;
use purvey_odp::report::{Place, Report};
use purvey_odp::shape;
use purvey_odp::sort::SortDefinition;
use serde_json::Value;
use std::collections::HashSet;

/// A member that search text is compared with.
#[derive(Clone, Debug, PartialEq)]
pub struct TextField {
    /// Where it is in the record.
    pub path: Pointer,
    /// How much a match there counts; positive and finite.
    pub weight: f64,
}

/// A Filter Definition and where its values are.
#[derive(Clone, Debug)]
pub struct Filter {
    /// What is advertised.
    pub definition: FilterDefinition,
    /// Where a record has the values; the values of all places together are the filter's.
    pub paths: Vec<Pointer>,
}

/// The filters and sorts of one scope: the Service, or one Collection.
#[derive(Clone, Debug, Default)]
pub struct Capabilities {
    filters: Vec<Filter>,
    sorts: Vec<SortDefinition>,
}

/// `[search]`.
pub(super) struct Search {
    pub(super) text: Vec<TextField>,
    pub(super) offering_terse: TersePlan,
    pub(super) collection_terse: TersePlan,
    pub(super) default_sort: Option<String>,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            text: [("/name", 3.0), ("/description", 1.0)]
                .into_iter()
                .filter_map(|(path, weight)| {
                    let path = Pointer::parse(path).ok()?;
                    Some(TextField { path, weight })
                })
                .collect(),
            offering_terse: TersePlan::members(&["description", "collection_ids", "price"]),
            collection_terse: TersePlan::members(&["description", "parent_ids"]),
            default_sort: None,
        }
    }
}

impl Search {
    pub(super) fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let mut map = shape::object(report, place, value)?;
        let mut search = Self::default();
        let text = shape::optional(report, place, &mut map, "text", |report, place, value| {
            shape::list(report, place, value, 1..=64, read_text)
        });
        search.text = text.unwrap_or(search.text);
        for (name, kind) in [
            ("terse", ResourceType::Offering),
            ("collection_terse", ResourceType::Collection),
        ] {
            let plan = shape::optional(report, place, &mut map, name, |report, place, value| {
                read_terse(report, place, value, kind)
            });
            let known = match kind {
                ResourceType::Offering => &mut search.offering_terse,
                ResourceType::Collection => &mut search.collection_terse,
            };
            if let Some(plan) = plan {
                *known = plan;
            }
        }
        search.default_sort =
            shape::optional(report, place, &mut map, "default_sort", shape::string);
        closed(report, place, &map);
        Some(search)
    }
}

fn read_text(report: &mut Report, place: &Place<'_>, value: Value) -> Option<TextField> {
    let mut map = shape::object(report, place, value)?;
    let path = shape::required(report, place, &mut map, "path", read_pointer);
    if let Some(path) = &path
        && matches!(path.tokens().next(), Some("collection_ids" | "parent_ids"))
    {
        report.add(
            &place.key("path"),
            "Must not be where Collections are named: text is the same for all callers, and these names are not.",
        );
    }
    let weight = match map.shift_remove("weight") {
        None => Some(1.0),
        Some(value) => {
            let weight = value
                .as_f64()
                .filter(|w| (*w as f32).is_finite() && *w as f32 > 0.0);
            if weight.is_none() {
                report.add(&place.key("weight"), "Must be a positive number.");
            }
            weight
        }
    };
    closed(report, place, &map);
    Some(TextField {
        path: path?,
        weight: weight?,
    })
}

fn read_terse(
    report: &mut Report,
    place: &Place<'_>,
    value: Value,
    kind: ResourceType,
) -> Option<TersePlan> {
    let mut plan = TersePlan::members(&[]);
    for (i, item) in shape::array(report, place, value)?.into_iter().enumerate() {
        let place = place.index(i);
        if let Some(pointer) = read_pointer(report, &place, item) {
            plan.add(report, &place, &pointer, kind);
        }
    }
    Some(plan)
}

fn read_pointer(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Pointer> {
    let text = shape::string(report, place, value)?;
    match Pointer::parse(&text) {
        Ok(pointer) if !text.is_empty() => Some(pointer),
        _ => {
            report.add(place, "Must be a JSON Pointer to a member.");
            None
        }
    }
}

impl Capabilities {
    /// The filters, in the manifest's order.
    pub fn filters(&self) -> &[Filter] {
        &self.filters
    }

    /// The sorts, in the manifest's order.
    pub fn sorts(&self) -> &[SortDefinition] {
        &self.sorts
    }

    /// Whether the scope adds nothing.
    pub fn is_empty(&self) -> bool {
        self.filters.is_empty() && self.sorts.is_empty()
    }

    /// As one scope of a search.
    pub(super) fn scope(&self) -> ScopeCapabilities {
        let filters = self.filters.iter();
        ScopeCapabilities {
            filters: Fetched::Definitions(
                filters.map(|filter| filter.definition.clone()).collect(),
            ),
            sorts: Fetched::Definitions(self.sorts.clone()),
        }
    }

    pub(super) fn has_sort(&self, id: &str) -> bool {
        self.sorts.iter().any(|sort| sort.id().as_str() == id)
    }

    fn has_filter(&self, id: &str) -> bool {
        self.filters
            .iter()
            .any(|filter| filter.definition.id().as_str() == id)
    }

    /// Reads the filters and sorts at `place`; `outer` are those of the Service when this is a Collection's scope. Agents set
    /// aside what both publish (ODP §5), so an id must be in one of them only.
    pub(super) fn read(
        report: &mut Report,
        place: &Place<'_>,
        filters: Option<Value>,
        sorts: Option<Value>,
        outer: &Self,
    ) -> Self {
        let mut scope = Self::default();
        let mut ids = HashSet::new();
        let filters_place = place.key("filters");
        let filters = filters.and_then(|value| shape::array(report, &filters_place, value));
        for (i, value) in filters.into_iter().flatten().enumerate() {
            let place = filters_place.index(i);
            if let Some(filter) = read_filter(report, &place, value) {
                let id = filter.definition.id().as_str();
                if !ids.insert(id.to_owned()) || outer.has_filter(id) {
                    report.add(&place.key("id"), "Must not be the id of two filters.");
                }
                scope.filters.push(filter);
            }
        }
        ids.clear();
        let sorts_place = place.key("sorts");
        let sorts = sorts.and_then(|value| shape::array(report, &sorts_place, value));
        for (i, value) in sorts.into_iter().flatten().enumerate() {
            let place = sorts_place.index(i);
            let Some(sort) = read_sort(report, &place, value) else {
                continue;
            };
            let id = sort.id().as_str();
            if !ids.insert(id.to_owned()) || outer.has_sort(id) {
                report.add(&place.key("id"), "Must not be the id of two sorts.");
            }
            for (k, key) in sort.keys().iter().enumerate() {
                let id = key.filter_id().as_str();
                if !scope.has_filter(id) && !outer.has_filter(id) {
                    report.add(
                        &place.key("keys").index(k).key("filter_id"),
                        format!("No filter here has the id {id:?}."),
                    );
                }
            }
            scope.sorts.push(sort);
        }
        for (name, count, most) in [
            (
                "filters",
                scope.filters.len() + outer.filters.len(),
                limits::EFFECTIVE_FILTERS,
            ),
            (
                "sorts",
                scope.sorts.len() + outer.sorts.len(),
                limits::EFFECTIVE_SORTS,
            ),
        ] {
            if count > most {
                report.add(
                    &place.key(name),
                    format!("Must be at most {most} with the Service's, not {count}."),
                );
            }
        }
        for kind in [Kind::Filters, Kind::Sorts] {
            let pages = scope.pages(kind);
            if pages > limits::CAPABILITY_PAGES {
                report.add(
                    &place.key(kind.as_str()),
                    format!(
                        "Must fit {} pages of {} bytes, not {pages}: shorten the descriptions.",
                        limits::CAPABILITY_PAGES,
                        limits::PAGE_BYTES
                    ),
                );
            }
        }
        scope
    }
}

fn read_filter(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Filter> {
    let mut map = shape::object(report, place, value)?;
    for name in map.keys() {
        if !matches!(
            name.as_str(),
            "id" | "title"
                | "description"
                | "type"
                | "operators"
                | "unit"
                | "refinable"
                | "path"
                | "paths"
        ) {
            report.add(&place.key(name), "Is not a key of the manifest here.");
        }
    }
    let path = shape::optional(report, place, &mut map, "path", read_pointer);
    let paths = shape::optional(report, place, &mut map, "paths", |report, place, value| {
        shape::list(report, place, value, 1..=64, read_pointer)
    });
    if path.is_some() == paths.is_some() {
        report.add(place, "Must have either path or paths.");
    }
    let definition = FilterDefinition::read(report, place, Value::Object(map));
    Some(Filter {
        definition: definition?,
        paths: paths.or_else(|| path.map(|path| vec![path]))?,
    })
}

fn read_sort(report: &mut Report, place: &Place<'_>, value: Value) -> Option<SortDefinition> {
    let unknown = |map: &serde_json::Map<String, Value>, known: &[&str]| -> Vec<String> {
        map.keys()
            .filter(|name| !known.contains(&name.as_str()))
            .cloned()
            .collect()
    };
    if let Value::Object(map) = &value {
        for name in unknown(map, &["id", "title", "description", "keys"]) {
            report.add(&place.key(&name), "Is not a key of the manifest here.");
        }
        let keys = map.get("keys").and_then(Value::as_array);
        for (i, key) in keys.into_iter().flatten().enumerate() {
            for name in key
                .as_object()
                .map(|key| unknown(key, &["filter_id", "direction", "missing"]))
                .unwrap_or_default()
            {
                report.add(
                    &place.key("keys").index(i).key(&name),
                    "Is not a key of the manifest here.",
                );
            }
        }
    }
    SortDefinition::read(report, place, value)
}
