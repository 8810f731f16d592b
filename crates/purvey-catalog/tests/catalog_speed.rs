//! How long a large catalog takes to open and to search through the facade.
//!
//! `CATALOG=DIR cargo test --release --test catalog_speed -- --ignored --nocapture`, where DIR holds the catalog of `catalogs/registry-packages.toml`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement, printed"
)]

use purvey_catalog::access::Access;
use purvey_catalog::catalog::{Catalog, Options, SearchRequest};
use purvey_odp::language::AcceptLanguage;
use purvey_odp::offering::Representation;
use purvey_odp::request::OfferingSearchRequest;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const TURNS: usize = 41;

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let done = work();
    (start.elapsed(), done)
}

/// Anonymous memory of this process, in MiB.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("RssAnon"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or_default() / 1024
}

#[test]
#[ignore = "needs a large catalog, named by CATALOG"]
fn speed() {
    let dir = PathBuf::from(std::env::var("CATALOG").unwrap());
    let (took, catalog) = timed(|| Catalog::open(&dir, Options::default()).unwrap());
    println!("opened in {took:?}, {} MiB", memory());
    let search = |members: Value| {
        let mut body = json!({"odp_version": "1.0"});
        body.as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        let request = SearchRequest {
            request: OfferingSearchRequest::validate(body).unwrap(),
            representation: Representation::Terse,
            accept_language: AcceptLanguage::default(),
            access: Access::public(),
        };
        catalog.search_offerings_explained(&request).unwrap()
    };
    let node = json!({"id": "registry", "operator": "eq", "value": "node"});
    let python = json!({"id": "registry", "operator": "eq", "value": "python"});
    let recent = json!({"id": "updated", "operator": "gte", "value": "2024-01-01"});
    let used = json!({"id": "downloads", "operator": "gte", "value": 1_000});
    let queries = [
        ("text", json!({"query": "http client"})),
        ("one filter", json!({"filters": [node]})),
        (
            "two filters, sorted",
            json!({"filters": [python, recent], "sort": "recently-updated"}),
        ),
        (
            "text, two filters, sort, two refinements",
            json!({
                "query": "parser", "filters": [node, used], "sort": "recently-updated",
                "refinements": ["registry", "major"]
            }),
        ),
        (
            "nearly all, two refinements",
            json!({
                "filters": [{"id": "registry", "operator": "in", "value": ["node", "python"]}],
                "refinements": ["registry", "major"]
            }),
        ),
        (
            "a Collection and below",
            json!({
                "filters": [used], "collection_id": "node", "include_descendants": true,
                "sort": "most-downloaded", "refinements": ["major"]
            }),
        ),
    ];
    for (name, members) in queries {
        let (first, (_, explained)) = timed(|| search(members.clone()));
        let mut times: Vec<Duration> = (0..TURNS)
            .map(|_| timed(|| search(members.clone())).0)
            .collect();
        times.sort_unstable();
        println!(
            "{name}: first {first:?}, median {:?}, p95 {:?}, {} items, {} MiB",
            times[TURNS / 2],
            times[TURNS * 95 / 100],
            explained.items,
            memory()
        );
    }
}
