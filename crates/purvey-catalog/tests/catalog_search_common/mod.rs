//! Catalogs on disk to search in, and short ways to search them.
#![allow(dead_code, reason = "every test file uses its part")]

use crate::catalog_support::body;
use crate::search_common::FILTERS;
use crate::search_common::Filter;
use crate::search_common::values::Random;
use crate::search_common::values::record;
use purvey_catalog::Error;
use purvey_catalog::access::Access;
use purvey_catalog::catalog::{Catalog, Change, Options, Page, SearchRequest};
use purvey_catalog::clock::ManualClock;
use purvey_catalog::fs::Durability;
use purvey_catalog::manifest::Manifest;
use purvey_odp::identity::ResourceType;
use purvey_odp::language::AcceptLanguage;
use purvey_odp::limits;
use purvey_odp::offering::Representation;
use purvey_odp::request::{CollectionSearchRequest, OfferingSearchRequest};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

pub(crate) const NOW: u64 = 1_800_000_000;
/// Collections with their parents; `shoes` has a filter and sorts of its own.
pub(crate) const COLLECTIONS: [(&str, &[&str]); 6] = [
    ("shoes", &[]),
    ("hats", &["shoes"]),
    ("a", &["b", "c"]),
    ("b", &["hats"]),
    ("c", &["hats", "shoes"]),
    ("d", &[]),
];

pub(crate) fn options(clock: &Arc<ManualClock>) -> Options {
    Options {
        clock: Arc::clone(clock) as _,
        durability: Durability::Off,
        ..Options::default()
    }
}

pub(crate) fn open(dir: &Path, clock: &Arc<ManualClock>) -> Catalog {
    Catalog::open(dir, options(clock)).unwrap()
}

pub(crate) fn filter_table(place: &str, filter: &Filter) -> String {
    let definition = filter.definition().to_value();
    let paths: Vec<String> = filter
        .paths
        .iter()
        .map(|path| format!("/{}", path.join("/")))
        .collect();
    format!(
        "[[{place}filters]]\nid = {:?}\ntitle = \"T\"\ndescription = \"D.\"\ntype = {:?}\noperators = {}\nrefinable = true\npaths = {:?}\n",
        filter.id,
        filter.scalar_type.as_str(),
        definition["operators"],
        paths
    )
}

pub(crate) fn sort_table(place: &str, id: &str, keys: &Value) -> String {
    let mut out =
        format!("[[{place}sorts]]\nid = {id:?}\ntitle = \"T\"\ndescription = \"D.\"\nkeys = [");
    for key in keys.as_array().unwrap() {
        write!(
            out,
            "{{ filter_id = {}, direction = {}, missing = {} }},",
            key["filter_id"], key["direction"], key["missing"]
        )
        .unwrap();
    }
    out + "]\n"
}

/// A manifest with the filters of the oracle and these sorts, each of the Service or of `shoes`.
pub(crate) fn manifest(sorts: &[(String, bool, Value)]) -> Manifest {
    let mut text = String::from(
        "[service]\nname = \"S\"\ndescription = \"D.\"\nlanguage = \"en\"\n[schemas]\n\"/any.json\" = { inline = '{\"$schema\": \"https://json-schema.org/draft/2020-12/schema\"}' }\n",
    );
    for filter in FILTERS.iter().filter(|filter| !filter.is_local) {
        text += &filter_table("", filter);
    }
    for (id, _, keys) in sorts.iter().filter(|(_, is_local, _)| !is_local) {
        text += &sort_table("", id, keys);
    }
    for (id, parents) in COLLECTIONS {
        write!(
            text,
            "[[collections]]\nid = {id:?}\nname = \"Collection {id}\"\n"
        )
        .unwrap();
        if !parents.is_empty() {
            writeln!(text, "parent_ids = {parents:?}").unwrap();
        }
        if id == "shoes" {
            for filter in FILTERS.iter().filter(|filter| filter.is_local) {
                text += &filter_table("collections.", filter);
            }
            for (id, _, keys) in sorts.iter().filter(|(_, is_local, _)| *is_local) {
                text += &sort_table("collections.", id, keys);
            }
        }
    }
    Manifest::parse(&text, Path::new(".")).unwrap_or_else(|error| panic!("{error}"))
}

/// A valid Offering with what the oracle's random record has.
pub(crate) fn offering(random: &mut Random, id: &str) -> Value {
    let many = random.chance(50);
    let mut value = record(random, many);
    let map = value.as_object_mut().unwrap();
    map.insert("id".into(), json!(id));
    if map["name"] == "" {
        map["name"] = json!("x");
    }
    map.insert("schema".into(), json!({"url": "/any.json"}));
    let has_word = crate::search_common::score(&Value::Object(map.clone())).is_some();
    let description = if has_word { "A needle" } else { "Hay" };
    map.insert("description".into(), json!(description));
    let amount = map.get("price").map(|price| price["amount"].clone());
    if let Some(amount) = amount {
        map.shift_remove("price");
        if !amount.as_str().unwrap().starts_with('-') {
            let price = json!({"type": "fixed", "amount": amount, "currency": "EUR"});
            map.insert("price".into(), price);
        }
    }
    value
}

pub(crate) fn request<R>(request: R, representation: Representation) -> SearchRequest<R> {
    SearchRequest {
        request,
        representation,
        accept_language: AcceptLanguage::default(),
        access: Access::public(),
    }
}

pub(crate) fn search(catalog: &Catalog, body: &Value) -> Result<Page, Error> {
    let body = OfferingSearchRequest::validate(body.clone()).unwrap();
    catalog.search_offerings(&request(body, Representation::Terse))
}

pub(crate) fn resume(catalog: &Catalog, cursor: &str) -> Result<Page, Error> {
    catalog.resume_search_offerings(cursor, &Access::public())
}

pub(crate) fn ids(page: &Page) -> Vec<String> {
    let body = body(&page.bytes);
    let items = body["items"].as_array().unwrap().iter();
    items
        .map(|item| item["id"].as_str().unwrap().to_owned())
        .collect()
}

pub(crate) fn cursor(page: &Page) -> Option<String> {
    let next = body(&page.bytes).get("next")?.as_str().unwrap().to_owned();
    assert!(next.len() <= limits::NEXT_CHARS);
    Some(next.split_once("?cursor=").unwrap().1.to_owned())
}

/// All ids of a search.
pub(crate) fn found(catalog: &Catalog, body: &Value) -> Vec<String> {
    let mut page = search(catalog, body).unwrap();
    let mut all = ids(&page);
    while let Some(cursor) = cursor(&page) {
        page = resume(catalog, &cursor).unwrap();
        all.extend(ids(&page));
    }
    all
}

/// Five things with a number each, one without, in two Collections.
pub(crate) fn things(dir: &Path, clock: &Arc<ManualClock>) -> Catalog {
    let catalog = open(dir, clock);
    let keys = json!([{"filter_id": "rank", "direction": "descending", "missing": "last"}]);
    let local = json!([{"filter_id": "size", "direction": "ascending", "missing": "first"}]);
    let sorts = [
        ("down".to_owned(), false, keys),
        ("small".to_owned(), true, local),
    ];
    catalog.set_manifest(&manifest(&sorts)).unwrap();
    let thing = |id: &str, rank: i64, collections: &[&str]| {
        json!({
            "id": id, "name": format!("Thing {id}"), "collection_ids": collections,
            "schema": {"url": "/any.json"}, "attributes": {"rank": rank, "tags": ["t", id]}
        })
    };
    let mut values = vec![
        thing("one", 1, &["shoes"]),
        thing("two", 2, &["hats"]),
        thing("three", 3, &["a"]),
        thing("four", 4, &["d"]),
        thing("five", 5, &["shoes", "a"]),
    ];
    values.push(json!({"id": "none", "name": "Nothing to count"}));
    for value in values {
        let kind = ResourceType::Offering;
        for written in catalog.put_many(vec![Change { kind, value }]) {
            written.unwrap();
        }
        catalog.publish().unwrap();
    }
    catalog
}

pub(crate) fn collections(catalog: &Catalog, members: &Value) -> Result<Page, Error> {
    let mut body = json!({"odp_version": "1.0"});
    body.as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    let body = CollectionSearchRequest::validate(body).unwrap();
    catalog.search_collections(&request(body, Representation::Terse))
}
