//! Queries over the segments of a generation.

use super::TextConfig;
use super::analyzer::Analyzer;
use super::completions::{Completions, Remembered};
use super::cursor::{Spot, Word};
use super::expand::expand;
use super::index::{Part, PartField, TextIndex};
use super::lengths::{Lengths, MOST};
use super::plan::{COMPLETION, Form, Kind, Wanted, plan};
use super::top::Top;
use super::{several, single};
use crate::Error;
use crate::search::{Bitset, Resume, TextMatch};
use std::io;
use std::sync::Arc;

/// What each of two neighbours counts for being neighbours, when it counts 1 for being there.
const NEIGHBOURS: f32 = 0.25;

/// The text indexes of a generation, searchable.
pub struct TextSearch {
    segments: Vec<Arc<TextIndex>>,
    analyzer: Analyzer,
    /// For each field.
    pub(super) weights: Vec<f32>,
    pub(super) lengths: Vec<Lengths>,
    documents: u64,
    completions: Remembered,
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
            completions: Remembered::default(),
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

    /// What a prefix may stand for.
    fn completions(&self, prefix: &str) -> Result<Arc<Completions>, Error> {
        if let Some(known) = self.completions.get(prefix) {
            return Ok(known);
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
        let places = self.places(&forms, &mut counts)?;
        let completions = Arc::new(Completions::new(places, most.unwrap_or_default()));
        self.completions.put(prefix, &completions);
        Ok(completions)
    }
}

/// Where forms are, by segment and part.
type Places = Vec<Vec<Vec<Spot>>>;

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

    /// The completions of the last word.
    fn completions(&self) -> Result<Option<Arc<Completions>>, Error> {
        let prefix = self.words.last().and_then(|word| word.prefix.as_ref());
        let completions = prefix.map(|prefix| self.search.completions(prefix));
        completions.transpose()
    }

    /// The words of the query in a part, opened, with completions of the last word if there are any; nothing when one of the words is not there.
    fn open<'q>(
        &'q self,
        part: &'q Part,
        place: (usize, usize),
        completions: Option<&'q Completions>,
    ) -> io::Result<Option<Vec<Word<'q>>>> {
        let (segment, at) = place;
        let last = self.words.len() - 1;
        let completions = completions.filter(|c| !spots(&c.places, segment, at).is_empty());
        let is_there = |(number, word): (usize, &QueryWord)| {
            !spots(&word.places, segment, at).is_empty() || number == last && completions.is_some()
        };
        if !self.words.iter().enumerate().all(is_there) {
            return Ok(None);
        }
        let mut words = Vec::with_capacity(self.words.len());
        for word in &self.words {
            let spots = spots(&word.places, segment, at);
            words.push(Word::open(self.search, part, spots, word.rareness)?);
        }
        if let (Some(completions), Some(word), Some(of)) =
            (completions, words.last_mut(), self.words.last())
            && let Some(read) = self.search.completions.read(completions, part, place)?
        {
            let worth = of.rareness * COMPLETION;
            word.complete(self.search, &read.sets, read.cost, worth);
        }
        Ok(Some(words))
    }

    fn best_of_several(
        &self,
        index: &TextIndex,
        segment: usize,
        among: &Bitset,
        top: &mut Top,
    ) -> Result<(), Error> {
        let completions = self.completions()?;
        for (at, part) in index.parts.iter().enumerate() {
            let words = self.open(part, (segment, at), completions.as_deref());
            if let Some(words) = words.map_err(|e| index.failed(e))? {
                let found = several::best(self.search, part, words, &self.pairs, among, top);
                found.map_err(|e| index.failed(e))?;
            }
        }
        Ok(())
    }

    /// First looks for the word, then for its completions, if they can be among the best.
    fn best_of_one(
        &self,
        index: &TextIndex,
        segment: usize,
        among: &Bitset,
        top: &mut Top,
    ) -> Result<(), Error> {
        let failed = |error| index.failed(error);
        for (at, part) in index.parts.iter().enumerate() {
            let words = self.open(part, (segment, at), None).map_err(failed)?;
            for mut word in words.into_iter().flatten() {
                let found = single::best(self.search, part, &mut word, among, top);
                found.map_err(failed)?;
            }
        }
        if self.completed_most() < top.floor() {
            return Ok(());
        }
        let Some(completions) = self.completions()? else {
            return Ok(());
        };
        for (at, part) in index.parts.iter().enumerate() {
            let place = (segment, at);
            let words = self
                .open(part, place, Some(&*completions))
                .map_err(failed)?;
            let read = self.search.completions.read(&completions, part, place);
            let Some(read) = read.map_err(failed)? else {
                continue;
            };
            for word in words.iter().flatten() {
                let found = single::complete(self.search, part, word, read, among, top);
                found.map_err(failed)?;
            }
        }
        Ok(())
    }

    /// What completions of the only word count at most.
    fn completed_most(&self) -> f32 {
        let word = self.words.first().filter(|word| word.prefix.is_some());
        let worth = word.map_or(-1.0, |word| word.rareness * COMPLETION * MOST);
        let fields = self.search.weights.iter().zip(&self.search.lengths);
        let most = fields.map(|(weight, lengths)| weight * lengths.highest(1));
        worth * most.sum::<f32>()
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
        let mut set = vec![0; (len as usize).div_ceil(64)];
        let completions = self.completions()?;
        for (at, part) in index.parts.iter().enumerate() {
            let words = self.open(part, (segment, at), completions.as_deref());
            if let Some(mut words) = words.map_err(|e| index.failed(e))? {
                let matched = several::matching(part, &mut words, &mut set);
                matched.map_err(|e| index.failed(e))?;
            }
        }
        Ok(Bitset::from_words(len, set))
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
        if let [_] = self.words.as_slice() {
            self.best_of_one(index, segment, among, &mut top)?;
        } else {
            self.best_of_several(index, segment, among, &mut top)?;
        }
        Ok(top.into_sorted())
    }
}
