//! The facade's searches over real catalogs on disk find what the oracle finds by looking at every record, whatever is written, merged or restarted between pages.
//!
//! `SEARCH_CASES` sets how many random catalogs there are.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "helpers of tests"
)]

mod catalog_search_common;
mod catalog_support;
mod search_common;

use catalog_search_common::{COLLECTIONS, NOW, cursor, manifest, offering, open, request, resume};
use catalog_support::body;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use purvey_catalog::catalog::{Catalog, Change, Precondition};
use purvey_catalog::clock::ManualClock;
use purvey_odp::identity::ResourceType;
use purvey_odp::offering::Representation;
use purvey_odp::request::OfferingSearchRequest;
use search_common::oracle::expected;
use search_common::request::Asked;
use search_common::request::asked;
use search_common::values::Random;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// The Collections below one, itself too, by the table above.
fn below(id: &str) -> BTreeSet<&str> {
    let mut all = BTreeSet::from([id]);
    loop {
        let more: Vec<&str> = COLLECTIONS
            .iter()
            .filter(|(child, parents)| {
                !all.contains(child) && parents.iter().any(|parent| all.contains(parent))
            })
            .map(|(child, _)| *child)
            .collect();
        if more.is_empty() {
            return all;
        }
        all.extend(more);
    }
}

/// A catalog on disk beside the records that it should hold.
struct Beside<'a> {
    dir: &'a Path,
    clock: Arc<ManualClock>,
    catalog: Option<Catalog>,
    records: BTreeMap<String, Value>,
    random: Random,
}

impl Beside<'_> {
    fn catalog(&self) -> &Catalog {
        self.catalog.as_ref().unwrap()
    }

    /// Writes and deletes some records, and publishes.
    fn disturb(&mut self, most: usize) {
        let n = self.random.below(most) + 1;
        let mut changes = Vec::new();
        for _ in 0..n {
            let id = format!("o{}", self.random.below(60));
            if self.random.chance(20) && self.records.remove(&id).is_some() {
                let changes = std::mem::take(&mut changes);
                self.put(changes);
                self.catalog()
                    .delete(ResourceType::Offering, &id, Precondition::None, false)
                    .unwrap();
            } else {
                let value = offering(&mut self.random, &id);
                self.records.insert(id, value.clone());
                changes.push(Change {
                    kind: ResourceType::Offering,
                    value,
                });
            }
        }
        self.put(changes);
        self.catalog().publish().unwrap();
        if self.random.chance(10) {
            self.catalog().shutdown();
            self.catalog = None;
            self.catalog = Some(open(self.dir, &self.clock));
        }
    }

    fn put(&self, changes: Vec<Change>) {
        for written in self.catalog().put_many(changes) {
            written.unwrap();
        }
    }

    /// What the oracle says to a request now.
    fn expect(&self, asked: &Asked, descendants: bool) -> search_common::oracle::Expected {
        let scope = asked.collection.as_ref().map(|id| match descendants {
            true => below(id.as_str()),
            false => BTreeSet::from([id.as_str()]),
        });
        let is_in_scope = |record: &Value| {
            let of = record["collection_ids"].as_array();
            let mut of = of.into_iter().flatten().filter_map(Value::as_str);
            scope
                .as_ref()
                .is_none_or(|scope| of.any(|id| scope.contains(id)))
        };
        let records = self
            .records
            .iter()
            .filter(|(_, record)| is_in_scope(record));
        let model = search_common::Catalog {
            segments: vec![
                records
                    .map(|(id, record)| (id.clone(), record.clone()))
                    .collect(),
            ],
            removed: BTreeSet::new(),
        };
        let anywhere = Asked {
            body: asked.body.clone(),
            resolved: asked.resolved.clone(),
            collection: None,
            with_text: asked.with_text,
            limit: asked.limit,
        };
        expected(&model, &anywhere)
    }

    fn check(&mut self, asked: &Asked) -> Result<(), TestCaseError> {
        let mut body_sent = asked.body.clone();
        let descendants = asked.collection.is_some() && self.random.chance(50);
        if descendants {
            body_sent["include_descendants"] = json!(true);
        }
        body_sent["limit"] = json!(asked.limit);
        let expected = self.expect(asked, descendants);
        let records = self.records.clone();
        let representation = match self.random.chance(50) {
            true => Representation::Full,
            false => Representation::Terse,
        };
        let sent = OfferingSearchRequest::validate(body_sent.clone()).unwrap();
        let sent = request(sent, representation);
        let mut page = self.catalog().search_offerings(&sent).unwrap();
        let first = body(&page.bytes);
        let groups = first.get("refinements").cloned().unwrap_or(json!([]));
        prop_assert_eq!(&groups, &json!(expected.groups), "{}", &body_sent);
        let mut all = Vec::new();
        loop {
            let read = body(&page.bytes);
            prop_assert_eq!(&read["odp_version"], "1.0");
            for item in read["items"].as_array().unwrap() {
                let id = item["id"].as_str().unwrap();
                if representation == Representation::Full {
                    prop_assert_eq!(item, &records[id]);
                }
                prop_assert_eq!(&item["name"], &records[id]["name"]);
                all.push(id.to_owned());
            }
            let Some(cursor) = cursor(&page) else { break };
            prop_assert_eq!(read["items"].as_array().unwrap().len(), asked.limit);
            if self.random.chance(40) {
                self.disturb(6);
            }
            page = resume(self.catalog(), &cursor).unwrap();
            prop_assert!(body(&page.bytes).get("refinements").is_none());
        }
        let mut wanted = expected.ids;
        if asked.with_text && asked.resolved.sort().is_none() {
            // The Service decides what is most relevant; each comes once all the same.
            wanted.sort_unstable();
            all.sort_unstable();
        }
        prop_assert_eq!(&all, &wanted, "{}", &body_sent);
        Ok(())
    }
}

/// The requests, and their sorts under names of their own.
fn requests(random: &mut Random, count: usize) -> (Vec<Asked>, Vec<(String, bool, Value)>) {
    let mut sorts = Vec::new();
    let mut all = Vec::new();
    while all.len() < count {
        let mut asked = asked(random);
        if asked.with_text {
            asked.body["query"] = json!(random.pick(&["needle", "Needles", "a needle", "nee"]));
        }
        if let Some(sort) = asked.resolved.sort() {
            let id = format!("by{}", all.len());
            asked.body["sort"] = json!(id);
            sorts.push((
                id,
                asked.collection.is_some(),
                sort.to_value()["keys"].clone(),
            ));
        }
        all.push(asked);
    }
    (all, sorts)
}

fn check_catalog(seed: u64) -> Result<(), TestCaseError> {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random(seed);
    let (asked, sorts) = requests(&mut random, 12);
    let clock = Arc::new(ManualClock::new(NOW));
    let catalog = open(dir.path(), &clock);
    catalog.set_manifest(&manifest(&sorts)).unwrap();
    let mut beside = Beside {
        dir: dir.path(),
        clock,
        catalog: Some(catalog),
        records: BTreeMap::new(),
        random,
    };
    beside.disturb(40);
    for asked in &asked {
        beside.disturb(12);
        beside.check(asked)?;
    }
    beside.catalog().shutdown();
    Ok(())
}

fn cases() -> u32 {
    let cases = std::env::var("SEARCH_CASES").ok();
    cases.and_then(|cases| cases.parse().ok()).unwrap_or(24)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn random_catalogs_and_requests(seed in any::<u64>()) {
        check_catalog(seed)?;
    }
}
