//! What the manifest offers to searches: what is advertised and linked, its default order, a changed filter, and explanations.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "helpers of tests"
)]

mod catalog_search_common;
mod catalog_support;
mod search_common;

use catalog_search_common::{NOW, cursor, found, ids, open, request, things};
use catalog_support::body;
use purvey_catalog::Error;
use purvey_catalog::access::Access;
use purvey_catalog::catalog::{DefinitionPage, Precondition};
use purvey_catalog::clock::ManualClock;
use purvey_catalog::manifest::Manifest;
use purvey_odp::capability::{Kind, SearchCapabilities};
use purvey_odp::identity::ResourceType;
use purvey_odp::language::AcceptLanguage;
use purvey_odp::limits;
use purvey_odp::offering::Representation;
use purvey_odp::request::OfferingSearchRequest;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

#[test]
fn what_can_be_used_is_advertised() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let catalog = things(dir.path(), &clock);
    let document = catalog
        .service_document(&AcceptLanguage::default())
        .unwrap();
    let document = body(&document.bytes);
    let names: Vec<&str> = document["operations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|o| o["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"search-offerings") && names.contains(&"search-collections"));
    let inline = &document["search_capabilities"];
    assert_eq!(inline["filters"]["inline"].as_array().unwrap().len(), 11);
    assert_eq!(inline["sorts"]["inline"][0]["id"], "down");
    let get = |id: &str| {
        let language = AcceptLanguage::default();
        let document = catalog.get(
            ResourceType::Collection,
            id,
            Representation::Full,
            &language,
            &Access::public(),
        );
        body(&document.unwrap().bytes)
    };
    let shoes = get("shoes");
    assert_eq!(
        shoes["search_capabilities"]["filters"]["inline"][0]["id"],
        "size"
    );
    assert_eq!(
        shoes["search_capabilities"]["sorts"]["inline"][0]["id"],
        "small"
    );
    assert!(get("hats").get("search_capabilities").is_none());
}

#[test]
fn what_does_not_fit_is_linked_and_comes_in_pages() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let catalog = open(dir.path(), &clock);
    let mut text =
        String::from("[service]\nname = \"S\"\ndescription = \"D.\"\nlanguage = \"en\"\n");
    let filter = |n: usize, description: &str| {
        format!(
            "[[filters]]\nid = \"f{n:03}\"\ntitle = \"T\"\ndescription = {description:?}\ntype = \"integer\"\noperators = [\"eq\"]\npath = \"/attributes/f{n}\"\n"
        )
    };
    for n in 0..250 {
        text += &filter(n, "D.");
    }
    text += "[[collections]]\nid = \"c\"\nname = \"C\"\n[[collections]]\nid = \"plain\"\nname = \"P\"\n";
    let own = |n: usize| filter(n, "D.").replace("[[filters]]", "[[collections.filters]]");
    let text = text.replace(
        "[[collections]]\nid = \"plain\"",
        &(0..33).fold(String::new(), |out, n| out + &own(500 + n)),
    );
    let text = text.replace("\nname = \"P\"\n", "\n");
    let linked = Manifest::parse(&text, Path::new(".")).unwrap_or_else(|error| panic!("{error}"));
    catalog.set_manifest(&linked).unwrap();
    catalog.publish().unwrap();
    let document = catalog
        .service_document(&AcceptLanguage::default())
        .unwrap();
    let capabilities = body(&document.bytes)["search_capabilities"].clone();
    assert_eq!(
        capabilities,
        json!({"filters": {"linked": {"href": "/odp/filters"}}})
    );
    let collection = catalog.get(
        ResourceType::Collection,
        "c",
        Representation::Full,
        &AcceptLanguage::default(),
        &Access::public(),
    );
    assert_eq!(
        body(&collection.unwrap().bytes)["search_capabilities"],
        json!({"filters": {"linked": {"href": "/odp/collections/c/filters"}}})
    );
    let public = Access::public();
    let all = |collection: Option<&str>| {
        let mut page = catalog
            .definitions(
                collection,
                Kind::Filters,
                DefinitionPage::First { limit: None },
                &public,
            )
            .unwrap();
        let mut sizes = vec![ids(&page).len()];
        let mut all = ids(&page);
        while let Some(text) = cursor(&page) {
            page = catalog
                .definitions(
                    collection,
                    Kind::Filters,
                    DefinitionPage::Next(&text),
                    &public,
                )
                .unwrap();
            sizes.push(ids(&page).len());
            all.extend(ids(&page));
        }
        (sizes, all)
    };
    let (sizes, ids_found) = all(None);
    assert_eq!(sizes, [100, 100, 50]);
    assert_eq!(
        ids_found,
        (0..250).map(|n| format!("f{n:03}")).collect::<Vec<_>>()
    );
    assert_eq!(all(Some("c")).0, [33]);
    let none = |collection, kind| {
        catalog.definitions(
            collection,
            kind,
            DefinitionPage::First { limit: None },
            &public,
        )
    };
    assert!(matches!(none(None, Kind::Sorts), Err(Error::NotFound)));
    assert!(matches!(
        none(Some("nowhere"), Kind::Filters),
        Err(Error::NotFound)
    ));
    // A few whose texts are long are linked too: the document has its own bound.
    let long: String = (0..32)
        .map(|n| filter(n, &"\u{20ac}".repeat(1_000)))
        .collect();
    let head = "[service]\nname = \"S\"\ndescription = \"D.\"\nlanguage = \"en\"\n";
    let manifest = Manifest::parse(&format!("{head}{long}"), Path::new(".")).unwrap();
    catalog.set_manifest(&manifest).unwrap();
    catalog.publish().unwrap();
    let document = catalog
        .service_document(&AcceptLanguage::default())
        .unwrap();
    assert!(document.bytes.len() <= limits::SERVICE_DOCUMENT_BYTES);
    let capabilities = body(&document.bytes)["search_capabilities"].clone();
    assert_eq!(
        capabilities,
        json!({"filters": {"linked": {"href": "/odp/filters"}}})
    );
    let mut report = purvey_odp::report::Report::new();
    assert!(
        SearchCapabilities::read(&mut report, &purvey_odp::report::Place::ROOT, capabilities)
            .is_some()
    );
}

#[test]
fn the_manifest_decides_the_order_when_the_request_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let catalog = things(dir.path(), &clock);
    let sent =
        json!({"odp_version": "1.0", "filters": [{"id": "tag", "operator": "eq", "value": "t"}]});
    assert_eq!(
        found(&catalog, &sent),
        ["five", "four", "one", "three", "two"]
    );
    let epoch = catalog.current().generation.epoch();
    let text = catalog.manifest().to_toml() + "\n[search]\ndefault_sort = \"down\"\n";
    catalog
        .set_manifest(&Manifest::parse(&text, Path::new(".")).unwrap())
        .unwrap();
    catalog.publish().unwrap();
    assert_eq!(
        found(&catalog, &sent),
        ["five", "four", "three", "two", "one"]
    );
    // Nothing was built again for that.
    assert_eq!(catalog.current().generation.epoch(), epoch);
}

#[test]
fn a_changed_filter_is_searchable_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let catalog = things(dir.path(), &clock);
    let text = catalog.manifest().to_toml();
    assert!(text.contains("/attributes/rank"));
    let text = text.replace("\"/attributes/rank\"", "\"/attributes/place\"");
    catalog
        .set_manifest(&Manifest::parse(&text, Path::new(".")).unwrap())
        .unwrap();
    catalog.publish().unwrap();
    let sent = json!({"odp_version": "1.0", "filters": [{"id": "rank", "operator": "exists", "value": true}]});
    assert_eq!(found(&catalog, &sent), [""; 0]);
    let value = json!({"id": "new", "name": "New", "schema": {"url": "/any.json"}, "attributes": {"place": 1}});
    catalog
        .put(ResourceType::Offering, "new", value, Precondition::None)
        .unwrap();
    catalog.publish().unwrap();
    assert_eq!(found(&catalog, &sent), ["new"]);
}

#[test]
fn an_explanation_says_how_and_not_what() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let catalog = things(dir.path(), &clock);
    let sent = json!({
        "odp_version": "1.0", "filters": [{"id": "tag", "operator": "eq", "value": "five"}], "collection_id": "shoes",
        "include_descendants": true, "sort": "down", "refinements": ["rank"]
    });
    let sent = OfferingSearchRequest::validate(sent).unwrap();
    let explained = catalog
        .explain(&request(sent, Representation::Terse))
        .unwrap();
    let value = serde_json::to_value(&explained).unwrap();
    assert_eq!(
        value["generation"],
        json!(catalog.current().generation.number())
    );
    assert_eq!(value["order"], json!(["rank descending"]));
    assert_eq!(value["filters"], json!(["tag eq"]));
    assert_eq!(
        (value["scope"].as_str(), value["items"].as_u64()),
        (Some("descendants"), Some(1))
    );
    let segments = value["trace"]["segments"].as_array().unwrap();
    let sum = |member: &str| {
        segments
            .iter()
            .map(|s| s[member].as_u64().unwrap())
            .sum::<u64>()
    };
    assert_eq!((sum("candidates"), sum("matching")), (4, 1));
    let counted = segments
        .iter()
        .flat_map(|s| s["refinements"].as_array().unwrap());
    assert!(
        counted
            .clone()
            .all(|r| r["filter_id"] == "rank" && r["plan"].is_string())
    );
    assert_eq!(counted.count(), 1);
    assert!(!value.to_string().contains("five"));
}
