//! The official Agent SDKs, in Rust and in Python, read the running binary: inspect, every page of every list, every Offering, and a search.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a failure in a test's helper is the test's failure"
)]

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use e2e::binary;
use e2e::client::Client;
use e2e::python::python;
use e2e::server::Server;
use e2e::shared::project;
use serde_json::{Value, json};

/// What the demo holds by its own files and by our own client: the SDKs must see the same.
struct Expected {
    offerings: Vec<String>,
    collections: Vec<String>,
    memberships: usize,
    /// What is free, and how many Offerings each kind of price has.
    free: Vec<String>,
    kinds: BTreeMap<String, u64>,
}

/// A search whose answer takes several pages. Nothing of it has a price to be sorted by, so that ids decide.
fn search() -> Value {
    json!({
        "odp_version": "1.0",
        "filters": [{"id": "price-type", "operator": "eq", "value": "free"}],
        "refinements": ["price-type"],
        "limit": 4,
    })
}

fn demo() -> (Server, Expected) {
    let mut command = binary::command();
    command.args(["serve", "--demo", "--listen", "127.0.0.1:0"]);
    let server = Server::run(command).unwrap_or_else(|said| panic!("{said}"));
    let client = Client::new(&server.url);
    let ids = |target: &str| -> Vec<String> {
        let items = client.items(&client.operation(target));
        let ids = items.iter().map(|item| item["id"].as_str().unwrap());
        ids.map(str::to_owned).collect()
    };
    let (offerings, collections) = (ids("/offerings"), ids("/collections"));
    let members = collections
        .iter()
        .map(|id| ids(&format!("/collections/{id}/offerings")).len());
    let memberships = members.sum();

    let records = fs::read_to_string(project().join("catalogs/demo/offerings.ndjson")).unwrap();
    let records: Vec<Value> = records
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(records.len(), offerings.len());
    let direct = records
        .iter()
        .map(|record| record["collection_ids"].as_array().map_or(0, Vec::len));
    assert_eq!(direct.sum::<usize>(), memberships);
    let mut free = Vec::new();
    let mut kinds = BTreeMap::new();
    for record in &records {
        let kind = &record["price"]["type"];
        if kind == "free" {
            free.push(record["id"].as_str().unwrap().to_owned());
        }
        if kind.is_string() {
            *kinds.entry(kind.to_string()).or_default() += 1;
        }
    }
    free.sort_unstable();
    assert!(free.len() > 4);
    let expected = Expected {
        offerings,
        collections,
        memberships,
        free,
        kinds,
    };
    (server, expected)
}

#[tokio::test]
async fn the_rust_sdk_reads_everything() {
    // Our own client blocks, which a thread of the runtime must not.
    let (server, expected) = tokio::task::spawn_blocking(demo).await.unwrap();
    let seen = interop::walk::walk(&server.url, 1, Some(&search()))
        .await
        .unwrap();
    assert_eq!(seen.name, "Lantern Yard");
    assert_eq!(seen.offerings, expected.offerings);
    assert_eq!(seen.collections, expected.collections);
    assert_eq!(seen.memberships, expected.memberships);
    assert_eq!(seen.retrieved, expected.offerings.len());
    assert_eq!(seen.found, expected.free);
    assert_eq!(seen.counts, expected.kinds);
}

#[test]
fn the_python_sdk_reads_everything() {
    let directory = project().join("crates/interop/python");
    let Some(python) = python(&directory.join("requirements.txt")) else {
        return;
    };
    let (server, expected) = demo();
    let mut walk = Command::new(python);
    walk.arg(directory.join("walk.py"))
        .args([&server.url, "1"])
        .arg(search().to_string());
    let seen: Value = serde_json::from_slice(&binary::succeed(walk).stdout).unwrap();
    assert_eq!(seen["name"], "Lantern Yard");
    assert_eq!(seen["retrieved"], expected.offerings.len());
    assert_eq!(seen["offerings"], Value::from(expected.offerings));
    assert_eq!(seen["collections"], Value::from(expected.collections));
    assert_eq!(seen["memberships"], expected.memberships);
    assert_eq!(seen["found"], Value::from(expected.free));
    assert_eq!(seen["counts"], json!(expected.kinds));
}
