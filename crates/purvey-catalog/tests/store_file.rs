//! The record store: transactions, tombstones, other formats, and what a manifest change means for what is stored.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod catalog_support;

use catalog_support::{all, body, catalog, first, manifest, offering, options, pointers};
use purvey_catalog::Error;
use purvey_catalog::catalog::{Catalog, Listing, Precondition};
use purvey_catalog::fs::Durability;
use purvey_catalog::manifest::Manifest;
use purvey_catalog::store::{FILE, Put, Store};
use purvey_odp::identity::ResourceType::{Collection, Offering};
use std::fs;
use std::path::Path;
use std::time::Duration;

const NONE: Precondition = Precondition::None;

fn store(dir: &Path) -> Store {
    Store::open(dir, Duration::ZERO, &Durability::Full, b"manifest").unwrap()
}

fn put(id: &str) -> Put {
    Put {
        kind: Offering,
        id: id.to_owned(),
        body: format!("{{\"id\":\"{id}\"}}").into_bytes(),
        references: Vec::new(),
    }
}

#[test]
fn a_transaction_that_is_dropped_never_happened() {
    let dir = tempfile::tempdir().unwrap();
    let (mut one, mut two) = (store(dir.path()), store(dir.path()));
    let before = one.read().unwrap().head().unwrap();
    {
        let mut write = one.write().unwrap();
        write.put(&put("a"), NONE).unwrap();
        // Nobody else writes meanwhile, and nobody sees it.
        assert!(matches!(two.write(), Err(Error::Busy { .. })));
        assert_eq!(two.read().unwrap().record(Offering, "a").unwrap(), None);
    }
    assert_eq!(one.read().unwrap().head().unwrap(), before);
    let mut write = two.write().unwrap();
    write.put(&put("b"), NONE).unwrap();
    write.commit().unwrap();
    let row = one.read().unwrap().record(Offering, "b").unwrap().unwrap();
    assert_eq!(row.seq, before.seq + 1);
}

#[test]
fn a_step_that_fails_takes_only_itself_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = store(dir.path());
    let mut write = store.write().unwrap();
    let first = write.step(|w| w.put(&put("a"), NONE)).unwrap();
    let failed = write.step(|w| {
        w.put(&put("b"), NONE)?;
        w.put(&put("a"), Precondition::IfAbsent)
    });
    assert!(matches!(failed, Err(Error::PreconditionFailed { .. })));
    let second = write.step(|w| w.put(&put("c"), NONE)).unwrap();
    assert_eq!(second.revision, first.revision + 1);
    write.commit().unwrap();
    let read = store.read().unwrap();
    assert!(read.record(Offering, "a").unwrap().is_some());
    assert!(read.record(Offering, "b").unwrap().is_none());
}

#[test]
fn changes_come_in_id_order_with_tombstones() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = store(dir.path());
    let mut write = store.write().unwrap();
    for id in ["c", "a", "B"] {
        write.put(&put(id), NONE).unwrap();
    }
    let since = write.head().seq;
    write.advance();
    write.remove(Offering, "c").unwrap();
    write.put(&put("aa"), NONE).unwrap();
    write.commit().unwrap();
    let read = store.read().unwrap();
    let seen = |since| {
        let mut seen = Vec::new();
        read.changes(Offering, since, |row| {
            seen.push((row.id.to_owned(), row.body.is_some()));
            Ok(())
        })
        .unwrap();
        seen
    };
    assert_eq!(
        seen(since),
        [("aa".to_owned(), true), ("c".to_owned(), false)]
    );
    assert_eq!(seen(0).len(), 4);
    let mut live = Vec::new();
    read.live(Offering, |row| {
        live.push(row.id.to_owned());
        Ok(())
    })
    .unwrap();
    assert_eq!(live, ["B", "a", "aa"]);
}

#[test]
fn tombstones_go_once_a_generation_covers_them() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = catalog(dir.path());
    catalog
        .put(Offering, "a", offering("a", &[]), NONE)
        .unwrap();
    catalog.publish().unwrap();
    let deleted = catalog.delete(Offering, "a", NONE, false).unwrap().revision;
    let mut store = store(dir.path());
    let row = store
        .read()
        .unwrap()
        .record(Offering, "a")
        .unwrap()
        .unwrap();
    assert_eq!((row.seq, row.body), (deleted, None));
    catalog.publish().unwrap();
    assert_eq!(store.read().unwrap().record(Offering, "a").unwrap(), None);
    assert_eq!(store.read().unwrap().head().unwrap().purged, deleted);
}

#[test]
fn a_lost_index_is_built_again() {
    let dir = tempfile::tempdir().unwrap();
    {
        let catalog = catalog(dir.path());
        catalog
            .put(Offering, "a", offering("a", &["saws"]), NONE)
            .unwrap();
        catalog
            .put(Offering, "b", offering("b", &[]), NONE)
            .unwrap();
        catalog.publish().unwrap();
        catalog.delete(Offering, "b", NONE, false).unwrap();
        catalog.publish().unwrap();
    }
    for name in ["segments", "generations", "pins"] {
        fs::remove_dir_all(dir.path().join(name)).unwrap();
    }
    fs::remove_file(dir.path().join("CURRENT")).unwrap();
    let catalog = Catalog::open(dir.path(), options()).unwrap();
    assert_eq!(all(&catalog, &Listing::Offerings), ["a"]);
    assert!(catalog.check().unwrap().faults.is_empty());
}

#[test]
fn a_newer_format_is_refused_and_other_files_are_no_store() {
    let dir = tempfile::tempdir().unwrap();
    drop(catalog(dir.path()));
    let raw = rusqlite::Connection::open(dir.path().join(FILE)).unwrap();
    raw.execute("UPDATE meta SET value = 2 WHERE key = 'format'", [])
        .unwrap();
    drop(raw);
    let error = Catalog::open(dir.path(), options()).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Format {
                found: 2,
                supported: 1,
                ..
            }
        ),
        "{error}"
    );
    let other = tempfile::tempdir().unwrap();
    fs::write(
        other.path().join(FILE),
        b"This is no database, whatever its name says.",
    )
    .unwrap();
    assert!(Catalog::open(other.path(), options()).is_err());
}

#[test]
fn a_check_names_what_differs() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = catalog(dir.path());
    for id in ["a", "b", "c"] {
        catalog.put(Offering, id, offering(id, &[]), NONE).unwrap();
    }
    catalog.publish().unwrap();
    let raw = rusqlite::Connection::open(dir.path().join(FILE)).unwrap();
    raw.execute("DELETE FROM offerings WHERE id = 'a'", [])
        .unwrap();
    raw.execute(
        "UPDATE offerings SET body = CAST('{\"id\":\"b\",\"name\":\"Other\"}' AS BLOB) WHERE id = 'b'",
        [],
    )
    .unwrap();
    let faults = catalog.check().unwrap().faults;
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(faults[0].starts_with("offering b:"), "{faults:?}");
    assert!(
        faults[1].contains("holds 3, the record store 2"),
        "{faults:?}"
    );
}

#[test]
fn another_terse_form_renders_everything_again() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = catalog(dir.path());
    catalog
        .put(Offering, "a", offering("a", &["saws"]), NONE)
        .unwrap();
    catalog.publish().unwrap();
    assert_eq!(catalog.set_manifest(&manifest()).unwrap(), None);
    let epoch = catalog.current().generation.epoch();
    let text = catalog_support::MANIFEST;
    let named = Manifest::parse(&text.replace("Things to", "All to"), Path::new(".")).unwrap();
    let number = catalog.set_manifest(&named).unwrap().unwrap();
    let published = catalog.publish().unwrap();
    assert_eq!(published.generation.number(), number);
    assert_eq!(published.generation.epoch(), epoch);
    let terse = text.replace("[\"/description\"]", "[\"/collection_ids\"]");
    catalog
        .set_manifest(&Manifest::parse(&terse, Path::new(".")).unwrap())
        .unwrap();
    let published = catalog.publish().unwrap();
    assert_ne!(published.generation.epoch(), epoch);
    let mut request = purvey_catalog::catalog::ListRequest {
        operation: Listing::Offerings,
        representation: purvey_odp::offering::Representation::Terse,
        limit: None,
        accept_language: purvey_odp::language::AcceptLanguage::default(),
        access: purvey_catalog::Access::public(),
    };
    let page = catalog.list(&request).unwrap();
    assert_eq!(body(&page.bytes)["items"][0]["collection_ids"][0], "saws");
    request.limit = Some(1);
    assert!(catalog.list(&request).is_ok());
}

#[test]
fn a_manifest_that_stored_records_do_not_fit_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let schema = |minimum: u32| {
        let schema = format!(
            r#"{{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
                "properties": {{"teeth": {{"type": "integer", "minimum": {minimum}}}}}}}"#
        );
        fs::write(dir.path().join("saw.json"), schema).unwrap();
        let text = format!(
            "{}\n[schemas]\n\"/schemas/saw.json\" = \"saw.json\"\n",
            catalog_support::MANIFEST
        );
        Manifest::parse(&text, dir.path()).unwrap()
    };
    let data = dir.path().join("data");
    let catalog = Catalog::open(&data, options()).unwrap();
    catalog.set_manifest(&schema(1)).unwrap();
    let mut saw = offering("saw", &[]);
    saw["schema"] = serde_json::json!({"url": "/schemas/saw.json"});
    saw["attributes"] = serde_json::json!({"teeth": 5});
    catalog.put(Offering, "saw", saw, NONE).unwrap();
    let error = catalog.set_manifest(&schema(10)).unwrap_err();
    assert_eq!(pointers(&error), ["/offerings/saw/attributes/teeth"]);
    catalog.publish().unwrap();
    assert!(catalog.set_manifest(&schema(2)).unwrap().is_some());
    // Its Collections must keep the hierarchy sound, too.
    let text =
        catalog_support::MANIFEST.replace("parent_ids = [\"tools\"]", "parent_ids = [\"gone\"]");
    let broken = Manifest::parse(&text, Path::new(".")).unwrap();
    let error = catalog.set_manifest(&broken).unwrap_err();
    assert_eq!(pointers(&error), ["/collections/1/parent_ids/0"]);
    assert_eq!(all(&catalog, &Listing::Collections), ["saws", "tools"]);
    assert!(first(&catalog, Listing::Collections, 1).is_ok());
    assert_eq!(catalog.revision(Collection, "gone").unwrap(), None);
}

#[test]
fn a_store_older_than_its_index_gets_a_new_index() {
    let dir = tempfile::tempdir().unwrap();
    let backup = tempfile::tempdir().unwrap();
    let write = |catalog: &Catalog, id: &str| {
        catalog.put(Offering, id, offering(id, &[]), NONE).unwrap();
        catalog.publish().unwrap();
    };
    let old = catalog(dir.path());
    write(&old, "a");
    old.shutdown();
    drop(old);
    let (file, copy) = (dir.path().join(FILE), backup.path().join(FILE));
    fs::copy(&file, &copy).unwrap();
    let newer = Catalog::open(dir.path(), options()).unwrap();
    write(&newer, "b");
    write(&newer, "c");
    newer.delete(Offering, "a", NONE, false).unwrap();
    let last = newer.publish().unwrap().generation.number();
    newer.shutdown();
    drop(newer);

    fs::copy(&copy, &file).unwrap();
    for suffix in ["-wal", "-shm"] {
        let _ = fs::remove_file(dir.path().join(format!("{FILE}{suffix}")));
    }
    let restored = Catalog::open(dir.path(), options()).unwrap();
    assert!(restored.publish().unwrap().generation.number() > last);
    assert_eq!(all(&restored, &Listing::Offerings), ["a"]);
    write(&restored, "d");
    assert_eq!(all(&restored, &Listing::Offerings), ["a", "d"]);
}

#[test]
fn a_lost_store_is_not_taken_for_an_empty_catalog() {
    for lose in [
        |file: &Path| fs::remove_file(file).unwrap(),
        |file: &Path| fs::write(file, "").unwrap(),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let whole = catalog(dir.path());
        whole.put(Offering, "a", offering("a", &[]), NONE).unwrap();
        whole.publish().unwrap();
        whole.shutdown();
        drop(whole);
        let segments = || fs::read_dir(dir.path().join("segments")).unwrap().count();
        let before = segments();
        lose(&dir.path().join(FILE));
        for _ in 0..2 {
            let refused = Catalog::open(dir.path(), options()).unwrap_err();
            assert!(matches!(refused, Error::Corrupt { .. }), "{refused}");
            assert_eq!(segments(), before);
        }
    }
}
