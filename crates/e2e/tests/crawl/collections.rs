//! Collections, and the Offerings of each.

use crate::published::Published;
use crate::support::*;

#[test]
fn collections_and_their_offerings_agree_with_the_manifest() {
    let Some(published) = Published::load() else {
        return;
    };
    let (_server, client) = demo();
    let (records, collections) = (records(), collections());
    for (language, german) in LANGUAGES {
        for limit in [5, 100] {
            let list = |representation: &str| {
                let target = client.operation(&format!(
                    "/collections?limit={limit}&representation={representation}"
                ));
                traverse(&client, &published, &target, limit, language)
            };
            let (terse_items, full_items) = (list("terse"), list("full"));
            let ids = full_items.iter().map(|item| item["id"].as_str().unwrap());
            assert!(ids.eq(collections.keys()));
            for (terse_item, full_item) in terse_items.iter().zip(&full_items) {
                published.check_item("collection", full_item);
                published.check_item("collection", terse_item);
                check_terse(full_item, terse_item);
                let collection = &collections[full_item["id"].as_str().unwrap()];
                let translation = collection["translations"].get("de").filter(|_| german);
                for member in ["name", "description"] {
                    let expected = translation.unwrap_or(&toml::Value::Table(collection.clone()))
                        [member]
                        .clone();
                    assert_eq!(full_item[member].as_str(), expected.as_str());
                }
            }
        }
        for (id, collection) in &collections {
            let target = client.operation(&format!("/collections/{id}"));
            let answer = ask(&client, "GET", &target, language).expect_status(200);
            check_headers(&answer, "application/odp+json", &target);
            check_conditions(&client, &target, language, &answer);
            let full = answer.json();
            published.check("collection", &full);
            assert_eq!(content_language(&answer), languages_of([&full]));
            for kind in ["filters", "sorts"] {
                let own = collection.get(kind).and_then(toml::Value::as_array);
                let own = own.into_iter().flatten();
                let own: Vec<&str> = own.map(|one| one["id"].as_str().unwrap()).collect();
                let said = full["search_capabilities"][kind]["inline"].as_array();
                let said = said.into_iter().flatten();
                let said: Vec<&str> = said.map(|one| one["id"].as_str().unwrap()).collect();
                assert_eq!(said, own, "{kind} of {id}");
            }
            let parents: Vec<&str> =
                collection
                    .get("parent_ids")
                    .map_or_else(Vec::new, |parents| {
                        parents
                            .as_array()
                            .unwrap()
                            .iter()
                            .map(|id| id.as_str().unwrap())
                            .collect()
                    });
            let said: Vec<&str> = full.get("parent_ids").map_or_else(Vec::new, |parents| {
                parents
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|id| id.as_str().unwrap())
                    .collect()
            });
            assert_eq!(said, parents, "{id}");
            let terse_target = format!("{target}?representation=terse");
            let terse = ask(&client, "GET", &terse_target, language)
                .expect_status(200)
                .json();
            published.check("collection", &terse);
            check_terse(&full, &terse);

            // Direct members, no others: the hierarchy adds none.
            let expected: Vec<&String> = records
                .iter()
                .filter(|(_, record)| {
                    record["collection_ids"]
                        .as_array()
                        .is_some_and(|ids| ids.iter().any(|i| i == id))
                })
                .map(|(id, _)| id)
                .collect();
            for (representation, limit) in [("terse", 4), ("full", 100)] {
                let target =
                    format!("{target}/offerings?limit={limit}&representation={representation}");
                let items = traverse(&client, &published, &target, limit, language);
                let ids: Vec<&str> = items
                    .iter()
                    .map(|item| item["id"].as_str().unwrap())
                    .collect();
                assert_eq!(ids, expected, "{target}");
                for item in &items {
                    published.check_item("offering", item);
                    assert_eq!(
                        item["name"],
                        translated(&records[item["id"].as_str().unwrap()], german, "name")
                    );
                }
            }
        }
    }
}
