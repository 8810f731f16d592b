//! Searches over the demo, held to what its records say.

use std::collections::{BTreeMap, BTreeSet};

use e2e::client::{Answer, Client, page_of};
use serde_json::{Value, json};

use crate::published::Published;
use crate::support::*;

/// The first answer of a search, and the items of all its pages.
fn found(client: &Client, published: &Published, members: &Value) -> (Answer, Vec<Value>) {
    let mut request = members.clone();
    request["odp_version"] = "1.0".into();
    let target = client.operation("/offerings/search");
    let first = client.search(&target, &request, &[]).expect_status(200);
    let mut answer = first.clone();
    let mut items = Vec::new();
    loop {
        assert_eq!(answer.header("content-type"), Some("application/odp+json"));
        assert!(answer.body.len() <= PAGE_BYTES);
        published.check("offering-search-response", &answer.json());
        let (of_page, next) = page_of(&answer);
        for item in &of_page {
            published.check_details(item);
        }
        items.extend(of_page);
        let Some(next) = next else { break };
        assert!(next.len() <= 2_048 && next.is_ascii());
        answer = client.get(&next).expect_status(200);
        check_headers(&answer, "application/odp+json", &next);
        assert!(answer.json().get("refinements").is_none());
    }
    let ids: BTreeSet<&str> = items.iter().map(id).collect();
    assert_eq!(ids.len(), items.len(), "each once: {members}");
    (first, items)
}

fn id(item: &Value) -> &str {
    item["id"].as_str().unwrap()
}

fn matching(wanted: impl Fn(&Value) -> bool) -> BTreeSet<String> {
    let records = records().into_iter().filter(|(_, record)| wanted(record));
    records.map(|(id, _)| id).collect()
}

fn ids(items: &[Value]) -> BTreeSet<String> {
    items.iter().map(|item| id(item).to_owned()).collect()
}

#[test]
fn filters_find_what_the_records_say() {
    let Some(published) = Published::load() else {
        return;
    };
    let (_server, client) = demo();
    let filter = |id: &str, operator: &str, value: Value| json!({"id": id, "operator": operator, "value": value});
    let (_, free) = found(
        &client,
        &published,
        &json!({"filters": [filter("price-type", "eq", json!("free"))], "limit": 3}),
    );
    assert_eq!(
        ids(&free),
        matching(|record| record["price"]["type"] == "free")
    );
    let long = json!({"filters": [filter("duration", "gte", json!(10)), filter("level", "in", json!(["intermediate", "advanced"]))], "limit": 7});
    let (_, long) = found(&client, &published, &long);
    let expected = matching(|record| {
        let attributes = &record["attributes"];
        attributes["duration_hours"]
            .as_u64()
            .is_some_and(|hours| hours >= 10)
            && matches!(
                attributes["level"].as_str(),
                Some("intermediate" | "advanced")
            )
    });
    assert!(!expected.is_empty());
    assert_eq!(ids(&long), expected);
    // Below a Collection, with a filter and a sort of its own.
    let below = json!({
        "filters": [filter("starts-on", "gte", json!("2027-03-01"))],
        "collection_id": "courses", "include_descendants": true, "sort": "soonest", "limit": 5,
    });
    let (_, below) = found(&client, &published, &below);
    let records = records();
    let days: Vec<&str> = below
        .iter()
        .map(|item| {
            records[id(item)]["attributes"]["starts_on"]
                .as_str()
                .unwrap()
        })
        .collect();
    assert!(days.is_sorted(), "{days:?}");
    let expected = matching(|record| {
        let day = record["attributes"]["starts_on"].as_str();
        day.is_some_and(|day| day >= "2027-03-01")
    });
    assert_eq!(ids(&below), expected, "every course is below courses");
}

#[test]
fn refinements_count_what_the_records_say() {
    let Some(published) = Published::load() else {
        return;
    };
    let (_server, client) = demo();
    let request = json!({
        "filters": [
            {"id": "price-type", "operator": "eq", "value": "fixed"},
            {"id": "duration", "operator": "gte", "value": 1},
        ],
        "refinements": ["price-type", "level"],
    });
    let (first, _) = found(&client, &published, &request);
    let first = first.json();
    let groups: BTreeMap<&str, BTreeMap<&str, u64>> = first["refinements"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| {
            let values = group["values"].as_array().unwrap().iter();
            let values = values.map(|value| {
                assert!(value.get("count_relation").is_none());
                (
                    value["value"].as_str().unwrap(),
                    value["count"].as_u64().unwrap(),
                )
            });
            (group["filter_id"].as_str().unwrap(), values.collect())
        })
        .collect();
    let records = records();
    let mut expected: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
    for record in records.values() {
        let attributes = &record["attributes"];
        if !attributes["duration_hours"].is_u64() {
            continue;
        }
        let kind = record["price"]["type"].as_str().unwrap();
        *expected
            .entry("price-type")
            .or_default()
            .entry(kind)
            .or_default() += 1;
        if let (Some(level), "fixed") = (attributes["level"].as_str(), kind) {
            *expected
                .entry("level")
                .or_default()
                .entry(level)
                .or_default() += 1;
        }
    }
    assert_eq!(groups, expected);
}

#[test]
fn text_and_collections_are_found() {
    let Some(published) = Published::load() else {
        return;
    };
    let (_server, client) = demo();
    let (_, satchels) = found(&client, &published, &json!({"query": "satchel leather"}));
    assert!(ids(&satchels).contains("course-bag-leather"));
    let (_, none) = found(&client, &published, &json!({"query": "-_./@"}));
    assert!(none.is_empty());
    let target = client.operation("/collections/search");
    let roots = json!({"odp_version": "1.0", "parent_id": null, "limit": 100});
    let answer = client.search(&target, &roots, &[]).expect_status(200);
    published.check("page-envelope", &answer.json());
    let (items, _) = page_of(&answer);
    let expected: BTreeSet<String> = collections()
        .into_iter()
        .filter(|(_, collection)| !collection.contains_key("parent_ids"))
        .map(|(id, _)| id)
        .collect();
    assert_eq!(ids(&items), expected);
    for path in ["/filters", "/collections/courses/filters"] {
        let answer = client.get(&client.operation(path)).expect_status(200);
        published.check("filter-definition-page", &answer.json());
    }
}
