//! Power failures, damage, and readers beside a writer.
#![allow(clippy::unwrap_used, clippy::panic)]

mod generation_common;

use generation_common::{Doc, Model, add, check, publish};
use purvey_catalog::Error;
use purvey_catalog::clock::ManualClock;
use purvey_catalog::fs::{Durability, Step, Watch};
use purvey_catalog::generation::Generations;
use purvey_odp::identity::ResourceType;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(1_800_000_000))
}

fn docs(range: std::ops::Range<u32>, revision: u32) -> Vec<Doc> {
    range
        .map(|n| Doc::new(format!("item-{n:02}"), revision))
        .collect()
}

fn model(docs: &[Doc]) -> Model {
    docs.iter()
        .map(|doc| (doc.id.clone(), doc.clone()))
        .collect()
}

/// A disk that forgets what was not synced: contents of files that were, and the names that directories had when they were.
#[derive(Default)]
struct Disk {
    root: PathBuf,
    /// Contents by the name that the file has now, as far as they were synced.
    synced: BTreeMap<PathBuf, Vec<u8>>,
    /// Names that survive, with the contents that they would show.
    durable: BTreeMap<PathBuf, Vec<u8>>,
    /// The image after every step.
    images: Vec<BTreeMap<PathBuf, Vec<u8>>>,
}

#[derive(Default)]
struct Watcher(Mutex<Disk>);

impl Watch for Watcher {
    fn step(&self, step: Step<'_>) {
        let mut disk = self.0.lock().unwrap();
        match step {
            Step::FileSynced(path) => {
                disk.synced
                    .insert(path.to_owned(), std::fs::read(path).unwrap());
            }
            Step::Renamed { from, to } => {
                // A file that was never synced loses its contents, its new name may stay all the same.
                let contents = disk.synced.remove(from).unwrap_or_default();
                disk.synced.insert(to.to_owned(), contents);
            }
            Step::Removed(path) => {
                disk.synced.remove(path);
            }
            Step::DirectorySynced(dir) => {
                disk.durable.retain(|path, _| path.parent() != Some(dir));
                for entry in std::fs::read_dir(dir).unwrap() {
                    let path = entry.unwrap().path();
                    if path.is_file() {
                        let contents = disk.synced.get(&path).cloned().unwrap_or_default();
                        disk.durable.insert(path, contents);
                    }
                }
            }
        }
        let image = disk.durable.clone();
        disk.images.push(image);
    }
}

fn restore(image: &BTreeMap<PathBuf, Vec<u8>>, from: &Path, to: &Path) {
    for dir in ["segments", "generations", "pins"] {
        std::fs::create_dir(to.join(dir)).unwrap();
    }
    for (path, contents) in image {
        std::fs::write(to.join(path.strip_prefix(from).unwrap()), contents).unwrap();
    }
}

#[test]
fn a_power_failure_at_any_step_leaves_the_old_or_the_new_generation_and_never_loses_a_published_one()
 {
    let dir = tempfile::tempdir().unwrap();
    let watcher = Arc::new(Watcher::default());
    watcher.0.lock().unwrap().root = dir.path().to_owned();
    let durability = Durability::Watched(watcher.clone());
    let generations = Generations::open_with(dir.path(), clock(), durability).unwrap();
    let mut models = vec![Model::new()];
    // How many steps were taken when each generation was acknowledged.
    let mut acknowledged = vec![0];
    for number in 1..=14_u32 {
        let changed = docs(number * 3..number * 3 + 6, number);
        let mut next = models.last().unwrap().clone();
        next.extend(model(&changed));
        publish(&generations, number.into(), &changed);
        if number == 5 {
            generations.pin(5, 1_800_001_000).unwrap();
        }
        models.push(next);
        acknowledged.push(watcher.0.lock().unwrap().images.len());
    }
    let images = std::mem::take(&mut watcher.0.lock().unwrap().images);
    assert!(images.len() > 14 * 6);
    let mut opened = Vec::new();
    for (step, image) in images.iter().enumerate() {
        let copy = tempfile::tempdir().unwrap();
        restore(image, dir.path(), copy.path());
        let reopened = Generations::open_with(copy.path(), clock(), Durability::Off).unwrap();
        let number = reopened.current().map_or(0, |current| current.number());
        let least = acknowledged
            .iter()
            .filter(|steps| **steps <= step + 1)
            .count()
            - 1;
        assert!(
            number >= least as u64,
            "step {step}: {number}, but {least} was acknowledged"
        );
        if let Some(current) = reopened.current() {
            current.verify().unwrap();
            if opened.last() != Some(&number) {
                check(&current, &models[number as usize]);
                opened.push(number);
            }
        }
        if least >= 6 {
            let pinned = reopened.get(5).unwrap();
            assert_eq!(pinned.count(ResourceType::Offering), models[5].len() as u64);
        }
        // The catalog goes on from there.
        publish(&reopened, number + 1, &docs(0..1, 99));
    }
    assert_eq!(opened, (1..=14).collect::<Vec<u64>>());
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries.collect()
}

#[test]
fn a_cut_or_changed_file_is_refused_and_never_served() {
    let dir = tempfile::tempdir().unwrap();
    let generations = Generations::open_with(dir.path(), clock(), Durability::Off).unwrap();
    publish(&generations, 1, &docs(0..20, 1));
    drop(generations);
    let mut targets = files(&dir.path().join("generations"));
    targets.extend(files(&dir.path().join("segments")));
    targets.push(dir.path().join("CURRENT"));
    assert_eq!(targets.len(), 4);
    for path in targets {
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let opened = Generations::open_with(dir.path(), clock(), Durability::Off);
            assert!(
                matches!(opened, Err(Error::Corrupt { .. })),
                "{} cut to {cut}",
                path.display()
            );
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x10;
            std::fs::write(&path, &changed).unwrap();
            match Generations::open_with(dir.path(), clock(), Durability::Off) {
                Err(Error::Corrupt { .. } | Error::Format { .. }) => {}
                Err(error) => panic!("{error}"),
                // Items are checked when they are verified or merged, not when a segment is opened; bytes 12 to 16 of a segment say nothing.
                Ok(opened) => {
                    assert!(path.extension().is_some_and(|ending| ending == "seg"));
                    let verified = opened.current().unwrap().verify();
                    assert_eq!(verified.is_err(), !(12..16).contains(&at), "byte {at}");
                }
            }
        }
        std::fs::write(&path, &whole).unwrap();
    }
}

#[test]
fn a_newer_format_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let generations = Generations::open_with(dir.path(), clock(), Durability::Off).unwrap();
    publish(&generations, 1, &docs(0..2, 1));
    drop(generations);
    for (path, format) in [
        (dir.path().join("CURRENT"), 1_u8),
        (dir.path().join("generations/1.gen"), 2),
    ] {
        let whole = std::fs::read(&path).unwrap();
        let mut newer = whole.clone();
        newer[8] = format + 1;
        std::fs::write(&path, &newer).unwrap();
        let opened = Generations::open_with(dir.path(), clock(), Durability::Off);
        let Err(Error::Format {
            found, supported, ..
        }) = opened
        else {
            panic!("{path:?} was opened");
        };
        assert_eq!(
            (found, supported),
            (u32::from(format) + 1, u32::from(format))
        );
        std::fs::write(&path, &whole).unwrap();
    }
}

#[test]
fn a_damaged_item_is_not_laundered_by_a_merge() {
    let dir = tempfile::tempdir().unwrap();
    let generations = Generations::open_with(dir.path(), clock(), Durability::Off).unwrap();
    publish(&generations, 1, &docs(0..10, 1));
    let segment = files(&dir.path().join("segments")).remove(0);
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let lock = generations.lock().unwrap();
    let mut builder = generations.builder(&lock).unwrap();
    for doc in docs(1..9, 1) {
        assert!(builder.kill(ResourceType::Offering, &doc.id));
    }
    let published = generations.publish(&lock, builder, 2, 1);
    assert!(matches!(published, Err(Error::Corrupt { .. })));
    assert_eq!(generations.current().unwrap().number(), 1);
}

#[test]
fn leftovers_go_at_open_but_not_while_somebody_indexes() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Generations::open_with(dir.path(), clock(), Durability::Off).unwrap();
    let generations = open();
    publish(&generations, 1, &docs(0..3, 1));
    let lock = generations.lock().unwrap();
    let mut builder = generations.builder(&lock).unwrap();
    add(&generations, &lock, &mut builder, &model(&docs(0..3, 2)));
    std::fs::write(dir.path().join("segments/0123456789abcdef.seg.tmp"), "half").unwrap();
    std::fs::write(dir.path().join("generations/2.gen"), "never current").unwrap();
    assert!(generations.try_lock().unwrap().is_none());
    let other = open();
    assert_eq!(other.collect().unwrap(), None);
    assert_eq!(files(&dir.path().join("segments")).len(), 3);
    drop(lock);
    drop(builder);
    let last = open();
    assert_eq!(files(&dir.path().join("segments")).len(), 1);
    assert_eq!(
        files(&dir.path().join("generations")).len(),
        2,
        "one generation and its manifest"
    );
    check(&last.current().unwrap(), &model(&docs(0..3, 1)));
}

#[test]
fn numbers_only_rise() {
    let dir = tempfile::tempdir().unwrap();
    let generations = Generations::open_with(dir.path(), clock(), Durability::Off).unwrap();
    publish(&generations, 5, &docs(0..3, 1));
    for number in [0, 4, 5] {
        let lock = generations.lock().unwrap();
        let builder = generations.builder(&lock).unwrap();
        let published = generations.publish(&lock, builder, number, 1);
        assert!(matches!(published, Err(Error::Conflict { .. })));
    }
}

#[test]
fn readers_beside_a_writer_never_see_an_error_and_handles_outlive_collection() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Generations::open_with(dir.path(), clock(), Durability::Off).unwrap();
    let writer = open();
    publish(&writer, 1, &docs(0..50, 1));
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let reader = open();
                let (mut last, mut adopted) = (0, 0);
                while !done.load(std::sync::atomic::Ordering::SeqCst) {
                    adopted += u32::from(reader.refresh().unwrap());
                    let current = reader.current().unwrap();
                    assert!(current.number() >= last);
                    last = current.number();
                    current.verify().unwrap();
                    assert_eq!(current.count(ResourceType::Offering), 50);
                }
                assert!(adopted > 0);
            });
        }
        let held = writer.current().unwrap();
        for number in 2..300 {
            let n = (number % 50) as u32;
            publish(&writer, number, &docs(n..n + 1, number as u32));
        }
        done.store(true, std::sync::atomic::Ordering::SeqCst);
        assert!(matches!(writer.get(1), Err(Error::CursorExpired)));
        check(&held, &model(&docs(0..50, 1)));
    });
}

#[test]
fn pinning_what_another_process_has_collected_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Generations::open_with(dir.path(), clock(), Durability::Off).unwrap();
    let writer = open();
    publish(&writer, 1, &docs(0..5, 1));
    let reader = open();
    publish(&writer, 2, &docs(0..5, 2));
    assert!(matches!(
        reader.pin(1, 1_800_000_100),
        Err(Error::CursorExpired)
    ));
    assert!(reader.refresh().unwrap());
    reader.pin(2, 1_800_000_100).unwrap();
    publish(&writer, 3, &docs(0..5, 3));
    check(&open().get(2).unwrap(), &model(&docs(0..5, 2)));
}
