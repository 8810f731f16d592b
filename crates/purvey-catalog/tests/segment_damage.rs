//! Bytes of a segment that are no longer those that were written: a read gives what was written, or an error that names the file.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod generation_common;

use generation_common::{Doc, publish, tags};
use purvey_catalog::Error;
use purvey_catalog::clock::ManualClock;
use purvey_catalog::fs::Durability;
use purvey_catalog::generation::{Generation, Generations, ListQuery, ListScope};
use purvey_odp::identity::ResourceType::Offering;
use purvey_odp::offering::Representation;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const IDS: [&str; 4] = ["four", "one", "two", "zwei"];
const LANGUAGES: [&[&str]; 3] = [&[], &["fr"], &["pt-BR", "en"]];

fn docs() -> Vec<Doc> {
    let mut two = Doc::new("two", 1);
    two.translations = vec![1, 3];
    two.padding = 10;
    let mut zwei = Doc::new("zwei", 1);
    zwei.own = Some(2);
    zwei.translations = vec![0];
    vec![Doc::new("four", 1), Doc::new("one", 1), two, zwei]
}

fn open(dir: &Path) -> Result<Arc<Generation>, Error> {
    let clock = Arc::new(ManualClock::new(1_800_000_000));
    Generations::open_with(dir, clock, Durability::Off).map(|it| it.current().unwrap())
}

/// Every way to read: each document and all of them, in both representations and several languages.
fn reads(generation: &Generation) -> Vec<Result<String, Error>> {
    let mut reads = Vec::new();
    for representation in [Representation::Terse, Representation::Full] {
        for preferred in LANGUAGES.map(tags) {
            for id in IDS {
                let item = generation.get(Offering, id, representation, &preferred);
                reads.push(item.map(|item| String::from_utf8(item.unwrap().bytes).unwrap()));
            }
            let query = ListQuery {
                kind: Offering,
                scope: ListScope::All,
                after: None,
                limit: 10,
                max_bytes: usize::MAX,
                representation,
                preferred: &preferred,
            };
            let mut out = Vec::new();
            let listed = generation.list(&query, &mut out);
            reads.push(listed.map(|_| String::from_utf8(out).unwrap()));
        }
    }
    reads
}

/// The number of reads that failed; all others gave what was written.
fn failed(file: &Path, intact: &[String], reads: Vec<Result<String, Error>>) -> usize {
    assert_eq!(reads.len(), intact.len());
    let mut failed = 0;
    for (read, intact) in reads.into_iter().zip(intact) {
        match read {
            Ok(read) => assert_eq!(&read, intact),
            Err(Error::Corrupt { path, .. }) => {
                assert_eq!(path, file);
                failed += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
    failed
}

#[test]
fn every_byte_that_is_another_is_seen_by_the_reads_that_deliver_it() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(1_800_000_000));
    let generations = Generations::open_with(dir.path(), clock, Durability::Off).unwrap();
    publish(&generations, 1, &docs());
    let generation = generations.current().unwrap();
    let intact: Vec<String> = reads(&generation).into_iter().map(Result::unwrap).collect();
    let segment = generation.segments(Offering).next().unwrap().segment_id();
    let path: PathBuf = segment.path(&dir.path().join("segments"));
    let bytes = std::fs::read(&path).unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    // Full and Terse of `four`, and the comma after each.
    let four = r#"{"id":"four","revision":1,"description":""},"#;
    assert_eq!(&bytes[16..16 + four.len()], four.as_bytes());
    let items: usize = 16 + docs().iter().map(stored).sum::<usize>() - 2;
    for (at, byte) in bytes.iter().enumerate() {
        file.write_all_at(&[byte ^ 0x20], at as u64).unwrap();
        let seen = failed(&path, &intact, reads(&generation));
        // A comma is in a list only; header, sums and index were read before.
        assert_eq!(seen > 0, (16..items).contains(&at), "byte {at} of {items}");
        // Found after a restart too, sums among it.
        match open(dir.path()) {
            Ok(again) => {
                let seen = failed(&path, &intact, reads(&again));
                assert_eq!(seen > 0, again.verify().is_err(), "byte {at}");
            }
            Err(Error::Corrupt { .. } | Error::Format { .. }) => {}
            Err(other) => panic!("{other}"),
        }
        file.write_all_at(&[*byte], at as u64).unwrap();
    }
    assert_eq!(failed(&path, &intact, reads(&generation)), 0);
}

/// Bytes of a document's items, with the commas behind its Full and its Terse.
fn stored(doc: &Doc) -> usize {
    let both = |language| {
        [Representation::Terse, Representation::Full]
            .map(|form| doc.item(language, form).len())
            .iter()
            .sum::<usize>()
    };
    let variants = doc.translations.iter().map(|at| both(Some(*at)));
    both(doc.own) + 2 + variants.sum::<usize>()
}
