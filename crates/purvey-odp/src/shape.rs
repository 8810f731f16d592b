//! Reading members of JSON objects: every helper notes a violation and goes on, so that one pass finds every fault.

use crate::report::{Place, Report};
use serde_json::{Map, Value};

/// The JSON type of `value`, in words.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// `value` as an object, or a violation at `place`.
pub fn object(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(map) => Some(map),
        other => {
            report.add(place, format!("Must be an object, not {}.", kind(&other)));
            None
        }
    }
}

/// `value` as an array, or a violation at `place`.
pub fn array(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(items) => Some(items),
        other => {
            report.add(place, format!("Must be an array, not {}.", kind(&other)));
            None
        }
    }
}

/// `value` as a string, or a violation at `place`.
pub fn string(report: &mut Report, place: &Place<'_>, value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        other => {
            report.add(place, format!("Must be a string, not {}.", kind(&other)));
            None
        }
    }
}

/// Takes the member `name` out of `map` and reads it; a missing one is a violation at the object.
pub fn required<T>(
    report: &mut Report,
    place: &Place<'_>,
    map: &mut Map<String, Value>,
    name: &str,
    read: impl FnOnce(&mut Report, &Place<'_>, Value) -> Option<T>,
) -> Option<T> {
    match map.shift_remove(name) {
        Some(value) => read(report, &place.key(name), value),
        None => {
            report.add(place, format!("Must have the member {name}."));
            None
        }
    }
}

/// Takes the member `name` out of `map` and reads it, when it is there. `Some(None)` never occurs: absent and unreadable are
/// both `None`, and the unreadable one is in the report.
pub fn optional<T>(
    report: &mut Report,
    place: &Place<'_>,
    map: &mut Map<String, Value>,
    name: &str,
    read: impl FnOnce(&mut Report, &Place<'_>, Value) -> Option<T>,
) -> Option<T> {
    map.shift_remove(name)
        .and_then(|value| read(report, &place.key(name), value))
}

/// Reads every element of an array; the count must be within `count`.
pub fn list<T>(
    report: &mut Report,
    place: &Place<'_>,
    value: Value,
    count: std::ops::RangeInclusive<usize>,
    mut read: impl FnMut(&mut Report, &Place<'_>, Value) -> Option<T>,
) -> Option<Vec<T>> {
    let items = array(report, place, value)?;
    if !count.contains(&items.len()) {
        report.add(
            place,
            format!(
                "Must have from {} through {} elements, not {}.",
                count.start(),
                count.end(),
                items.len()
            ),
        );
        return None;
    }
    let before = report.len();
    let read: Vec<T> = items
        .into_iter()
        .enumerate()
        .filter_map(|(i, item)| read(report, &place.index(i), item))
        .collect();
    (report.len() == before).then_some(read)
}

/// Notes every member left in `map`: for closed objects, after the known members were taken out.
pub fn closed(report: &mut Report, place: &Place<'_>, map: &Map<String, Value>) {
    for name in map.keys() {
        report.add(&place.key(name), "Is not a member of this object.");
    }
}
