//! A query over the text indexes of a generation.

use super::completions::Completions;
use super::cursor::{Spot, Word};
use super::index::{Part, TextIndex};
use super::plan::Wanted;
use super::search::TextSearch;
use super::top::Top;
use super::{several, single};
use crate::Error;
use crate::search::{Bitset, Resume, TextMatch};
use serde::Serialize;
use std::cell::OnceCell;
use std::io;
use std::time::Instant;

/// What each of two neighbours counts for being neighbours, when it counts 1 for being there.
const NEIGHBOURS: f32 = 0.25;

/// What a completion counts, when a word counts 1.
const COMPLETION: f32 = 0.5;

/// A query over the segments of a generation. It matches documents that have all its words.
pub struct TextQuery<'a> {
    search: &'a TextSearch,
    words: Vec<QueryWord>,
    pairs: Vec<Pair>,
    /// Of the last word, once they were wanted.
    completions: OnceCell<Option<Completions>>,
}

pub(super) struct QueryWord {
    pub(super) wanted: Wanted,
    /// Documents that have its most frequent form in the field where most have it.
    pub(super) documents: u64,
    pub(super) places: Places,
}

/// Where forms are, by segment and part.
pub(super) type Places = Vec<Vec<Vec<Spot>>>;

impl QueryWord {
    fn spots(&self, (segment, part): (usize, usize)) -> &[Spot] {
        let spots = self.places.get(segment).and_then(|parts| parts.get(part));
        spots.map_or(&[], Vec::as_slice)
    }
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

/// A word of a query, as it was understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WordMatch {
    /// The word; its other forms follow in [`forms`](Self::forms).
    pub word: String,
    /// What stands for it too: stems, and what it is when it is written as one with its neighbours.
    pub forms: Vec<String>,
    /// Whether whatever begins so matches too.
    pub is_prefix: bool,
    /// Documents that the caller sees and that have it in any form.
    pub documents: u64,
    /// Microseconds that finding these documents took.
    pub time_us: u64,
}

impl<'a> TextQuery<'a> {
    pub(super) fn new(search: &'a TextSearch, words: Vec<QueryWord>) -> Self {
        let rareness = |word: &QueryWord| search.rareness(word.documents);
        let pairs = words.iter().zip(words.iter().skip(1)).enumerate();
        let pairs = pairs.map(|(left, (l, r))| Pair {
            left,
            distance: r.wanted.position - l.wanted.position,
            numbers: (l.wanted.number, r.wanted.number),
            worth: NEIGHBOURS * (rareness(l) + rareness(r)),
        });
        Self {
            pairs: pairs.collect(),
            completions: OnceCell::new(),
            search,
            words,
        }
    }

    /// Whether it has no words, and so matches nothing.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Its words as they were understood, and how many documents each of them alone matches.
    ///
    /// # Errors
    /// When a text index cannot be read.
    pub fn words(&self) -> Result<Vec<WordMatch>, Error> {
        let words = self.words.iter().enumerate();
        let words = words.map(|(number, word)| {
            let begin = Instant::now();
            let mut documents = 0;
            for (at, segment) in self.search.segments.iter().enumerate() {
                let found = self.matching_in(&segment.index, at, number..number + 1)?;
                documents += segment.count(found);
            }
            let forms = &word.wanted.forms;
            let others = forms.iter().skip(1).map(|form| form.text.clone());
            Ok(WordMatch {
                word: forms.first().map(|f| f.text.clone()).unwrap_or_default(),
                forms: others.collect(),
                is_prefix: word.wanted.prefix.is_some(),
                documents,
                time_us: u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX),
            })
        });
        words.collect()
    }

    /// The completions of the last word.
    fn completions(&self) -> Result<Option<&Completions>, Error> {
        if self.completions.get().is_none() {
            let last = self.words.last();
            let prefix = last.and_then(|word| word.wanted.prefix.as_ref());
            let found = prefix.map(|prefix| self.search.completions(prefix));
            // Nobody else can have set it.
            let _ = self.completions.set(found.transpose()?);
        }
        Ok(self.completions.get().and_then(Option::as_ref))
    }

    /// What one of the completions counts, for a share of 1: as rare as whatever begins so, and never rarer than the word.
    fn completed_worth(&self, completions: &Completions) -> f32 {
        let word = self.words.last().map_or(0, |word| word.documents);
        COMPLETION * self.search.rareness(word.max(completions.known.documents))
    }

    /// Some words of the query in a part, opened, with completions of the last word if there are any; nothing when one of the words is not there.
    fn open<'q>(
        &'q self,
        part: &'q Part,
        place: (usize, usize),
        numbers: std::ops::Range<usize>,
        completions: Option<&'q Completions>,
    ) -> io::Result<Option<Vec<Word<'q>>>> {
        let last = self.words.len() - 1;
        let completed = |number: usize| {
            let completions = completions.filter(|_| number == last)?;
            Some((completions, completions.of(place)?))
        };
        let asked = self.words.get(numbers.clone()).unwrap_or_default();
        let asked = || numbers.clone().zip(asked);
        if !asked()
            .all(|(number, word)| !word.spots(place).is_empty() || completed(number).is_some())
        {
            return Ok(None);
        }
        let mut words = Vec::with_capacity(numbers.len());
        for (number, of) in asked() {
            let rareness = self.search.rareness(of.documents);
            let mut word = Word::open(self.search, part, of.spots(place), rareness)?;
            if let Some((completions, begun)) = completed(number) {
                word.complete(self.search, begun, self.completed_worth(completions));
            }
            words.push(word);
        }
        Ok(Some(words))
    }

    fn matching_in(
        &self,
        index: &TextIndex,
        segment: usize,
        numbers: std::ops::Range<usize>,
    ) -> Result<Bitset, Error> {
        let len = index.documents();
        let mut set = vec![0; (len as usize).div_ceil(64)];
        let completions = self.completions()?;
        for (at, part) in index.parts.iter().enumerate() {
            let words = self.open(part, (segment, at), numbers.clone(), completions);
            if let Some(mut words) = words.map_err(|e| index.failed(e))? {
                let matched = several::matching(part, &mut words, &mut set);
                matched.map_err(|e| index.failed(e))?;
            }
        }
        Ok(Bitset::from_words(len, set))
    }

    fn best_of_several(
        &self,
        index: &TextIndex,
        segment: usize,
        among: &Bitset,
        top: &mut Top,
    ) -> Result<(), Error> {
        let completions = self.completions()?;
        let all = 0..self.words.len();
        for (at, part) in index.parts.iter().enumerate() {
            let words = self.open(part, (segment, at), all.clone(), completions);
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
            let words = self.open(part, (segment, at), 0..1, None).map_err(failed)?;
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
            let words = self.open(part, place, 0..1, Some(completions));
            for mut word in words.map_err(failed)?.into_iter().flatten() {
                if let Some(ranked) = completions.ranked(self.search, part, place) {
                    let found = single::complete(self.search, part, &mut word, ranked, among, top);
                    found.map_err(failed)?;
                }
            }
        }
        Ok(())
    }

    /// What completions of the only word count at most.
    fn completed_most(&self) -> f32 {
        let word = self
            .words
            .first()
            .filter(|word| word.wanted.prefix.is_some());
        word.map_or(-1.0, |word| {
            COMPLETION * self.search.rareness(word.documents) * self.search.completed_most()
        })
    }
}

impl TextMatch for TextQuery<'_> {
    fn matching(&self, segment: usize) -> Result<Bitset, Error> {
        let Some(of) = self.search.segments.get(segment) else {
            return Ok(Bitset::new(0));
        };
        if self.words.is_empty() {
            return Ok(Bitset::new(of.index.documents()));
        }
        self.matching_in(&of.index, segment, 0..self.words.len())
    }

    fn best(
        &self,
        segment: usize,
        among: &Bitset,
        resume: Option<Resume>,
        limit: usize,
    ) -> Result<Vec<(f32, u32)>, Error> {
        let Some(of) = self.search.segments.get(segment) else {
            return Ok(Vec::new());
        };
        if self.words.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let index = &of.index;
        let mut top = Top::new(limit, resume);
        if let [_] = self.words.as_slice() {
            self.best_of_one(index, segment, among, &mut top)?;
        } else {
            self.best_of_several(index, segment, among, &mut top)?;
        }
        Ok(top.into_sorted())
    }
}
