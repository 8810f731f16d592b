//! The best documents so far.

use crate::search::Resume;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Bounds are added up in another order than scores, so they may be smaller by a rounding error.
pub(super) const ROUNDING: f32 = 1.000_1;

/// The best documents so far.
pub(super) struct Top {
    limit: usize,
    resume: Option<Resume>,
    /// The worst is on top.
    documents: BinaryHeap<Ranked>,
}

#[derive(Clone, Copy, PartialEq)]
struct Ranked {
    score: f32,
    ordinal: u32,
}

impl Eq for Ranked {}

impl Ord for Ranked {
    /// The better is the lesser.
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = other.score.total_cmp(&self.score);
        by_score.then(self.ordinal.cmp(&other.ordinal))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Top {
    pub(super) fn new(limit: usize, resume: Option<Resume>) -> Self {
        Self {
            limit,
            resume,
            documents: BinaryHeap::with_capacity(limit.min(1_024) + 1),
        }
    }

    /// What a document must score, save for rounding, to be among the best.
    pub(super) fn floor(&self) -> f32 {
        let worst = self.documents.peek();
        let worst = worst.filter(|_| self.documents.len() >= self.limit);
        worst.map_or(0.0, |worst| worst.score / ROUNDING)
    }

    /// Whether a document of just this score, and of this or a later ordinal, can be among the best.
    pub(super) fn can_take(&self, score: f32, ordinal: u32) -> bool {
        let worst = self.documents.peek();
        let new = Ranked { score, ordinal };
        self.documents.len() < self.limit || worst.is_some_and(|worst| new < *worst)
    }

    /// Adds a document; tells whether it is among the best.
    pub(super) fn add(&mut self, score: f32, ordinal: u32) -> bool {
        let is_admitted = self.resume.is_none_or(|r| r.admits(score, ordinal));
        if !is_admitted || !self.can_take(score, ordinal) {
            return false;
        }
        self.documents.push(Ranked { score, ordinal });
        if self.documents.len() > self.limit {
            self.documents.pop();
        }
        true
    }

    pub(super) fn into_sorted(self) -> Vec<(f32, u32)> {
        let documents = self.documents.into_sorted_vec();
        documents.iter().map(|d| (d.score, d.ordinal)).collect()
    }
}
