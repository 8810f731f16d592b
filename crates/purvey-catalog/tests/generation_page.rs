//! Page bodies: the envelope, the byte limit, the continuation.
#![allow(clippy::unwrap_used, clippy::panic)]

mod generation_common;

use generation_common::{Doc, publish, tags};
use purvey_catalog::Error;
use purvey_catalog::clock::ManualClock;
use purvey_catalog::fs::Durability;
use purvey_catalog::generation::{Generations, ListQuery, ListScope};
use purvey_catalog::page::{document, page};
use purvey_odp::identity::ResourceType;
use purvey_odp::offering::Representation;
use std::sync::Arc;

fn generations(dir: &tempfile::TempDir, docs: &[Doc]) -> Generations {
    let clock = Arc::new(ManualClock::new(1_800_000_000));
    let generations = Generations::open_with(dir.path(), clock, Durability::Off).unwrap();
    publish(&generations, 1, docs);
    generations
}

fn docs(count: usize, padding: usize) -> Vec<Doc> {
    let doc = |n| Doc {
        padding,
        ..Doc::new(format!("item-{n:03}"), 1)
    };
    (0..count).map(doc).collect()
}

fn query(after: Option<&str>, limit: usize, representation: Representation) -> ListQuery<'_> {
    ListQuery {
        kind: ResourceType::Offering,
        scope: ListScope::All,
        after,
        limit,
        max_bytes: usize::MAX,
        representation,
        preferred: &[],
    }
}

#[test]
fn a_page_is_exactly_this() {
    let dir = tempfile::tempdir().unwrap();
    let current = generations(&dir, &docs(3, 0)).current().unwrap();
    let next = |last: &str| Ok(format!("/v1/offerings?cursor={last}"));
    let first = page(
        &current,
        &query(None, 2, Representation::Terse),
        false,
        next,
    )
    .unwrap();
    assert_eq!(
        String::from_utf8(first.bytes).unwrap(),
        r#"{"odp_version":"1.0","items":[{"id":"item-000","revision":1},{"id":"item-001","revision":1}],"next":"/v1/offerings?cursor=item-001"}"#
    );
    let never = |_: &str| panic!("there is no next page");
    let last = page(
        &current,
        &query(Some("item-001"), 2, Representation::Full),
        false,
        never,
    )
    .unwrap();
    assert_eq!(
        String::from_utf8(last.bytes).unwrap(),
        r#"{"odp_version":"1.0","items":[{"id":"item-002","revision":1,"description":""}]}"#
    );
    let empty = page(
        &current,
        &query(Some("item-002"), 2, Representation::Full),
        false,
        never,
    )
    .unwrap();
    assert_eq!(
        String::from_utf8(empty.bytes).unwrap(),
        r#"{"odp_version":"1.0","items":[]}"#
    );
    assert_eq!(empty.outcome.last_id, None);
}

#[test]
fn a_document_by_itself_names_the_version_and_when_negotiated_its_language() {
    let dir = tempfile::tempdir().unwrap();
    let current = generations(&dir, &docs(1, 0)).current().unwrap();
    let get = |id, preferred: &[&str]| {
        document(
            &current,
            ResourceType::Offering,
            id,
            Representation::Terse,
            &tags(preferred),
            false,
        )
    };
    let plain = get("item-000", &[]).unwrap();
    assert_eq!(
        plain.bytes,
        br#"{"odp_version":"1.0","id":"item-000","revision":1}"#
    );
    let foreign = get("item-000", &["fr"]).unwrap();
    assert_eq!(
        foreign.bytes,
        br#"{"odp_version":"1.0","language":"en","id":"item-000","revision":1}"#
    );
    assert_eq!(foreign.language, tags(&["en"]).pop());
    assert!(matches!(get("item-001", &[]), Err(Error::NotFound)));
    assert!(matches!(
        document(
            &current,
            ResourceType::Collection,
            "item-000",
            Representation::Terse,
            &[],
            false
        ),
        Err(Error::NotFound)
    ));
}

#[test]
fn pages_stay_within_the_byte_limit_with_the_longest_next_and_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    // Items of 6,047 bytes: 86 of them and their commas are 520,127 bytes, 87 are 526,175. The limit is 524,288.
    let current = generations(&dir, &docs(200, 6_000)).current().unwrap();
    let mut after: Option<String> = None;
    let mut counts = Vec::new();
    loop {
        let next = |_: &str| Ok("n".repeat(2_048));
        let built = page(
            &current,
            &query(after.as_deref(), 100, Representation::Full),
            false,
            next,
        )
        .unwrap();
        assert!(built.bytes.len() <= 524_288);
        let value: serde_json::Value = serde_json::from_slice(&built.bytes).unwrap();
        assert_eq!(
            value["items"].as_array().unwrap().len(),
            built.outcome.count
        );
        counts.push(built.outcome.count);
        after = built.outcome.last_id;
        if !built.outcome.more {
            break;
        }
    }
    assert_eq!(counts, [86, 86, 28]);
}

#[test]
fn an_item_is_delivered_even_if_it_fills_the_page() {
    let dir = tempfile::tempdir().unwrap();
    let current = generations(&dir, &docs(2, 524_100)).current().unwrap();
    let next = |_: &str| Ok("/next".to_owned());
    let built = page(
        &current,
        &query(None, 100, Representation::Full),
        false,
        next,
    )
    .unwrap();
    assert_eq!((built.outcome.count, built.outcome.more), (1, true));
}

#[test]
fn a_continuation_that_cannot_be_sent_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let current = generations(&dir, &docs(2, 0)).current().unwrap();
    for bad in [
        "n".repeat(2_049),
        "/a\"b".to_owned(),
        "/ä".to_owned(),
        "/a b".to_owned(),
    ] {
        let built = page(
            &current,
            &query(None, 1, Representation::Full),
            false,
            |_| Ok(bad),
        );
        assert!(matches!(built, Err(Error::Conflict { .. })));
    }
}
