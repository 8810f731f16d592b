//! One fault each, put into a Service that has none.

mod resources;
mod searches;

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
    faults.extend(resources::of_resources());
    faults.extend(searches::of_searches());
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
