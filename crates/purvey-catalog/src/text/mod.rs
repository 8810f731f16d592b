//! The text engine: which documents have the words of a query, and which of them fit it best (ODP §5 leaves both to the Service).
//!
//! Beside each segment stands one file with an index whose document numbers are the segment's ordinals. A [`TextWriter`] writes it from texts that an [`Analyzer`]
//! prepared, a [`TextIndex`] reads it, a [`TextSearch`] asks the indexes of all segments of a generation together.
//!
//! **Words.** Text is lower-cased and brought into one compatible form (NFKC). Words are runs of letters, digits and their marks, of at most [`WORD_CHARS`]
//! characters. Accents do not count, nor do the spellings of `ß`, `æ`, `œ`, `ø`, `ł`, `đ`, `þ` and kin. In a language with a stemmer a word also stands for its stem. Scripts
//! without spaces between words (Chinese, Japanese, Korean, Thai and others) are taken as single characters and pairs of neighbours.
//! Neighbours that only connectors lie between (`-_./@:` and apostrophes), and neighbours in a text of at most four words, can be found as one word too: `left-pad`, `Left Pad`
//! and `leftpad` find each other.
//!
//! **Queries.** A query is data and has no operators. Every one of its first [`QUERY_WORDS`] distinct words must be in some field; the last may be the beginning of a word there, from
//! [`PREFIX_CHARS`] characters on: one of its 64 most frequent completions, out of the first 65,536 in the order of their bytes. Stop words of the language are passed over, unless there is nothing else. A query without words matches nothing.
//!
//! **Scores.** A word counts its rareness (that of its most frequent form in any field, or of its most frequent completion if it is nowhere itself, `ln(1 + (N - n + 0.5) / (n + 0.5))`) times the sum over the fields of the field's weight times
//! `2.2 f / (f + 1.2 (0.25 + 0.75 l / a))`, `f` being how often it occurs there, `l` the field's length in indexed forms and `a` the average length: BM25. Of several forms in one field the best counts; a
//! stem counts 0.8 and a word that is written as one with its neighbour 0.6 of the word itself. Where the last word is nowhere, what it is the beginning of counts 0.5, as if it occurred once. Neighbours of the query that are neighbours in a field add a quarter of the sum of their rareness times
//! the field's weight. Statistics are those of all segments, dead documents among them until a merge drops them.

mod analyzer;
mod completions;
mod cursor;
mod directory;
mod expand;
mod facts;
mod file;
mod index;
mod lengths;
mod plan;
mod recent;
mod search;
mod set;
mod several;
mod sift;
mod single;
mod stems;
mod top;
mod words;
mod writer;

pub use analyzer::{Analyzer, Prepared};
pub use index::TextIndex;
pub use search::{TextQuery, TextSearch};
pub use writer::TextWriter;

use purvey_odp::language::LanguageTag;
use xxhash_rust::xxh3::xxh3_64;

/// Characters of a word that count; longer words are cut.
pub const WORD_CHARS: usize = 128;

/// Distinct words of a query that count; further ones are passed over.
pub const QUERY_WORDS: usize = 32;

/// Characters from which on the last word of a query may be the beginning of a word.
pub const PREFIX_CHARS: usize = 3;

/// Changes when the same text yields other words than before.
const ANALYSIS: u64 = 1;

/// How text is indexed and weighed.
#[derive(Clone, Debug)]
pub struct TextConfig {
    /// The language of the texts; decides stemming and stop words.
    pub language: LanguageTag,
    /// How much a match counts in each text field, in the fields' order; positive and finite.
    pub weights: Vec<f32>,
}

impl TextConfig {
    /// A number that is another when an index that was built with another configuration does not serve this one. Weights do not matter to it: they apply when a
    /// query runs.
    pub fn digest(&self) -> u64 {
        let stemmer = stems::language(&self.language).map_or(0, |language| language as u64 + 1);
        let mut bytes = Vec::new();
        for number in [ANALYSIS, stemmer, self.weights.len() as u64] {
            bytes.extend(number.to_le_bytes());
        }
        xxh3_64(&bytes)
    }
}
