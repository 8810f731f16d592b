//! Lists of Offerings, and each Offering by itself.

use std::collections::{BTreeMap, BTreeSet};

use e2e::client::Client;
use e2e::shared::project;
use serde_json::Value;

use crate::published::{Published, with_version};
use crate::support::*;

#[test]
fn lists_of_offerings_are_whole_ordered_and_valid() {
    let Some(published) = Published::load() else {
        return;
    };
    let (_server, client) = demo();
    let records = records();
    for (language, german) in LANGUAGES {
        for (representation, limits) in [("terse", &[1, 7, 100][..]), ("full", &[13, 100])] {
            for limit in limits {
                if *limit == 1 && language.is_some() {
                    continue;
                }
                let target = client.operation(&format!(
                    "/offerings?limit={limit}&representation={representation}"
                ));
                let items = traverse(&client, &published, &target, *limit, language);
                let ids = items.iter().map(|item| item["id"].as_str().unwrap());
                assert!(ids.eq(records.keys()), "{target} {language:?}");
                for item in &items {
                    published.check_item("offering", item);
                    let record = &records[item["id"].as_str().unwrap()];
                    assert_eq!(item["name"], translated(record, german, "name"));
                    assert_eq!(
                        item["description"],
                        translated(record, german, "description")
                    );
                }
            }
        }
    }
}

#[test]
fn retrievals_agree_with_lists_and_records() {
    let Some(published) = Published::load() else {
        return;
    };
    let (_server, client) = demo();
    let records = records();
    let schemas = schemas(&client);
    for (language, german) in LANGUAGES {
        // The first two and the last are the same variant, asked for differently: one of them in depth is enough.
        if language == Some("en") || language == Some("fr") {
            continue;
        }
        let list = |representation: &str| {
            let target = client.operation(&format!(
                "/offerings?limit=100&representation={representation}"
            ));
            traverse(&client, &published, &target, 100, language)
        };
        let (terse_items, full_items) = (list("terse"), list("full"));
        for (n, (terse_item, full_item)) in terse_items.iter().zip(&full_items).enumerate() {
            let id = full_item["id"].as_str().unwrap();
            let mut tags = BTreeSet::new();
            let mut get = |query: &str| {
                let target = client.operation(&format!("/offerings/{id}{query}"));
                let answer = ask(&client, "GET", &target, language).expect_status(200);
                check_headers(&answer, "application/odp+json", &target);
                let document = answer.json();
                assert_eq!(
                    content_language(&answer),
                    languages_of([&document]),
                    "{target}"
                );
                if n % 20 == 0 {
                    check_conditions(&client, &target, language, &answer);
                }
                tags.insert(answer.header("etag").unwrap().to_owned());
                document
            };
            let (full, terse) = (get(""), get("?representation=terse"));
            assert_eq!(get("?representation=full"), full);
            assert_eq!(tags.len(), 2, "{id}: one tag for each variant");
            published.check("offering", &full);
            published.check("offering", &terse);
            published.check_details(&terse);
            check_terse(&full, &terse);
            assert_eq!(with_version(full_item), full);
            assert_eq!(with_version(terse_item), terse);

            // Full is the record, in the language asked for.
            let record = &records[id];
            for member in [
                "images",
                "web_url",
                "collection_ids",
                "price",
                "schema",
                "actions",
            ] {
                assert_eq!(full.get(member), record.get(member), "{id}: {member}");
            }
            for member in ["name", "description", "attributes"] {
                let expected = translated(record, german, member);
                assert_eq!(
                    full.get(member).unwrap_or(&Value::Null),
                    &expected,
                    "{id}: {member}"
                );
            }
            let has_german = record["translations"].get("de").is_some();
            let tag = if german && has_german { "de" } else { "en" };
            assert_eq!(
                languages_of([&full]),
                BTreeSet::from([tag.to_owned()]),
                "{id}"
            );
            if let Some(attributes) = full.get("attributes") {
                let schema = &schemas[full["schema"]["url"].as_str().unwrap()];
                assert!(schema.is_valid(attributes), "{id}: {attributes}");
            }
        }
    }
}

/// The attribute schemas of the demo, as they are served.
fn schemas(client: &Client) -> BTreeMap<&'static str, jsonschema::Validator> {
    let names = ["course", "material", "tool", "reservation"];
    let paths = [
        "/schemas/course.json",
        "/schemas/material.json",
        "/schemas/tool.json",
        "/schemas/reservation.json",
    ];
    let served = names.iter().zip(paths).map(|(name, path)| {
        let answer = client.get(path).expect_status(200);
        check_headers(&answer, "application/schema+json", path);
        check_conditions(client, path, None, &answer);
        let file = project().join(format!("catalogs/demo/schemas/{name}.json"));
        assert_eq!(answer.body, std::fs::read(file).unwrap(), "{path}");
        let schema = answer.json();
        assert_eq!(
            schema["$schema"],
            "https://json-schema.org/draft/2020-12/schema"
        );
        let validator = jsonschema::draft202012::new(&schema);
        (path, validator.unwrap_or_else(|e| panic!("{path}: {e}")))
    });
    served.collect()
}
