//! Random legal searches over random catalogs find what the oracle finds: the same items in the same order on every page, and the same counts by every plan.
//!
//! Each small catalog is asked two dozen requests; `SEARCH_CASES` sets how many there are.
#![allow(clippy::unwrap_used, reason = "tests with helpers")]

mod search_common;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use purvey_catalog::search::{After, FilterCache, Order, Plan, Query, SearchIndex};
use purvey_odp::refinement::RefinementGroup;
use search_common::oracle::expected;
use search_common::request::{Asked, asked};
use search_common::values::Random;
use search_common::{Catalog, Scores};
use std::sync::Arc;

fn check(catalog: &Catalog, index: &SearchIndex, asked: &Asked) -> Result<(), TestCaseError> {
    let expected = expected(catalog, asked);
    let scores = Scores(catalog);
    let members = asked
        .collection
        .as_ref()
        .map(|id| catalog.members(id.as_str()));
    let mut query = Query {
        filters: asked.resolved.filters(),
        collection: asked.collection.as_ref(),
        scope: members.as_ref(),
        text: asked.with_text.then_some(&scores),
        order: match asked.resolved.sort() {
            Some(sort) => Order::Keys(sort.keys()),
            None => Order::Relevance,
        },
        after: None,
        limit: asked.limit,
        refinements: asked.resolved.refinements(),
        plan: None,
    };
    let plans = [Plan::Totals, Plan::Iterate, Plan::Complement, Plan::Scan];
    for plan in plans.map(Some).into_iter().chain([None]) {
        query.plan = plan;
        let hits = index.search(&query).unwrap();
        let groups: Vec<_> = hits
            .refinements
            .iter()
            .map(RefinementGroup::to_value)
            .collect();
        prop_assert_eq!(&groups, &expected.groups, "by {:?}: {}", plan, asked.body);
    }
    let segments = 0..catalog.segments.len();
    let of_segments: Vec<_> = segments.map(|at| catalog.ids(at)).collect();
    let id = |segment: usize, ordinal: u32| of_segments[segment][ordinal as usize].clone();
    let mut ids = Vec::new();
    let mut last: Option<(String, f32)> = None;
    loop {
        let hits = index.search(&Query {
            after: last.as_ref().map(|(id, score)| After {
                id,
                score: *score,
                place: None,
            }),
            refinements: &[],
            ..query
        });
        let hits = hits.unwrap();
        ids.extend(
            hits.documents
                .iter()
                .map(|hit| id(hit.segment, hit.ordinal)),
        );
        last = hits
            .documents
            .last()
            .map(|hit| (id(hit.segment, hit.ordinal), hit.score));
        prop_assert_eq!(hits.more, ids.len() < expected.ids.len(), "{}", asked.body);
        if !hits.more {
            break;
        }
        // A page before another one is full.
        prop_assert_eq!(hits.documents.len(), asked.limit);
    }
    prop_assert_eq!(&ids, &expected.ids, "{}", asked.body);
    Ok(())
}

fn check_catalog(
    seed: u64,
    documents: usize,
    segments: usize,
    requests: usize,
    page: usize,
) -> Result<(), TestCaseError> {
    let mut random = Random(seed);
    let catalog = Catalog::random(&mut random, documents, segments);
    // Small enough to forget.
    let cache = Arc::new(FilterCache::new(4_000));
    let index = catalog.index(&cache);
    for _ in 0..requests {
        let mut asked = asked(&mut random);
        asked.limit *= page;
        check(&catalog, &index, &asked)?;
    }
    prop_assert!(cache.bytes() <= 4_000);
    Ok(())
}

fn cases() -> u32 {
    let cases = std::env::var("SEARCH_CASES").ok();
    cases.and_then(|cases| cases.parse().ok()).unwrap_or(128)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn small_catalogs(seed in any::<u64>(), documents in 0..120_usize, segments in 1..5_usize) {
        check_catalog(seed, documents, segments, 24, 1)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3, ..ProptestConfig::default() })]

    /// Over several blocks of words.
    #[test]
    fn large_catalogs(seed in any::<u64>(), documents in 5_000..9_000_usize, segments in 1..4_usize) {
        check_catalog(seed, documents, segments, 12, 200)?;
    }
}
