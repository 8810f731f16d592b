//! One traversal gives one sequence, whatever happens meanwhile (ODP §3).
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod catalog_support;

use catalog_support::{all, body, catalog, first, offering, options, read, traverse};
use purvey_catalog::catalog::{Catalog, Listing, Options, Precondition};
use purvey_catalog::clock::ManualClock;
use purvey_catalog::{Access, Error};
use purvey_odp::identity::ResourceType::Offering;
use std::sync::Arc;

const NONE: Precondition = Precondition::None;

fn filled(catalog: &Catalog, count: usize) -> Vec<String> {
    let ids: Vec<_> = (0..count).map(|i| format!("o{i:03}")).collect();
    for id in &ids {
        catalog
            .put(Offering, id, offering(id, &["tools"]), NONE)
            .unwrap();
    }
    catalog.publish().unwrap();
    ids
}

#[test]
fn writes_deletes_and_a_restart_in_between_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut catalog = catalog(dir.path());
    let ids = filled(&catalog, 40);
    let members = Listing::CollectionOfferings("tools".to_owned());
    for operation in [Listing::Offerings, members] {
        let before = all(&catalog, &operation);
        let seen = traverse(&catalog, &operation, 7, |catalog, page| {
            let id = format!("o{:03}x", 39 - page);
            catalog
                .put(Offering, &id, offering(&id, &["tools"]), NONE)
                .unwrap();
            let gone = &ids[page * 5 + usize::from(operation == Listing::Offerings)];
            catalog.delete(Offering, gone, NONE, false).unwrap();
            catalog.publish().unwrap();
        });
        assert_eq!(seen, before);
    }
    let page = first(&catalog, Listing::Offerings, 10).unwrap();
    let (mut seen, next) = read(&page);
    let expected = all(&catalog, &Listing::Offerings);
    catalog
        .put(Offering, "zzz", offering("zzz", &[]), NONE)
        .unwrap();
    catalog.publish().unwrap();
    catalog.shutdown();
    catalog = Catalog::open(dir.path(), options()).unwrap();
    let mut cursor = next;
    while let Some(text) = cursor {
        let (ids, next) = read(
            &catalog
                .resume(&Listing::Offerings, &text, &Access::public())
                .unwrap(),
        );
        seen.extend(ids);
        cursor = next;
    }
    assert_eq!(seen, expected);
    assert_eq!(all(&catalog, &Listing::Offerings).last().unwrap(), "zzz");
}

#[test]
fn the_same_page_has_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = catalog(dir.path());
    filled(&catalog, 5);
    let one = first(&catalog, Listing::Offerings, 2).unwrap();
    assert_eq!(one, first(&catalog, Listing::Offerings, 2).unwrap());
    let next = body(&one.bytes)["next"].as_str().unwrap().to_owned();
    assert!(next.starts_with("/"), "{next}");
    assert!(next.contains("/offerings?cursor="), "{next}");
}

#[test]
fn a_cursor_belongs_to_its_operation_and_lasts_an_hour() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(1_000_000));
    let options = Options {
        clock: clock.clone(),
        ..options()
    };
    let catalog = Catalog::open(dir.path(), options).unwrap();
    catalog.set_manifest(&catalog_support::manifest()).unwrap();
    filled(&catalog, 5);
    let (_, next) = read(&first(&catalog, Listing::Offerings, 2).unwrap());
    let next = next.unwrap();
    let members = Listing::CollectionOfferings("tools".to_owned());
    assert!(matches!(
        catalog.resume(&members, &next, &Access::public()),
        Err(Error::CursorInvalid)
    ));
    assert!(matches!(
        catalog.resume(&Listing::Offerings, &format!("{next}A"), &Access::public()),
        Err(Error::CursorInvalid)
    ));
    // Superseded, and collected if it may be.
    catalog.delete(Offering, "o003", NONE, false).unwrap();
    catalog.publish().unwrap();
    clock.advance(3_599);
    catalog.delete(Offering, "o004", NONE, false).unwrap();
    catalog.publish().unwrap();
    let (ids, _) = read(
        &catalog
            .resume(&Listing::Offerings, &next, &Access::public())
            .unwrap(),
    );
    assert_eq!(ids, ["o002", "o003"]);
    clock.advance(3_600);
    assert!(matches!(
        catalog.resume(&Listing::Offerings, &next, &Access::public()),
        Err(Error::CursorExpired)
    ));
}

#[test]
fn limits_are_1_through_100() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = catalog(dir.path());
    for limit in [0, 101] {
        assert!(matches!(
            first(&catalog, Listing::Offerings, limit),
            Err(Error::Invalid(_))
        ));
    }
    let unknown = Listing::CollectionOfferings("nowhere".to_owned());
    assert!(matches!(first(&catalog, unknown, 1), Err(Error::NotFound)));
}
