//! What an Agent drops from newer documents, before anything is counted, compared or validated (ODP §9).
//!
//! Dropped is the smallest part whose meaning depends on what is unknown: a member that only describes, else the whole
//! operation, protocol, image, price, Action or definition. A list that is emptied this way is absent. Nothing is ever
//! replaced by something familiar, and what is malformed rather than unknown stays, for validation to refuse. Unknown
//! members of open objects stay too: they are harmless, and the types keep them.

mod capability;
mod resource;
mod service;

#[cfg(test)]
mod tests;

use crate::offering::Representation;
use crate::report::Place;
use serde_json::{Map, Value};

/// One thing that was dropped: the material for a scoped issue.
#[derive(Clone, Debug, PartialEq)]
pub struct Dropped {
    /// JSON Pointer into the document as it was received.
    pub pointer: String,
    /// Why, for people.
    pub reason: String,
    /// What stood there.
    pub value: Value,
}

/// Drops from a Service Document what this version does not know.
pub fn service_document(value: &mut Value) -> Vec<Dropped> {
    with_object(value, |dropped, place, map| {
        service::document(dropped, place, map);
    })
}

/// Drops from a Collection, in either representation, what this version does not know.
pub fn collection(value: &mut Value) -> Vec<Dropped> {
    with_object(value, resource::collection)
}

/// Drops from an Offering what this version does not know, and from a full one every Action that cannot be used: an
/// Action never harms more than itself.
pub fn offering(value: &mut Value, representation: Representation) -> Vec<Dropped> {
    with_object(value, |dropped, place, map| {
        resource::offering(dropped, place, map, representation);
    })
}

/// Applies [`collection`] to every item of a page.
pub fn collection_page(value: &mut Value) -> Vec<Dropped> {
    with_items(value, resource::collection)
}

/// Applies [`offering`] to every item of a page.
pub fn offering_page(value: &mut Value, representation: Representation) -> Vec<Dropped> {
    with_items(value, |dropped, place, map| {
        resource::offering(dropped, place, map, representation);
    })
}

/// Drops from a page of Filter Definitions those that need something unknown. The page keeps its `items`, even empty.
pub fn filter_page(value: &mut Value) -> Vec<Dropped> {
    with_object(value, |dropped, place, map| {
        filter_list(
            dropped,
            place,
            map,
            "items",
            Emptied::Stays,
            |_, _, item| capability::unsupported_filter(item),
        );
    })
}

/// Drops from a page of Sort Definitions those that need something unknown. The page keeps its `items`, even empty.
pub fn sort_page(value: &mut Value) -> Vec<Dropped> {
    with_object(value, |dropped, place, map| {
        filter_list(
            dropped,
            place,
            map,
            "items",
            Emptied::Stays,
            |_, _, item| capability::unsupported_sort(item),
        );
    })
}

/// Drops from a problem the invalid parameters that are somewhere unknown.
pub fn problem(value: &mut Value) -> Vec<Dropped> {
    with_object(value, |dropped, place, map| {
        filter_list(
            dropped,
            place,
            map,
            "invalid_params",
            Emptied::Goes,
            |_, _, item| {
                is_unknown(item, "in", |name| {
                    matches!(name, "query" | "body" | "header" | "path")
                })
                .then(|| "Is at a place that is not known.".to_owned())
            },
        );
    })
}

/// What becomes of a list without its last item.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Emptied {
    Goes,
    Stays,
}

fn with_object(
    value: &mut Value,
    normalise: impl FnOnce(&mut Vec<Dropped>, &Place<'_>, &mut Map<String, Value>),
) -> Vec<Dropped> {
    let mut dropped = Vec::new();
    if let Value::Object(map) = value {
        normalise(&mut dropped, &Place::ROOT, map);
    }
    dropped
}

fn with_items(
    value: &mut Value,
    mut normalise: impl FnMut(&mut Vec<Dropped>, &Place<'_>, &mut Map<String, Value>),
) -> Vec<Dropped> {
    with_object(value, |dropped, place, map| {
        let place = place.key("items");
        let items = map
            .get_mut("items")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten();
        for (i, item) in items.enumerate() {
            if let Value::Object(map) = item {
                normalise(dropped, &place.index(i), map);
            }
        }
    })
}

/// Drops the items of the list `name` for which `unsupported` has a reason; it may also normalise within the item. What is
/// not a list stays.
fn filter_list(
    dropped: &mut Vec<Dropped>,
    parent: &Place<'_>,
    map: &mut Map<String, Value>,
    name: &str,
    emptied: Emptied,
    mut unsupported: impl FnMut(&mut Vec<Dropped>, &Place<'_>, &mut Value) -> Option<String>,
) {
    let Some(Value::Array(items)) = map.get_mut(name) else {
        return;
    };
    let place = parent.key(name);
    let was_empty = items.is_empty();
    let mut kept = Vec::with_capacity(items.len());
    for (i, mut value) in std::mem::take(items).into_iter().enumerate() {
        let place = place.index(i);
        match unsupported(dropped, &place, &mut value) {
            Some(reason) => dropped.push(Dropped {
                pointer: place.pointer(),
                reason,
                value,
            }),
            None => kept.push(value),
        }
    }
    if kept.is_empty() && !was_empty && emptied == Emptied::Goes {
        map.shift_remove(name);
    } else {
        *items = kept;
    }
}

/// Drops the member `name`, when it is there.
fn drop_member(
    dropped: &mut Vec<Dropped>,
    parent: &Place<'_>,
    map: &mut Map<String, Value>,
    name: &str,
    reason: &str,
) {
    if let Some(value) = map.shift_remove(name) {
        dropped.push(Dropped {
            pointer: parent.key(name).pointer(),
            reason: reason.to_owned(),
            value,
        });
    }
}

/// Drops every member that is not among `known`.
fn strip(
    dropped: &mut Vec<Dropped>,
    place: &Place<'_>,
    map: &mut Map<String, Value>,
    known: &[&str],
) {
    let unknown: Vec<String> = map
        .keys()
        .filter(|name| !known.contains(&name.as_str()))
        .cloned()
        .collect();
    for name in unknown {
        drop_member(dropped, place, map, &name, "Is a member that is not known.");
    }
}

/// Whether the member `name` is a string that `is_known` does not know.
fn is_unknown(value: &Value, name: &str, is_known: impl Fn(&str) -> bool) -> bool {
    value
        .get(name)
        .and_then(Value::as_str)
        .is_some_and(|text| !is_known(text))
}

/// Whether an object has members that are not among `known`.
fn has_unknown(value: &Value, known: &[&str]) -> bool {
    value
        .as_object()
        .is_some_and(|map| map.keys().any(|name| !known.contains(&name.as_str())))
}
