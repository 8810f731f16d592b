//! What the log says of requests: one line each, every line with its request's id, and nothing that was sent.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;

use axum::body::Body;
use common::{Service, TOKEN, config, log::Log, request};
use http::Method;
use serde_json::{Value, json};
use std::time::Duration;

/// Everything in one test: the log is one for the whole process.
#[tokio::test]
async fn every_request_has_one_line_and_failures_name_their_cause_under_its_id() {
    let log = Log::install();
    let service = Service::new();
    log.lines();

    let fields = [
        ("x-request-id", "mine-1"),
        ("accept", "application/odp+json"),
        ("x-secret", "header-secret"),
    ];
    let answer = service
        .get_with("/odp/offerings?limit=2&q=query-secret", &fields)
        .await;
    let lines = log.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    let line = &lines[0];
    assert_eq!(line["level"], "INFO");
    assert_eq!(line["target"], "purvey_server::access");
    assert_eq!(line["fields"]["status"], 200);
    assert_eq!(line["fields"]["bytes"], answer.body.len());
    assert!(line["fields"]["milliseconds"].is_number(), "{line}");
    assert_eq!(line["fields"]["request_id"], "mine-1");
    assert_eq!(line["fields"]["method"], "GET");
    assert_eq!(line["fields"]["path"], "/odp/offerings");
    assert!(!line.to_string().contains("secret"), "{line}");

    // A record whose bytes cannot be read any more: the answer says that the log names the cause.
    let path = service.directory.path().join("records.db");
    let store = rusqlite::Connection::open(path).unwrap();
    store
        .execute_batch("ALTER TABLE offerings RENAME TO gone")
        .unwrap();
    let bearer = format!("Bearer {TOKEN}");
    let fields = [
        ("x-request-id", "mine-2"),
        ("authorization", bearer.as_str()),
    ];
    let broken = request(
        Method::GET,
        "/v1/catalog/offerings/lamp-01",
        &fields,
        Body::empty(),
    );
    service
        .send(broken)
        .await
        .assert_failure(500, "server.error");
    let lines = log.lines();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(lines[0]["span"]["request_id"], "mine-2");
    assert_eq!(lines[1]["fields"]["request_id"], "mine-2");
    for line in &lines {
        assert!(!line.to_string().contains(TOKEN), "{line}");
    }
    assert_eq!(lines[0]["level"], "ERROR");
    let cause = lines[0]["fields"]["error"].as_str().unwrap();
    assert!(cause.contains("offerings"), "{cause}");
    assert_eq!(lines[1]["fields"]["status"], 500);

    // The same for what the protocol's paths read.
    for entry in std::fs::read_dir(service.directory.path().join("segments")).unwrap() {
        let path = entry.unwrap().path();
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(0).unwrap();
    }
    let fields = [("x-request-id", "mine-3")];
    service
        .get_with("/odp/offerings/lamp-01", &fields)
        .await
        .assert_problem(500, "INTERNAL_ERROR");
    let lines = log.lines();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(lines[0]["level"], "ERROR");
    assert!(lines[0]["fields"]["error"].is_string(), "{}", lines[0]);
    for line in &lines {
        assert_eq!(line["fields"]["request_id"], "mine-3", "{line}");
    }

    // A search that is slow by the server's measure is logged with its shape, and nothing of what was searched for.
    let mut slow = config();
    slow.slow_search = Duration::ZERO;
    let service = Service::searchable(slow);
    log.lines();
    let body = json!({
        "odp_version": "1.0",
        "query": "text-secret",
        "filters": [{"id": "lamp-name", "operator": "eq", "value": "value-secret"}],
        "collection_id": "lamps",
        "include_descendants": true,
        "refinements": ["watts"],
    });
    let answer = service
        .search("/odp/offerings/search", body.to_string())
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let lines = log.lines();
    assert_eq!(lines.len(), 2, "{lines:?}");
    let (slow, access) = (&lines[0], &lines[1]);
    assert_eq!(slow["target"], "purvey_server::slow_search");
    assert_eq!(slow["span"]["request_id"], access["fields"]["request_id"]);
    assert_eq!(slow["fields"]["operation"], "search-offerings");
    let shape: Value = serde_json::from_str(slow["fields"]["shape"].as_str().unwrap()).unwrap();
    assert_eq!(shape["filters"], json!(["lamp-name eq"]));
    assert_eq!(shape["refinements"], json!(["watts"]));
    assert_eq!(shape["scope"], "descendants");
    assert_eq!(shape["has_query"], true);
    assert_eq!(access["target"], "purvey_server::access");
    for line in [slow, access] {
        assert!(!line.to_string().contains("secret"), "{line}");
    }
}
