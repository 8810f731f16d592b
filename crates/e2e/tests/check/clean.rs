//! Services without a fault.

use std::fs;

use e2e::binary;
use e2e::sample;
use e2e::server::Server;
use serde_json::Value;
use tempfile::TempDir;

use crate::{documented, fake, findings, outcome};

/// Rules that are only looked at when something is wrong, or when a Service does what the one here does not.
const UNTOUCHED: &[&str] = &[
    "authentication.challenge",
    "authentication.required",
    "check.incomplete",
    "http.redirect",
    "http.retry-after",
    "supporting.reachable",
];

#[test]
fn the_small_service_passes_and_every_rule_was_looked_at() {
    let origin = fake::start(Box::new(|_, _| {}));
    let (code, outcome) = outcome(&origin);
    assert_eq!(findings(&outcome), Vec::<String>::new());
    assert_eq!(code, Some(0));
    assert_eq!(outcome["origin"], origin);
    assert_eq!(outcome["skipped"], serde_json::json!([]));
    let mut untouched = documented();
    untouched.retain(|rule| outcome["exercised"][rule].is_null());
    untouched.sort();
    assert_eq!(untouched, UNTOUCHED);
}

fn errors(outcome: &Value) -> u64 {
    outcome["errors"].as_u64().unwrap()
}

#[test]
fn the_demo_is_clean() {
    let mut command = binary::command();
    command.args(["serve", "--demo", "--listen", "127.0.0.1:0"]);
    let server = Server::run(command).unwrap_or_else(|said| panic!("{said}"));
    let (code, outcome) = outcome(&server.url);
    assert_eq!(findings(&outcome), Vec::<String>::new());
    assert_eq!(code, Some(0));
    for rule in [
        "attributes.match",
        "hierarchy.edge",
        "membership.complete",
        "page.next.tampered",
        "capability.sort-reference",
        "filter.order",
        "refinement.count",
        "search.filter.value",
        "sort.order",
    ] {
        assert!(outcome["exercised"][rule].as_u64() > Some(0), "{rule}");
    }
}

#[test]
fn an_empty_service_has_no_error() {
    let home = TempDir::new().unwrap();
    let manifest = sample::manifest(home.path());
    let data = home.path().join("data");
    let records = home.path().join("records.ndjson");
    fs::write(&records, "{\"id\":\"a\",\"name\":\"A\"}\n").unwrap();
    binary::succeed(binary::import(&data, &manifest, &[&records]));
    let server = Server::start(&data);
    let client = e2e::client::Client::new(&server.url);
    let deleted = client
        .delete("/v1/catalog/offerings/a?wait=published")
        .unwrap();
    assert!(deleted.status < 300, "{}", deleted.text());
    let (_, outcome) = outcome(&server.url);
    assert_eq!(errors(&outcome), 0, "{:#?}", findings(&outcome));
    assert!(outcome["exercised"]["get.not-found"].as_u64() > Some(0));
}
