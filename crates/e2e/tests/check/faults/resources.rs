//! Faults of single resources, of their places and of what they refer to.

use super::{accepts, at, fault};
use crate::fake::{Fault, Request, Response};
use serde_json::json;

pub(super) fn of_resources() -> Vec<(&'static str, Fault)> {
    let brass = "/odp/offerings/brass";
    let terse = |request: &Request| request.parameter("representation") == Some("terse");
    vec![
        (
            "get.status",
            fault(|request, response| {
                if request.path == "/odp/offerings/vase" {
                    *response = Response::problem(404, "NOT_FOUND", None);
                }
            }),
        ),
        ("get.id", at(brass, |_, r| r.body["id"] = json!("brasso"))),
        (
            "get.not-found",
            accepts(|request| request.path.contains("no-such-thing")),
        ),
        ("get.etag", at(brass, |_, r| r.unset("etag"))),
        (
            "representation.default",
            at(brass, |request, r| {
                if request.query.is_empty() {
                    r.body.as_object_mut().unwrap().remove("price");
                }
            }),
        ),
        (
            "terse.fields",
            at(brass, move |request, r| {
                if terse(request) {
                    r.body["web_url"] = json!("/brass");
                }
            }),
        ),
        (
            "terse.truncated",
            at(brass, move |request, r| {
                if terse(request) {
                    r.body["description"] = json!("Lamp of br…");
                    let fields = r.body["detail_fields"].as_array_mut().unwrap();
                    fields.retain(|field| field != "/description");
                }
            }),
        ),
        (
            "terse.detail-fields",
            at(brass, move |request, r| {
                if terse(request) {
                    r.body["detail_fields"].as_array_mut().unwrap().pop();
                }
            }),
        ),
        (
            "attributes.schema",
            fault(|request, response| {
                if request.path == "/thing.json" {
                    response.status = 404;
                }
            }),
        ),
        (
            "attributes.match",
            at(brass, |_, r| r.body["attributes"]["size"] = json!("five")),
        ),
        (
            "action.resolves",
            at(brass, |_, r| {
                if r.body.get("actions").is_some() {
                    let action = r.body["actions"][0].as_object_mut().unwrap();
                    action.remove("http");
                    action.insert(
                        "openapi".into(),
                        json!({"url": "/none.json", "operation_id": "buy"}),
                    );
                }
            }),
        ),
        (
            "supporting.reachable",
            at(brass, |_, r| {
                if r.body.get("schema").is_some() {
                    r.body["schema"]["url"] = json!("https://nowhere.invalid/thing.json");
                }
            }),
        ),
        (
            "offering.collection",
            at(brass, |_, r| {
                r.body["collection_ids"] = json!(["child", "gone"]);
            }),
        ),
        (
            "hierarchy.edge",
            at("/odp/collections", |_, r| {
                r.body["items"]
                    .as_array_mut()
                    .unwrap()
                    .iter_mut()
                    .for_each(|item| {
                        if item["id"] == "root" {
                            item["parent_ids"] = json!(["child"]);
                        }
                    });
            }),
        ),
        (
            "membership.listed",
            at("/odp/collections/child/offerings", |_, r| {
                r.body["items"][0]["collection_ids"] = json!(["root"]);
            }),
        ),
        (
            "membership.complete",
            at("/odp/collections/child/offerings", |request, r| {
                if request.parameter("limit") == Some("100") {
                    r.body["items"].as_array_mut().unwrap().pop();
                }
            }),
        ),
        (
            "collection.unknown",
            accepts(|request| request.path.ends_with("~0/offerings")),
        ),
        (
            "agent.reads",
            at("/odp/offerings/table", |_, r| r.body["name"] = json!("")),
        ),
    ]
}
