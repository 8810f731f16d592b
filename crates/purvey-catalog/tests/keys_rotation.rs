//! Rotation of the keys that seal continuations.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod catalog_support;

use catalog_support::{catalog, first, offering, options, read};
use purvey_catalog::catalog::{Catalog, Listing, Options, Precondition};
use purvey_catalog::clock::ManualClock;
use purvey_catalog::cursor::{Cursor, CursorKeys, Expected, expiry};
use purvey_catalog::fs::Durability;
use purvey_catalog::{Access, Error};
use purvey_odp::identity::ResourceType::Offering;
use purvey_odp::offering::Representation;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

const NOW: u64 = 1_800_000_000;
const EXPECTED: Expected<'_> = Expected {
    operation: "list-offerings",
    scope: None,
    access: 0,
};

fn cursor(expires: u64) -> Cursor {
    Cursor {
        operation: "list-offerings".to_owned(),
        scope: None,
        access: 0,
        representation: Representation::Terse,
        preferred: Vec::new(),
        limit: 1,
        generation: 2,
        last_id: "a".to_owned(),
        expires,
        search: None,
    }
}

fn keys(dir: &Path) -> CursorKeys {
    CursorKeys::open(dir, &Durability::Off).unwrap()
}

#[test]
fn the_new_key_seals_and_the_old_one_opens_until_its_cursors_are_over() {
    let dir = tempfile::tempdir().unwrap();
    let keys = keys(dir.path());
    let expires = expiry(NOW);
    let old = keys.seal(&cursor(expires)).unwrap();
    keys.rotate(NOW).unwrap();
    assert_eq!(keys.count(), 2);
    let new = keys.seal(&cursor(expires)).unwrap();
    assert_ne!(old, new);
    for text in [&old, &new] {
        assert_eq!(
            keys.open_cursor(text, &EXPECTED, expires).unwrap(),
            cursor(expires)
        );
        // Late ones are told that they are late.
        assert!(matches!(
            keys.open_cursor(text, &EXPECTED, expires + 1),
            Err(Error::CursorExpired)
        ));
    }
    let mode = std::fs::metadata(dir.path().join("keys/cursor")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    // Two days later nothing that the old key sealed is of interest, and it goes with the next rotation.
    let later = NOW + 2 * 86_400;
    assert!(matches!(
        keys.open_cursor(&old, &EXPECTED, later),
        Err(Error::CursorInvalid)
    ));
    keys.rotate(later).unwrap();
    assert_eq!(keys.count(), 2);
}

#[test]
fn whoever_has_an_old_key_cannot_make_a_cursor_that_outlives_it() {
    let dir = tempfile::tempdir().unwrap();
    let keys = keys(dir.path());
    let forged = keys.seal(&cursor(NOW + 30 * 86_400)).unwrap();
    keys.rotate(NOW).unwrap();
    assert!(matches!(
        keys.open_cursor(&forged, &EXPECTED, NOW + 1),
        Err(Error::CursorInvalid)
    ));
}

#[test]
fn processes_notice_each_others_rotations() {
    let dir = tempfile::tempdir().unwrap();
    let (here, there) = (keys(dir.path()), keys(dir.path()));
    here.rotate(NOW).unwrap();
    let new = here.seal(&cursor(expiry(NOW))).unwrap();
    // A key that is not known is looked for.
    assert!(there.open_cursor(&new, &EXPECTED, NOW).is_ok());
    assert_eq!(there.seal(&cursor(expiry(NOW))).unwrap(), new);
    for _ in 0..5 {
        here.rotate(NOW).unwrap();
        there.rotate(NOW).unwrap();
    }
    assert_eq!(keys(dir.path()).count(), 12);
}

#[test]
fn a_traversal_goes_on_over_a_rotation_and_the_catalog_seals_with_the_new_key() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let ours = || Options {
        clock: clock.clone(),
        ..options()
    };
    drop(catalog(dir.path()));
    let catalog = Catalog::open(dir.path(), ours()).unwrap();
    for id in ["a", "b", "c"] {
        let put = catalog.put(Offering, id, offering(id, &[]), Precondition::None);
        put.unwrap();
    }
    catalog.publish().unwrap();
    let page = first(&catalog, Listing::Offerings, 1).unwrap();
    let (_, next) = read(&page);
    keys(dir.path()).rotate(NOW).unwrap();
    // As the indexer does several times a second.
    catalog.publish().unwrap();
    assert_ne!(first(&catalog, Listing::Offerings, 1).unwrap(), page);
    let second = catalog
        .resume(&Listing::Offerings, &next.unwrap(), &Access::public())
        .unwrap();
    assert_eq!(read(&second).0, ["b"]);
}
