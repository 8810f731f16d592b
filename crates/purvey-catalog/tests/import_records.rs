//! Imports: all or nothing, every bad line named, the same result every time.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod catalog_support;

use catalog_support::{MANIFEST, all, catalog, first, manifest, offering, options, pointers, read};
use purvey_catalog::catalog::{Catalog, Listing, Precondition};
use purvey_catalog::import::{ImportOptions, ImportReport, OnError, Progress, Stage, import};
use purvey_catalog::manifest::Manifest;
use purvey_catalog::reader::Source;
use purvey_catalog::{Access, Error};
use purvey_odp::identity::ResourceType::{Collection, Offering};
use serde_json::{Value, json};
use std::cell::Cell;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

const TABLE: &str = r#"
[service]
name = "Packages"
description = "Packages of registries."
language = "en"

[records]
id = "id"
name = "name"
description = "summary"
collection_ids = ["{registry}"]
schema = "/schemas/package.json"
attributes = { downloads = { column = "downloads", type = "integer" } }

[schemas]
"/schemas/package.json" = "package.json"

[[collections]]
id = "python"
name = "Python"
"#;
const SCHEMA: &str = r#"{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "properties": {"downloads": {"type": "integer", "minimum": 0}}
}"#;

fn skip() -> ImportOptions {
    ImportOptions {
        on_error: OnError::Skip,
        catalog: options(),
        ..ImportOptions::default()
    }
}

fn file(dir: &Path, name: &str, lines: &[String]) -> Source {
    let path = dir.join(name);
    fs::write(&path, lines.join("\n")).unwrap();
    Source::File(path)
}

fn lines(ids: impl IntoIterator<Item = String>) -> Vec<String> {
    let line = |id: String| offering(&id, &["tools"]).to_string();
    ids.into_iter().map(line).collect()
}

fn numbered(prefix: &str, count: usize) -> Vec<String> {
    lines((0..count).map(|i| format!("{prefix}{i:04}")))
}

fn places(report: &ImportReport) -> Vec<(u64, &str)> {
    report
        .faults
        .iter()
        .map(|f| (f.line, f.violations[0].pointer.as_str()))
        .collect()
}

/// Calls its function with every stage.
struct Watch<F: Fn(Stage)>(F);

impl<F: Fn(Stage)> Progress for Watch<F> {
    fn at(&self, stage: Stage) {
        (self.0)(stage);
    }
}

#[test]
fn a_table_becomes_offerings_and_bad_rows_are_named() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("package.json"), SCHEMA).unwrap();
    let manifest = Manifest::parse(TABLE, dir.path()).unwrap();
    let long = "x".repeat(129);
    let rows = [
        "id\tregistry\tname\tdownloads\tsummary".to_owned(),
        "python.b\tpython\tb\t7\tSecond".to_owned(),
        format!("python.long\tpython\t{long}\t1\t"),
        "python.a\tpython\ta\t\t".to_owned(),
        "python.c\tpython\tc\t-1\t".to_owned(),
        "node.a\tnode\ta\t1\t".to_owned(),
        "python.b\tpython\tagain\t1\t".to_owned(),
        "python.d\tpython\td\tmany\t".to_owned(),
        "short\trow".to_owned(),
    ];
    let source = file(dir.path(), "rows.tsv", &rows);
    let rejects = dir.path().join("rejects.tsv");
    let options = ImportOptions {
        rejects: Some(rejects.clone()),
        ..skip()
    };
    let data = dir.path().join("data");
    let report = import(
        &data,
        &manifest,
        std::slice::from_ref(&source),
        &options,
        &(),
    )
    .unwrap();
    assert!(report.committed);
    assert_eq!((report.read, report.offerings, report.rejected), (8, 2, 6));
    assert_eq!(
        places(&report),
        [
            (3, "/name"),
            (5, "/attributes/downloads"),
            (6, "/collection_ids/0"),
            (7, "/id"),
            (8, "/attributes/downloads"),
            (9, ""),
        ]
    );
    // Rejects are kept as they came, below their header; the report beside them is one JSON document a line.
    let kept = [
        &rows[0], &rows[2], &rows[4], &rows[5], &rows[6], &rows[7], &rows[8],
    ]
    .map(|row| format!("{row}\n"));
    assert_eq!(fs::read_to_string(&rejects).unwrap(), kept.concat());
    let reasons = fs::read_to_string(dir.path().join("rejects.tsv.report.ndjson")).unwrap();
    let reasons: Vec<Value> = reasons
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(reasons.len(), 6);
    assert_eq!(reasons[0]["line"], 3);
    assert_eq!(reasons[0]["violations"][0]["pointer"], "/name");

    let catalog = Catalog::open(&data, catalog_support::options()).unwrap();
    assert_eq!(
        Some(catalog.current().generation.number()),
        report.generation
    );
    assert_eq!(all(&catalog, &Listing::Offerings), ["python.a", "python.b"]);
    let page = first(&catalog, Listing::Offerings, 10).unwrap();
    assert_eq!(
        catalog_support::body(&page.bytes)["items"][1],
        json!({
            "id": "python.b", "name": "b", "description": "Second", "collection_ids": ["python"],
            "schema": {"url": "/schemas/package.json"}, "attributes": {"downloads": 7}
        })
    );
    assert!(catalog.schema("/schemas/package.json").is_some());
    assert!(catalog.check().unwrap().faults.is_empty());
}

#[test]
fn the_first_bad_line_stops_an_import_and_nothing_is_imported() {
    let dir = tempfile::tempdir().unwrap();
    let mut records = numbered("a", 300);
    records[200] = "{\"id\": \"x\"".to_owned();
    records[250] = "{}".to_owned();
    let source = file(dir.path(), "records.ndjson", &records);
    let data = dir.path().join("data");
    let options = ImportOptions {
        catalog: options(),
        ..ImportOptions::default()
    };
    let report = import(&data, &manifest(), &[source], &options, &()).unwrap();
    assert!(!report.committed);
    assert_eq!(places(&report), [(201, "")]);
    assert_eq!(report.generation, None);
    let catalog = Catalog::open(&data, catalog_support::options()).unwrap();
    assert!(all(&catalog, &Listing::Offerings).is_empty());
    assert!(all(&catalog, &Listing::Collections).is_empty());
}

#[test]
fn a_dry_run_finds_the_same_and_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let records = [
        json!({"collection": {"id": "files", "name": "Files", "parent_ids": ["tools"]}})
            .to_string(),
        offering("a", &["files"]).to_string(),
        json!({"offering": offering("b", &["later"])}).to_string(),
        json!({"collection": {"id": "later", "name": "Later", "parent_ids": ["later"]}})
            .to_string(),
        json!({"collection": {"id": "later", "name": "Later"}}).to_string(),
        offering("a", &[]).to_string(),
    ];
    let sources = [file(dir.path(), "records.ndjson", &records)];
    // It looks at everything, whatever an import would do at the first fault.
    let dry = ImportOptions {
        dry_run: true,
        ..ImportOptions::default()
    };
    let tried = import(&data, &manifest(), &sources, &dry, &()).unwrap();
    assert!(!data.exists());
    assert!(!tried.committed);
    assert_eq!(
        places(&tried),
        [(3, "/collection_ids/0"), (4, "/parent_ids/0"), (6, "/id")]
    );
    let done = import(&data, &manifest(), &sources, &skip(), &()).unwrap();
    assert_eq!(done.faults, tried.faults);
    assert_eq!((done.offerings, done.collections), (1, 4));
    assert_eq!((tried.offerings, tried.collections), (1, 4));
    let again = import(&data, &manifest(), &sources, &dry, &()).unwrap();
    // Against the catalog as it is now, "later" exists.
    assert_eq!(places(&again), [(4, "/parent_ids/0"), (6, "/id")]);
}

#[test]
fn without_replace_records_are_added_and_replaced_by_id() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = catalog(dir.path());
    for id in ["kept", "same", "changed"] {
        catalog
            .put(Offering, id, offering(id, &["tools"]), Precondition::None)
            .unwrap();
    }
    let same = catalog.revision(Offering, "same").unwrap();
    let records = [
        offering("same", &["tools"]).to_string(),
        offering("changed", &["saws"]).to_string(),
        offering("added", &[]).to_string(),
    ];
    let work = tempfile::tempdir().unwrap();
    let source = file(work.path(), "r.ndjson", &records);
    let report = import(dir.path(), &manifest(), &[source], &skip(), &()).unwrap();
    catalog.publish().unwrap();
    assert_eq!(
        Some(catalog.current().generation.number()),
        report.generation
    );
    assert_eq!(
        all(&catalog, &Listing::Offerings),
        ["added", "changed", "kept", "same"]
    );
    // What is as it was keeps its revision.
    assert_eq!(catalog.revision(Offering, "same").unwrap(), same);
    let saws = Listing::CollectionOfferings("saws".to_owned());
    assert_eq!(all(&catalog, &saws), ["changed"]);
    assert!(catalog.check().unwrap().faults.is_empty());
}

#[test]
fn replace_swaps_everything_and_an_open_traversal_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let work = tempfile::tempdir().unwrap();
    let serving = catalog(dir.path());
    for i in 0..6 {
        let id = format!("old{i}");
        serving
            .put(Offering, &id, offering(&id, &["saws"]), Precondition::None)
            .unwrap();
    }
    serving.publish().unwrap();
    serving.start_indexer().unwrap();
    let (mut seen, mut next) = read(&first(&serving, Listing::Offerings, 4).unwrap());
    let source = file(
        work.path(),
        "new.ndjson",
        &lines(["new1".to_owned(), "old3".to_owned()]),
    );
    let replacement = MANIFEST.replace("saws", "files").replace("Saws", "Files");
    let replacement = Manifest::parse(&replacement, Path::new(".")).unwrap();
    let options = ImportOptions {
        replace: true,
        ..skip()
    };
    let report = import(dir.path(), &replacement, &[source], &options, &()).unwrap();
    assert!(serving.wait_published(report.generation.unwrap(), Duration::from_secs(5)));
    assert_eq!(all(&serving, &Listing::Offerings), ["new1", "old3"]);
    assert_eq!(all(&serving, &Listing::Collections), ["files", "tools"]);
    while let Some(cursor) = next {
        let (ids, after) = read(
            &serving
                .resume(&Listing::Offerings, &cursor, &Access::public())
                .unwrap(),
        );
        seen.extend(ids);
        next = after;
    }
    assert_eq!(seen, ["old0", "old1", "old2", "old3", "old4", "old5"]);
    // A write under the new manifest, by a process that opened under the old one.
    let refused = serving.put(Offering, "x", offering("x", &["saws"]), Precondition::None);
    assert_eq!(pointers(&refused.unwrap_err()), ["/collection_ids/0"]);
    serving
        .put(Offering, "x", offering("x", &["files"]), Precondition::None)
        .unwrap();
    serving.publish().unwrap();
    assert!(serving.check().unwrap().faults.is_empty());
}

#[test]
fn other_writers_wait_and_readers_do_not() {
    let dir = tempfile::tempdir().unwrap();
    let work = tempfile::tempdir().unwrap();
    let serving = catalog(dir.path());
    let source = file(work.path(), "r.ndjson", &numbered("a", 300));
    let busy = Cell::new(0);
    let watch = Watch(|stage| {
        if matches!(stage, Stage::Records { .. }) {
            let put = serving.put(Offering, "mine", offering("mine", &[]), Precondition::None);
            assert!(
                matches!(put, Err(Error::Busy { retry_after_seconds }) if retry_after_seconds > 0)
            );
            assert!(all(&serving, &Listing::Offerings).is_empty());
            busy.set(busy.get() + 1);
        }
    });
    import(dir.path(), &manifest(), &[source], &skip(), &watch).unwrap();
    assert!(busy.get() > 1);
    serving
        .put(Offering, "mine", offering("mine", &[]), Precondition::None)
        .unwrap();
    serving.publish().unwrap();
    assert_eq!(all(&serving, &Listing::Offerings).len(), 301);
}

#[test]
fn an_import_that_dies_leaves_the_old_catalog_and_the_next_one_finishes() {
    let dir = tempfile::tempdir().unwrap();
    let work = tempfile::tempdir().unwrap();
    let serving = catalog(dir.path());
    serving
        .put(Offering, "old", offering("old", &[]), Precondition::None)
        .unwrap();
    serving.publish().unwrap();
    let before = serving.current().generation.number();
    let good = file(work.path(), "good.ndjson", &numbered("a", 1_000));
    let options = ImportOptions {
        replace: true,
        ..skip()
    };
    let calls = Cell::new(0);
    let dies = Watch(|stage| {
        calls.set(calls.get() + 1);
        assert!(calls.get() < 4 && stage != Stage::Committing, "killed");
    });
    let killed = catch_unwind(AssertUnwindSafe(|| {
        import(
            dir.path(),
            &manifest(),
            std::slice::from_ref(&good),
            &options,
            &dies,
        )
    }));
    assert!(killed.is_err());
    // A source that breaks off is no better.
    let broken = work.path().join("broken.ndjson.gz");
    fs::write(&broken, b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b").unwrap();
    let sources = [good.clone(), Source::File(broken)];
    let error = import(dir.path(), &manifest(), &sources, &options, &()).unwrap_err();
    assert!(matches!(error, Error::Source(_)), "{error}");
    assert_eq!(serving.publish().unwrap().generation.number(), before);
    assert_eq!(all(&serving, &Listing::Offerings), ["old"]);
    let report = import(dir.path(), &manifest(), &[good], &options, &()).unwrap();
    serving.publish().unwrap();
    assert_eq!(report.offerings, 1_000);
    assert_eq!(all(&serving, &Listing::Offerings).len(), 1_000);
    assert!(serving.check().unwrap().faults.is_empty());
}

#[test]
fn a_missing_column_is_one_fault() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("package.json"), SCHEMA).unwrap();
    let manifest = Manifest::parse(TABLE, dir.path()).unwrap();
    let rows = ["id\tname".to_owned(), "a\tA".to_owned()];
    let source = file(dir.path(), "rows.tsv", &rows);
    let data: PathBuf = dir.path().join("data");
    let error = import(&data, &manifest, &[source], &skip(), &()).unwrap_err();
    assert!(pointers(&error).contains(&"/records/collection_ids".to_owned()));
}

#[test]
fn an_empty_source_replaces_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = catalog(dir.path());
    catalog
        .put(Offering, "kept", offering("kept", &[]), Precondition::None)
        .unwrap();
    let work = tempfile::tempdir().unwrap();
    let replace = ImportOptions {
        replace: true,
        ..skip()
    };
    let bad = [offering("a", &["nowhere"]).to_string()];
    for source in [
        file(work.path(), "empty.ndjson", &[]),
        file(work.path(), "header.tsv", &["id\tname".to_owned()]),
        file(work.path(), "bad.ndjson", &bad),
    ] {
        let refused = import(dir.path(), &manifest(), &[source], &replace, &()).unwrap_err();
        assert!(matches!(refused, Error::Conflict { .. }), "{refused}");
    }
    assert!(catalog.revision(Offering, "kept").unwrap().is_some());
    // Naming no records means it.
    import(dir.path(), &manifest(), &[], &replace, &()).unwrap();
    assert_eq!(catalog.revision(Offering, "kept").unwrap(), None);
}

#[test]
fn a_manifest_in_force_leaves_its_collections_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = catalog(dir.path());
    let tools = serde_json::json!({"id": "tools", "name": "Written since"});
    catalog
        .put(Collection, "tools", tools, Precondition::None)
        .unwrap();
    catalog
        .delete(Collection, "saws", Precondition::None, true)
        .unwrap();
    let work = tempfile::tempdir().unwrap();
    let source = file(
        work.path(),
        "r.ndjson",
        &[offering("a", &["tools"]).to_string()],
    );
    let sources = [source];
    import(dir.path(), &manifest(), &sources, &skip(), &()).unwrap();
    assert_eq!(catalog.set_manifest(&manifest()).unwrap(), None);
    catalog.publish().unwrap();
    let page = first(&catalog, Listing::Collections, 10).unwrap();
    let page: Value = serde_json::from_slice(&page.bytes).unwrap();
    assert_eq!(
        page["items"],
        json!([{"id": "tools", "name": "Written since"}])
    );
    // Replacing everything begins with the manifest again.
    let replace = ImportOptions {
        replace: true,
        ..skip()
    };
    import(dir.path(), &manifest(), &sources, &replace, &()).unwrap();
    catalog.publish().unwrap();
    assert_eq!(all(&catalog, &Listing::Collections), ["saws", "tools"]);
}
