//! Segments: what was written is found, in order, and nothing else.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod generation_common;

use generation_common::{Doc, LANGUAGES, tags};
use proptest::prelude::*;
use purvey_catalog::Error;
use purvey_catalog::fs::Durability;
use purvey_catalog::segment::{Entry, Segment, SegmentWriter, Variant};
use purvey_odp::offering::Representation;
use std::collections::BTreeSet;
use std::path::Path;

fn write(dir: &Path, ids: impl IntoIterator<Item = String>) -> Segment {
    let mut writer = SegmentWriter::create(dir, &tags(&LANGUAGES), Durability::Off).unwrap();
    for (at, id) in ids.into_iter().enumerate() {
        let mut doc = Doc::new(id, at as u32);
        doc.collections = vec![format!("mod-{}", at % 3)];
        doc.push(&mut writer);
    }
    Segment::open(dir, writer.finish().unwrap()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn finding_and_seeking_agree_with_a_set(
        ids in prop::collection::btree_set("[a-c]{1,6}", 0..400), asked in prop::collection::vec("[a-d]{0,7}", 60),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let segment = write(dir.path(), ids.clone());
        prop_assert_eq!(segment.len() as usize, ids.len());
        let sorted: Vec<&String> = ids.iter().collect();
        for asked in asked.iter().chain(&ids) {
            let found = sorted.iter().position(|id| *id == asked);
            prop_assert_eq!(segment.find(asked), found.map(|at| at as u32));
            let after = sorted.iter().position(|id| *id > asked).unwrap_or(sorted.len());
            prop_assert_eq!(segment.seek_after(asked), after as u32);
        }
        for (at, id) in sorted.iter().enumerate() {
            prop_assert_eq!(segment.id(at as u32), id.as_str());
            let mut item = Vec::new();
            segment.append_item(Representation::Terse, at as u32, &mut item).unwrap();
            prop_assert_eq!(String::from_utf8(item).unwrap(), format!("{{\"id\":\"{id}\",\"revision\":{at}}}"));
        }
        for rest in 0..3_u32 {
            let members: BTreeSet<u32> = segment.postings(&format!("mod-{rest}")).into_iter().flatten().collect();
            let expected: BTreeSet<u32> = (0..segment.len()).filter(|at| at % 3 == rest).collect();
            prop_assert_eq!(members, expected);
        }
        prop_assert!(segment.postings("other").is_none());
        segment.verify().unwrap();
    }
}

#[test]
fn a_writer_refuses_what_would_break_the_file() {
    let entry = Entry {
        id: "b",
        terse: b"{\"id\":\"b\"}",
        full: b"{\"id\":\"b\"}",
        variants: &[],
        language: None,
        postings: &[],
    };
    let long = "x".repeat(256);
    let foreign = [Variant {
        language: 4,
        terse: entry.terse,
        full: entry.full,
    }];
    let bad = [
        Entry { id: "b", ..entry },
        Entry { id: "a", ..entry },
        Entry { id: "", ..entry },
        Entry { id: &long, ..entry },
        Entry {
            id: "c",
            terse: b"{}",
            ..entry
        },
        Entry {
            id: "c",
            full: b"",
            ..entry
        },
        Entry {
            id: "c",
            language: Some(4),
            ..entry
        },
        Entry {
            id: "c",
            variants: &foreign,
            ..entry
        },
    ];
    let dir = tempfile::tempdir().unwrap();
    for bad in &bad {
        let mut writer =
            SegmentWriter::create(dir.path(), &tags(&LANGUAGES), Durability::Off).unwrap();
        writer.push(&entry).unwrap();
        assert!(
            matches!(writer.push(bad), Err(Error::Conflict { .. })),
            "{bad:?}"
        );
    }
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        0,
        "abandoned writers leave nothing"
    );
}

#[test]
fn a_finished_segment_is_one_file_and_an_open_one_outlives_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let segment = write(dir.path(), ["a".to_owned(), "b".to_owned()]);
    let path = segment.segment_id().path(dir.path());
    let names: Vec<_> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(names, [path.as_path()]);
    assert_eq!(
        std::fs::metadata(&path).unwrap().len(),
        segment.disk_bytes()
    );
    std::fs::remove_file(&path).unwrap();
    segment.verify().unwrap();
}

#[test]
#[ignore = "measures a million documents; run with --release --ignored --nocapture"]
fn a_million_documents_open_quickly() {
    let dir = tempfile::tempdir().unwrap();
    let started = std::time::Instant::now();
    let id = write(
        dir.path(),
        (0..1_100_000).map(|n| format!("registry:package-{n:07}")),
    )
    .segment_id();
    println!("written in {:?}", started.elapsed());
    let resident = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("RssAnon"))
            .unwrap();
        line.split_whitespace()
            .nth(1)
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    let before = resident();
    let started = std::time::Instant::now();
    let segment = Segment::open(dir.path(), id).unwrap();
    println!(
        "opened in {:?}, {} KiB more",
        started.elapsed(),
        resident() - before
    );
    let started = std::time::Instant::now();
    let mut at = 0_u32;
    for _ in 0..1_000_000 {
        at = (at * 31 + 7_919) % segment.len();
        assert_eq!(segment.find(segment.id(at)), Some(at));
    }
    println!("a lookup takes {:?}", started.elapsed() / 1_000_000);
}
