//! A damaged index is built anew from the records.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod catalog_support;

use catalog_support::{all, catalog, first, offering, options, read};
use purvey_catalog::catalog::{Catalog, Listing, Precondition};
use purvey_catalog::index::Indexer;
use purvey_catalog::{Access, Error};
use purvey_odp::identity::ResourceType::Offering;
use std::fs;

#[test]
fn whatever_is_damaged_the_records_make_it_whole() {
    for damage in ["CURRENT", "generations", "segments"] {
        let dir = tempfile::tempdir().unwrap();
        let serving = catalog(dir.path());
        for id in ["a", "b", "c"] {
            let put = serving.put(Offering, id, offering(id, &["tools"]), Precondition::None);
            put.unwrap();
        }
        serving.publish().unwrap();
        let number = serving.current().generation.number();
        let path = dir.path().join(damage);
        if path.is_dir() {
            for entry in fs::read_dir(&path).unwrap() {
                fs::write(entry.unwrap().path(), "damaged").unwrap();
            }
        } else {
            fs::write(&path, "damaged").unwrap();
        }
        assert!(
            matches!(
                Catalog::open(dir.path(), options()),
                Err(Error::Corrupt { .. })
            ),
            "{damage}"
        );
        let rebuilt = Indexer::rebuild(dir.path(), &options()).unwrap();
        assert!(rebuilt.number() > number, "{damage}");
        let opened = Catalog::open(dir.path(), options()).unwrap();
        assert_eq!(all(&opened, &Listing::Offerings), ["a", "b", "c"]);
        assert_eq!(opened.check().unwrap().faults, Vec::<String>::new());
        // Who had it open goes over to the new one.
        serving.publish().unwrap();
        assert_eq!(serving.current().generation.number(), rebuilt.number());
    }
}

#[test]
fn continuations_into_a_whole_generation_survive() {
    let dir = tempfile::tempdir().unwrap();
    let serving = catalog(dir.path());
    for id in ["a", "b", "c"] {
        let put = serving.put(Offering, id, offering(id, &[]), Precondition::None);
        put.unwrap();
    }
    serving.publish().unwrap();
    let (_, next) = read(&first(&serving, Listing::Offerings, 2).unwrap());
    serving
        .delete(Offering, "c", Precondition::None, false)
        .unwrap();
    serving.publish().unwrap();
    fs::write(dir.path().join("CURRENT"), "").unwrap();
    drop(serving);
    Indexer::rebuild(dir.path(), &options()).unwrap();
    let opened = Catalog::open(dir.path(), options()).unwrap();
    let page = opened
        .resume(&Listing::Offerings, &next.unwrap(), &Access::public())
        .unwrap();
    assert_eq!(read(&page).0, ["c"]);
    assert_eq!(all(&opened, &Listing::Offerings), ["a", "b"]);
}

#[test]
fn without_records_there_is_nothing_to_build_from() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(
        Indexer::rebuild(dir.path(), &options()),
        Err(Error::NotFound)
    ));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}
