//! Searching over HTTP: the rules of requests, what answers carry, continuations and capability sources.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;

use axum::body::Body;
use common::{Answer, Service, config, request};
use http::Method;
use serde_json::{Value, json};

const OFFERINGS: &str = "/odp/offerings/search";
const COLLECTIONS: &str = "/odp/collections/search";
const VARY: &str = "Accept, Accept-Encoding, Accept-Language, Authorization";

fn service() -> Service {
    Service::searchable(config())
}

/// A request with these members beside the version.
fn body(mut members: Value) -> String {
    members["odp_version"] = json!("1.0");
    members.to_string()
}

async fn search(service: &Service, members: Value) -> Answer {
    service.search(OFFERINGS, body(members)).await
}

fn ids(page: &Value) -> Vec<&str> {
    let items = page["items"].as_array().unwrap().iter();
    items.map(|item| item["id"].as_str().unwrap()).collect()
}

/// Where the faults of a refused request are.
#[track_caller]
fn faults(answer: &Answer) -> Vec<String> {
    answer.assert_problem(400, "INVALID_REQUEST");
    let problem = answer.json();
    let params = problem["invalid_params"].as_array().unwrap();
    assert!((1..=32).contains(&params.len()), "{problem}");
    params
        .iter()
        .map(|param| {
            assert!(!param["reason"].as_str().unwrap().is_empty(), "{problem}");
            format!(
                "{}:{}",
                param["in"].as_str().unwrap(),
                param["name"].as_str().unwrap()
            )
        })
        .collect()
}

fn at_least(watts: u32) -> Value {
    json!([{"id": "watts", "operator": "gte", "value": watts}])
}

#[tokio::test]
async fn a_search_answers_with_items_counts_and_a_continuation() {
    let service = service();
    let answer = search(
        &service,
        json!({"filters": at_least(20), "sort": "strongest", "refinements": ["watts"], "limit": 4}),
    )
    .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let page = answer.json();
    assert_eq!(page["odp_version"], "1.0");
    assert_eq!(ids(&page), ["lamp-29", "lamp-28", "lamp-27", "lamp-26"]);
    assert!(
        page["items"][0].get("attributes").is_none(),
        "terse by default"
    );
    // The filter's own expressions do not narrow its counts: 30 lamps of 30 powers, once each.
    let groups = page["refinements"].as_array().unwrap();
    assert_eq!(groups.len(), 1);
    assert_eq!(groups[0]["filter_id"], "watts");
    let values = groups[0]["values"].as_array().unwrap();
    assert_eq!(values.len(), 30);
    assert!(values.iter().all(|value| value["count"] == 1));

    let next = page["next"].as_str().unwrap().to_owned();
    assert!(next.starts_with("/odp/offerings/search?cursor="), "{next}");
    let second = service.get(&next).await;
    assert_eq!(second.status, 200);
    let page = second.json();
    assert_eq!(ids(&page), ["lamp-25", "lamp-24", "lamp-23", "lamp-22"]);
    assert!(page.get("refinements").is_none());
    let third = service.get(page["next"].as_str().unwrap()).await.json();
    assert_eq!(ids(&third), ["lamp-21", "lamp-20"]);
    assert!(third.get("next").is_none());

    let none = search(&service, json!({"query": "zeppelin"})).await;
    assert_eq!(none.status, 200);
    assert_eq!(none.json(), json!({"odp_version": "1.0", "items": []}));
}

#[tokio::test]
async fn an_answer_says_what_it_is_and_is_kept_by_nobody() {
    let service = service();
    let text = body(json!({"query": "lamp", "limit": 50}));
    let fields = [
        ("content-type", "application/odp+json"),
        ("accept-language", "de"),
        ("accept-encoding", "gzip"),
        ("x-request-id", "mine"),
        ("if-none-match", "*"),
    ];
    let post = request(Method::POST, OFFERINGS, &fields, Body::from(text));
    let answer = service.send(post).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), "application/odp+json");
    assert_eq!(answer.header("content-encoding"), "gzip");
    assert_eq!(
        answer.header("content-length"),
        answer.body.len().to_string()
    );
    // The first lamp has no German text; the second has.
    assert_eq!(answer.header("content-language"), "en, de");
    assert_eq!(answer.header("vary"), VARY);
    assert_eq!(answer.header("cache-control"), "no-store");
    assert_eq!(answer.header("x-request-id"), "mine");
    assert_eq!(answer.header("access-control-allow-origin"), "*");
    assert!(!answer.headers.contains_key("etag"));

    let full = service
        .search(
            &format!("{OFFERINGS}?representation=full&limit=x&unknown=y"),
            body(json!({"query": "lamp", "limit": 2, "new-member": {"a": []}})),
        )
        .await;
    assert_eq!(full.status, 200, "{full:?}");
    let page = full.json();
    assert!(page["items"][0]["attributes"]["watts"].is_number());
    // Continuations are read like lists: with tags, by HEAD, and not at all when they are known.
    let next = page["next"].as_str().unwrap();
    let answer = service.get(next).await;
    assert!(answer.json()["items"][0]["attributes"]["watts"].is_number());
    let tag = answer.header("etag").to_owned();
    assert!(tag.starts_with('"'));
    assert_eq!(answer.header("vary"), VARY);
    let again = service.get_with(next, &[("if-none-match", &tag)]).await;
    assert_eq!((again.status.as_u16(), again.body.len()), (304, 0));
    let head = service
        .send(request(Method::HEAD, next, &[], Body::empty()))
        .await;
    assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
    assert_eq!(head.header("etag"), tag);
}

#[tokio::test]
async fn every_fault_is_at_its_member() {
    let service = service();
    let expression = |id: &str, operator: &str, value: Value| json!({"id": id, "operator": operator, "value": value});
    let gte = |value: Value| json!({"filters": [expression("watts", "gte", value)]});
    let many: Vec<Value> = (0..33)
        .map(|n| expression("watts", "gte", json!(n)))
        .collect();
    let unknown: Vec<Value> = (0..32)
        .map(|n| expression(&format!("f{n}"), "eq", json!(1)))
        .collect();
    let hundred_and_one: Vec<u32> = (0..101).collect();
    for (members, expected) in [
        // Syntax.
        (json!({}), vec![""]),
        (json!({"limit": 5}), vec![""]),
        (json!({"query": ""}), vec!["/query"]),
        (json!({"query": " \t"}), vec!["/query"]),
        (json!({"query": "x".repeat(257)}), vec!["/query"]),
        (json!({"query": 7}), vec!["/query"]),
        (json!({"query": null}), vec!["/query"]),
        (json!({"query": "x", "limit": 0}), vec!["/limit"]),
        (json!({"query": "x", "limit": 101}), vec!["/limit"]),
        (json!({"query": "x", "limit": "5"}), vec!["/limit"]),
        (json!({"filters": []}), vec!["/filters"]),
        (json!({"filters": many}), vec!["/filters"]),
        (json!({"filters": "watts"}), vec!["/filters"]),
        (json!({"filters": [7]}), vec!["/filters/0"]),
        (
            json!({"query": "x", "include_descendants": true}),
            vec!["/include_descendants"],
        ),
        (
            json!({"query": "x", "collection_id": "a b", "include_descendants": 1}),
            vec!["/collection_id", "/include_descendants"],
        ),
        (json!({"query": "x", "sort": "a b"}), vec!["/sort"]),
        (
            json!({"query": "x", "refinements": []}),
            vec!["/refinements"],
        ),
        (
            json!({"query": "x", "refinements": ["watts", "watts"]}),
            vec!["/refinements/1"],
        ),
        // Several at once, in the order of the request's members.
        (
            json!({"query": 1, "filters": [{"id": "watts", "operator": "gte", "value": 1}, 2], "limit": 1000}),
            vec!["/query", "/filters/1", "/limit"],
        ),
        // Capabilities.
        (
            json!({"filters": [expression("nothing", "eq", json!(1))]}),
            vec!["/filters/0/id"],
        ),
        (
            json!({"filters": [expression("lamp-name", "in", json!(["x"]))]}),
            vec!["/filters/0/operator"],
        ),
        (gte(json!("5")), vec!["/filters/0/value"]),
        (gte(json!(5.5)), vec!["/filters/0/value"]),
        (
            json!({"filters": [
                expression("watts", "gte", json!(1)),
                expression("watts", "in", json!([1, 2, "3", 4.5])),
            ]}),
            vec!["/filters/1/value/2", "/filters/1/value/3"],
        ),
        (
            json!({"filters": [expression("watts", "in", json!([1, 2, 1]))]}),
            vec!["/filters/0/value/2"],
        ),
        (
            json!({"filters": [expression("watts", "in", json!(hundred_and_one))]}),
            vec!["/filters/0/value"],
        ),
        (
            json!({"filters": [expression("watts", "exists", json!("yes"))]}),
            vec!["/filters/0/value"],
        ),
        (json!({"query": "x", "sort": "nothing"}), vec!["/sort"]),
        (
            json!({"query": "x", "refinements": ["watts", "lamp-name", "nothing"]}),
            vec!["/refinements/1", "/refinements/2"],
        ),
        // A Collection's filter is one only where that Collection is named.
        (
            json!({"filters": [expression("reach", "gte", json!(1))]}),
            vec!["/filters/0/id"],
        ),
        (
            json!({"filters": [expression("reach", "gte", json!(1))], "collection_id": "lamps", "include_descendants": true}),
            vec!["/filters/0/id"],
        ),
    ] {
        let answer = search(&service, members.clone()).await;
        let expected: Vec<String> = expected.iter().map(|at| format!("body:{at}")).collect();
        assert_eq!(faults(&answer), expected, "{members}");
    }
    let named = json!({"filters": [expression("reach", "gte", json!(1))], "collection_id": "desk"});
    assert_eq!(search(&service, named).await.status, 200);
    // As many as there are, and never more than may be said.
    let answer = search(&service, json!({"filters": unknown, "sort": "nothing"})).await;
    let said = faults(&answer);
    assert_eq!(said.len(), 32);
    assert_eq!(said[31], "body:/filters/31/id");
    assert!(answer.body.len() <= 16_384);
}

#[tokio::test]
async fn what_is_no_json_document_is_said_where_it_is_wrong() {
    let service = service();
    let deep = |count: usize| {
        let (open, close) = ("[".repeat(count), "]".repeat(count));
        format!("{{\"odp_version\":\"1.0\",\"query\":\"lamp\",\"x\":{open}{close}}}").into_bytes()
    };
    assert_eq!(service.search(OFFERINGS, deep(15)).await.status, 200);
    for (bytes, place) in [
        (Vec::new(), ""),
        (b"   ".to_vec(), ""),
        (b"{".to_vec(), ""),
        (b"[]".to_vec(), ""),
        (b"null".to_vec(), ""),
        (
            b"{\"odp_version\":\"1.0\",\"query\":\"lamp\"} x".to_vec(),
            "",
        ),
        (b"{\"odp_version\":\"1.0\",\"query\":\"\xff\"}".to_vec(), ""),
        (
            b"\xef\xbb\xbf{\"odp_version\":\"1.0\",\"query\":\"lamp\"}".to_vec(),
            "",
        ),
        (deep(16), ""),
        (
            b"{\"odp_version\":\"1.0\",\"query\":\"a\",\"query\":\"b\"}".to_vec(),
            "/query",
        ),
        (
            b"{\"odp_version\":\"1.0\",\"filters\":[{\"id\":\"a\",\"id\":\"b\"}]}".to_vec(),
            "/filters/0/id",
        ),
        (b"{\"query\":\"lamp\"}".to_vec(), ""),
        (
            b"{\"odp_version\":\"1.1\",\"query\":\"lamp\"}".to_vec(),
            "/odp_version",
        ),
    ] {
        for path in [OFFERINGS, COLLECTIONS] {
            let answer = service.search(path, bytes.clone()).await;
            let text = String::from_utf8_lossy(&bytes);
            assert_eq!(faults(&answer), [format!("body:{place}")], "{text}");
        }
    }
    let twice = r#"{"odp_version":"1.0","query":"a","filters":[{"id":"a","id":"b","value":[{"x":1,"x":1}]}],"query":"b"}"#;
    let answer = service.search(OFFERINGS, twice).await;
    assert_eq!(
        faults(&answer),
        [
            "body:/filters/0/id",
            "body:/filters/0/value/0/x",
            "body:/query"
        ]
    );
    // Faults of the query are said beside those of the body.
    let path = format!("{OFFERINGS}?representation=medium");
    let answer = service.search(&path, body(json!({"limit": 0}))).await;
    assert_eq!(
        faults(&answer),
        ["query:representation", "body:", "body:/limit"]
    );
}

#[tokio::test]
async fn requests_are_judged_in_one_order() {
    let service = service();
    let send = |fields: &'static [(&'static str, &'static str)], text: String| {
        service.send(request(Method::POST, OFFERINGS, fields, Body::from(text)))
    };
    let bad = body(
        json!({"collection_id": "nowhere", "filters": [{"id": "x", "operator": "eq", "value": 1}], "limit": 0}),
    );
    let large = bad.clone() + &" ".repeat(65_536);
    // Who asks, then what is accepted, then what is sent, then its size.
    let answer = send(
        &[
            ("authorization", "Bearer nobody"),
            ("accept", "text/html"),
            ("content-type", "text/plain"),
        ],
        large.clone(),
    );
    answer.await.assert_problem(401, "NOT_AUTHENTICATED");
    let answer = send(
        &[("accept", "text/html"), ("content-type", "text/plain")],
        large.clone(),
    );
    answer.await.assert_problem(406, "NOT_ACCEPTABLE");
    let answer = send(&[("content-type", "text/plain")], large.clone());
    answer.await.assert_problem(415, "UNSUPPORTED_MEDIA_TYPE");
    service
        .search(OFFERINGS, large)
        .await
        .assert_problem(413, "REQUEST_TOO_LARGE");
    // Syntax, then the Collection, then capabilities.
    let answer = service.search(OFFERINGS, bad).await;
    assert_eq!(faults(&answer), ["body:/limit"]);
    let filters = json!([{"id": "x", "operator": "eq", "value": 1}]);
    for collection in ["nowhere", "desk-lamps"] {
        let members = json!({"collection_id": collection, "filters": filters});
        search(&service, members)
            .await
            .assert_problem(404, "NOT_FOUND");
    }
    let members = json!({"collection_id": "desk", "filters": filters});
    assert_eq!(
        faults(&search(&service, members).await),
        ["body:/filters/0/id"]
    );
}

#[tokio::test]
async fn a_body_has_the_protocols_type_no_coding_and_bounded_bytes() {
    let service = service();
    let text = body(json!({"query": "lamp"}));
    for (fields, status) in [
        (&[("content-type", "application/odp+json")][..], 200),
        (
            &[(
                "content-type",
                "APPLICATION/ODP+JSON; charset=\"utf-8\"; v=7",
            )],
            200,
        ),
        (
            &[
                ("content-type", "application/odp+json"),
                ("content-encoding", "identity"),
            ],
            200,
        ),
        (&[], 415),
        (&[("content-type", "application/json")], 415),
        (
            &[("content-type", "application/odp+json, application/odp+json")],
            415,
        ),
        (
            &[
                ("content-type", "application/odp+json"),
                ("content-type", "application/odp+json"),
            ],
            415,
        ),
        (&[("content-type", "application/odp+json; =")], 415),
        (
            &[
                ("content-type", "application/odp+json"),
                ("content-encoding", "gzip"),
            ],
            415,
        ),
    ] {
        for path in [OFFERINGS, COLLECTIONS] {
            let post = request(Method::POST, path, fields, Body::from(text.clone()));
            let answer = service.send(post).await;
            assert_eq!(answer.status, status, "{path} {fields:?}");
            if status == 415 {
                answer.assert_problem(415, "UNSUPPORTED_MEDIA_TYPE");
            }
            if fields.contains(&("content-encoding", "gzip")) {
                let problem = answer.json();
                assert!(
                    problem["detail"].as_str().unwrap().contains("gzip"),
                    "{problem}"
                );
            }
        }
    }
    let padded = |len: usize| text.clone() + &" ".repeat(len - text.len());
    assert_eq!(service.search(OFFERINGS, padded(65_536)).await.status, 200);
    let answer = service.search(OFFERINGS, padded(65_537)).await;
    answer.assert_problem(413, "REQUEST_TOO_LARGE");
    // Without a declared length, too.
    let pieces = [padded(65_536), " ".to_owned()].map(Ok::<_, std::io::Error>);
    let stream = Body::from_stream(futures_util::stream::iter(pieces));
    let answer = service.search(OFFERINGS, stream).await;
    answer.assert_problem(413, "REQUEST_TOO_LARGE");
}

#[tokio::test]
async fn a_continuation_belongs_to_its_operation_and_carries_everything() {
    let service = service();
    let first = search(&service, json!({"query": "lamp", "limit": 3}))
        .await
        .json();
    let next = first["next"].as_str().unwrap();
    let cursor = next.split_once("cursor=").unwrap().1;
    for target in [
        format!("{COLLECTIONS}?cursor={cursor}"),
        format!("/odp/offerings?cursor={cursor}"),
        format!("/odp/filters?cursor={cursor}"),
        format!("{OFFERINGS}?cursor={}", &cursor[1..]),
        format!("{OFFERINGS}?cursor="),
        format!("{OFFERINGS}?cursor"),
        format!("{OFFERINGS}?cursor={cursor}&cursor={cursor}"),
    ] {
        let answer = service.get(&target).await;
        assert_eq!(faults(&answer), ["query:cursor"], "{target}");
    }
    let answer = service
        .get(&format!("{next}&limit=3&representation=full"))
        .await;
    assert_eq!(faults(&answer), ["query:representation", "query:limit"]);
    // Without a cursor the path is that of a resource, which there may be.
    service
        .get(OFFERINGS)
        .await
        .assert_problem(404, "NOT_FOUND");
    let odd = json!({"id": "search", "name": "A lamp called search"});
    let put = service.catalog.put(
        purvey_odp::identity::ResourceType::Offering,
        "search",
        odd,
        purvey_catalog::catalog::Precondition::None,
    );
    put.unwrap();
    service.catalog.publish().unwrap();
    assert_eq!(service.get(OFFERINGS).await.json()["id"], "search");
    // Written since: not in the sequence.
    let mut all: Vec<String> = ids(&first).iter().map(|id| (*id).to_owned()).collect();
    let mut target = Some(next.to_owned());
    while let Some(next) = target {
        let page = service.get(&next).await.json();
        all.extend(ids(&page).iter().map(|id| (*id).to_owned()));
        target = page["next"].as_str().map(str::to_owned);
    }
    all.sort_unstable();
    let lamps: Vec<String> = (0..30).map(|n| format!("lamp-{n:02}")).collect();
    assert_eq!(all, lamps);
}

#[tokio::test]
async fn collections_are_searched_by_text_and_parent() {
    let service = service();
    for (members, expected) in [
        (json!({"query": "desk"}), vec!["desk"]),
        (json!({"query": "shines"}), vec!["lamps"]),
        (json!({"parent_id": null}), vec!["lamps"]),
        (json!({"parent_id": "lamps"}), vec!["desk"]),
        (json!({"parent_id": "desk"}), vec![]),
        (json!({"query": "desk", "parent_id": null}), vec![]),
    ] {
        let answer = service.search(COLLECTIONS, body(members.clone())).await;
        assert_eq!(answer.status, 200, "{members}");
        assert_eq!(ids(&answer.json()), expected, "{members}");
    }
    let page = service
        .search(COLLECTIONS, body(json!({"query": "lamps", "limit": 1})))
        .await
        .json();
    let next = page["next"].as_str().unwrap();
    assert!(next.starts_with("/odp/collections/search?cursor="));
    let second = service.get(next).await.json();
    let mut both = [ids(&page), ids(&second)].concat();
    both.sort_unstable();
    assert_eq!(both, ["desk", "lamps"]);
    for (members, place) in [
        (json!({}), ""),
        (json!({"parent_id": 7}), "/parent_id"),
        (json!({"parent_id": ""}), "/parent_id"),
        (json!({"query": "x", "limit": 1.5}), "/limit"),
    ] {
        let answer = service.search(COLLECTIONS, body(members)).await;
        assert_eq!(faults(&answer), [format!("body:{place}")]);
    }
    let answer = service
        .search(COLLECTIONS, body(json!({"parent_id": "nowhere"})))
        .await;
    answer.assert_problem(404, "NOT_FOUND");
}

#[tokio::test]
async fn capability_sources_are_sequences() {
    let service = service();
    let first = service.get("/odp/filters?limit=1").await;
    assert_eq!(first.status, 200);
    assert_eq!(first.header("content-type"), "application/odp+json");
    assert!(first.header("etag").starts_with('"'));
    let page = first.json();
    assert_eq!(ids(&page), ["watts"]);
    let next = page["next"].as_str().unwrap();
    let second = service.get(next).await.json();
    assert_eq!(ids(&second), ["lamp-name"]);
    assert!(second.get("next").is_none());
    assert_eq!(ids(&service.get("/odp/sorts").await.json()), ["strongest"]);
    let own = service.get("/odp/collections/desk/filters").await;
    assert_eq!(ids(&own.json()), ["reach"]);
    for path in [
        "/odp/collections/desk/sorts",
        "/odp/collections/lamps/filters",
        "/odp/collections/nowhere/filters",
    ] {
        service.get(path).await.assert_problem(404, "NOT_FOUND");
    }
    for (path, fault) in [
        ("/odp/filters?limit=0", "query:limit"),
        ("/odp/filters?cursor=x", "query:cursor"),
        ("/odp/collections/desk/filters?limit=x", "query:limit"),
    ] {
        assert_eq!(faults(&service.get(path).await), [fault]);
    }
    assert_eq!(
        service.get("/odp/filters?representation=x").await.status,
        200
    );
    // Without capabilities there is nothing to read.
    let plain = Service::new();
    for path in ["/odp/filters", "/odp/sorts"] {
        plain.get(path).await.assert_problem(404, "NOT_FOUND");
    }
}

#[tokio::test]
async fn the_document_advertises_what_can_be_searched() {
    let service = service();
    let document = service.get("/.well-known/odp").await.json();
    let operations = document["operations"].as_array().unwrap();
    for name in ["search-offerings", "search-collections"] {
        assert!(operations.iter().any(|one| one["name"] == name), "{name}");
    }
    let capabilities = &document["search_capabilities"];
    let filters: Vec<&str> = capabilities["filters"]["inline"]
        .as_array()
        .unwrap()
        .iter()
        .map(|filter| filter["id"].as_str().unwrap())
        .collect();
    assert_eq!(filters, ["watts", "lamp-name"]);
    assert_eq!(capabilities["sorts"]["inline"][0]["id"], "strongest");
}

#[tokio::test]
async fn browsers_and_wrong_methods_are_told_that_search_is_a_post() {
    let service = service();
    for path in [OFFERINGS, COLLECTIONS] {
        let fields = [
            ("origin", "https://example.com"),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "content-type"),
        ];
        let answer = service
            .send(request(Method::OPTIONS, path, &fields, Body::empty()))
            .await;
        assert_eq!(answer.status, 204);
        for name in ["allow", "access-control-allow-methods"] {
            assert_eq!(answer.header(name), "GET, HEAD, OPTIONS, POST", "{name}");
        }
        assert!(
            answer
                .header("access-control-allow-headers")
                .contains("Content-Type")
        );
        for method in [Method::PUT, Method::DELETE, Method::PATCH] {
            let answer = service
                .send(request(method, path, &[], Body::empty()))
                .await;
            answer.assert_problem(405, "METHOD_NOT_ALLOWED");
            assert_eq!(answer.header("allow"), "GET, HEAD, OPTIONS, POST");
        }
    }
    for path in ["/odp/offerings", "/odp/filters"] {
        let answer = service.search(path, "{}").await;
        answer.assert_problem(405, "METHOD_NOT_ALLOWED");
        assert_eq!(answer.header("allow"), "GET, HEAD, OPTIONS");
    }
}

/// Many at once are all answered: with the page, or with when to come back.
#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_is_answered_whatever_the_bounds() {
    let mut tight = config();
    tight.max_searches = 1;
    tight.search_queue = 2;
    let service = Service::searchable(tight);
    let text = body(json!({"query": "lamp", "refinements": ["watts"]}));
    let crowd = (0..64).map(|_| service.search(OFFERINGS, text.clone()));
    let answers = futures_util::future::join_all(crowd).await;
    let mut served = 0;
    for answer in answers {
        if answer.status == 200 {
            assert_eq!(ids(&answer.json()).len(), 30);
            served += 1;
        } else {
            answer.assert_problem(503, "SERVICE_UNAVAILABLE");
            assert_eq!(answer.header("retry-after"), "1");
        }
    }
    assert!(served > 0);
}
