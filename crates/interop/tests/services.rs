//! Our Agent, as a library and on the command line, reads Services that are not ours: the official SDKs', in Rust and in Python.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a failure in a test's helper is the test's failure"
)]

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use e2e::binary::{command, said};
use e2e::python::python;
use e2e::shared::project;
use futures_util::TryStreamExt as _;
use purvey_agent::{Agent, Code, Input, IssueCode, Service};
use purvey_odp::filter::Operator;
use purvey_odp::problem;
use serde_json::{Value, json};

const OFFERINGS: usize = 130;

fn id(n: usize) -> String {
    format!("item-{n:03}")
}

/// What the Service publishes. The tenth refers to a schema and to an OpenAPI document that are not there.
fn records() -> Vec<Value> {
    let record = |n: usize| {
        let mut record =
            json!({"id": id(n), "name": format!("Item {n}"), "collection_ids": [parity(n)]});
        match n % 3 {
            0 => record["price"] = json!({"type": "free"}),
            1 => {
                let amount = format!("{n}.50");
                record["price"] = json!({"type": "fixed", "amount": amount, "currency": "EUR"});
            }
            _ => {}
        }
        if n == 10 {
            record["schema"] = json!({"url": "/schemas/item.json"});
            record["attributes"] = json!({"n": n});
            record["actions"] = json!([
                {"id": "order", "rel": "purchase", "authentication": "not-required", "http": {"href": "/orders/10", "method": "POST"}},
                {"id": "ask", "rel": "quote", "authentication": "not-required", "openapi": {"url": "/openapi.json", "operation_id": "ask"}},
            ]);
        }
        record
    };
    (0..OFFERINGS).map(record).collect()
}

fn parity(n: usize) -> &'static str {
    ["even", "odd"][n % 2]
}

/// A Service of others; it ends when it is dropped.
struct Peer {
    child: Child,
    url: String,
}

impl Peer {
    fn start(mut command: Command, directory: &Path) -> Self {
        let path = directory.join("records.ndjson");
        let lines: String = records()
            .iter()
            .map(|record| format!("{record}\n"))
            .collect();
        std::fs::write(&path, lines).unwrap();
        let mut child = command.arg(path).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let url = format!("http://{}", line.trim());
        Self { child, url }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn rust(directory: &Path) -> Peer {
    Peer::start(Command::new(env!("CARGO_BIN_EXE_peer-service")), directory)
}

fn in_python(directory: &Path) -> Option<Peer> {
    let scripts = project().join("crates/interop/python");
    let mut command = Command::new(python(&scripts.join("requirements.txt"))?);
    command.arg(scripts.join("service.py"));
    Some(Peer::start(command, directory))
}

async fn service(peer: &Peer) -> Service {
    let agent = Agent::builder().local_development(true).build().unwrap();
    agent.service(&peer.url).await.unwrap()
}

/// Everything that both Services offer, through the library.
async fn read_by_the_library(peer: &Peer) {
    let service = service(peer).await;
    assert_eq!(service.document().name().as_str(), "Peer");
    assert_eq!(service.origin().as_str(), peer.url);
    assert!(service.issues().is_empty());

    let all: Vec<String> = (0..OFFERINGS).map(id).collect();
    let offerings = service.offerings().all().page_size(7).stream();
    let offerings: Vec<String> = offerings
        .map_ok(|item| item.id().to_string())
        .try_collect()
        .await
        .unwrap();
    assert_eq!(offerings, all);
    let collections = service
        .collections()
        .all()
        .page_size(1)
        .collect()
        .await
        .unwrap();
    let collections: Vec<&str> = collections.iter().map(|item| item.id().as_str()).collect();
    assert_eq!(collections, ["even", "odd"]);
    let odd = service
        .collection_offerings("odd")
        .all()
        .page_size(20)
        .collect()
        .await
        .unwrap();
    let odd: Vec<&str> = odd.iter().map(|item| item.id().as_str()).collect();
    assert_eq!(odd, all.iter().skip(1).step_by(2).collect::<Vec<_>>());
    let few = service.offerings().limit(3).first_page().await.unwrap();
    assert_eq!((few.items.len(), few.has_more), (3, true));
    let found = service.get_collection("even").await.unwrap();
    assert_eq!(found.collection.name().as_str(), "even");

    for n in (0..OFFERINGS).step_by(9) {
        let found = service.get_offering(&id(n)).await.unwrap();
        assert_eq!(found.offering.name().as_str(), format!("Item {n}"));
        assert_eq!(found.offering.price().is_some(), n % 3 != 2);
        assert!(found.issues.is_empty());
    }
    // What it refers to and is not there costs what depends on it; the rest can be used.
    let found = service.get_offering(&id(10)).await.unwrap();
    let issues: Vec<_> = found
        .issues
        .iter()
        .map(|issue| (issue.pointer.as_str(), issue.code))
        .collect();
    assert_eq!(
        issues,
        [
            ("/schema", IssueCode::Unavailable),
            ("/actions/1", IssueCode::Unavailable)
        ]
    );
    assert!(found.offering.attributes().is_empty() && found.offering.price().is_some());
    let order = found.action("order").unwrap();
    assert_eq!(order.url(), format!("{}/orders/10", peer.url));
    let error = service.invoke(order, Input::new()).await.unwrap_err();
    assert_eq!(
        (error.status(), error.code().as_str()),
        (Some(404), "NOT_FOUND")
    );

    let error = service.get_offering("no-such-thing").await.unwrap_err();
    assert_eq!(*error.code(), Code::Problem(problem::Code::NotFound));
    assert_eq!((error.status(), error.retryable()), (Some(404), false));
    assert!(!error.message().is_empty() && error.url().is_some());
    let error = service
        .collection_offerings("no-such-thing")
        .collect()
        .await
        .unwrap_err();
    assert_eq!(error.status(), Some(404));
}

/// Runs a command at the Service; gives its exit code, its output and what it said.
fn run(peer: &Peer, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = command();
    let (name, rest) = arguments.split_first().unwrap();
    let output = command
        .args([name, &*peer.url])
        .args(rest)
        .arg("--local")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    assert!(!said(&output).contains("panicked"), "{}", said(&output));
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

fn lines(peer: &Peer, arguments: &[&str]) -> Vec<Value> {
    let (code, out, said) = run(peer, arguments);
    assert_eq!(code, Some(0), "{arguments:?}: {said}");
    out.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The same on the command line.
fn read_by_the_command_line(peer: &Peer) {
    let inspected = &lines(peer, &["inspect", "--json"])[0];
    assert_eq!(
        (&inspected["service"], &inspected["document"]["name"]),
        (&json!(peer.url), &json!("Peer"))
    );
    assert_eq!(inspected["issues"], json!([]));
    let listed = lines(peer, &["offerings", "--all", "--page-size", "11", "--json"]);
    let ids: Vec<&str> = listed
        .iter()
        .map(|item| item["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, (0..OFFERINGS).map(id).collect::<Vec<_>>());
    assert_eq!(
        lines(peer, &["offerings", "--in", "odd", "--all", "--json"]).len(),
        OFFERINGS / 2
    );
    assert_eq!(lines(peer, &["collections", "--json"]).len(), 2);
    let (code, table, _) = run(peer, &["offerings", "--limit", "2"]);
    let rows: Vec<&str> = table.lines().collect();
    assert_eq!((code, rows.len()), (Some(0), 3), "{table}");
    assert_eq!(
        rows[2].split_whitespace().collect::<Vec<_>>(),
        ["item-001", "Item", "1", "1.50", "EUR"]
    );

    let found = &lines(peer, &["get", "item-010", "--json"])[0];
    assert_eq!(
        found["offering"]["price"],
        json!({"type": "fixed", "amount": "10.50", "currency": "EUR"})
    );
    assert_eq!(found["issues"][0]["code"], "UNAVAILABLE");
    let actions = lines(peer, &["actions", "item-010", "--json"]);
    assert_eq!(
        (actions.len(), &actions[0]["action"]["id"]),
        (1, &json!("order"))
    );
    let (code, _, said) = run(peer, &["invoke", "item-010", "order", "--yes"]);
    assert!(
        code == Some(4) && said.contains("(NOT_FOUND, status 404)"),
        "{said}"
    );
    let (code, _, said) = run(peer, &["get", "no-such-thing"]);
    assert!(
        code == Some(4) && said.contains("(NOT_FOUND, status 404)"),
        "{said}"
    );
    let (code, raw, _) = run(peer, &["inspect", "--raw"]);
    let raw: Value = serde_json::from_str(&raw).unwrap();
    assert_eq!((code, &raw["name"]), (Some(0), &json!("Peer")));
}

/// The rules of which `purvey check` finds a breach that counts as an error.
fn broken(peer: &Peer) -> BTreeSet<String> {
    let (code, out, said) = run(peer, &["check", "--json"]);
    assert_eq!(code, Some(1), "{said}");
    let document: Value = serde_json::from_str(&out).unwrap();
    let findings = document["findings"].as_array().unwrap().iter();
    let errors = findings.filter(|finding| finding["severity"] == "error");
    errors
        .map(|finding| finding["rule"].as_str().unwrap().to_owned())
        .collect()
}

fn set(rules: &[&str]) -> BTreeSet<String> {
    rules.iter().map(|&rule| rule.to_owned()).collect()
}

#[tokio::test]
async fn the_rust_sdk_s_service() {
    let directory = tempfile::tempdir().unwrap();
    let peer = rust(directory.path());
    read_by_the_library(&peer).await;
    read_by_the_command_line(&peer);

    // It does not search, and says so.
    let service = service(&peer).await;
    let error = service.search().query("item").collect().await.unwrap_err();
    assert_eq!(*error.code(), Code::NotAdvertised);
    let (code, _, said) = run(&peer, &["search", "item"]);
    assert!(
        code == Some(4) && said.contains("(NOT_ADVERTISED)"),
        "{said}"
    );
    assert!(
        service
            .capabilities(None)
            .await
            .unwrap()
            .effective
            .filters()
            .is_empty()
    );

    // Whatever is full on a page repeats the version, which a nested object must not: the page is refused by its place.
    let offerings = service.offerings().full().collect().await.unwrap_err();
    let collections = service.collections().full().collect().await.unwrap_err();
    for error in [offerings, collections] {
        assert_eq!(*error.code(), Code::InvalidDocument);
        assert!(error.message().contains("/items/0/odp_version"), "{error}");
    }
    let (code, out, said) = run(&peer, &["collections", "--tree"]);
    assert_eq!((code, out.as_str()), (Some(7), ""));
    assert!(
        said.contains("/items/0/odp_version") && said.contains("(INVALID_DOCUMENT)"),
        "{said}"
    );
    assert_eq!(broken(&peer), set(&["document.valid", "problem.code"]));
}

#[tokio::test]
async fn the_python_sdk_s_service() {
    let directory = tempfile::tempdir().unwrap();
    let Some(peer) = in_python(directory.path()) else {
        return;
    };
    read_by_the_library(&peer).await;
    read_by_the_command_line(&peer);

    let service = service(&peer).await;
    let full = service.offerings().all().full().collect().await.unwrap();
    assert_eq!(full.len(), OFFERINGS);
    assert!(full.iter().all(|item| item.collection_ids().len() == 1));
    let tree = service.hierarchy().await.unwrap();
    assert_eq!(tree.roots().len(), 2);
    let capabilities = service.capabilities(None).await.unwrap();
    let filters: Vec<&str> = capabilities
        .effective
        .filters()
        .iter()
        .map(|f| f.id().as_str())
        .collect();
    assert_eq!(
        (filters, capabilities.issues.len()),
        (vec!["price-type"], 0)
    );
    let ids = |items: Vec<purvey_odp::offering::TerseOffering>| -> Vec<String> {
        items.iter().map(|item| item.id().to_string()).collect()
    };
    let search = service
        .search()
        .query("ITEM 12")
        .filter("price-type", Operator::Eq, "free");
    assert_eq!(
        ids(search.collect().await.unwrap()),
        ["item-012", "item-120", "item-123", "item-126", "item-129"]
    );
    let search = service
        .search()
        .query("item 1")
        .in_collection("even")
        .limit(2);
    assert_eq!(
        ids(search.collect().await.unwrap()),
        ["item-010", "item-012"]
    );
    // The SDK holds no search to what is advertised: we do, before it is sent.
    let search = service
        .search()
        .query("item")
        .sort("cheapest")
        .refine("price-type");
    let error = search.collect().await.unwrap_err();
    let named: Vec<&str> = error
        .invalid_params()
        .iter()
        .map(problem::InvalidParam::name)
        .collect();
    assert_eq!(
        (error.code(), named),
        (&Code::InvalidRequest, vec!["/sort", "/refinements/0"])
    );

    let found = lines(
        &peer,
        &[
            "search",
            "item 1",
            "--filter",
            "price-type:in:free,fixed",
            "--limit",
            "3",
            "--json",
        ],
    );
    let found: Vec<&str> = found
        .iter()
        .map(|line| line["offering"]["id"].as_str().unwrap())
        .collect();
    assert_eq!(found, ["item-001", "item-010", "item-012"]);
    let (code, _, said) = run(&peer, &["search", "item", "--filter", "prize-type:eq:free"]);
    assert!(
        code == Some(2) && said.contains("did you mean price-type?"),
        "{said}"
    );
    let (code, table, _) = run(&peer, &["capabilities"]);
    assert!(code == Some(0) && table.contains("price-type"), "{table}");

    // Among what is the SDK's own doing: a code of its own for a broken continuation, and duplicate members that are read.
    let broken = broken(&peer);
    for rule in set(&[
        "problem.code",
        "search.malformed",
        "search.sort.unknown",
        "search.refinement.unknown",
    ]) {
        assert!(broken.contains(&rule), "no {rule} in {broken:?}");
    }
}
