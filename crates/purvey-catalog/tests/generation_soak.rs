//! Two simulated hours of one publication a second with one traversal open.
#![allow(clippy::unwrap_used)]

mod generation_common;

use generation_common::{Doc, Model, add, publish};
use purvey_catalog::Error;
use purvey_catalog::clock::{Clock, ManualClock};
use purvey_catalog::cursor::expiry;
use purvey_catalog::fs::Durability;
use purvey_catalog::generation::{Generations, ListQuery, ListScope};
use purvey_odp::identity::ResourceType;
use purvey_odp::offering::Representation;
use std::sync::Arc;

const START: u64 = 1_800_000_000;
const DOCUMENTS: u64 = 5_000;
/// Two hours and two minutes: the last pin, taken after 49 minutes, lasts until two hours and its grace a minute more.
const SECONDS: u64 = 7_320;

fn doc(n: u64, revision: u32) -> Doc {
    let mut doc = Doc::new(format!("item-{n:05}"), revision);
    doc.padding = 200;
    doc
}

#[test]
fn two_hours_of_writes_leave_the_disk_bounded_and_the_traversal_right() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(START));
    let generations = Generations::open_with(dir.path(), clock.clone(), Durability::Off).unwrap();
    let lock = generations.lock().unwrap();
    let mut builder = generations.builder(&lock).unwrap();
    let first: Model = (0..DOCUMENTS).map(|n| (doc(n, 0).id, doc(n, 0))).collect();
    add(&generations, &lock, &mut builder, &first);
    generations.publish(&lock, builder, 1, 1).unwrap();
    drop(lock);
    let single = generations.disk_bytes().unwrap();

    // The traversal takes a page of 50 every 30 seconds, as a slow client does: 100 pages in 50 minutes.
    let mut after: Option<String> = None;
    let mut seen = Vec::new();
    let mut open = true;
    let (mut most_bytes, mut most_generations) = (0, 0);
    for second in 0..SECONDS {
        if open && second % 30 == 0 {
            let generation = generations.get(1).unwrap();
            let query = ListQuery {
                kind: ResourceType::Offering,
                scope: ListScope::All,
                after: after.as_deref(),
                limit: 50,
                max_bytes: 500_000,
                representation: Representation::Full,
                preferred: &[],
            };
            let mut page = b"[".to_vec();
            let outcome = generation.list(&query, &mut page).unwrap();
            page.push(b']');
            seen.extend(serde_json::from_slice::<Vec<serde_json::Value>>(&page).unwrap());
            open = outcome.more;
            after = outcome.last_id;
            if open {
                generations.pin(1, expiry(clock.now())).unwrap();
            }
        }
        let changed = second * 7_919 % DOCUMENTS;
        publish(
            &generations,
            second + 2,
            &[doc(changed, 1), doc(DOCUMENTS + second, 1)],
        );
        clock.advance(1);
        if second % 60 == 0 {
            most_bytes = most_bytes.max(generations.disk_bytes().unwrap());
            most_generations = most_generations.max(count(&dir.path().join("generations"), ".gen"));
        }
    }

    let ids: Vec<&str> = seen
        .iter()
        .map(|item| item["id"].as_str().unwrap())
        .collect();
    let expected: Vec<String> = (0..DOCUMENTS).map(|n| format!("item-{n:05}")).collect();
    assert_eq!(ids, expected);
    assert!(
        seen.iter().all(|item| item["revision"] == 0),
        "the traversal saw a later write"
    );

    let current = generations.current().unwrap();
    assert_eq!(current.number(), SECONDS + 1);
    assert_eq!(current.count(ResourceType::Offering), DOCUMENTS + SECONDS);
    assert_eq!(most_generations, 2, "the current one and the pinned one");
    // The catalog grows to 2.46 times; beside it stand the pinned one and at most as much dead as alive.
    assert!(most_bytes < single * 6, "{most_bytes} of {single}");

    assert!(matches!(generations.get(1), Err(Error::CursorExpired)));
    assert_eq!(count(&dir.path().join("generations"), ".gen"), 1);
    assert_eq!(
        count(&dir.path().join("pins"), ""),
        1,
        "only the lock file is left"
    );
    let segments = current.segments(ResourceType::Offering).len();
    assert_eq!(count(&dir.path().join("segments"), ""), segments);
    assert!(segments <= 24, "{segments}");
}

fn count(dir: &std::path::Path, ending: &str) -> usize {
    let names = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(ending)).count()
}
