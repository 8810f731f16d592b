//! Why a search was as fast as it was.

use super::Snapshot;
use crate::search::{Hits, Order, Trace};
use crate::text::WordMatch;
use purvey_odp::request::OfferingSearchRequest;
use serde::Serialize;
use std::time::Instant;

/// How a `search-offerings` was answered. Its shape can be logged: neither the text nor a value that was searched for is in it, save for [`words`](Self::words).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The generation that answered.
    pub generation: u64,
    /// Its segments of Offerings.
    pub segments: usize,
    /// `relevance`, `id`, or the filters of the sort keys, each with its direction.
    pub order: Vec<String>,
    /// Whether there was text.
    pub has_query: bool,
    /// The words of the text as they were understood; only where a caller asked for an explanation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<WordMatch>,
    /// Each Filter Expression as `filter operator`, in the order of the request.
    pub filters: Vec<String>,
    /// `members`, or `descendants` too, of a Collection.
    pub scope: Option<&'static str>,
    /// Filters whose values were counted.
    pub refinements: Vec<String>,
    /// Items found for the page.
    pub items: usize,
    /// Whether more match after them.
    pub more: bool,
    /// What happened in each segment.
    pub trace: Trace,
    /// Microseconds for resolving the request, and for what the generation makes when it is first searched.
    pub prepare_us: u64,
    /// Microseconds for finding and counting.
    pub search_us: u64,
    /// Microseconds for reading the items and making the page.
    pub deliver_us: u64,
}

impl Explanation {
    pub(super) fn new(
        snapshot: &Snapshot,
        request: &OfferingSearchRequest,
        order: Order<'_>,
        hits: &Hits,
        trace: Trace,
        phases: &Phases,
    ) -> Self {
        let generation = &snapshot.generation;
        let filters = request.filters().iter();
        let refinements = request.refinements().iter();
        Self {
            generation: generation.number(),
            segments: generation
                .segments(purvey_odp::identity::ResourceType::Offering)
                .len(),
            order: match order {
                Order::Id => vec!["id".to_owned()],
                Order::Relevance => vec!["relevance".to_owned()],
                Order::Keys(keys) => keys
                    .iter()
                    .map(|key| format!("{} {}", key.filter_id(), key.direction().as_str()))
                    .collect(),
            },
            has_query: request.query().is_some(),
            words: Vec::new(),
            filters: filters
                .map(|filter| format!("{} {}", filter.id(), filter.operator()))
                .collect(),
            scope: request
                .collection_id()
                .map(|_| match request.include_descendants() {
                    true => "descendants",
                    false => "members",
                }),
            refinements: refinements.map(ToString::to_string).collect(),
            items: hits.documents.len(),
            more: hits.more,
            trace,
            prepare_us: phases.prepare,
            search_us: phases.search,
            deliver_us: phases.deliver,
        }
    }
}

/// Measures the phases of one search.
pub(super) struct Phases {
    since: Instant,
    prepare: u64,
    search: u64,
    deliver: u64,
}

impl Phases {
    pub(super) fn start() -> Self {
        Self {
            since: Instant::now(),
            prepare: 0,
            search: 0,
            deliver: 0,
        }
    }

    pub(super) fn prepared(&mut self) {
        self.prepare = self.lap();
    }

    pub(super) fn searched(&mut self) {
        self.search = self.lap();
    }

    pub(super) fn delivered(&mut self) {
        self.deliver = self.lap();
    }

    fn lap(&mut self) -> u64 {
        let now = Instant::now();
        let lap = now.duration_since(self.since);
        self.since = now;
        u64::try_from(lap.as_micros()).unwrap_or(u64::MAX)
    }
}
