//! Writes: durable, conditional, checked, one by one and many at once.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod catalog_support;

use catalog_support::{all, body, catalog, collection, offering, options, pointers};
use purvey_catalog::catalog::{Catalog, Change, Listing, Precondition};
use purvey_catalog::{Access, Error};
use purvey_odp::identity::ResourceType::{Collection, Offering};
use purvey_odp::language::AcceptLanguage;
use purvey_odp::offering::Representation;
use serde_json::json;
use std::time::Duration;

const NONE: Precondition = Precondition::None;

fn full(catalog: &Catalog, id: &str) -> Result<serde_json::Value, Error> {
    let accept = AcceptLanguage::default();
    let document = catalog.get(
        Offering,
        id,
        Representation::Full,
        &accept,
        &Access::public(),
    )?;
    Ok(body(&document.bytes))
}

#[test]
fn an_empty_directory_is_a_valid_empty_service() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(&dir.path().join("new/data"), options()).unwrap();
    let document = catalog
        .service_document(&AcceptLanguage::default())
        .unwrap();
    let value = body(&document.bytes);
    assert_eq!(value["odp_version"], "1.0");
    let names: Vec<_> = value["operations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|o| o["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"list-offerings") && names.contains(&"get-offering"));
    assert!(all(&catalog, &Listing::Offerings).is_empty());
    assert!(matches!(full(&catalog, "a"), Err(Error::NotFound)));
    assert!(catalog.check().unwrap().faults.is_empty());
}

#[test]
fn a_write_is_in_the_generation_that_its_answer_names() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = catalog(dir.path());
    let written = catalog
        .put(Offering, "saw", offering("saw", &["saws"]), NONE)
        .unwrap();
    assert!(written.created);
    assert_eq!(written.generation, written.revision);
    // Durable, but not published yet.
    assert!(catalog.current().generation.number() < written.generation);
    assert!(matches!(full(&catalog, "saw"), Err(Error::NotFound)));
    let published = catalog.publish().unwrap();
    assert_eq!(published.generation.number(), written.generation);
    assert_eq!(
        full(&catalog, "saw").unwrap(),
        json!({"odp_version": "1.0", "id": "saw", "name": "Name of saw", "collection_ids": ["saws"]})
    );
    let again = catalog
        .put(
            Offering,
            "saw",
            json!({"id": "saw", "name": "Bow saw"}),
            NONE,
        )
        .unwrap();
    assert!(!again.created);
    assert!(again.revision > written.revision);
    catalog.publish().unwrap();
    assert_eq!(full(&catalog, "saw").unwrap()["name"], "Bow saw");
    let members = Listing::CollectionOfferings("saws".to_owned());
    assert!(all(&catalog, &members).is_empty());
    catalog.delete(Offering, "saw", NONE, false).unwrap();
    catalog.publish().unwrap();
    assert!(matches!(full(&catalog, "saw"), Err(Error::NotFound)));
    assert!(catalog.check().unwrap().faults.is_empty());
}

#[test]
fn what_was_acknowledged_is_there_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let revision = {
        let catalog = catalog(dir.path());
        catalog
            .put(Offering, "b", offering("b", &[]), NONE)
            .unwrap();
        let written = catalog
            .put(Offering, "a", offering("a", &[]), NONE)
            .unwrap();
        // Never published by this process.
        written.revision
    };
    let catalog = Catalog::open(dir.path(), options()).unwrap();
    assert_eq!(catalog.revision(Offering, "a").unwrap(), Some(revision));
    catalog.start_indexer().unwrap();
    assert!(catalog.wait_published(revision, Duration::from_secs(10)));
    assert_eq!(all(&catalog, &Listing::Offerings), ["a", "b"]);
}

#[test]
fn preconditions_protect_against_lost_updates() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = catalog(dir.path());
    let put = |condition| catalog.put(Offering, "a", offering("a", &[]), condition);
    assert!(matches!(
        put(Precondition::IfMatch(1)),
        Err(Error::PreconditionFailed { revision: None })
    ));
    let first = put(Precondition::IfAbsent).unwrap().revision;
    assert!(matches!(
        put(Precondition::IfAbsent),
        Err(Error::PreconditionFailed { revision: Some(r) }) if r == first
    ));
    let second = put(Precondition::IfMatch(first)).unwrap().revision;
    assert!(matches!(
        catalog.delete(Offering, "a", Precondition::IfMatch(first), false),
        Err(Error::PreconditionFailed { revision: Some(r) }) if r == second
    ));
    catalog
        .delete(Offering, "a", Precondition::IfMatch(second), false)
        .unwrap();
    assert!(matches!(
        catalog.delete(Offering, "a", NONE, false),
        Err(Error::NotFound)
    ));
    // A revision never comes back, even after the tombstone is gone.
    catalog.publish().unwrap();
    assert!(put(Precondition::IfAbsent).unwrap().revision > second + 1);
}

#[test]
fn broken_references_and_hierarchies_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = catalog(dir.path());
    let error = catalog
        .put(Offering, "a", offering("a", &["tools", "nowhere"]), NONE)
        .unwrap_err();
    assert_eq!(pointers(&error), ["/collection_ids/1"]);
    let put =
        |id: &str, parents: &[&str]| catalog.put(Collection, id, collection(id, parents), NONE);
    assert_eq!(
        pointers(&put("x", &["nowhere"]).unwrap_err()),
        ["/parent_ids/0"]
    );
    // saws is below tools.
    assert_eq!(
        pointers(&put("tools", &["saws"]).unwrap_err()),
        ["/parent_ids/0"]
    );
    put("n0", &[]).unwrap();
    for i in 1..=32 {
        put(&format!("n{i}"), &[&format!("n{}", i - 1)]).unwrap();
    }
    assert_eq!(
        pointers(&put("n33", &["n32"]).unwrap_err()),
        ["/parent_ids/0"]
    );
    let error = catalog
        .put(Offering, "a", offering("b", &[]), NONE)
        .unwrap_err();
    assert_eq!(pointers(&error), ["/id"]);
}

#[test]
fn a_collection_in_use_is_only_deleted_detached() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = catalog(dir.path());
    // One member that the generation knows, one that it does not, one that left since.
    for id in ["known", "left"] {
        catalog
            .put(Offering, id, offering(id, &["saws", "tools"]), NONE)
            .unwrap();
    }
    catalog.publish().unwrap();
    catalog
        .put(Offering, "new", offering("new", &["saws"]), NONE)
        .unwrap();
    catalog
        .put(Offering, "left", offering("left", &["tools"]), NONE)
        .unwrap();
    let refused = |id| {
        matches!(
            catalog.delete(Collection, id, NONE, false),
            Err(Error::Conflict { .. })
        )
    };
    assert!(refused("saws"));
    assert!(refused("tools"));
    catalog.delete(Collection, "saws", NONE, true).unwrap();
    catalog.publish().unwrap();
    assert_eq!(
        full(&catalog, "known").unwrap()["collection_ids"],
        json!(["tools"])
    );
    // No empty array is left behind.
    assert!(
        full(&catalog, "new")
            .unwrap()
            .get("collection_ids")
            .is_none()
    );
    assert_eq!(all(&catalog, &Listing::Collections), ["tools"]);
    catalog
        .put(Collection, "child", collection("child", &["tools"]), NONE)
        .unwrap();
    catalog.delete(Offering, "known", NONE, false).unwrap();
    catalog.delete(Offering, "left", NONE, false).unwrap();
    assert!(refused("tools"));
    catalog.delete(Collection, "tools", NONE, true).unwrap();
    catalog.delete(Collection, "child", NONE, false).unwrap();
    catalog.publish().unwrap();
    assert!(all(&catalog, &Listing::Collections).is_empty());
    assert_eq!(all(&catalog, &Listing::Offerings), ["new"]);
    assert!(catalog.check().unwrap().faults.is_empty());
}

#[test]
fn many_records_have_a_result_each() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = catalog(dir.path());
    let change = |kind, value| Change { kind, value };
    let results = catalog.put_many(vec![
        change(Offering, offering("a", &["fresh"])),
        change(Collection, collection("fresh", &[])),
        change(Offering, offering("b", &["fresh"])),
        change(Offering, json!({"id": "c"})),
        change(Offering, offering("b", &[])),
    ]);
    // In order: the Collection came after a, and before b.
    assert_eq!(
        pointers(results[0].as_ref().unwrap_err()),
        ["/collection_ids/0"]
    );
    assert!(results[1].as_ref().unwrap().created);
    assert!(results[2].as_ref().unwrap().created);
    assert!(matches!(results[3], Err(Error::Invalid(_))));
    assert!(!results[4].as_ref().unwrap().created);
    catalog.publish().unwrap();
    assert_eq!(all(&catalog, &Listing::Offerings), ["b"]);
}

#[test]
fn concurrent_writers_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let one = catalog(dir.path());
    let two = Catalog::open(dir.path(), options()).unwrap();
    one.start_indexer().unwrap();
    two.start_indexer().unwrap();
    std::thread::scope(|scope| {
        for (name, catalog) in [("a", &one), ("b", &one), ("c", &two), ("d", &two)] {
            scope.spawn(move || {
                for i in 0..50 {
                    let id = format!("{name}{i:02}");
                    // Busy is an honest answer; then nothing happened, and it is tried again.
                    while let Err(error) =
                        catalog.put(Offering, &id, offering(&id, &["tools"]), NONE)
                    {
                        assert!(matches!(error, Error::Busy { .. }), "{error}");
                    }
                }
            });
        }
    });
    let mut last = 0;
    for name in ["a", "b", "c", "d"] {
        for i in 0..50 {
            let revision = one.revision(Offering, &format!("{name}{i:02}")).unwrap();
            last = last.max(revision.unwrap());
        }
    }
    for catalog in [&one, &two] {
        assert!(catalog.wait_published(last, Duration::from_secs(20)));
        assert_eq!(all(catalog, &Listing::Offerings).len(), 200);
        let members = Listing::CollectionOfferings("tools".to_owned());
        assert_eq!(all(catalog, &members).len(), 200);
    }
    one.shutdown();
    two.shutdown();
    assert!(matches!(
        one.put(Offering, "x", offering("x", &[]), NONE),
        Err(Error::NotWritten { .. })
    ));
    assert!(one.check().unwrap().faults.is_empty());
}

#[test]
fn a_wait_ends_with_its_time() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = catalog(dir.path());
    let now = catalog.current().generation.number();
    assert!(catalog.wait_published(now, Duration::ZERO));
    assert!(!catalog.wait_published(now + 1, Duration::from_millis(30)));
}
