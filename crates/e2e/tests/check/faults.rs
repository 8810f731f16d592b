//! One fault each, put into a Service that has none.

use serde_json::{Value, json};

use crate::fake::{self, Fault, Request, Response};
use crate::{documented, findings, outcome};

fn fault(work: impl Fn(&Request, &mut Response) + Send + Sync + 'static) -> Fault {
    Box::new(work)
}

/// A fault in the responses to successful requests for this path.
fn at(path: &'static str, work: impl Fn(&Request, &mut Response) + Send + Sync + 'static) -> Fault {
    fault(move |request, response| {
        if request.path == path && response.status == 200 {
            work(request, response);
        }
    })
}

/// A fault in the Service Document.
fn document(work: impl Fn(&mut Value) + Send + Sync + 'static) -> Fault {
    at("/.well-known/odp", move |_, response| {
        work(&mut response.body);
    })
}

/// Requests that are refused, and should be, answered as if they were fine.
fn accepts(which: impl Fn(&Request) -> bool + Send + Sync + 'static) -> Fault {
    fault(move |request, response| {
        if (400..500).contains(&response.status) && which(request) {
            *response = empty();
        }
    })
}

fn empty() -> Response {
    let mut response = Response::problem(200, "NONE", None);
    response.body = json!({"odp_version": "1.0", "items": []});
    response.set("content-type", "application/odp+json");
    response.set("content-language", "en");
    response.set("vary", "accept-language");
    response.set("etag", "\"e\"");
    response
}

/// A page of the list of Offerings with this limit.
fn page(
    limit: &'static str,
    work: impl Fn(&Request, &mut Response) + Send + Sync + 'static,
) -> Fault {
    at("/odp/offerings", move |request, response| {
        if request.parameter("limit") == Some(limit) {
            work(request, response);
        }
    })
}

/// A search for Offerings whose body has this text.
fn search(text: &'static str, work: impl Fn(&mut Response) + Send + Sync + 'static) -> Fault {
    at("/odp/offerings/search", move |request, response| {
        if String::from_utf8_lossy(&request.body).contains(text) {
            work(response);
        }
    })
}

fn accepts_search(text: &'static str) -> Fault {
    accepts(move |request| {
        request.path == "/odp/offerings/search"
            && String::from_utf8_lossy(&request.body).contains(text)
    })
}

fn long_text() -> String {
    "long ".repeat(200_000)
}

/// A rule, and what breaks it.
fn faults() -> Vec<(&'static str, Fault)> {
    let mut faults = of_service();
    faults.extend(of_pages());
    faults.extend(of_resources());
    faults.extend(of_searches());
    faults
}

fn of_service() -> Vec<(&'static str, Fault)> {
    vec![
        (
            "service.reachable",
            at("/.well-known/odp", |_, r| r.status = 403),
        ),
        (
            "service.etag",
            at("/.well-known/odp", |_, r| r.unset("etag")),
        ),
        (
            "service.cors",
            at("/.well-known/odp", |_, r| {
                r.unset("access-control-allow-origin");
            }),
        ),
        (
            "document.media-type",
            at("/.well-known/odp", |_, r| {
                r.set("content-type", "application/json");
            }),
        ),
        (
            "document.version",
            document(|d| d["odp_version"] = json!("1.1")),
        ),
        ("document.valid", document(|d| d["web_url"] = json!("/"))),
        (
            "document.size",
            document(|d| d["more"] = json!(long_text())),
        ),
        (
            "document.depth",
            document(|d| d["more"] = json!([[[[[[[[[1]]]]]]]]])),
        ),
        (
            "document.json",
            at("/.well-known/odp", |_, r| {
                let twice = r.body.to_string().replacen('{', "{\"name\":\"Twice\",", 1);
                r.raw = Some(twice.into_bytes());
            }),
        ),
        (
            "etag.not-modified",
            fault(|request, response| {
                if request.path == "/.well-known/odp" && response.status == 304 {
                    response.status = 200;
                }
            }),
        ),
        (
            "language.content-language",
            at("/.well-known/odp", |_, r| r.unset("content-language")),
        ),
        (
            "language.vary",
            at("/.well-known/odp", |_, r| r.set("vary", "accept-encoding")),
        ),
        (
            "language.lookup",
            at("/.well-known/odp", |_, r| r.set("content-language", "en")),
        ),
        (
            "language.fallback",
            fault(|request, response| {
                if request.header("accept-language") == "tlh" {
                    *response = Response::problem(406, "NOT_ACCEPTABLE", None);
                }
            }),
        ),
        (
            "language.etag",
            at("/.well-known/odp", |_, r| r.set("etag", "\"same\"")),
        ),
        (
            "http.not-acceptable",
            accepts(|request| request.header("accept") == "text/html"),
        ),
        (
            "http.method",
            accepts(|request| request.method == "PROPFIND"),
        ),
        (
            "http.allow",
            fault(|request, response| {
                if request.method == "PROPFIND" {
                    response.unset("allow");
                }
            }),
        ),
        (
            "http.head",
            fault(|request, response| {
                if request.method == "HEAD" {
                    response.status = 404;
                }
            }),
        ),
        (
            "http.server-error",
            fault(|request, response| {
                if request.parameter("limit") == Some("abc") {
                    *response = Response::problem(500, "OH_NO", None);
                }
            }),
        ),
        (
            "http.redirect",
            at("/odp/offerings", |_, r| {
                r.status = 302;
                r.set("location", "http://localhost:1/elsewhere");
            }),
        ),
        (
            "http.retry-after",
            fault(|request, response| {
                if request.parameter("limit") == Some("2") {
                    *response = Response::problem(429, "RATE_LIMITED", None);
                }
            }),
        ),
        (
            "http.response",
            at("/odp/offerings", |_, r| {
                r.set("content-encoding", "gzip");
                r.raw = Some(b"this is not gzip".to_vec());
            }),
        ),
        (
            "authentication.not-required",
            fault(|request, response| {
                if request.path == "/odp/collections" {
                    *response = Response::problem(401, "NOT_AUTHENTICATED", None);
                    response.set("www-authenticate", "AEP");
                }
            }),
        ),
        (
            "authentication.challenge",
            fault(|request, response| {
                if request.path == "/odp/collections" {
                    *response = Response::problem(401, "NOT_AUTHENTICATED", None);
                }
            }),
        ),
        (
            "authentication.required",
            document(|d| {
                d["operations"][0]["authentication"] = json!("required");
                d["protocols"] = json!({"enrollment": [{"name": "aep"}]});
            }),
        ),
    ]
}

fn of_pages() -> Vec<(&'static str, Fault)> {
    vec![
        (
            "list.status",
            fault(|request, response| {
                if request.path == "/odp/offerings" && request.parameter("limit") == Some("100") {
                    *response = Response::problem(404, "NOT_FOUND", None);
                }
            }),
        ),
        (
            "list.limit",
            accepts(|request| request.parameter("limit") == Some("101")),
        ),
        (
            "representation.invalid",
            accepts(|request| request.parameter("representation") == Some("brief")),
        ),
        (
            "page.limit",
            page("1", |_, r| {
                let more = json!({"id": "one-more", "name": "One more"});
                r.body["items"].as_array_mut().unwrap().push(more);
            }),
        ),
        ("page.etag", at("/odp/offerings", |_, r| r.unset("etag"))),
        (
            "page.next.valid",
            page("1", |_, r| r.body["next"] = json!("offerings?cursor=x")),
        ),
        (
            "page.next.origin",
            page("1", |_, r| {
                r.body["next"] = json!("https://elsewhere.example/odp/offerings");
            }),
        ),
        (
            "page.next.own-url",
            page("1", |request, r| r.body["next"] = json!(request.target())),
        ),
        (
            "page.next.loop",
            fault(|request, response| {
                if request.path == "/odp/offerings" && request.parameter("cursor").is_some() {
                    response.body["next"] = json!("/odp/offerings?limit=1");
                }
            }),
        ),
        (
            "page.next.status",
            fault(|request, response| {
                if request.path == "/odp/offerings" && request.parameter("cursor").is_some() {
                    *response = Response::problem(410, "CONTINUATION_EXPIRED", None);
                }
            }),
        ),
        ("page.next.repeatable", {
            let count = std::sync::atomic::AtomicUsize::new(0);
            at("/odp/offerings", move |request, r| {
                let n = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                if request.parameter("cursor").is_some() {
                    r.body["items"][0]["id"] = json!(format!("fresh-{n}"));
                }
            })
        }),
        (
            "page.next.tampered",
            accepts(|request| request.parameter("cursor").is_some()),
        ),
        (
            "page.repeated",
            at("/odp/offerings", |request, r| {
                if request.parameter("cursor").is_some() {
                    r.body["items"][0]["id"] = json!("brass");
                }
            }),
        ),
        (
            "page.order",
            page("100", |_, r| {
                r.body["items"].as_array_mut().unwrap().reverse();
            }),
        ),
        (
            "terse.actions",
            page("1", |_, r| {
                r.body["items"][0]["actions"] = json!([{"id": "buy"}]);
            }),
        ),
        (
            "problem.media-type",
            fault(|_, r| {
                if r.status == 404 {
                    r.set("content-type", "application/json");
                }
            }),
        ),
        (
            "problem.valid",
            fault(|_, r| {
                if r.status == 404 {
                    r.body["status"] = json!(400);
                }
            }),
        ),
        (
            "problem.size",
            fault(|_, r| {
                if r.status == 404 {
                    r.body["more"] = json!("x".repeat(20_000));
                }
            }),
        ),
        (
            "problem.code",
            fault(|_, r| {
                if r.status == 404 {
                    *r = Response::problem(404, "GONE_FISHING", None);
                }
            }),
        ),
        (
            "problem.invalid-params",
            fault(|request, r| {
                if request.parameter("limit").is_some() && r.status == 400 {
                    *r = Response::problem(400, "INVALID_REQUEST", Some(("query", "limits")));
                }
            }),
        ),
    ]
}

fn of_resources() -> Vec<(&'static str, Fault)> {
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

fn of_searches() -> Vec<(&'static str, Fault)> {
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

#[test]
fn every_fault_is_found_by_its_rule() {
    let mut missed = Vec::new();
    for (rule, fault) in faults() {
        let origin = fake::start(fault);
        let (code, outcome) = outcome(&origin);
        let found = findings(&outcome);
        let mine = outcome["findings"].as_array().unwrap().iter();
        let severity = mine
            .filter(|finding| finding["rule"] == rule)
            .map(|finding| finding["severity"].as_str().unwrap())
            .next();
        let worst = match () {
            () if outcome["errors"] != 0 => Some(1),
            () if outcome["warnings"] != 0 => Some(3),
            () => Some(0),
        };
        if severity.is_none() || code != worst {
            missed.push(format!("{rule}: {code:?} {found:#?}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// No rule but the one that checks the check itself is left without a fault.
#[test]
fn every_rule_has_a_fault() {
    let names: Vec<_> = faults().into_iter().map(|(rule, _)| rule).collect();
    let mut without = documented();
    without.retain(|rule| !names.contains(&rule.as_str()));
    assert_eq!(without, ["check.incomplete"]);
}
