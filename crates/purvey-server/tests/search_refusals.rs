//! Searches that are refused over HTTP: each fault at its member, in the order in which requests are judged.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;

use axum::body::Body;
use common::request;
use common::search::{COLLECTIONS, OFFERINGS, body, faults, search, service};
use http::Method;
use serde_json::{Value, json};

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
