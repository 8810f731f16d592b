//! Vectors abbreviate what a case is not about: `{"id": "price"}` stands for a Filter Definition. What is missing is added here, so
//! that a whole document can be judged; nothing that a case says is changed.

use serde_json::{Map, Value, json};

/// Adds the members of `defaults` that `value` lacks.
fn fill(value: &mut Value, defaults: Value) {
    if let (Value::Object(map), Value::Object(defaults)) = (value, defaults) {
        for (name, default) in defaults {
            map.entry(name).or_insert(default);
        }
    }
}

/// A Filter Definition.
pub(super) fn filter(mut value: Value) -> Value {
    fill(
        &mut value,
        json!({"title": "Filter", "description": "A filter.", "type": "string", "operators": ["eq"]}),
    );
    value
}

/// A Sort Definition; without keys of its own it orders by `filter_id`.
pub(super) fn sort(mut value: Value, filter_id: &str) -> Value {
    fill(
        &mut value,
        json!({"title": "Sort", "description": "A sort.", "keys": [{"filter_id": filter_id}]}),
    );
    if let Some(Value::Array(keys)) = value.get_mut("keys") {
        for key in keys {
            fill(key, json!({"direction": "ascending", "missing": "last"}));
        }
    }
    value
}

/// A Collection or Offering.
pub(super) fn resource(mut value: Value) -> Value {
    fill(&mut value, json!({"name": "Example"}));
    value
}

/// A search request that asks for something, so that only what the case says can be wrong with it.
pub(super) fn search(mut value: Value) -> Value {
    fill(&mut value, json!({"odp_version": "1.0"}));
    if value.get("query").is_none() && value.get("filters").is_none() {
        fill(&mut value, json!({"query": "example"}));
    }
    value
}

/// A Service Document with these operations, and these further members.
pub(super) fn service_document(operations: &[&str], members: Map<String, Value>) -> Value {
    let operations: Value = operations
        .iter()
        .map(|name| json!({"authentication": "not-required", "name": name}))
        .collect();
    let mut document = json!({
        "odp_version": "1.0",
        "name": "Example",
        "description": "An example Service.",
        "language": "en",
        "localizations": ["en"],
        "operations": operations,
        "http": {"endpoint_base": "/odp/"},
    });
    if let Value::Object(map) = &mut document {
        map.extend(members);
    }
    document
}
