//! Queries over the segments of a generation.

use super::TextConfig;
use super::analyzer::Analyzer;
use super::best::{Top, best};
use super::cursor::{Lengths, MOST, Spot, Word};
use super::expand::expand;
use super::index::{Part, PartField, TextIndex};
use super::plan::{COMPLETION, Form, Kind, Wanted, plan};
use crate::Error;
use crate::search::{Bitset, Resume, TextMatch};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

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
    completions: Mutex<HashMap<String, Arc<Completions>>>,
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
        // Documents that have a form, by field and form.
        let mut counts = vec![0; wanted.forms.len() * self.weights.len()];
        let places = self.places(&wanted.forms, &mut counts)?;
        let mut most = counts.into_iter().max().unwrap_or_default();
        if let (0, Some(prefix)) = (most, &wanted.prefix) {
            most = self.completions(prefix)?.most;
        }
        Ok(QueryWord {
            places,
            rareness: rareness(most, self.documents),
            prefix: wanted.prefix,
            position: wanted.position,
            number: wanted.number,
        })
    }

    fn places(&self, forms: &[Form], counts: &mut [u64]) -> Result<Places, Error> {
        let mut places = Vec::with_capacity(self.segments.len());
        for index in &self.segments {
            let mut parts = Vec::with_capacity(index.parts.len());
            for part in &index.parts {
                parts.push(self.spots(index, part, forms, counts)?);
            }
            places.push(parts);
        }
        Ok(places)
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

    /// What a prefix may stand for, but for nothing that is a form of the word.
    fn completions(&self, prefix: &str) -> Result<Arc<Completions>, Error> {
        if let Some(known) = self.completions.lock().get(prefix) {
            return Ok(Arc::clone(known));
        }
        let found = expand(&self.segments, prefix)?;
        let most = found.iter().map(|(_, documents)| *documents).max();
        let forms = found.into_iter().map(|(text, _)| Form {
            text,
            factor: COMPLETION,
            kind: Kind::Completion,
        });
        let forms: Vec<Form> = forms.collect();
        let mut counts = vec![0; forms.len() * self.weights.len()];
        let completions = Arc::new(Completions {
            places: self.places(&forms, &mut counts)?,
            most: most.unwrap_or_default(),
        });
        let mut known = self.completions.lock();
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(prefix.to_owned(), Arc::clone(&completions));
        Ok(completions)
    }
}

/// Where forms are, by segment and part.
type Places = Vec<Vec<Vec<Spot>>>;

/// What a prefix may stand for.
struct Completions {
    places: Places,
    /// Documents that have the most frequent of them.
    most: u64,
}

fn spots(places: &Places, segment: usize, part: usize) -> &[Spot] {
    let spots = places.get(segment).and_then(|parts| parts.get(part));
    spots.map_or(&[], Vec::as_slice)
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
    prefix: Option<String>,
    places: Places,
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

    /// The words of the query in a part, opened, with completions instead of the last word or without; nothing when one of them is not there.
    fn open<'q>(
        &'q self,
        index: &'q TextIndex,
        (segment, at): (usize, usize),
        completions: Option<&Completions>,
    ) -> Result<Option<Vec<Word<'q>>>, Error> {
        let Some(part) = index.parts.get(at) else {
            return Ok(None);
        };
        let last = self.words.len() - 1;
        let completions = |word| completions.filter(|_| word == last);
        let is_there = |(number, word): (usize, &QueryWord)| match completions(number) {
            None => !spots(&word.places, segment, at).is_empty(),
            Some(completions) => !spots(&completions.places, segment, at).is_empty(),
        };
        if !self.words.iter().enumerate().all(is_there) {
            return Ok(None);
        }
        let words = self.words.iter().enumerate().map(|(number, word)| {
            let own = spots(&word.places, segment, at);
            match completions(number) {
                None => Word::open(self.search, part, own, word.rareness),
                Some(completions) => {
                    let completed = spots(&completions.places, segment, at);
                    Word::complete(self.search, part, (completed, own), word.rareness)
                }
            }
        });
        let words = words.collect::<std::io::Result<_>>();
        words.map(Some).map_err(|e| index.failed(e))
    }

    /// What documents that have a completion instead of the last word score at most.
    fn completed_most(&self) -> f32 {
        let weights: f32 = self.search.weights.iter().sum();
        let words = self.words.iter().map(|word| word.rareness);
        let last = self.words.last().map_or(0.0, |word| word.rareness);
        let words = words.sum::<f32>() - (1.0 - COMPLETION) * last;
        let pairs: f32 = self.pairs.iter().map(|pair| pair.worth).sum();
        weights * (words * MOST + pairs)
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
            let completions = word.prefix.as_ref().map(|p| self.search.completions(p));
            let completions = completions.transpose()?;
            for (at, part) in index.parts.iter().enumerate() {
                let completed = completions
                    .iter()
                    .flat_map(|c| spots(&c.places, segment, at));
                for spot in spots(&word.places, segment, at).iter().chain(completed) {
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
        let run = |top: &mut Top, completions: Option<&Completions>| {
            for (at, part) in index.parts.iter().enumerate() {
                if let Some(words) = self.open(index, (segment, at), completions)? {
                    let found = best(self.search, part, words, &self.pairs, among, top);
                    found.map_err(|e| index.failed(e))?;
                }
            }
            Ok::<_, Error>(())
        };
        run(&mut top, None)?;
        let prefix = self.words.last().and_then(|word| word.prefix.as_ref());
        if let Some(prefix) = prefix
            && top.can_take(self.completed_most())
        {
            run(&mut top, Some(&*self.search.completions(prefix)?))?;
        }
        Ok(top.into_sorted())
    }
}
