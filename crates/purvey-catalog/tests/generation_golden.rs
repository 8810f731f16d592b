//! What each format looks like on disk: a catalog that was written once must open for ever.
//!
//! What is in `tests/golden` is never regenerated once released; a new format gets a directory of its own:
//! `cargo test -p purvey-catalog --test generation_golden -- --ignored`.
#![allow(clippy::unwrap_used)]

mod generation_common;

use generation_common::{Doc, Model, check, publish, tags};
use purvey_catalog::Access;
use purvey_catalog::catalog::{Catalog, Options, SearchRequest};
use purvey_catalog::clock::ManualClock;
use purvey_catalog::cursor::{Cursor, CursorKeys, Expected, Request, SearchPlace};
use purvey_catalog::fs::Durability;
use purvey_catalog::generation::Generations;
use purvey_catalog::search::{ColumnName, ColumnsWriter, Mapping, TextMatch};
use purvey_catalog::segment::{Entry, TextPlan};
use purvey_catalog::text::{TextConfig, TextIndex, TextSearch, TextSegment};
use purvey_odp::filter::FilterDefinition;
use purvey_odp::identity::CapabilityId;
use purvey_odp::identity::ResourceType;
use purvey_odp::language::AcceptLanguage;
use purvey_odp::offering::Representation;
use purvey_odp::pointer::Pointer;
use purvey_odp::request::OfferingSearchRequest;
use roaring::RoaringBitmap;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Until when generation 1 is pinned.
const PINNED_UNTIL: u64 = 1_800_003_600;

fn golden(name: &str) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    tests.join(name)
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
    copy(&golden("v1"), dir.path());
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
    let text = std::fs::read_to_string(golden("v1").join("cursor.txt")).unwrap();
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

const SEARCHED: [&str; 3] = [
    r#"{"id":"lamp","name":"Desk lamp","attributes":{"watts":[7,9]}}"#,
    r#"{"id":"oak","name":"Oak desk"}"#,
    r#"{"id":"saw","name":"C++ saw v1.2.3","attributes":{"watts":9.0}}"#,
];

fn mapping() -> Mapping {
    let definition = json!({
        "id": "watts", "title": "W", "description": "W.", "type": "integer", "operators": ["eq"]
    });
    let definition = FilterDefinition::validate(definition).unwrap();
    let pointer = Pointer::parse("/attributes/watts").unwrap();
    Mapping::new(None, &definition, vec![pointer])
}

fn texts() -> TextConfig {
    TextConfig {
        language: tags(&["en"]).remove(0),
        weights: vec![1.0],
    }
}

fn search_cursor() -> Cursor {
    Cursor {
        operation: "search-offerings".to_owned(),
        search: Some(SearchPlace {
            request: Request::Inline(br#"{"odp_version":"1.0","query":"desk"}"#.to_vec()),
            score: 1.5_f32.to_bits(),
            segment: 0,
            ordinal: 1,
        }),
        ..cursor()
    }
}

/// The index, after its columns and its cursor were looked at.
fn opened(name: &str) -> Arc<TextIndex> {
    let dir = tempfile::tempdir().unwrap();
    copy(&golden(name), dir.path());
    let generations = open(dir.path(), 1_800_000_000);
    let current = generations.current().unwrap();
    current.verify().unwrap();
    let segment = current.segments(ResourceType::Offering).next().unwrap();
    let columns = segment.columns().unwrap();
    let column = columns.get(mapping().name()).unwrap();
    let watts = CapabilityId::parse("watts").unwrap();
    assert_eq!(mapping().name(), &ColumnName::new(None, &watts));
    let values = |ordinal: u32| -> Vec<&[u8]> {
        column
            .codes(ordinal)
            .map(|code| column.text(code))
            .collect()
    };
    assert_eq!(values(0), [b"7", b"9"]);
    assert_eq!(values(1), [b""; 0]);
    assert_eq!(values(2), [b"9"]);
    let keys = CursorKeys::open(dir.path(), &Durability::Off).unwrap();
    let text = std::fs::read_to_string(golden(name).join("cursor.txt")).unwrap();
    let expected = Expected {
        operation: "search-offerings",
        scope: None,
        access: 0,
    };
    let opened = keys.open_cursor(&text, &expected, PINNED_UNTIL - 1);
    assert_eq!(opened.unwrap(), search_cursor());
    Arc::clone(segment.text().unwrap())
}

#[test]
fn format_2_opens_with_its_columns_its_text_and_its_cursors() {
    let text = opened("v2");
    assert_eq!(text.documents(), 3);
    assert_ne!(
        text.config_digest(),
        texts().digest(),
        "words are others now"
    );
    let text = opened("words2");
    assert_eq!(text.config_digest(), texts().digest());
    let segment = TextSegment::new(text, &RoaringBitmap::new());
    let search = TextSearch::new(vec![segment], &texts());
    let found = |query: &str| {
        let found = search.query(query).unwrap().matching(0).unwrap();
        found.iter().collect::<Vec<_>>()
    };
    assert_eq!(found("desks"), [0, 1]);
    assert_eq!(found("1.2"), [2]);
    assert_eq!(found("c++"), [2]);
}

/// `golden/catalog1` was written by a version that knew neither numbers of several parts nor marks.
#[test]
fn words_of_an_older_version_are_indexed_again_from_the_records() {
    let dir = tempfile::tempdir().unwrap();
    copy(&golden("catalog1"), dir.path());
    let old = open(dir.path(), 1_800_000_000).current().unwrap().number();
    let options = || Options {
        durability: Durability::Off,
        ..Options::default()
    };
    let found = |catalog: &Catalog, query: &str| {
        let body = json!({"odp_version": "1.0", "query": query});
        let page = catalog.search_offerings(&SearchRequest {
            request: OfferingSearchRequest::validate(body).unwrap(),
            representation: Representation::Terse,
            accept_language: AcceptLanguage::default(),
            access: Access::public(),
        });
        let page: Value = serde_json::from_slice(&page.unwrap().bytes).unwrap();
        let items = page["items"].as_array().unwrap().iter();
        items
            .map(|item| item["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let catalog = Catalog::open(dir.path(), options()).unwrap();
    let number = catalog.current().generation.number();
    assert!(number > old);
    assert_eq!(found(&catalog, "1.2.3"), ["release"]);
    assert_eq!(found(&catalog, "c++"), ["compiler"]);
    assert_eq!(found(&catalog, "desks"), ["lamp"]);
    drop(catalog);
    // Once is enough.
    let catalog = Catalog::open(dir.path(), options()).unwrap();
    assert_eq!(catalog.current().generation.number(), number);
}

#[test]
#[ignore = "rewrites tests/golden/words2, which is only right before it is released"]
fn regenerate() {
    let dir = golden("words2");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    let generations = open(&dir, 1_800_000_000);
    let lock = generations.lock().unwrap();
    let mut writer = generations.segment_writer(&lock, &tags(&["en"])).unwrap();
    let plan = TextPlan::new(texts(), vec![Pointer::parse("/name").unwrap()]);
    writer.index_text(&plan).unwrap();
    let mappings = [mapping()];
    let mut columns = ColumnsWriter::new(&mappings);
    for text in SEARCHED {
        let full: Value = serde_json::from_str(text).unwrap();
        let entry = Entry {
            id: full["id"].as_str().unwrap(),
            terse: text.as_bytes(),
            full: text.as_bytes(),
            variants: &[],
            language: None,
            postings: &[],
        };
        writer.push(&entry).unwrap();
        writer.push_text(plan.prepare(&full)).unwrap();
        columns.push(&full).unwrap();
    }
    writer.set_columns(columns.finish().unwrap());
    let mut builder = generations.builder(&lock).unwrap();
    builder
        .add_segment(ResourceType::Offering, writer.finish().unwrap())
        .unwrap();
    builder.set_meta(b"manifest 1");
    generations.publish(&lock, builder, 1, 1).unwrap();
    drop(lock);
    let keys = CursorKeys::open(&dir, &Durability::Off).unwrap();
    std::fs::write(dir.join("cursor.txt"), keys.seal(&search_cursor()).unwrap()).unwrap();
    let _ = std::fs::remove_file(dir.join("index.lock"));
    let _ = std::fs::remove_dir_all(dir.join("pins"));
}

/// What the key of postings of restricted documents begins with.
const HIDDEN: &str = "\u{1}";

#[test]
fn format_3_says_when_it_was_published_and_who_saw_what_change() {
    let dir = tempfile::tempdir().unwrap();
    copy(&golden("v3"), dir.path());
    let generations = open(dir.path(), 1_800_000_000);
    let current = generations.current().unwrap();
    current.verify().unwrap();
    assert_eq!((current.number(), current.epoch()), (2, 1));
    check(&current, &model(&[first()]));
    let staff = Access::new(["staff".to_owned()]).unwrap();
    assert_eq!(current.changed_for(&Access::public()), 1);
    assert_eq!(current.changed_for(&staff), 2);
}

#[test]
#[ignore = "rewrites tests/golden/v3, which is only right before format 3 is released"]
fn regenerate_3() {
    let dir = golden("v3");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    let generations = open(&dir, 1_800_000_000);
    publish(&generations, 1, &first());
    // What only staff sees.
    let lock = generations.lock().unwrap();
    let mut writer = generations.segment_writer(&lock, &tags(&["en"])).unwrap();
    let staff = format!("{HIDDEN}staff");
    let entry = Entry {
        id: "hidden",
        terse: br#"{"id":"hidden","name":"H"}"#,
        full: br#"{"id":"hidden","name":"H"}"#,
        variants: &[],
        language: None,
        postings: &[HIDDEN, &staff],
    };
    writer.push(&entry).unwrap();
    let mut builder = generations.builder(&lock).unwrap();
    builder
        .add_segment(ResourceType::Collection, writer.finish().unwrap())
        .unwrap();
    generations.publish(&lock, builder, 2, 1).unwrap();
    drop(lock);
    let _ = std::fs::remove_file(dir.join("index.lock"));
    let _ = std::fs::remove_dir_all(dir.join("pins"));
}
