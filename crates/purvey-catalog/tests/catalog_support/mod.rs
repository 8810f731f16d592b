//! A small catalog for tests.
#![allow(dead_code, reason = "every test file uses its part")]

use purvey_catalog::catalog::{Catalog, ListRequest, Listing, Options, Page};
use purvey_catalog::manifest::Manifest;
use purvey_catalog::{Access, Error};
use purvey_odp::language::AcceptLanguage;
use purvey_odp::offering::Representation;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

pub(crate) const MANIFEST: &str = r#"
[service]
name = "Tools"
description = "Things to work with."
language = "en"

[search]
terse = ["/description"]

[[collections]]
id = "tools"
name = "Tools"

[[collections]]
id = "saws"
name = "Saws"
parent_ids = ["tools"]
"#;

pub(crate) fn manifest() -> Manifest {
    Manifest::parse(MANIFEST, Path::new(".")).unwrap()
}

pub(crate) fn options() -> Options {
    Options {
        busy_timeout: Duration::from_millis(50),
        publish_interval: Duration::from_millis(20),
        poll_interval: Duration::from_millis(20),
        ..Options::default()
    }
}

/// A catalog with the manifest above, published.
pub(crate) fn catalog(dir: &Path) -> Catalog {
    let catalog = Catalog::open(dir, options()).unwrap();
    catalog.set_manifest(&manifest()).unwrap();
    catalog.publish().unwrap();
    catalog
}

pub(crate) fn offering(id: &str, collections: &[&str]) -> Value {
    let mut value = json!({"id": id, "name": format!("Name of {id}")});
    if !collections.is_empty() {
        value["collection_ids"] = json!(collections);
    }
    value
}

pub(crate) fn collection(id: &str, parents: &[&str]) -> Value {
    let mut value = json!({"id": id, "name": format!("Name of {id}")});
    if !parents.is_empty() {
        value["parent_ids"] = json!(parents);
    }
    value
}

pub(crate) fn first(catalog: &Catalog, operation: Listing, limit: u64) -> Result<Page, Error> {
    catalog.list(&ListRequest {
        operation,
        representation: Representation::Full,
        limit: Some(limit),
        accept_language: AcceptLanguage::default(),
        access: Access::public(),
    })
}

pub(crate) fn body(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

/// Ids of a page, and the cursor of the next.
pub(crate) fn read(page: &Page) -> (Vec<String>, Option<String>) {
    let body = body(&page.bytes);
    assert_eq!(body["odp_version"], "1.0");
    let ids = body["items"].as_array().unwrap().iter();
    let ids = ids.map(|item| item["id"].as_str().unwrap().to_owned());
    let next = body.get("next").map(|next| {
        let next = next.as_str().unwrap();
        next.split_once("?cursor=").unwrap().1.to_owned()
    });
    (ids.collect(), next)
}

/// Every id of a list, page by page; `between` runs after each page.
pub(crate) fn traverse(
    catalog: &Catalog,
    operation: &Listing,
    limit: u64,
    mut between: impl FnMut(&Catalog, usize),
) -> Vec<String> {
    let mut page = first(catalog, operation.clone(), limit).unwrap();
    let mut all = Vec::new();
    let mut pages = 0;
    loop {
        let (ids, next) = read(&page);
        all.extend(ids);
        pages += 1;
        between(catalog, pages);
        match next {
            Some(cursor) => {
                page = catalog
                    .resume(operation, &cursor, &Access::public())
                    .unwrap();
            }
            None => return all,
        }
    }
}

pub(crate) fn all(catalog: &Catalog, operation: &Listing) -> Vec<String> {
    traverse(catalog, operation, 100, |_, _| {})
}

/// The places named by a refusal.
pub(crate) fn pointers(error: &Error) -> Vec<String> {
    match error {
        Error::Invalid(invalid) | Error::Manifest(invalid) => {
            let violations = invalid.violations().iter();
            violations.map(|v| v.pointer.clone()).collect()
        }
        other => panic!("not a refusal: {other}"),
    }
}
