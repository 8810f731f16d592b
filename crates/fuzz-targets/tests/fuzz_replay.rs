//! Every target over its committed corpus, and over some thousands of mutations of it that are always the same.
//!
//! `FUZZ_MUTATIONS` says how many for each target.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use fuzz_targets::TARGETS;
use fuzz_targets::mutate::{Random, mutate};
use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

const MUTATIONS: usize = 4_000;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// The files of a corpus, in the order of their names.
fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let directory = fuzz().join("corpus").join(target);
    let mut files: Vec<_> = fs::read_dir(&directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.unwrap())
        .map(|entry| {
            (
                entry.file_name().into_string().unwrap(),
                fs::read(entry.path()).unwrap(),
            )
        })
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{target} has no corpus");
    files
}

fn holds(target: &str, what: &str, input: &[u8]) {
    let (_, body) = TARGETS.iter().find(|(name, _)| *name == target).unwrap();
    // The input is what a fix needs: keep it in the corpus.
    let outcome = catch_unwind(|| body(input));
    assert!(
        outcome.is_ok(),
        "{target}, {what}: \"{}\"",
        input.escape_ascii()
    );
}

fn replay(target: &str, share: usize) {
    let corpus = corpus(target);
    for (name, input) in &corpus {
        holds(target, name, input);
    }
    let mutations = std::env::var("FUZZ_MUTATIONS").map(|text| text.parse().unwrap());
    let mut random = Random::new(1);
    for round in 0..mutations.unwrap_or(MUTATIONS) / share {
        let (_, input) = &corpus[random.below(corpus.len())];
        let (_, other) = &corpus[random.below(corpus.len())];
        let mutated = mutate(&mut random, input, other);
        holds(target, &format!("mutation {round}"), &mutated);
    }
}

#[test]
fn cursor() {
    replay("cursor", 1);
}

#[test]
fn decode() {
    replay("decode", 1);
}

#[test]
fn filter_value() {
    replay("filter_value", 1);
}

#[test]
fn reference() {
    replay("reference", 1);
}

#[test]
fn retry_after() {
    replay("retry_after", 1);
}

/// Each input asks for some threads and runtimes.
#[test]
fn schema_graph() {
    replay("schema_graph", 4);
}

#[test]
fn every_target_has_a_program_and_a_corpus() {
    let names = |directory: &str| -> BTreeSet<String> {
        let entries = fs::read_dir(fuzz().join(directory)).unwrap();
        entries
            .map(|entry| {
                entry
                    .unwrap()
                    .path()
                    .file_stem()
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned()
            })
            .collect()
    };
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names("fuzz_targets"), targets);
    assert_eq!(names("corpus"), targets);
    for target in &targets {
        let size: usize = corpus(target).iter().map(|(_, input)| input.len()).sum();
        assert!(
            size <= 102_400,
            "the corpus of {target} has {size} bytes: minimise it"
        );
    }
}
