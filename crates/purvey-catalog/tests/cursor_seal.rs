//! Continuations: what was sealed comes back, nothing else does.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use purvey_catalog::Error;
use purvey_catalog::cursor::{Cursor, CursorKeys, Expected, expiry};
use purvey_catalog::fs::Durability;
use purvey_odp::language::LanguageTag;
use purvey_odp::offering::Representation;
use std::os::unix::fs::PermissionsExt;

const EXPECTED: Expected<'_> = Expected {
    operation: "list-collection-offerings",
    scope: Some("python"),
    access: 0,
};

fn cursor() -> Cursor {
    Cursor {
        operation: "list-collection-offerings".to_owned(),
        scope: Some("python".to_owned()),
        access: 0,
        representation: Representation::Full,
        preferred: ["fr-CA", "fr", "en"]
            .map(|tag| LanguageTag::parse(tag).unwrap())
            .to_vec(),
        limit: 50,
        generation: 8_734,
        last_id: "python:requests".to_owned(),
        expires: 1_800_003_600,
        search: None,
    }
}

fn keys(dir: &tempfile::TempDir) -> CursorKeys {
    CursorKeys::open(dir.path(), &Durability::Off).unwrap()
}

#[test]
fn a_cursor_comes_back_also_after_a_restart_and_always_as_the_same_text() {
    let dir = tempfile::tempdir().unwrap();
    let text = keys(&dir).seal(&cursor()).unwrap();
    let reopened = keys(&dir);
    assert_eq!(
        reopened
            .open_cursor(&text, &EXPECTED, 1_800_000_000)
            .unwrap(),
        cursor()
    );
    assert_eq!(reopened.seal(&cursor()).unwrap(), text);
    assert!(
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    );
}

#[test]
fn a_cursor_works_through_its_second_of_expiry() {
    let dir = tempfile::tempdir().unwrap();
    let keys = keys(&dir);
    let text = keys.seal(&cursor()).unwrap();
    assert!(keys.open_cursor(&text, &EXPECTED, 1_800_003_600).is_ok());
    let late = keys.open_cursor(&text, &EXPECTED, 1_800_003_601);
    assert!(matches!(late, Err(Error::CursorExpired)));
}

#[test]
fn expiry_is_an_hour_from_the_next_quarter() {
    assert_eq!(expiry(0), 3_600);
    assert_eq!(expiry(1), 4_500);
    assert_eq!(expiry(900), 4_500);
    assert_eq!(expiry(901), 5_400);
}

#[test]
fn a_cursor_of_another_operation_collection_or_caller_is_invalid_even_when_expired() {
    let dir = tempfile::tempdir().unwrap();
    let keys = keys(&dir);
    let text = keys.seal(&cursor()).unwrap();
    let others = [
        Expected {
            operation: "list-offerings",
            ..EXPECTED
        },
        Expected {
            scope: Some("rust"),
            ..EXPECTED
        },
        Expected {
            scope: None,
            ..EXPECTED
        },
        Expected {
            access: 7,
            ..EXPECTED
        },
    ];
    for other in &others {
        for now in [0, u64::MAX] {
            assert!(matches!(
                keys.open_cursor(&text, other, now),
                Err(Error::CursorInvalid)
            ));
        }
    }
}

#[test]
fn a_changed_cut_or_foreign_cursor_is_invalid() {
    let dir = tempfile::tempdir().unwrap();
    let keys = keys(&dir);
    let text = keys.seal(&cursor()).unwrap();
    for at in 0..text.len() {
        let mut changed = text.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        assert!(matches!(
            keys.open_cursor(&changed, &EXPECTED, 0),
            Err(Error::CursorInvalid)
        ));
        assert!(matches!(
            keys.open_cursor(&text[..at], &EXPECTED, 0),
            Err(Error::CursorInvalid)
        ));
    }
    let foreign = self::keys(&tempfile::tempdir().unwrap());
    assert!(matches!(
        foreign.open_cursor(&text, &EXPECTED, 0),
        Err(Error::CursorInvalid)
    ));
}

#[test]
fn the_key_file_is_for_its_owner_only_and_damage_is_told() {
    let dir = tempfile::tempdir().unwrap();
    keys(&dir);
    let path = dir.path().join("keys/cursor");
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let names: Vec<_> = std::fs::read_dir(dir.path().join("keys"))
        .unwrap()
        .collect();
    assert_eq!(names.len(), 1);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[40] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    assert!(matches!(
        CursorKeys::open(dir.path(), &Durability::Off),
        Err(Error::Corrupt { .. })
    ));
}

#[test]
fn the_longest_ids_and_languages_fit_a_next() {
    let dir = tempfile::tempdir().unwrap();
    let mut cursor = cursor();
    cursor.scope = Some("c".repeat(128));
    cursor.last_id = "o".repeat(128);
    cursor.preferred = (0..16)
        .map(|n| LanguageTag::parse(&format!("de-x-{n:08}-abcdefgh-abcdefgh")).unwrap())
        .collect();
    let text = keys(&dir).seal(&cursor).unwrap();
    assert!(text.len() < 1_500, "{}", text.len());
}

#[test]
fn a_cursor_that_cannot_fit_is_refused_when_sealed() {
    let dir = tempfile::tempdir().unwrap();
    let mut cursor = cursor();
    cursor.last_id = "o".repeat(2_000);
    assert!(matches!(
        keys(&dir).seal(&cursor),
        Err(Error::Conflict { .. })
    ));
}

proptest! {
    #[test]
    fn nothing_made_up_opens(text in "\\PC{0,3000}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        use base64::Engine;
        let dir = tempfile::tempdir().unwrap();
        let keys = keys(&dir);
        let encoded = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode([&[1, 0][..], &bytes].concat());
        for text in [text, encoded] {
            let opened = keys.open_cursor(&text, &EXPECTED, 0);
            prop_assert!(matches!(opened, Err(Error::CursorInvalid)));
        }
    }

    #[test]
    fn any_cursor_comes_back(
        scope in prop::option::of("[a-z0-9._~-]{1,128}"), last_id in "[a-z0-9._~-]{1,128}",
        access in any::<u64>(), generation in any::<u64>(), limit in any::<u32>(), full in any::<bool>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let keys = keys(&dir);
        let representation = if full { Representation::Full } else { Representation::Terse };
        let cursor = Cursor { scope: scope.clone(), access, representation, limit, generation, last_id, ..cursor() };
        let expected = Expected { scope: scope.as_deref(), access, ..EXPECTED };
        let text = keys.seal(&cursor).unwrap();
        prop_assert_eq!(keys.open_cursor(&text, &expected, 0).unwrap(), cursor);
    }
}
