//! An export is the catalog: imported, it is the same one, byte for byte.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod catalog_support;

use catalog_support::{collection, offering, options};
use purvey_catalog::Access;
use purvey_catalog::catalog::{Catalog, ListRequest, Listing, Precondition};
use purvey_catalog::export::{MANIFEST, OFFERINGS, export, export_records};
use purvey_catalog::import::{ImportOptions, import};
use purvey_catalog::manifest::Manifest;
use purvey_catalog::reader::Source;
use purvey_odp::identity::ResourceType::{Collection, Offering};
use purvey_odp::language::AcceptLanguage;
use purvey_odp::offering::Representation;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const RICH: &str = r#"
[service]
name = "Tools"
description = "Things to work with."
language = "en"

[service.translations.de]
name = "Werkzeuge"

[schemas]
"/schemas/saw.json" = "saw.json"

[[collections]]
id = "tools"
name = "Tools"

[[filters]]
id = "teeth"
title = "Teeth"
description = "Teeth of a saw."
type = "integer"
operators = ["eq", "gte"]
path = "/attributes/teeth"
"#;
const SCHEMA: &str =
    r#"{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}"#;
const NONE: Precondition = Precondition::None;

fn rich(dir: &Path, data: &Path) -> Catalog {
    fs::write(dir.join("saw.json"), SCHEMA).unwrap();
    let manifest = Manifest::parse(RICH, dir).unwrap();
    let catalog = Catalog::open(data, options()).unwrap();
    catalog.set_manifest(&manifest).unwrap();
    // A child that sorts before its parent, and a Collection of the manifest that was changed since.
    catalog
        .put(Collection, "z", collection("z", &["tools"]), NONE)
        .unwrap();
    catalog
        .put(Collection, "a", collection("a", &["z"]), NONE)
        .unwrap();
    catalog
        .put(
            Collection,
            "tools",
            json!({"id": "tools", "name": "All tools"}),
            NONE,
        )
        .unwrap();
    let mut saw = offering("saw", &["a", "z"]);
    saw["schema"] = json!({"url": "/schemas/saw.json"});
    saw["attributes"] = json!({"teeth": 24, "exact": "1.50", "big": 9_007_199_254_740_993_u64});
    saw["price"] = json!({"type": "fixed", "amount": "12.50", "currency": "EUR"});
    saw["translations"] = json!({"de": {"name": "Säge", "attributes": {"exact": "1,50"}}});
    catalog.put(Offering, "saw", saw, NONE).unwrap();
    for i in 0..150 {
        let id = format!("o{i}");
        catalog
            .put(Offering, &id, offering(&id, &["tools"]), NONE)
            .unwrap();
    }
    catalog.delete(Offering, "o7", NONE, false).unwrap();
    catalog.publish().unwrap();
    catalog
}

/// Every item of every list, representation and language, and the Service Document.
fn everything(catalog: &Catalog) -> Vec<Value> {
    let mut out = Vec::new();
    let listings = [
        Listing::Offerings,
        Listing::Collections,
        Listing::CollectionOfferings("tools".to_owned()),
    ];
    for language in [None, Some("de")] {
        let accept_language = AcceptLanguage::parse(language);
        let document = catalog.service_document(&accept_language).unwrap();
        out.push(catalog_support::body(&document.bytes));
        for operation in listings.clone() {
            for representation in [Representation::Terse, Representation::Full] {
                let request = ListRequest {
                    operation: operation.clone(),
                    representation,
                    limit: Some(100),
                    accept_language: accept_language.clone(),
                    access: Access::public(),
                };
                let mut page = catalog.list(&request).unwrap();
                loop {
                    let (_, next) = catalog_support::read(&page);
                    let items = catalog_support::body(&page.bytes)["items"].take();
                    out.push(json!(items.to_string()));
                    match next {
                        Some(cursor) => {
                            page = catalog
                                .resume(&operation, &cursor, &Access::public())
                                .unwrap();
                        }
                        None => break,
                    }
                }
            }
        }
    }
    out
}

fn same_catalog(dir: &Path) -> ImportOptions {
    assert!(!dir.exists());
    ImportOptions {
        catalog: options(),
        ..ImportOptions::default()
    }
}

#[test]
fn an_imported_export_is_the_same_catalog() {
    let dir = tempfile::tempdir().unwrap();
    let original = rich(dir.path(), &dir.path().join("data"));
    let out = dir.path().join("out");
    let report = export(&dir.path().join("data"), &out, false, &options()).unwrap();
    assert_eq!((report.offerings, report.collections), (150, 3));
    let toml = fs::read_to_string(out.join(MANIFEST)).unwrap();
    let manifest = Manifest::parse(&toml, &out).unwrap();
    let sources = [Source::File(out.join(OFFERINGS))];
    let copy = dir.path().join("copy");
    let done = import(&copy, &manifest, &sources, &same_catalog(&copy), &()).unwrap();
    assert!(done.committed, "{:?}", done.faults);
    let copied = Catalog::open(&copy, options()).unwrap();
    assert_eq!(everything(&copied), everything(&original));
    assert_eq!(
        copied.schema("/schemas/saw.json"),
        original.schema("/schemas/saw.json")
    );
    assert_eq!(
        copied.schema("/schemas/saw.json").unwrap(),
        SCHEMA.as_bytes()
    );
    // What is there is only replaced on purpose.
    let before = fs::read(out.join(OFFERINGS)).unwrap();
    fs::remove_file(out.join(MANIFEST)).unwrap();
    let refused = export(&copy, &out, false, &options()).unwrap_err();
    assert!(matches!(refused, purvey_catalog::Error::Conflict { .. }));
    assert!(refused.to_string().contains(OFFERINGS), "{refused}");
    assert!(!out.join(MANIFEST).exists());
    export(&copy, &out, true, &options()).unwrap();
    assert_eq!(fs::read(out.join(OFFERINGS)).unwrap(), before);
    // And an export of the copy is the same files.
    let again = dir.path().join("again");
    export(&copy, &again, false, &options()).unwrap();
    for name in [MANIFEST, OFFERINGS] {
        let bytes = |out: &Path| fs::read(out.join(name)).unwrap();
        assert!(bytes(&out) == bytes(&again), "{name} differs");
    }
}

#[test]
fn a_stream_of_records_carries_collections_too() {
    let dir = tempfile::tempdir().unwrap();
    let original = rich(dir.path(), &dir.path().join("data"));
    let mut stream = Vec::new();
    let report = export_records(&dir.path().join("data"), &mut stream).unwrap();
    assert_eq!((report.offerings, report.collections), (150, 3));
    let path = dir.path().join("all.ndjson");
    fs::write(&path, stream).unwrap();
    let manifest = Manifest::parse(RICH, dir.path()).unwrap();
    let copy = dir.path().join("copy");
    let options_ = same_catalog(&copy);
    let done = import(&copy, &manifest, &[Source::File(path)], &options_, &()).unwrap();
    assert!(done.committed, "{:?}", done.faults);
    let copied = Catalog::open(&copy, options()).unwrap();
    assert_eq!(everything(&copied), everything(&original));
}

#[test]
fn there_is_nothing_to_export_where_no_catalog_is() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing");
    let error = export(&missing, &dir.path().join("out"), false, &options()).unwrap_err();
    assert!(matches!(error, purvey_catalog::Error::NotFound));
    assert!(!missing.exists());
}
