//! How a search was answered: for people who ask why, and for logs. Nothing of it says what was searched for.

use super::refine::Plan;
use serde::Serialize;
use std::time::Instant;

/// One search over the segments of a generation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Trace {
    /// What happened in each segment that was looked into.
    pub segments: Vec<SegmentTrace>,
    /// Microseconds that uniting the segments' documents and counts took.
    pub unite_us: u64,
}

/// One segment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SegmentTrace {
    /// The place of the segment in the generation.
    pub segment: usize,
    /// Documents in it, the dead too.
    pub documents: u32,
    /// Documents that are alive, in scope and, unless the text index looks for the best itself, match the text.
    pub candidates: u32,
    /// Those that match the filters too.
    pub matching: u32,
    /// Filter Expressions whose documents were remembered.
    pub remembered: u32,
    /// Counting of each refined filter that has values here.
    pub refinements: Vec<RefinementTrace>,
    /// Microseconds for scope and text.
    pub scope_us: u64,
    /// Microseconds for filters.
    pub filters_us: u64,
    /// Microseconds for counts.
    pub refinements_us: u64,
    /// Microseconds for the first documents of the order.
    pub order_us: u64,
}

/// How the values of one filter were counted in a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RefinementTrace {
    /// The filter.
    pub filter_id: String,
    /// The way.
    pub plan: Plan,
    /// Documents whose values were wanted.
    pub documents: u32,
    /// Distinct values of the filter in the segment.
    pub values: u32,
}

/// Measures one phase after the other.
pub(super) struct Watch(Instant);

impl Watch {
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    /// Microseconds since the last lap.
    pub(super) fn lap(&mut self) -> u64 {
        let now = Instant::now();
        let lap = now.duration_since(self.0);
        self.0 = now;
        u64::try_from(lap.as_micros()).unwrap_or(u64::MAX)
    }
}
