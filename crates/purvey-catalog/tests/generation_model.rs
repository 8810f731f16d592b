//! Random histories of publications, removals, merges, pins and restarts list exactly what a map says.
#![allow(clippy::unwrap_used, clippy::panic)]

mod generation_common;

use generation_common::{Doc, Model, add, check};
use proptest::prelude::*;
use purvey_catalog::Error;
use purvey_catalog::clock::{Clock, ManualClock};
use purvey_catalog::fs::Durability;
use purvey_catalog::generation::Generations;
use purvey_odp::identity::ResourceType;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Debug, Clone)]
enum Step {
    Publish { put: Vec<Doc>, kill: Vec<String> },
    Pin { seconds: u64 },
    Wait { seconds: u64 },
    Reopen,
    Replace(Vec<Doc>),
}

fn id() -> impl Strategy<Value = String> {
    (0..30_u8).prop_map(|n| format!("item-{n:02}"))
}

fn doc() -> impl Strategy<Value = Doc> {
    let collections = prop::sample::subsequence(vec!["a".to_owned(), "b".to_owned()], 0..=2);
    let translations = prop_oneof![3 => Just(Vec::new()), 1 => prop::sample::subsequence(vec![1_u16, 2, 3], 1..=3)];
    let own = prop_oneof![5 => Just(None), 1 => (0..4_u16).prop_map(Some)];
    (
        id(),
        any::<u32>(),
        own,
        translations,
        collections,
        0..300_usize,
    )
        .prop_map(
            |(id, revision, own, mut translations, collections, padding)| {
                translations.retain(|language| own.unwrap_or(0) != *language);
                Doc {
                    id,
                    revision,
                    own,
                    translations,
                    collections,
                    padding,
                }
            },
        )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (prop::collection::vec(doc(), 0..5), prop::collection::vec(id(), 0..3))
            .prop_map(|(put, kill)| Step::Publish { put, kill }),
        3 => (1..8_000_u64).prop_map(|seconds| Step::Pin { seconds }),
        2 => (1..5_000_u64).prop_map(|seconds| Step::Wait { seconds }),
        1 => Just(Step::Reopen),
        1 => prop::collection::vec(doc(), 0..12).prop_map(Step::Replace),
    ]
}

fn by_id(docs: Vec<Doc>) -> Model {
    docs.into_iter().map(|doc| (doc.id.clone(), doc)).collect()
}

/// A pin lasts at least until asked and at most a step and the grace longer.
struct Pinned {
    until: u64,
    model: Model,
}

fn run(steps: Vec<Step>) {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(1_800_000_000));
    let open = || Generations::open_with(dir.path(), clock.clone(), Durability::Off).unwrap();
    let mut generations = open();
    let mut model = Model::new();
    let mut pinned: BTreeMap<u64, Pinned> = BTreeMap::new();
    let mut number = 0;
    for step in steps {
        match step {
            Step::Publish { put, kill } => {
                number += 1;
                let lock = generations.lock().unwrap();
                let mut builder = generations.builder(&lock).unwrap();
                for id in kill {
                    assert_eq!(
                        builder.kill(ResourceType::Offering, &id),
                        model.remove(&id).is_some()
                    );
                }
                let put = by_id(put);
                add(&generations, &lock, &mut builder, &put);
                model.extend(put);
                generations.publish(&lock, builder, number, 1).unwrap();
            }
            Step::Replace(put) => {
                number += 1;
                let lock = generations.lock().unwrap();
                let mut builder = generations.empty_builder(&lock);
                model = by_id(put);
                add(&generations, &lock, &mut builder, &model);
                generations.publish(&lock, builder, number, 2).unwrap();
            }
            Step::Pin { seconds } => {
                if number > 0 {
                    let until = clock.now() + seconds;
                    generations.pin(number, until).unwrap();
                    let known = pinned.entry(number).or_insert(Pinned {
                        until,
                        model: model.clone(),
                    });
                    known.until = known.until.max(until);
                }
            }
            Step::Wait { seconds } => clock.advance(seconds),
            Step::Reopen => generations = open(),
        }
        if number > 0 {
            let current = generations.current().unwrap();
            assert_eq!(current.number(), number);
            assert!(current.segments(ResourceType::Offering).len() <= 8);
        }
    }
    generations = open();
    if let Some(current) = generations.current() {
        check(&current, &model);
        current.verify().unwrap();
    }
    let now = clock.now();
    for (old, pin) in &pinned {
        match generations.get(*old) {
            Ok(generation) => check(&generation, &pin.model),
            Err(Error::CursorExpired) => assert!(now > pin.until, "{old} went too early"),
            Err(error) => panic!("{error}"),
        }
        if *old != number && now > pin.until + 900 + 60 {
            assert!(matches!(generations.get(*old), Err(Error::CursorExpired)));
        }
    }
    for other in 1..number {
        if !pinned.contains_key(&other) {
            assert!(matches!(generations.get(other), Err(Error::CursorExpired)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_history_lists_what_the_model_says(steps in prop::collection::vec(step(), 1..60)) {
        run(steps);
    }
}
