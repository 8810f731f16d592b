//! What the Agents read: records and documents, the same at every run.

use super::{Documents, Outcome, PAGE, text};
use serde_json::{Value, json};
use std::io::Write;

/// Filters of the linked source, as many as may be effective (ODP §5).
pub const FILTERS: usize = 1_024;
/// Sorts of the linked source, as many as may be effective.
pub const SORTS: usize = 128;

/// The manifest of the catalog.
pub const MANIFEST: &str = r#"
[service]
name = "Bench"
description = "Numbered things."
language = "en"

[search]
terse = ["/description", "/collection_ids", "/price", "/images", "/attributes/category"]

[schemas]
"/schemas/thing.json" = "thing.json"

[[collections]]
id = "even"
name = "Even things"

[[collections]]
id = "odd"
name = "Odd things"
"#;

/// The schema of the attributes, which the manifest looks for in `thing.json`.
pub const SCHEMA: &str =
    r#"{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}"#;

/// The `n`-th record: an Offering with everything that one usually has.
#[must_use]
pub fn offering(n: usize) -> Value {
    let collection = ["even", "odd"][n % 2];
    let category = ["desk", "lamp", "chair"][n % 3];
    json!({
        "id": format!("thing-{n:06}"),
        "name": format!("Thing number {n}"),
        "description": format!(
            "The thing with the number {n}, as it is shown in a catalog: what it is made of, how large it is, who made it and \
             when, and why somebody might want to have it. Everybody who has one says that it does what it should."
        ),
        "collection_ids": [collection],
        "web_url": format!("/things/{n}"),
        "images": [
            {"src": format!("/images/{n}-front.webp"), "type": "image/webp", "width": 1200, "height": 900, "alt": "From the front"},
            {"src": format!("/images/{n}-side.webp"), "type": "image/webp", "width": 1200, "height": 900, "alt": "From the side"},
        ],
        "price": {"type": "fixed", "amount": format!("{}.{:02}", n % 900 + 1, n % 100), "currency": "EUR"},
        "schema": {"url": "/schemas/thing.json"},
        "attributes": {
            "category": category,
            "materials": ["walnut", "steel"],
            "made_to_order": n.is_multiple_of(5),
            "processing_days": n % 30,
            "dimensions": {"width_cm": 152.4, "depth_cm": 76.2, "height_cm": n % 120},
            "maker": {"name": "A workshop", "since": 1987},
        },
        "actions": [
            {
                "id": "buy", "rel": "purchase", "authentication": "required", "description": "Buy one.",
                "http": {
                    "href": format!("/things/{n}/orders"), "method": "POST", "response_content_types": ["application/json"],
                    "request": {"content_type": "application/json", "schema": {"url": "https://schemas.example/order.json"}},
                },
            },
            {
                "id": "ask", "rel": "quote", "authentication": "not-required",
                "openapi": {"url": "https://schemas.example/openapi.json", "operation_id": "askForThing"},
            },
        ],
    })
}

/// Writes the first `count` records, one a line.
///
/// # Errors
/// The operating system's.
pub fn records(out: &mut impl Write, count: usize) -> Outcome<()> {
    for n in 0..count {
        writeln!(out, "{}", offering(n)).map_err(text)?;
    }
    Ok(())
}

/// A Service whose filters and sorts are behind links, over as many full pages as they need.
#[must_use]
pub fn capabilities() -> Documents {
    let mut documents = Documents::default();
    let service = json!({
        "odp_version": "1.0", "name": "Bench", "description": "Numbered things.", "language": "en", "localizations": ["en"],
        "http": {"endpoint_base": "/odp"},
        "operations": [
            {"name": "get-offering", "authentication": "not-required"},
            {"name": "list-offerings", "authentication": "not-required"},
            {"name": "search-offerings", "authentication": "not-required"},
        ],
        "search_capabilities": {
            "filters": {"linked": {"href": "/odp/filters/0"}},
            "sorts": {"linked": {"href": "/odp/sorts/0"}},
        },
    });
    put(&mut documents, "/.well-known/odp".to_owned(), &service);
    paginate(&mut documents, "/odp/filters", FILTERS, filter);
    paginate(&mut documents, "/odp/sorts", SORTS, sort);
    documents
}

/// The Service Document and the page of a Service in memory.
#[must_use]
pub fn page(body: &[u8]) -> Documents {
    let mut documents = capabilities();
    documents
        .0
        .insert("/odp/offerings".to_owned(), body.to_vec());
    documents
}

fn paginate(documents: &mut Documents, path: &str, count: usize, item: fn(usize) -> Value) {
    let all: Vec<Value> = (0..count).map(item).collect();
    let pages = all.len().div_ceil(PAGE);
    for (n, items) in all.chunks(PAGE).enumerate() {
        let mut page = json!({"odp_version": "1.0", "items": items});
        if n + 1 < pages {
            page["next"] = json!(format!("{path}/{}", n + 1));
        }
        put(documents, format!("{path}/{n}"), &page);
    }
}

fn put(documents: &mut Documents, path: String, document: &Value) {
    documents.0.insert(path, document.to_string().into_bytes());
}

fn filter(n: usize) -> Value {
    let kind = ["string", "integer", "decimal", "date"][n % 4];
    let operators = match kind {
        "string" => json!(["eq", "in", "exists"]),
        _ => json!(["eq", "in", "lt", "lte", "gt", "gte", "exists"]),
    };
    let mut filter = json!({
        "id": format!("filter-{n:04}"),
        "title": format!("Filter {n}"),
        "description": format!("What the things have of number {n}."),
        "type": kind,
        "operators": operators,
        "refinable": true,
    });
    if kind == "decimal" {
        filter["unit"] = json!({"system": "ucum", "code": "cm"});
    }
    filter
}

fn sort(n: usize) -> Value {
    json!({
        "id": format!("sort-{n:03}"),
        "title": format!("Sort {n}"),
        "description": format!("By number {n}, then by the next."),
        "keys": [
            {"filter_id": format!("filter-{:04}", n * 4 + 1), "direction": "ascending", "missing": "last"},
            {"filter_id": format!("filter-{:04}", n * 4 + 2), "direction": "descending", "missing": "last"},
        ],
    })
}
