//! Queries over the segments of a generation.

use super::TextConfig;
use super::analyzer::Analyzer;
use super::best::{Top, best};
use super::cursor::{Lengths, Spot, Word};
use super::expand::expand;
use super::index::{Part, PartField, TextIndex};
use super::plan::{Form, Kind, Wanted, plan};
use crate::Error;
use crate::search::{Bitset, Resume, TextMatch};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// What a completion counts, when the word itself counts 1.
const COMPLETION: f32 = 0.5;

/// What each of two neighbours counts for being neighbours, when it counts 1 for being there.
const NEIGHBOURS: f32 = 0.25;

/// Prefixes whose completions are remembered.
const REMEMBERED: usize = 256;

/// The text indexes of a generation, searchable.
pub struct TextSearch {
    segments: Vec<Arc<TextIndex>>,
    analyzer: Analyzer,
    /// For each field.
    pub(super) weights: Vec<f32>,
    pub(super) lengths: Vec<Lengths>,
    documents: u64,
    completions: Mutex<HashMap<String, Arc<[String]>>>,
}

impl TextSearch {
    /// Text indexes in the order of the segments, and the configuration that they were built with, save that weights may be others.
    pub fn new(segments: Vec<Arc<TextIndex>>, config: &TextConfig) -> Self {
        let parts = || segments.iter().flat_map(|index| &index.parts);
        let documents = parts().map(|part| u64::from(part.documents)).sum();
        let forms = |field: usize| {
            let fields = parts().filter_map(|part| part.fields.get(field));
            fields.map(PartField::forms).sum()
        };
        Self {
            lengths: (0..config.weights.len())
                .map(|field| Lengths::new(forms(field), documents))
                .collect(),
            analyzer: Analyzer::new(config),
            weights: config.weights.clone(),
            documents,
            completions: Mutex::default(),
            segments,
        }
    }

    /// Reads a query: any text is one.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub fn query(&self, text: &str) -> Result<TextQuery<'_>, Error> {
        let wanted = self.analyzer.with_stems(|stems| plan(stems, text));
        let mut words = Vec::with_capacity(wanted.len());
        for wanted in wanted {
            words.push(self.look_up(wanted)?);
        }
        let pairs = words.iter().zip(words.iter().skip(1)).enumerate();
        let pairs = pairs.map(|(left, (l, r))| Pair {
            left,
            distance: r.position - l.position,
            numbers: (l.number, r.number),
            worth: NEIGHBOURS * (l.rareness + r.rareness),
        });
        Ok(TextQuery {
            pairs: pairs.collect(),
            search: self,
            words,
        })
    }

    /// Finds a word in all indexes.
    fn look_up(&self, wanted: Wanted) -> Result<QueryWord, Error> {
        let mut forms = wanted.forms;
        if let Some(prefix) = &wanted.prefix {
            for text in self.completions(prefix)?.iter() {
                if !forms.iter().any(|form| form.text == *text) {
                    forms.push(Form {
                        text: text.clone(),
                        factor: COMPLETION,
                        kind: Kind::Completion,
                    });
                }
            }
        }
        // Documents that have a form, by form and field.
        let mut counts = vec![0; forms.len() * self.weights.len()];
        let mut places = Vec::with_capacity(self.segments.len());
        for index in &self.segments {
            let mut parts = Vec::with_capacity(index.parts.len());
            for part in &index.parts {
                parts.push(self.spots(index, part, &forms, &mut counts)?);
            }
            places.push(parts);
        }
        let most = counts.into_iter().max().unwrap_or_default();
        Ok(QueryWord {
            places,
            rareness: rareness(most, self.documents),
            position: wanted.position,
            number: wanted.number,
        })
    }

    /// Where the forms of a word are in a part, field after field.
    fn spots(
        &self,
        index: &TextIndex,
        part: &Part,
        forms: &[Form],
        counts: &mut [u64],
    ) -> Result<Vec<Spot>, Error> {
        let mut spots = Vec::new();
        let fields = part.fields.iter().enumerate().take(self.weights.len());
        for (field, inverted) in fields {
            let counts = counts.iter_mut().skip(field * forms.len());
            for (form, count) in forms.iter().zip(counts) {
                let info = inverted.inverted.terms().get(&form.text);
                if let Some(info) = info.map_err(|e| index.failed(e))? {
                    *count += u64::from(info.doc_freq);
                    spots.push(Spot {
                        field,
                        factor: form.factor,
                        kind: form.kind,
                        info,
                    });
                }
            }
        }
        Ok(spots)
    }

    fn completions(&self, prefix: &str) -> Result<Arc<[String]>, Error> {
        if let Some(known) = self.completions.lock().get(prefix) {
            return Ok(Arc::clone(known));
        }
        let found: Arc<[String]> = expand(&self.segments, prefix)?.into();
        let mut completions = self.completions.lock();
        if completions.len() >= REMEMBERED {
            completions.clear();
        }
        completions.insert(prefix.to_owned(), Arc::clone(&found));
        Ok(found)
    }
}

/// How much a word says that `n` of `documents` have.
fn rareness(n: u64, documents: u64) -> f32 {
    let (n, documents) = (n as f64, documents as f64);
    (1.0 + (documents - n + 0.5) / (n + 0.5)).ln() as f32
}

/// A query over the segments of a generation. It matches documents that have all its words.
pub struct TextQuery<'a> {
    search: &'a TextSearch,
    words: Vec<QueryWord>,
    pairs: Vec<Pair>,
}

struct QueryWord {
    rareness: f32,
    position: u32,
    number: usize,
    /// By segment and part.
    places: Vec<Vec<Vec<Spot>>>,
}

/// Two words of a query that follow each other.
pub(super) struct Pair {
    /// The place of the first among the words.
    pub(super) left: usize,
    /// Places from the first to the second.
    pub(super) distance: u32,
    /// Their numbers in the query.
    pub(super) numbers: (usize, usize),
    /// What it counts, for a field of weight 1, that they follow each other there.
    pub(super) worth: f32,
}

impl TextQuery<'_> {
    /// Whether it has no words, and so matches nothing.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The words of the query in a part, opened; nothing when one of them is not there.
    fn open<'q>(
        &'q self,
        index: &'q TextIndex,
        segment: usize,
        at: usize,
    ) -> Result<Option<Vec<Word<'q>>>, Error> {
        let Some(part) = index.parts.get(at) else {
            return Ok(None);
        };
        let mut all = Vec::with_capacity(self.words.len());
        for word in &self.words {
            let places = word.places.get(segment).and_then(|parts| parts.get(at));
            let Some(spots) = places.filter(|spots| !spots.is_empty()) else {
                return Ok(None);
            };
            all.push((word, spots));
        }
        let mut opened = Vec::with_capacity(all.len());
        for (word, spots) in all {
            let word = Word::open(self.search, part, spots, word.rareness);
            opened.push(word.map_err(|e| index.failed(e))?);
        }
        Ok(Some(opened))
    }
}

impl TextMatch for TextQuery<'_> {
    fn matching(&self, segment: usize) -> Result<Bitset, Error> {
        let Some(index) = self.search.segments.get(segment) else {
            return Ok(Bitset::new(0));
        };
        let len = index.documents();
        if self.words.is_empty() {
            return Ok(Bitset::new(len));
        }
        let mut matching = Bitset::full(len);
        for word in &self.words {
            let mut bits = vec![0; (len as usize).div_ceil(64)];
            let parts = word.places.get(segment).into_iter().flatten();
            for (part, spots) in index.parts.iter().zip(parts) {
                for spot in spots {
                    let filled = spot.fill(part, part.base, &mut bits);
                    filled.map_err(|e| index.failed(e))?;
                }
            }
            matching.and(&Bitset::from_words(len, bits));
            if matching.is_empty() {
                break;
            }
        }
        Ok(matching)
    }

    fn best(
        &self,
        segment: usize,
        among: &Bitset,
        resume: Option<Resume>,
        limit: usize,
    ) -> Result<Vec<(f32, u32)>, Error> {
        let Some(index) = self.search.segments.get(segment) else {
            return Ok(Vec::new());
        };
        if self.words.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let mut top = Top::new(limit, resume);
        for (at, part) in index.parts.iter().enumerate() {
            if let Some(words) = self.open(index, segment, at)? {
                let found = best(self.search, part, words, &self.pairs, among, &mut top);
                found.map_err(|e| index.failed(e))?;
            }
        }
        Ok(top.into_sorted())
    }
}
