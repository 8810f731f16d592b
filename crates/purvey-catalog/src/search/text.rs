//! What the search asks of a text index.

use super::bitset::Bitset;
use crate::Error;

/// A text query over the segments of a generation. Answers depend on nothing but the query and the generation, so that pages fit each other.
pub trait TextMatch {
    /// All documents of a segment that match, the dead may be among them; over all documents of the segment.
    ///
    /// # Errors
    /// When the text index cannot be read.
    fn matching(&self, segment: usize) -> Result<Bitset, Error>;

    /// The best `limit` of those documents of a segment that match and are in `among`, with their scores: highest score first, of equal ones the lowest ordinal. Scores
    /// of all segments are comparable.
    ///
    /// # Errors
    /// When the text index cannot be read.
    fn best(
        &self,
        segment: usize,
        among: &Bitset,
        resume: Option<Resume>,
        limit: usize,
    ) -> Result<Vec<(f32, u32)>, Error>;
}

/// Where a page goes on: at lower scores, and at this score from an ordinal on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resume {
    /// The score of the last document of the page before.
    pub score: f32,
    /// The first ordinal of the segment whose id comes after that document's.
    pub next: u32,
}

impl Resume {
    /// Whether a document comes after the page before.
    pub fn admits(&self, score: f32, ordinal: u32) -> bool {
        score < self.score || (score == self.score && ordinal >= self.next)
    }
}
