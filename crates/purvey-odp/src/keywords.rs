//! Where schemas stand within an attribute schema (ODP §10, JSON Schema Draft 2020-12): what is elsewhere is data, even when it looks
//! like one.

use serde_json::{Map, Value};

/// What the value of a keyword holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// One schema.
    One,
    /// An array of schemas.
    List,
    /// An object whose members are schemas.
    Members,
}

/// What the value of `keyword` holds; nothing when no schema is there.
pub fn holds(keyword: &str) -> Option<Holds> {
    Some(match keyword {
        "additionalProperties"
        | "contains"
        | "contentSchema"
        | "else"
        | "if"
        | "items"
        | "not"
        | "propertyNames"
        | "then"
        | "unevaluatedItems"
        | "unevaluatedProperties" => Holds::One,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Holds::List,
        "$defs" | "definitions" | "dependentSchemas" | "patternProperties" | "properties" => {
            Holds::Members
        }
        _ => return None,
    })
}

/// Whether a keyword applies the schemas that it holds to the value itself, and not to what is within the value.
pub fn is_in_place(keyword: &str) -> bool {
    matches!(
        keyword,
        "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "dependentSchemas"
    )
}

/// Whether a keyword leads to other schemas.
pub fn leads_on(keyword: &str) -> bool {
    holds(keyword).is_some() || matches!(keyword, "$ref" | "$dynamicRef")
}

/// The schemas directly within `schema`.
pub fn within(schema: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    schema
        .iter()
        .flat_map(|(keyword, value)| held(keyword, value))
}

/// The schemas that the value of `keyword` holds.
pub fn held<'a>(keyword: &str, value: &'a Value) -> Vec<&'a Value> {
    match (holds(keyword), value) {
        (Some(Holds::One), value) => vec![value],
        (Some(Holds::List), Value::Array(items)) => items.iter().collect(),
        (Some(Holds::Members), Value::Object(members)) => members.values().collect(),
        _ => Vec::new(),
    }
}

/// The schemas directly within `schema`, to be changed.
pub fn within_mut(schema: &mut Map<String, Value>) -> impl Iterator<Item = &mut Value> {
    schema
        .iter_mut()
        .flat_map(|(keyword, value)| match (holds(keyword), value) {
            (Some(Holds::One), value) => vec![value],
            (Some(Holds::List), Value::Array(items)) => items.iter_mut().collect(),
            (Some(Holds::Members), Value::Object(members)) => members.values_mut().collect(),
            _ => Vec::new(),
        })
}
