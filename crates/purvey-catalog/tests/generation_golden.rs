//! What format 1 looks like on disk: a catalog that was written once must open for ever.
//!
//! `tests/golden/v1` is never regenerated once released; a new format gets a directory of its own:
//! `cargo test -p purvey-catalog --test generation_golden -- --ignored`.
#![allow(clippy::unwrap_used)]

mod generation_common;

use generation_common::{Doc, Model, add, check, publish, tags};
use purvey_catalog::clock::ManualClock;
use purvey_catalog::cursor::{Cursor, CursorKeys, Expected};
use purvey_catalog::fs::Durability;
use purvey_catalog::generation::Generations;
use purvey_catalog::segment::Entry;
use purvey_odp::identity::ResourceType;
use purvey_odp::offering::Representation;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Until when generation 1 is pinned.
const PINNED_UNTIL: u64 = 1_800_003_600;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1")
}

fn open(dir: &Path, now: u64) -> Generations {
    Generations::open_with(dir, Arc::new(ManualClock::new(now)), Durability::Off).unwrap()
}

fn first() -> Vec<Doc> {
    let mut one = Doc::new("one", 1);
    one.collections = vec!["a".to_owned()];
    let mut two = Doc::new("two", 1);
    two.translations = vec![1, 3];
    two.collections = vec!["a".to_owned(), "b".to_owned()];
    two.padding = 10;
    let mut zwei = Doc::new("zwei", 1);
    zwei.own = Some(2);
    zwei.translations = vec![0];
    vec![one, two, zwei]
}

fn second() -> Vec<Doc> {
    let mut two = Doc::new("two", 2);
    two.translations = vec![2];
    two.collections = vec!["b".to_owned()];
    vec![two]
}

fn model(steps: &[Vec<Doc>]) -> Model {
    let docs = steps.iter().flatten();
    docs.map(|doc| (doc.id.clone(), doc.clone())).collect()
}

fn cursor() -> Cursor {
    Cursor {
        operation: "list-offerings".to_owned(),
        scope: None,
        access: 0,
        representation: Representation::Terse,
        preferred: tags(&["fr", "en"]),
        limit: 20,
        generation: 1,
        last_id: "one".to_owned(),
        expires: PINNED_UNTIL,
        search: None,
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            std::fs::create_dir(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn format_1_opens_with_its_pinned_generation_its_pins_and_its_cursors() {
    let dir = tempfile::tempdir().unwrap();
    copy(&golden(), dir.path());
    let generations = open(dir.path(), 1_800_000_000);
    let current = generations.current().unwrap();
    assert_eq!((current.number(), current.epoch()), (2, 1));
    assert_eq!(current.meta(), b"manifest 2");
    check(&current, &model(&[first(), second()]));
    current.verify().unwrap();
    let collection = current
        .get(ResourceType::Collection, "a", Representation::Full, &[])
        .unwrap()
        .unwrap();
    assert_eq!(collection.bytes, br#"{"id":"a","name":"A"}"#);

    let pinned = generations.get(1).unwrap();
    assert_eq!(pinned.meta(), b"manifest 1");
    check(&pinned, &model(&[first()]));

    let keys = CursorKeys::open(dir.path(), &Durability::Off).unwrap();
    let text = std::fs::read_to_string(golden().join("cursor.txt")).unwrap();
    let expected = Expected {
        operation: "list-offerings",
        scope: None,
        access: 0,
    };
    assert_eq!(
        keys.open_cursor(&text, &expected, PINNED_UNTIL - 1)
            .unwrap(),
        cursor()
    );

    // It can be written on, and the pin still lapses.
    publish(&generations, 3, &second());
    check(
        &generations.current().unwrap(),
        &model(&[first(), second()]),
    );
    assert!(open(dir.path(), PINNED_UNTIL + 59).get(1).is_ok());
    assert!(open(dir.path(), PINNED_UNTIL + 60).get(1).is_err());
}

#[test]
#[ignore = "rewrites tests/golden/v1, which is only right before format 1 is released"]
fn regenerate() {
    let dir = golden();
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    let generations = open(&dir, 1_800_000_000);
    let lock = generations.lock().unwrap();
    let mut writer = generations.segment_writer(&lock, &tags(&["en"])).unwrap();
    let collection = Entry {
        id: "a",
        terse: br#"{"id":"a"}"#,
        full: br#"{"id":"a","name":"A"}"#,
        variants: &[],
        language: None,
        postings: &[],
    };
    writer.push(&collection).unwrap();
    let mut builder = generations.builder(&lock).unwrap();
    builder
        .add_segment(ResourceType::Collection, writer.finish().unwrap())
        .unwrap();
    add(&generations, &lock, &mut builder, &model(&[first()]));
    builder.set_meta(b"manifest 1");
    generations.publish(&lock, builder, 1, 1).unwrap();
    drop(lock);
    generations.pin(1, PINNED_UNTIL).unwrap();
    publish(&generations, 2, &second());
    let keys = CursorKeys::open(&dir, &Durability::Off).unwrap();
    std::fs::write(dir.join("cursor.txt"), keys.seal(&cursor()).unwrap()).unwrap();
    for lock in ["index.lock", "pins/lock"] {
        std::fs::remove_file(dir.join(lock)).unwrap();
    }
}
