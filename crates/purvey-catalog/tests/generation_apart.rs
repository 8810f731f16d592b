//! Large merges are done beside publications, and change nothing that anybody sees.
#![allow(clippy::unwrap_used, reason = "tests with helpers")]

mod generation_common;

use generation_common::{Doc, Model, publish, tags, traverse};
use purvey_catalog::Error;
use purvey_catalog::clock::ManualClock;
use purvey_catalog::fs::Durability;
use purvey_catalog::generation::{Generation, Generations, ListScope};
use purvey_catalog::segment::TextPlan;
use purvey_catalog::text::TextConfig;
use purvey_odp::identity::ResourceType;
use purvey_odp::offering::Representation;
use purvey_odp::pointer::Pointer;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Documents of one publication: nine such are more than a publication merges itself.
const BATCH: usize = 2_000;
static NEVER: AtomicBool = AtomicBool::new(false);

fn open(dir: &Path) -> Generations {
    let clock = Arc::new(ManualClock::new(1_800_000_000));
    let generations = Generations::open_with(dir, clock, Durability::Off).unwrap();
    generations.defer_merges(true);
    generations
}

fn texts(_: ResourceType) -> Arc<TextPlan> {
    let config = TextConfig {
        language: tags(&["en"]).remove(0),
        weights: vec![1.0],
    };
    let description = Pointer::parse("/description").unwrap();
    Arc::new(TextPlan::new(config, vec![description]))
}

/// Documents with every ninth number from `first` on, in a few Collections.
fn batch(first: usize, revision: u32) -> Vec<Doc> {
    let docs = (0..BATCH).map(|at| {
        let mut doc = Doc::new(format!("o{:05}", at * 9 + first), revision);
        doc.padding = 5;
        doc.collections = vec![format!("c{}", at % 3)];
        doc
    });
    docs.collect()
}

fn put(generations: &Generations, model: &mut Model, docs: &[Doc]) {
    let number = generations.current().map_or(0, |current| current.number()) + 1;
    publish(generations, number, docs);
    model.extend(docs.iter().map(|doc| (doc.id.clone(), doc.clone())));
}

/// Every document, and the members of a Collection, are as the model has them.
fn check(generation: &Generation, model: &Model) {
    let form = Representation::Full;
    for scope in [ListScope::All, ListScope::Collection("c1")] {
        let docs = model.values().filter(|doc| match scope {
            ListScope::All => true,
            ListScope::Collection(id) => doc.collections.iter().any(|own| own == id),
        });
        let expected: Vec<String> = docs.map(|doc| doc.item(None, form)).collect();
        let (items, _) = traverse(generation, scope, 100, 1 << 20, form, &[]);
        assert!(items == expected);
    }
}

fn segments(generations: &Generations) -> usize {
    let current = generations.current().unwrap();
    current.segments(ResourceType::Offering).len()
}

/// Nine segments that no publication merges.
fn nine(dir: &Path) -> (Generations, Model) {
    let generations = open(dir);
    let mut model = Model::new();
    for first in 0..9 {
        put(&generations, &mut model, &batch(first, 1));
    }
    assert_eq!(segments(&generations), 9);
    assert!(generations.wants_merge());
    (generations, model)
}

#[test]
fn a_publication_takes_over_what_was_merged_and_knows_what_changed_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let (generations, mut model) = nine(dir.path());
    let before = generations.current().unwrap();
    let seen = model.clone();
    assert!(generations.merge_apart(texts, &NEVER).unwrap());
    assert!(!generations.wants_merge());
    assert!(!generations.merge_apart(texts, &NEVER).unwrap());
    assert_eq!(segments(&generations), 9);
    // Some documents get other revisions, some go; the same publication takes the merged segment over.
    let lock = generations.lock().unwrap();
    let mut builder = generations.builder(&lock).unwrap();
    for id in ["o00000", "o00013", "o17999"] {
        assert!(builder.kill(ResourceType::Offering, id));
        model.remove(id);
    }
    let changed: Model = batch(4, 2)
        .into_iter()
        .take(50)
        .map(|doc| (doc.id.clone(), doc))
        .filter(|(id, _)| model.contains_key(id))
        .collect();
    generation_common::add(&generations, &lock, &mut builder, &changed);
    builder.set_meta(b"manifest 10");
    generations.publish(&lock, builder, 10, 1).unwrap();
    drop(lock);
    model.extend(changed);
    assert_eq!(segments(&generations), 2);
    let current = generations.current().unwrap();
    check(&current, &model);
    current.verify().unwrap();
    check(&before, &seen);
    drop(current);
    drop(generations);
    let generations = open(dir.path());
    check(&generations.current().unwrap(), &model);
    assert_eq!(
        std::fs::read_dir(dir.path().join("merging"))
            .unwrap()
            .count(),
        1
    );
}

#[test]
fn what_nobody_took_over_is_done_again() {
    let dir = tempfile::tempdir().unwrap();
    let (generations, mut model) = nine(dir.path());
    assert!(generations.merge_apart(texts, &NEVER).unwrap());
    // Only one process merges.
    let other = open(dir.path());
    assert!(!other.merge_apart(texts, &NEVER).unwrap());
    drop(other);
    // A crash.
    drop(generations);
    let generations = open(dir.path());
    assert!(
        std::fs::read_dir(dir.path().join("merging"))
            .unwrap()
            .count()
            > 1
    );
    put(&generations, &mut model, &batch(0, 3)[..3]);
    assert_eq!(segments(&generations), 10);
    assert!(generations.merge_apart(texts, &NEVER).unwrap());
    // Its sources go before a publication takes it over.
    generations.defer_merges(false);
    let all: Vec<Doc> = (0..9).flat_map(|first| batch(first, 4)).collect();
    put(&generations, &mut model, &all);
    check(&generations.current().unwrap(), &model);
    generations.current().unwrap().verify().unwrap();
}

#[test]
fn a_merge_can_be_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let (generations, model) = nine(dir.path());
    let stopped = generations.merge_apart(texts, &AtomicBool::new(true));
    assert!(matches!(stopped, Err(Error::NotWritten { .. })));
    assert!(generations.wants_merge());
    check(&generations.current().unwrap(), &model);
}
