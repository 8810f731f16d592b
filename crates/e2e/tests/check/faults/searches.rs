//! Faults of capabilities and searches.

use super::{accepts, accepts_search, at, fault, search};
use crate::fake::{Fault, Response};
use serde_json::{Value, json};

pub(super) fn of_searches() -> Vec<(&'static str, Fault)> {
    vec![
        (
            "capability.source",
            at("/odp/sorts", |request, r| {
                let again = r.body["items"][0].clone();
                r.body["items"].as_array_mut().unwrap().push(again);
                assert_eq!(request.method, "GET");
            }),
        ),
        (
            "capability.conflict",
            at("/odp/collections/child", |request, r| {
                if request.parameter("representation") != Some("terse") {
                    r.body["search_capabilities"] = json!({"filters": {"inline": [
                        {"id": "kind", "title": "Kind", "description": "Again.", "type": "string",
                         "operators": ["eq"]},
                    ]}});
                }
            }),
        ),
        (
            "capability.sort-reference",
            at("/odp/sorts", |_, r| {
                r.body["items"][0]["keys"][0]["filter_id"] = json!("weight");
            }),
        ),
        (
            "search.status",
            fault(|request, response| {
                if request.method == "POST" && response.status == 200 {
                    *response = Response::problem(404, "NOT_FOUND", None);
                }
            }),
        ),
        (
            "search.constraint",
            accepts(|request| request.body == b"{\"odp_version\":\"1.0\"}"),
        ),
        ("search.query", accepts_search("\"query\":\" \\t\"")),
        ("search.version", accepts_search("\"2.0\"")),
        ("search.limit", accepts_search("\"limit\":101")),
        ("search.malformed", accepts_search("[[[[[[[[[[[[[[[[")),
        (
            "search.media-type",
            accepts(|request| request.header("content-type") == "text/plain"),
        ),
        (
            "search.too-large",
            accepts(|request| request.body.len() > 65_536),
        ),
        (
            "search.filter.unknown",
            accepts_search("[{\"id\":\"purvey-check.no-such-thing~0\""),
        ),
        // One that only a Collection advertises, which is not named.
        (
            "search.filter.unknown",
            accepts(|request| {
                let body = request.json();
                body["filters"][0]["id"] == "shade" && body.get("collection_id").is_none()
            }),
        ),
        // The same where the Collection is named.
        (
            "filter.no-match",
            search("\"id\":\"shade\",\"operator\":\"eq\"", |r| {
                r.body["items"] = json!([{"id": "brass", "name": "Lamp of brass"}]);
            }),
        ),
        (
            "search.filter.operator",
            accepts_search("\"operator\":\"lt\""),
        ),
        (
            "search.filter.value",
            accepts_search("\"value\":\"purvey-check\""),
        ),
        (
            "search.filter.count",
            accepts(|request| {
                request.json()["filters"]
                    .as_array()
                    .is_some_and(|f| f.len() > 32)
            }),
        ),
        (
            "search.sort.unknown",
            accepts_search("\"sort\":\"purvey-check"),
        ),
        (
            "search.refinement.unknown",
            accepts_search("\"refinements\":[\"size\"]"),
        ),
        (
            "search.descendants",
            accepts(|request| {
                let body = request.json();
                body["include_descendants"] == true && body.get("collection_id").is_none()
            }),
        ),
        (
            "search.collection.unknown",
            accepts_search("\"collection_id\":\"purvey-check"),
        ),
        (
            "search.collection.scope",
            search("\"collection_id\":\"child\"", |r| {
                let item = json!({"id": "table", "name": "Table", "collection_ids": ["root"]});
                r.body["items"].as_array_mut().unwrap().push(item);
            }),
        ),
        (
            "search.parent",
            at("/odp/collections/search", |request, r| {
                if request.json().get("parent_id") == Some(&Value::Null) {
                    r.body["items"] =
                        json!([{"id": "child", "name": "Small", "parent_ids": ["root"]}]);
                }
            }),
        ),
        (
            "filter.no-match",
            search("no such value", |r| {
                r.body["items"] = json!([{"id": "brass", "name": "Lamp of brass"}]);
            }),
        ),
        (
            "filter.exists",
            search("\"operator\":\"exists\",\"value\":false", |r| {
                r.body["items"] = json!([{"id": "brass", "name": "Lamp of brass"}]);
            }),
        ),
        (
            "filter.eq",
            search("\"operator\":\"in\"", |r| r.body["items"] = json!([])),
        ),
        (
            "filter.order",
            search("\"operator\":\"lte\",\"value\":100}", |r| {
                r.body["items"] = json!([{"id": "table", "name": "Table"}]);
            }),
        ),
        (
            "refinement.continuation",
            at("/odp/offerings/search", |request, r| {
                if request.parameter("cursor").is_some() {
                    r.body["refinements"] = json!([]);
                }
            }),
        ),
        (
            "refinement.valid",
            search("\"refinements\"", |r| {
                r.body["refinements"][0]["values"][0]["value"] = json!(3);
            }),
        ),
        (
            "refinement.zero",
            search("\"refinements\"", |r| {
                r.body["refinements"][0]["values"][0]["count"] = json!(0);
            }),
        ),
        (
            "refinement.count",
            search("\"refinements\"", |r| {
                r.body["refinements"][0]["values"][0]["count"] = json!(7);
            }),
        ),
        (
            "sort.order",
            search("\"sort\":\"smallest\"", |r| {
                r.body["items"].as_array_mut().unwrap().reverse();
            }),
        ),
    ]
}
