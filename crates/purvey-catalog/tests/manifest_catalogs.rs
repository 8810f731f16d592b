//! The catalogs that come with the project hold what they promise.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "helpers of tests"
)]

use purvey_catalog::manifest::Manifest;
use purvey_catalog::reader::{Input, Source, open};
use purvey_catalog::record::Record;
use purvey_catalog::render::render;
use purvey_odp::hierarchy::Hierarchy;
use purvey_odp::identity::{LocalId, ResourceType};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Instant;

fn catalogs() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../catalogs")
}

fn manifest(file: &str) -> Manifest {
    let path = catalogs().join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    Manifest::parse(&text, path.parent().unwrap()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_demo_has_everything() {
    let manifest = manifest("demo/catalog.toml");
    let mut types = BTreeMap::new();
    let mut schemas = BTreeSet::new();
    let (mut offerings, mut translated, mut http, mut openapi) = (0, 0, 0, 0);
    let known: BTreeSet<&str> = manifest.collections().iter().map(Record::id).collect();
    let source = Source::of(catalogs().join("demo/offerings.ndjson"));
    for raw in open(vec![source], None).unwrap() {
        let raw = raw.unwrap();
        let line = raw.line;
        let value = manifest.map_row(raw.input().unwrap()).unwrap();
        let record = Record::validate(value, ResourceType::Offering, &manifest)
            .unwrap_or_else(|error| panic!("line {line}: {error}"));
        offerings += 1;
        assert!(
            record.collection_ids().all(|id| known.contains(id)),
            "line {line}"
        );
        let wire = record.wire();
        let kind = wire.pointer("/price/type").and_then(Value::as_str).unwrap();
        *types.entry(kind.to_owned()).or_insert(0) += 1;
        schemas.extend(
            wire.pointer("/schema/url")
                .and_then(Value::as_str)
                .map(str::to_owned),
        );
        translated += usize::from(record.translated().len() > 0);
        for action in wire["actions"].as_array().into_iter().flatten() {
            http += usize::from(action.get("http").is_some());
            openapi += usize::from(action.get("openapi").is_some());
        }
        let rendered = render(&record, &manifest);
        assert!(rendered.terse.len() < rendered.full.len());
    }
    assert!((280..=320).contains(&offerings), "{offerings}");
    assert!(translated > 200 && translated < offerings, "{translated}");
    assert!(http > 0 && openapi > 0);
    assert_eq!(
        types.keys().map(String::as_str).collect::<Vec<_>>(),
        ["fixed", "free", "metered", "quote", "range", "starting_at"]
    );
    assert_eq!(
        schemas.into_iter().collect::<Vec<_>>(),
        [
            "/schemas/course.json",
            "/schemas/material.json",
            "/schemas/tool.json"
        ]
    );
    let several = manifest
        .collections()
        .iter()
        .filter(|c| c.collection_ids().count() > 1);
    assert!(several.count() >= 5);
    assert!(manifest.languages().count() == 2);
    assert!(manifest.collection_capabilities("courses").is_some());
}

#[test]
fn the_demo_collections_are_a_hierarchy() {
    let manifest = manifest("demo/catalog.toml");
    let id = |text: &str| LocalId::parse(text).unwrap();
    let pairs = manifest
        .collections()
        .iter()
        .map(|c| (id(c.id()), c.collection_ids().map(id).collect()));
    let hierarchy = Hierarchy::new(pairs);
    assert_eq!(hierarchy.check(), Ok(()));
    assert!(hierarchy.roots().count() >= 6);
    assert_eq!(hierarchy.parents(&id("for-families")).count(), 2);
}

#[test]
fn a_registry_row_becomes_an_offering() {
    let manifest = manifest("registry-packages.toml");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rows.tsv");
    std::fs::write(
        &file,
        "id\tregistry\tname\tversion\tupdated\tdownloads\tdownload_rank\tsummary\n\
         node.~acme~kit\tnode\t@acme/kit\t5.0.1\t\t585\t12\tA \"quoted\" kit\n\
         python.bare\tpython\tbare\t\t2026-04-01\t\t\t\n",
    )
    .unwrap();
    let records: Vec<Value> = open(vec![Source::of(file)], None)
        .unwrap()
        .map(|raw| {
            let raw = raw.unwrap();
            let value = manifest.map_row(raw.input().unwrap()).unwrap();
            Record::validate(value, ResourceType::Offering, &manifest)
                .unwrap()
                .to_stored()
        })
        .collect();
    assert_eq!(
        records,
        [
            json!({
                "id": "node.~acme~kit", "name": "@acme/kit", "description": "A \"quoted\" kit",
                "collection_ids": ["node"], "schema": {"url": "/schemas/package.json"},
                "attributes": {"registry": "node", "version": "5.0.1", "major": 5, "downloads": 585, "download_rank": 12}
            }),
            json!({
                "id": "python.bare", "name": "bare",
                "collection_ids": ["python"], "schema": {"url": "/schemas/package.json"},
                "attributes": {"registry": "python", "updated": "2026-04-01"}
            }),
        ]
    );
}

/// `PACKAGES=file.tsv.zst cargo test --release -- --ignored --nocapture` says how long a record takes.
#[test]
#[ignore = "needs the large table, named by PACKAGES"]
fn the_large_table() {
    let manifest = manifest("registry-packages.toml");
    let source = Source::of(std::env::var("PACKAGES").expect("PACKAGES names the table"));
    let mut spent = [std::time::Duration::ZERO; 3];
    let (mut good, mut bytes, mut bad) = (0_u64, 0, Vec::new());
    let all = Instant::now();
    for raw in open(vec![source], None).unwrap() {
        let raw = raw.unwrap();
        let start = Instant::now();
        let mapped = raw
            .input()
            .and_then(|input: Input<'_>| manifest.map_row(input));
        let parsed = Instant::now();
        let record =
            mapped.and_then(|value| Record::validate(value, ResourceType::Offering, &manifest));
        let validated = Instant::now();
        match record {
            Ok(record) => {
                let rendered = render(&record, &manifest);
                bytes += rendered.full.len() + rendered.terse.len();
                good += 1;
            }
            Err(invalid) => bad.push((raw.line, invalid.to_string())),
        }
        spent[0] += parsed - start;
        spent[1] += validated - parsed;
        spent[2] += validated.elapsed();
    }
    println!(
        "{good} records, {bytes} bytes, map/validate/render {spent:?}, all {:?}; bad: {bad:?}",
        all.elapsed()
    );
    assert_eq!(good, 1_106_897);
    assert_eq!(bad.len(), 1);
    assert!(bad[0].1.starts_with("/name: "));
}
