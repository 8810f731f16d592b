//! Search capabilities: a definition is supported as a whole or not at all, and so is a source.

use super::{Dropped, Emptied, drop_member, filter_list, is_unknown};
use crate::capability::SearchCapabilities;
use crate::filter::Operator;
use crate::report::{Place, Report};
use crate::value::ScalarType;
use serde_json::{Map, Value};

/// Drops unsupported definitions from inline sources, then sources that are emptied or broken, then the capabilities
/// themselves when no source is left.
pub(super) fn search_capabilities(
    dropped: &mut Vec<Dropped>,
    parent: &Place<'_>,
    map: &mut Map<String, Value>,
) {
    const NAME: &str = "search_capabilities";
    let Some(Value::Object(capabilities)) = map.get_mut(NAME) else {
        return;
    };
    let place = parent.key(NAME);
    let before = dropped.len();
    source(dropped, &place, capabilities, "filters", unsupported_filter);
    source(dropped, &place, capabilities, "sorts", unsupported_sort);
    let gone = dropped.len() > before
        && !["filters", "sorts"]
            .iter()
            .any(|name| capabilities.contains_key(*name));
    if gone {
        drop_member(
            dropped,
            parent,
            map,
            NAME,
            "Has no source that is supported.",
        );
    }
}

fn source(
    dropped: &mut Vec<Dropped>,
    parent: &Place<'_>,
    capabilities: &mut Map<String, Value>,
    name: &str,
    unsupported: impl Fn(&Value) -> Option<String>,
) {
    let Some(Value::Object(source)) = capabilities.get_mut(name) else {
        return;
    };
    let place = parent.key(name);
    let had_inline = source.contains_key("inline");
    filter_list(
        dropped,
        &place,
        source,
        "inline",
        Emptied::Goes,
        |_, _, item| unsupported(item),
    );
    if had_inline && !source.contains_key("inline") && !source.contains_key("linked") {
        drop_member(
            dropped,
            parent,
            capabilities,
            name,
            "Has no definition that is supported.",
        );
        return;
    }
    // A source is valid as a whole or left out as a whole; text search works without it.
    let alone = Map::from_iter([(name.to_owned(), Value::Object(source.clone()))]);
    let mut report = Report::new();
    let read = SearchCapabilities::read(&mut report, &Place::ROOT, Value::Object(alone));
    if let Err(invalid) = report.finish(read) {
        drop_member(dropped, parent, capabilities, name, &invalid.to_string());
    }
}

/// Why a Filter Definition cannot be supported, when it cannot.
pub(super) fn unsupported_filter(item: &Value) -> Option<String> {
    let reason = if is_unknown(item, "type", |name| ScalarType::parse(name).is_some()) {
        "Has a type that is not known."
    } else if unknown_operator(item) {
        "Has an operator that is not known."
    } else if item
        .get("unit")
        .is_some_and(|unit| is_unknown(unit, "system", |name| matches!(name, "ucum" | "service")))
    {
        "Has a unit system that is not known."
    } else {
        return None;
    };
    Some(reason.to_owned())
}

fn unknown_operator(item: &Value) -> bool {
    let operators = item
        .get("operators")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    operators
        .filter_map(Value::as_str)
        .any(|name| Operator::parse(name).is_none())
}

/// Why a Sort Definition cannot be supported, when it cannot.
pub(super) fn unsupported_sort(item: &Value) -> Option<String> {
    let mut keys = item
        .get("keys")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let unknown = keys.any(|key| {
        is_unknown(key, "direction", |name| {
            matches!(name, "ascending" | "descending")
        }) || is_unknown(key, "missing", |name| matches!(name, "first" | "last"))
    });
    unknown.then(|| "Has a direction or a placement of the missing that is not known.".to_owned())
}
