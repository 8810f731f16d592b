//! Values of any length are counted as long as a request can ask for them, and what is counted fits the page.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests with helpers")]

mod catalog_support;

use catalog_support::{body, options};
use purvey_catalog::Access;
use purvey_catalog::catalog::{Catalog, Precondition, SearchRequest};
use purvey_catalog::manifest::Manifest;
use purvey_odp::identity::ResourceType::Offering;
use purvey_odp::language::AcceptLanguage;
use purvey_odp::offering::Representation;
use purvey_odp::request::OfferingSearchRequest;
use serde_json::{Value, json};
use std::fmt::Write;

/// Filters `f00`, `f01` …, each over a member of its own.
fn catalog(dir: &std::path::Path, filters: usize) -> Catalog {
    let mut manifest = r#"
[service]
name = "Texts"
description = "Long ones."
language = "en"

[schemas]
"/any.json" = "any.json"
"#
    .to_owned();
    for n in 0..filters {
        write!(
            manifest,
            r#"
[[filters]]
id = "f{n:02}"
title = "F"
description = "F."
type = "string"
operators = ["eq", "exists"]
refinable = true
path = "/attributes/f{n:02}"
"#
        )
        .unwrap();
    }
    let any = r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object"}"#;
    let manifest = Manifest::parse_embedded(&manifest, &[("any.json", any)]).unwrap();
    let catalog = Catalog::open(dir, options()).unwrap();
    catalog.set_manifest(&manifest).unwrap();
    catalog
}

fn put(catalog: &Catalog, id: &str, attributes: &Value) {
    let value =
        json!({"id": id, "name": id, "schema": {"url": "/any.json"}, "attributes": attributes});
    catalog
        .put(Offering, id, value, Precondition::None)
        .unwrap();
}

fn search(catalog: &Catalog, request: Value, representation: Representation) -> Value {
    let found = catalog.search_offerings(&SearchRequest {
        request: OfferingSearchRequest::validate(request).unwrap(),
        representation,
        accept_language: AcceptLanguage::default(),
        access: Access::public(),
    });
    let bytes = found.unwrap().bytes;
    assert!(bytes.len() <= 524_288, "{}", bytes.len());
    body(&bytes)
}

/// The lengths of the values of each group, with their counts.
fn counted(page: &Value) -> Vec<Vec<(usize, u64)>> {
    let values = |group: &Value| {
        let values = group["values"].as_array().unwrap().iter();
        let pair = |v: &Value| {
            (
                v["value"].as_str().unwrap().len(),
                v["count"].as_u64().unwrap(),
            )
        };
        values.map(pair).collect()
    };
    let groups = page["refinements"].as_array().unwrap().iter();
    groups.map(values).collect()
}

#[test]
fn a_value_is_counted_when_a_request_can_ask_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = catalog(dir.path(), 1);
    // The longest that a request of 65,536 bytes can ask for, and one more.
    let asking = r#"{"odp_version":"1.0","filters":[{"id":"f00","operator":"eq","value":""}]}"#;
    let longest = 65_536 - asking.len();
    let lengths = [1, 510, 511, 600, 5_000, longest, longest + 1];
    for (n, length) in lengths.iter().enumerate() {
        // The longer ones are had by more.
        for copy in 0..=n {
            let text = "x".repeat(*length);
            put(&catalog, &format!("o{n}-{copy}"), &json!({"f00": text}));
        }
    }
    catalog.publish().unwrap();
    let request = json!({"odp_version": "1.0", "refinements": ["f00"], "limit": 1,
        "filters": [{"id": "f00", "operator": "eq", "value": "x".repeat(511)}]});
    let page = search(&catalog, request, Representation::Terse);
    assert_eq!(page["items"][0]["id"], "o2-0");
    let expected = [
        (longest, 6),
        (5_000, 5),
        (600, 4),
        (511, 3),
        (510, 2),
        (1, 1),
    ];
    assert_eq!(counted(&page), [expected]);
}

#[test]
fn what_does_not_fit_the_page_are_the_last_values_of_all_groups() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = catalog(dir.path(), 16);
    let ids: Vec<String> = (0..16).map(|n| format!("f{n:02}")).collect();
    // Of each filter 20 values of 2,000 bytes: 640,000 bytes altogether.
    for n in 0..20 {
        let text = format!("{n:02}{}", "x".repeat(1_998));
        let attributes: serde_json::Map<_, _> =
            ids.iter().map(|id| (id.clone(), json!(text))).collect();
        for copy in 0..=n {
            put(
                &catalog,
                &format!("o{n:02}-{copy:02}"),
                &attributes.clone().into(),
            );
        }
    }
    catalog.publish().unwrap();
    let request = json!({"odp_version": "1.0", "refinements": ids, "limit": 100,
        "filters": [{"id": "f00", "operator": "exists", "value": true}]});
    let page = search(&catalog, request.clone(), Representation::Terse);
    // Eight of each, 2,024 bytes a value, take half of the page.
    let most: Vec<(usize, u64)> = (13..=20).rev().map(|count| (2_000, count)).collect();
    assert_eq!(counted(&page), vec![most; 16]);
    assert_eq!(page["items"].as_array().unwrap().len(), 100);

    // An item that fills nearly the whole page leaves room for three.
    let large = json!({"f00": "large", "rest": "y".repeat(515_000)});
    put(&catalog, "large", &large);
    catalog.publish().unwrap();
    let page = search(&catalog, request, Representation::Full);
    assert_eq!(page["items"].as_array().unwrap().len(), 1);
    assert_eq!(counted(&page), vec![vec![(2_000, 20)]; 3]);
}
