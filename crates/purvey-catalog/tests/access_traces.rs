//! What is written and hidden from a caller leaves no trace in what the caller gets: not in the bytes of a page, its continuation included.
//!
//! `ACCESS_CASES` sets how many random catalogs there are.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod access_common;
mod catalog_support;

use access_common::steps::{Step, apply, decorated, records, step, visible};
use access_common::{NONE, access, ids, list, put, with};
use bytes::Bytes;
use catalog_support::{collection, offering, read};
use proptest::prelude::*;
use purvey_catalog::Access;
use purvey_catalog::catalog::{Catalog, Listing, Options, Page, SearchRequest};
use purvey_catalog::clock::ManualClock;
use purvey_catalog::fs::Durability;
use purvey_catalog::manifest::Manifest;
use purvey_odp::identity::ResourceType::{self, Collection, Offering};
use purvey_odp::language::AcceptLanguage;
use purvey_odp::offering::Representation::{Full, Terse};
use purvey_odp::request::{CollectionSearchRequest, OfferingSearchRequest};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// A second after the clock took another time of expiry for continuations.
const NOW: u64 = 1_800_000_001;
const QUARTER: u64 = 900;

fn timed(clock: &Arc<ManualClock>) -> Options {
    Options {
        clock: Arc::clone(clock) as _,
        durability: Durability::Off,
        ..catalog_support::options()
    }
}

fn search(catalog: &Catalog, body: Value, access: &Access) -> Page {
    let request = SearchRequest {
        request: OfferingSearchRequest::validate(body).unwrap(),
        representation: Terse,
        accept_language: AcceptLanguage::default(),
        access: access.clone(),
    };
    catalog.search_offerings(&request).unwrap()
}

/// First pages of every kind.
fn pages(catalog: &Catalog, access: &Access) -> Vec<Bytes> {
    let roots = CollectionSearchRequest::validate(
        json!({"odp_version": "1.0", "parent_id": null, "limit": 1}),
    );
    let roots = catalog.search_collections(&SearchRequest {
        request: roots.unwrap(),
        representation: Terse,
        accept_language: AcceptLanguage::default(),
        access: access.clone(),
    });
    let by_text = json!({"odp_version": "1.0", "query": "name", "limit": 1});
    [
        list(catalog, &Listing::Offerings, Full, 1, None, access).unwrap(),
        list(catalog, &Listing::Collections, Terse, 1, None, access).unwrap(),
        roots.unwrap(),
        search(catalog, by_text, access),
    ]
    .into_iter()
    .map(|page| page.bytes)
    .collect()
}

/// `pages`, and each has a continuation.
fn continued(catalog: &Catalog, access: &Access) -> Vec<Bytes> {
    let pages = pages(catalog, access);
    for page in &pages {
        assert!(String::from_utf8_lossy(page).contains("?cursor="));
    }
    pages
}

fn published(catalog: &Catalog, kind: ResourceType, value: &Value) {
    put(catalog, kind, value);
    catalog.publish().unwrap();
}

#[test]
fn a_page_stays_the_same_while_only_what_is_hidden_changes() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let mut catalog = Catalog::open(dir.path(), timed(&clock)).unwrap();
    catalog.set_manifest(&catalog_support::manifest()).unwrap();
    let (public, staff, trade) = (Access::public(), access(&["staff"]), access(&["trade"]));
    let for_staff = |value: Value| with(value, "audience", json!(["staff"]));
    published(&catalog, Collection, &collection("jigs", &[]));
    published(&catalog, Collection, &collection("other", &[]));
    published(
        &catalog,
        Collection,
        &for_staff(collection("secret", &["tools"])),
    );
    published(&catalog, Offering, &offering("a", &["tools"]));
    published(&catalog, Offering, &offering("b", &["secret", "tools"]));
    published(&catalog, Offering, &offering("c", &["secret"]));
    let before = [&public, &trade].map(|caller| continued(&catalog, caller));
    let mut of_staff = continued(&catalog, &staff);
    assert_ne!(before[0], of_staff);
    let next = read(&list(&catalog, &Listing::Offerings, Full, 1, None, &public).unwrap()).1;

    let hidden: [&dyn Fn(&Catalog); 8] = [
        &|catalog| put(catalog, Offering, &for_staff(offering("aa", &["secret"]))),
        &|catalog| put(catalog, Offering, &for_staff(offering("aa", &["tools"]))),
        &|catalog| put(catalog, Offering, &for_staff(offering("zz", &["tools"]))),
        &|catalog| {
            put(
                catalog,
                Collection,
                &for_staff(collection("aaa", &["secret"])),
            );
        },
        // What others see is named in what is hidden.
        &|catalog| {
            put(
                catalog,
                Collection,
                &for_staff(collection("secret", &["saws"])),
            );
        },
        // A visible document comes to a hidden Collection.
        &|catalog| put(catalog, Offering, &offering("a", &["tools", "secret"])),
        &|catalog| _ = catalog.delete(Offering, "aa", NONE, false).unwrap(),
        // Visible documents are taken out of a hidden Collection.
        &|catalog| _ = catalog.delete(Collection, "secret", NONE, true).unwrap(),
    ];
    for (n, write) in hidden.iter().enumerate() {
        write(&catalog);
        catalog.publish().unwrap();
        for (caller, before) in [&public, &trade].into_iter().zip(&before) {
            assert_eq!(continued(&catalog, caller), *before, "write {n}");
        }
        let now = continued(&catalog, &staff);
        assert_ne!(now, of_staff, "write {n}");
        of_staff = now;
        // Another process, or the same after a restart, says the same.
        drop(catalog);
        catalog = Catalog::open(dir.path(), timed(&clock)).unwrap();
        for (caller, before) in [&public, &trade].into_iter().zip(&before) {
            assert_eq!(
                continued(&catalog, caller),
                *before,
                "write {n}, opened again"
            );
        }
        assert_eq!(continued(&catalog, &staff), of_staff);
    }
    let page = catalog.resume(&Listing::Offerings, &next.unwrap(), &public);
    assert_eq!(read(&page.unwrap()).0, ["b"]);

    // The same record again changes nothing; what they see does.
    published(&catalog, Offering, &offering("c", &[]));
    assert_eq!(continued(&catalog, &public), before[0]);
    published(&catalog, Offering, &offering("c", &["saws"]));
    let after = continued(&catalog, &public);
    assert_ne!(after, before[0]);
    assert_eq!(
        ids(&catalog, &Listing::Offerings, &staff),
        ["a", "b", "c", "zz"]
    );
    // What is shown, and what is hidden.
    published(&catalog, Offering, &offering("zz", &["tools"]));
    assert_eq!(
        ids(&catalog, &Listing::Offerings, &public),
        ["a", "b", "c", "zz"]
    );
    published(&catalog, Offering, &for_staff(offering("a", &["tools"])));
    assert_eq!(
        ids(&catalog, &Listing::Offerings, &public),
        ["b", "c", "zz"]
    );
    published(&catalog, Offering, &for_staff(offering("b", &[])));
    catalog.delete(Offering, "c", NONE, false).unwrap();
    catalog.publish().unwrap();
    assert_eq!(ids(&catalog, &Listing::Offerings, &public), ["zz"]);
}

#[test]
fn callers_who_keep_asking_do_not_keep_a_generation_for_ever() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let catalog = Catalog::open(dir.path(), timed(&clock)).unwrap();
    catalog.set_manifest(&catalog_support::manifest()).unwrap();
    published(&catalog, Offering, &offering("a", &[]));
    published(&catalog, Offering, &offering("b", &[]));
    let public = Access::public();
    let page = || list(&catalog, &Listing::Offerings, Full, 1, None, &public).unwrap();
    let mut last = page().generation;
    for n in 0..40 {
        let hidden = with(
            offering(&format!("h{n}"), &[]),
            "audience",
            json!(["staff"]),
        );
        published(&catalog, Offering, &hidden);
        let first = page();
        // Twice in each quarter of an hour: the second time nothing has changed.
        match n % 2 {
            0 if n > 0 => assert!(first.generation > last, "write {n}"),
            _ => assert_eq!(first.generation, last, "write {n}"),
        }
        last = first.generation;
        clock.advance(QUARTER / 2);
        catalog.collect().unwrap();
    }
    // Those of the last hour and a quarter, and the current one.
    let kept = catalog.stats().unwrap().generations.len();
    assert!(kept <= 7, "{kept} generations");
}

fn cases() -> u32 {
    let cases = std::env::var("ACCESS_CASES").ok();
    cases.and_then(|text| text.parse().ok()).unwrap_or(12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 24, ..ProptestConfig::default() })]

    #[test]
    fn what_does_not_change_for_a_caller_is_the_same_bytes(steps in prop::collection::vec(step(), 1..30)) {
        let manifest = Manifest::parse("[service]\nname = \"S\"\ndescription = \"S.\"\nlanguage = \"en\"\n", Path::new(".")).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::new(NOW));
        let mut catalog = Catalog::open(dir.path(), timed(&clock)).unwrap();
        catalog.set_manifest(&manifest).unwrap();
        for n in 0..6 {
            put(&catalog, Collection, &decorated(Collection, n, &[], &[], 0));
        }
        // Where nothing is hidden, the same record written again is a change.
        put(&catalog, Offering, &json!({"id": "hidden", "name": "Hidden", "audience": ["others"]}));
        catalog.publish().unwrap();
        let callers = [&[][..], &["staff"], &["trade"]];
        let seen = |catalog: &Catalog| {
            let stored = records(catalog);
            callers.map(|audiences| {
                let sees = |value: &Value| match value.get("audience") {
                    None => true,
                    Some(names) => audiences.iter().any(|name| names.as_array().unwrap().contains(&json!(name))),
                };
                // As it is stored too: who sees less of a document than others may see that it was written.
                let whole: Vec<_> = stored.iter().filter(|(_, value)| sees(value)).cloned().collect();
                let whole = if audiences.is_empty() { Vec::new() } else { whole };
                (visible(&stored, audiences), whole)
            })
        };
        let all = |catalog: &Catalog| callers.map(|audiences| pages(catalog, &access(audiences)));
        let (mut known, mut bytes) = (seen(&catalog), all(&catalog));
        for step in &steps {
            match step {
                Step::Publish => {
                    drop(catalog);
                    catalog = Catalog::open(dir.path(), timed(&clock)).unwrap();
                }
                step => apply(&catalog, step),
            }
            catalog.publish().unwrap();
            let (now, answered) = (seen(&catalog), all(&catalog));
            for (at, audiences) in callers.iter().enumerate() {
                if now[at] == known[at] {
                    prop_assert_eq!(&answered[at], &bytes[at], "{:?} {:?}", audiences, step);
                }
                let mut expected: Vec<String> = now[at].0.iter().filter(|(kind, _)| *kind == Offering)
                    .map(|(_, value)| value["id"].as_str().unwrap().to_owned()).collect();
                expected.sort();
                prop_assert_eq!(ids(&catalog, &Listing::Offerings, &access(audiences)), expected);
            }
            (known, bytes) = (now, answered);
        }
    }
}
