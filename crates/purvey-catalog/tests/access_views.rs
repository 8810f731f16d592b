//! A view is the catalog of what it shows.
//!
//! The oracle is a second catalog that holds the visible records alone, without the ids of hidden Collections in them. `ACCESS_CASES` sets how many
//! random catalogs are compared.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod access_common;
mod catalog_support;

use access_common::steps::{records, run, step, visible};
use access_common::{access, list, open, put};
use catalog_support::read;
use proptest::prelude::*;
use purvey_catalog::catalog::{Catalog, DefinitionPage, Listing, Page, SearchRequest, Snapshot};
use purvey_catalog::manifest::Manifest;
use purvey_catalog::{Access, Error};
use purvey_odp::capability::Kind;
use purvey_odp::identity::ResourceType::{Collection, Offering};
use purvey_odp::language::AcceptLanguage;
use purvey_odp::offering::Representation::{self, Full, Terse};
use purvey_odp::request::{CollectionSearchRequest, OfferingSearchRequest};
use serde_json::{Value, json};
use std::path::Path;

/// Filters from where Collections are named, alone and beside others, and from elsewhere.
const FILTERS: &str = r#"
filters = [
    { id = "members", title = "F", description = "F.", type = "string", operators = ["eq", "in", "exists"], refinable = true, path = "/collection_ids" },
    { id = "first", title = "F", description = "F.", type = "string", operators = ["eq", "in", "exists"], refinable = true, path = "/collection_ids/0" },
    { id = "mixed", title = "F", description = "F.", type = "string", operators = ["eq", "in", "exists"], refinable = true, paths = ["/name", "/collection_ids"] },
    { id = "url", title = "F", description = "F.", type = "string", operators = ["eq", "in", "exists"], refinable = true, path = "/web_url" },
    { id = "deep", title = "F", description = "F.", type = "string", operators = ["eq", "in", "exists"], refinable = true, paths = ["/collection_ids/1", "/language"] },
]
sorts = [
    { id = "up", title = "S", description = "S.", keys = [{ filter_id = "members", direction = "ascending", missing = "first" }] },
    { id = "down", title = "S", description = "S.", keys = [{ filter_id = "mixed", direction = "descending", missing = "last" }, { filter_id = "deep", direction = "ascending", missing = "last" }] },
]
"#;

/// A response without the text of its continuation.
fn bare(page: &Page) -> String {
    let text = String::from_utf8(page.bytes.to_vec()).unwrap();
    match text.split_once("\"next\":\"") {
        None => text,
        Some((before, after)) => format!("{before}{}", after.split_once('"').unwrap().1),
    }
}

/// Every response to a caller: whole lists in all forms, and every document that may exist.
fn everything(catalog: &Catalog, access: &Access) -> Vec<String> {
    let mut all = Vec::new();
    let mut listings = vec![Listing::Collections, Listing::Offerings];
    listings.extend((0..6).map(|n| Listing::CollectionOfferings(format!("c{n}"))));
    for language in [None, Some("de"), Some("tlh, fr;q=0.5"), Some("fr")] {
        for representation in [Terse, Full] {
            for operation in &listings {
                let mut page = list(catalog, operation, representation, 2, language, access);
                loop {
                    match &page {
                        Err(Error::NotFound) => all.push("404".to_owned()),
                        Err(error) => panic!("{error}"),
                        Ok(found) => {
                            all.push(format!("{} {:?}", bare(found), found.languages));
                            if let (_, Some(cursor)) = read(found) {
                                page = catalog.resume(operation, &cursor, access);
                                continue;
                            }
                        }
                    }
                    break;
                }
            }
            for (kind, prefix) in [(Collection, "c"), (Offering, "o")] {
                for n in 0..9 {
                    let accept = AcceptLanguage::parse(language);
                    let id = format!("{prefix}{n}");
                    all.push(
                        match catalog.get(kind, &id, representation, &accept, access) {
                            Ok(found) => {
                                let text = String::from_utf8(found.bytes.to_vec()).unwrap();
                                format!("{text} {:?}", found.language)
                            }
                            Err(Error::NotFound) => format!("404 {id}"),
                            Err(error) => panic!("{error}"),
                        },
                    );
                }
            }
        }
    }
    all
}

/// How much of everything there is.
fn counts(snapshot: &Snapshot) -> Vec<u64> {
    let generation = &snapshot.generation;
    let mut counts = vec![generation.count(Collection), generation.count(Offering)];
    for n in 0..6 {
        let id = format!("c{n}");
        counts.push(u64::from(generation.contains(Collection, &id)));
        counts.push(generation.count_members(Offering, &id));
        counts.push(generation.count_members(Collection, &id));
    }
    counts
}

/// Requests that everything about membership goes into.
fn requests() -> Vec<Value> {
    let filters = ["members", "first", "mixed", "url", "deep"];
    let scopes = [
        None,
        Some(("c0", false)),
        Some(("c0", true)),
        Some(("c2", true)),
    ];
    let mut all = Vec::new();
    for (n, filter) in filters.iter().enumerate() {
        for scope in scopes {
            for expression in [
                json!({"id": filter, "operator": "exists", "value": true}),
                json!({"id": filter, "operator": "exists", "value": false}),
                json!({"id": filter, "operator": "eq", "value": format!("c{n}")}),
                json!({"id": filter, "operator": "in", "value": ["c1", "c2", "c5", "Number 3"]}),
            ] {
                let mut request = json!({"odp_version": "1.0", "filters": [expression], "refinements": filters, "limit": 2});
                if let Some((id, below)) = scope {
                    request["collection_id"] = json!(id);
                    request["include_descendants"] = json!(below);
                }
                if n != 4 {
                    request["sort"] = json!(["up", "down"][n % 2]);
                }
                all.push(request);
            }
        }
    }
    all
}

/// Every answer to these requests, and to searches for Collections.
fn searches(catalog: &Catalog, access: &Access) -> Vec<String> {
    fn request<R>(request: R, representation: Representation, access: &Access) -> SearchRequest<R> {
        SearchRequest {
            request,
            representation,
            accept_language: AcceptLanguage::default(),
            access: access.clone(),
        }
    }
    let mut all = Vec::new();
    let mut follow = |first: Result<Page, Error>, next: &dyn Fn(&str) -> Result<Page, Error>| {
        let mut page = first;
        loop {
            match page {
                Ok(found) => {
                    all.push(bare(&found));
                    match read(&found).1 {
                        Some(cursor) => page = next(&cursor),
                        None => return,
                    }
                }
                Err(Error::NotFound) => return all.push("404".to_owned()),
                Err(error) => panic!("{error}"),
            }
        }
    };
    for (n, body) in requests().into_iter().enumerate() {
        let parsed = OfferingSearchRequest::validate(body).unwrap();
        let representation = [Terse, Full][n % 2];
        follow(
            catalog.search_offerings(&request(parsed, representation, access)),
            &|cursor| catalog.resume_search_offerings(cursor, access),
        );
    }
    for parent in [Value::Null, json!("c0"), json!("c1"), json!("c2")] {
        let parsed = CollectionSearchRequest::validate(
            json!({"odp_version": "1.0", "parent_id": parent, "limit": 2}),
        );
        follow(
            catalog.search_collections(&request(parsed.unwrap(), Full, access)),
            &|cursor| catalog.resume_search_collections(cursor, access),
        );
    }
    for id in ["c0", "c1"] {
        let first = DefinitionPage::First { limit: None };
        let page = catalog.definitions(Some(id), Kind::Filters, first, access);
        follow(page, &|_| panic!("one page"));
    }
    for text in ["number", "number 3", "something", "num", "c1", "mi'"] {
        let body =
            json!({"odp_version": "1.0", "query": text, "limit": 2, "refinements": ["members"]});
        let parsed = OfferingSearchRequest::validate(body).unwrap();
        follow(
            catalog.search_offerings(&request(parsed, Full, access)),
            &|cursor| catalog.resume_search_offerings(cursor, access),
        );
        let body = json!({"odp_version": "1.0", "query": text, "limit": 2});
        let parsed = CollectionSearchRequest::validate(body).unwrap();
        follow(
            catalog.search_collections(&request(parsed, Terse, access)),
            &|cursor| catalog.resume_search_collections(cursor, access),
        );
    }
    all
}

fn cases() -> u32 {
    let cases = std::env::var("ACCESS_CASES").ok();
    cases.and_then(|text| text.parse().ok()).unwrap_or(12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_view_is_the_catalog_of_what_it_shows(steps in prop::collection::vec(step(), 1..40), terse in any::<bool>()) {
        let terse = if terse { "[\"/collection_ids\", \"/web_url\"]" } else { "[\"/description\"]" };
        let text = format!("{FILTERS}[service]\nname = \"S\"\ndescription = \"S.\"\nlanguage = \"en\"\n[search]\nterse = {terse}\ncollection_terse = [\"/description\"]\n");
        let manifest = Manifest::parse(&text, Path::new(".")).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let catalog = open(dir.path(), &manifest);
        run(&catalog, &steps);
        let stored = records(&catalog);
        for audiences in [&[][..], &["staff"], &["trade"], &["staff", "trade"], &["nobody"]] {
            let expected = tempfile::tempdir().unwrap();
            let expected = open(expected.path(), &manifest);
            let mut seen = visible(&stored, audiences);
            // Parents first: they have smaller numbers.
            seen.sort_by_key(|(kind, value)| (*kind != Collection, value["id"].as_str().unwrap().to_owned()));
            for (kind, value) in &seen {
                put(&expected, *kind, value);
            }
            expected.publish().unwrap();
            let caller = access(audiences);
            let view = catalog.view(&caller).unwrap();
            prop_assert_eq!(counts(&view), counts(&expected.current()));
            prop_assert_eq!(everything(&catalog, &caller), everything(&expected, &Access::public()));
            prop_assert_eq!(searches(&catalog, &caller), searches(&expected, &Access::public()));
        }
        let report = catalog.check().unwrap();
        prop_assert_eq!(report.faults, Vec::<String>::new());
    }
}
