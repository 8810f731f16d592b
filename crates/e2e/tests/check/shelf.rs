//! What the small Service publishes.

use serde_json::{Value, json};

pub(crate) fn document() -> Value {
    let names = [
        "list-collections",
        "search-collections",
        "get-collection",
        "list-collection-offerings",
        "list-offerings",
        "search-offerings",
        "get-offering",
    ];
    let operations: Vec<_> = names
        .iter()
        .map(|name| json!({"name": name, "authentication": "not-required"}))
        .collect();
    json!({
        "odp_version": "1.0", "name": "A shelf", "description": "Things on a shelf.",
        "language": "en", "localizations": ["en", "de"], "operations": operations,
        "http": {"endpoint_base": "/odp"},
        "search_capabilities": {
            "filters": {"inline": [
                {"id": "kind", "title": "Kind", "description": "What it is.", "type": "string",
                 "operators": ["eq", "in", "exists"], "refinable": true},
                {"id": "size", "title": "Size", "description": "How large it is.", "type": "integer",
                 "operators": ["eq", "lt", "lte", "gt", "gte", "exists"]},
            ]},
            "sorts": {"linked": {"href": "/odp/sorts"}},
        },
    })
}

pub(crate) fn schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"kind": {"type": "string"}, "size": {"type": "integer"}},
    })
}

pub(crate) fn sorts() -> Vec<Value> {
    let sort = |id: &str, direction: &str| {
        json!({"id": id, "title": id, "description": "By size.", "keys": [
            {"filter_id": "size", "direction": direction, "missing": "last"},
        ]})
    };
    vec![sort("smallest", "ascending"), sort("largest", "descending")]
}

pub(crate) fn collections() -> Vec<Value> {
    vec![
        json!({"id": "child", "name": "Small things", "description": "Things that fit a hand.",
        "parent_ids": ["root"], "search_capabilities": {"filters": {"inline": [
            {"id": "shade", "title": "Shade", "description": "Its colour.", "type": "string",
             "operators": ["eq", "exists"]},
        ]}}}),
        json!({"id": "root", "name": "Everything", "description": "All that is on the shelf."}),
    ]
}

pub(crate) fn offerings() -> Vec<Value> {
    let offering = |id: &str, name: &str, kind: &str, size: i64, collections: &[&str]| {
        json!({
            "id": id, "name": name, "description": format!("{name}, as good as new."),
            "collection_ids": collections,
            "price": {"type": "fixed", "amount": "4.50", "currency": "EUR"},
            "schema": {"url": "/thing.json"},
            "attributes": {"kind": kind, "size": size},
            "actions": [{"id": "buy", "rel": "purchase", "authentication": "not-required",
                         "http": {"href": "/buy", "method": "POST"}}],
        })
    };
    let mut all = vec![
        offering("brass", "Lamp of brass", "lamp", 5, &["child"]),
        offering("chair", "Chair", "chair", 90, &["root"]),
        offering("glass", "Lamp of glass", "lamp", 20, &["child", "root"]),
        offering("stool", "Stool", "chair", 40, &["root"]),
        offering("table", "Table", "table", 150, &["root"]),
    ];
    all.push(json!({"id": "vase", "name": "Vase lamp", "collection_ids": ["child"]}));
    all
}

pub(crate) fn terse(item: &Value) -> Value {
    let mut kept = serde_json::Map::new();
    let mut more = Vec::new();
    for (name, value) in item.as_object().unwrap() {
        match name.as_str() {
            "id" | "name" | "collection_ids" | "parent_ids" => {
                kept.insert(name.clone(), value.clone());
            }
            _ => more.push(format!("/{name}")),
        }
    }
    if !more.is_empty() {
        kept.insert("detail_fields".to_owned(), json!(more));
    }
    kept.into()
}

pub(crate) fn in_collection(item: &Value, id: &str) -> bool {
    item["collection_ids"]
        .as_array()
        .unwrap()
        .iter()
        .any(|c| c == id)
}

pub(crate) fn ids(items: &[Value]) -> Vec<String> {
    let ids = items.iter().map(|item| item["id"].as_str().unwrap());
    ids.map(str::to_owned).collect()
}

pub(crate) fn find<'a>(items: &'a [Value], id: &str) -> Option<&'a Value> {
    items.iter().find(|item| item["id"] == id)
}
