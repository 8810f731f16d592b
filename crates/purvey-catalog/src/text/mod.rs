//! The text engine: which documents have the words of a query, and which of them fit it best (ODP §5 leaves both to the Service).
//!
//! Beside each segment stands one file with an index whose document numbers are the segment's ordinals. A [`TextWriter`] writes it from texts that an [`Analyzer`]
//! prepared, a [`TextIndex`] reads it, a [`TextSearch`] asks the indexes of all segments of a generation together.
//!
//! **Words.** Text is lower-cased and brought into one compatible form (NFKC). Words are runs of letters, digits and their marks, of at most [`WORD_CHARS`]
//! characters. Accents do not count, nor do the spellings of `ß`, `æ`, `œ`, `ø`, `ł`, `đ`, `þ` and kin. In a language with a stemmer a word also stands for its stem. Scripts
//! without spaces between words (Chinese, Japanese, Korean, Thai and others) are taken as single characters and pairs of neighbours.
//! Neighbours that only connectors lie between (`-_./@:` and apostrophes), and neighbours in a text of at most four words, can be found as one word too, if one of them has a letter: `left-pad`,
//! `Left Pad` and `leftpad` find each other.
//!
//! **Numbers.** Numbers that connectors tie are one number of several parts, whatever ties them: `1.2.3`, `2024-01-15`. Letters before its first part are no part of it: `v1.2.3` and
//! `1.2.3` find each other, and so do `python3.11` and `Python 3.11`. A query's number must be there as it is, alone or within a longer one (`1.2` and `2.3`, not `1.3`, in `1.2.3`); four parts at a
//! time are looked for. Numbers that hyphens alone tie are one word too: `555-1234` and `5551234` find each other.
//!
//! **Marks.** Two plus signs after a word, a number sign after a single letter and a full stop before a word make another word of it: `c++`, `c#`, `.net`. Asked for with its mark a word is found only
//! with it; without, with any and with none. A full stop that ties two words of a query (`asp.net`) asks for nothing.
//!
//! **Queries.** A query is data and has no operators; its first [`QUERY_CHARS`] characters count. Every one of its first [`QUERY_WORDS`] distinct words must be in some field; the last, unless it is a number of several
//! parts, may be the beginning of a word there, from [`PREFIX_CHARS`] characters on: of any such word, however many there are. Stop words of the language are passed over, unless there is nothing else. A query without words matches nothing.
//!
//! **Scores.** Let `N` be the documents that the caller sees, and `n` those of them that have a word's most frequent form in the field where most have it. The word counts its rareness `ln(1 + (N - n + 0.5) / (n + 0.5))` times the sum over the fields of the field's weight times
//! `2.2 f / (f + 1.2 (0.25 + 0.75 l / a))`, `f` being how often it occurs there, `l` the field's length in indexed forms (from 40 on rounded down, by a ninth at most) and `a` the average length in what the caller sees: BM25. Of several forms in one field the best counts; a
//! stem counts 0.8 and a word that is written as one with its neighbour 0.6 of the word itself. Where none of the last word's forms is, what it is the beginning of counts 0.5, as if it occurred once, and as rare as all that begins so: `n` is then the documents that
//! have any such word, if they are more. Neighbours of the query that both stand in a field, and there beside each other or in one word, add a quarter of the sum of their rareness times
//! the field's weight. Nothing that is dead or hidden from the caller has a part in any of this.

mod analyzer;
mod completions;
mod cursor;
mod directory;
mod facts;
mod file;
mod index;
mod lengths;
mod numbers;
mod plan;
mod prefix;
mod query;
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
pub use query::{TextQuery, WordMatch};
pub use search::{TextSearch, TextSegment};
pub use writer::TextWriter;

use purvey_odp::language::LanguageTag;
use xxhash_rust::xxh3::xxh3_64;

/// Characters of a word that count; longer words are cut.
pub const WORD_CHARS: usize = 128;

/// Distinct words of a query that count; further ones are passed over.
pub const QUERY_WORDS: usize = 32;

/// Characters of a query that count; further ones are passed over.
pub const QUERY_CHARS: usize = 2_048;

/// Characters from which on the last word of a query may be the beginning of a word.
pub const PREFIX_CHARS: usize = 3;

/// Changes when the same text yields other words than before.
const ANALYSIS: u64 = 2;

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
