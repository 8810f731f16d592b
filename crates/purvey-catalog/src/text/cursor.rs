//! Walking through the documents that have a word.

use super::index::{Part, PartField};
use super::lengths::{Lengths, MOST};
use super::plan::Kind;
use super::prefix::PartBegun;
use super::search::TextSearch;
use super::set::Set;
use std::io;
use tantivy::postings::{BlockSegmentPostings, Postings, SegmentPostings, TermInfo};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, TERMINATED};

/// Where a form is: in a field of a part.
pub(super) struct Spot {
    pub(super) field: usize,
    pub(super) factor: f32,
    pub(super) kind: Kind,
    pub(super) info: TermInfo,
}

/// A word of a query in a part: the documents that have any of its forms in any field, and those that have only completions of it.
pub(super) struct Word<'q> {
    /// Field after field.
    pub(super) sources: Vec<Source<'q>>,
    /// For each field what it may count there.
    pub(super) fields: Vec<Bound>,
    pub(super) completed: Option<Completed<'q>>,
    /// Postings of all sources, and of completions.
    pub(super) cost: u64,
    /// What no document exceeds that has a form.
    pub(super) most: f32,
}

/// What a word may count in a field.
#[derive(Clone, Copy, Default)]
pub(super) struct Bound {
    weight: f32,
    /// How often it may occur.
    frequency: u32,
}

impl Bound {
    /// What the word counts at most in a field that has a length of this code.
    pub(super) fn at(self, lengths: &Lengths, code: u8, is_repeated: bool) -> f32 {
        let share = if is_repeated {
            lengths.highest_at(self.frequency, code)
        } else {
            lengths.share(1, code)
        };
        self.weight * share
    }
}

/// The completions of the last word, which count in documents that have none of its forms.
pub(super) struct Completed<'q> {
    /// For each field the documents that have one there.
    pub(super) sets: &'q [Set],
    /// What one counts, when its [`share`](TextSearch::completed) is 1.
    pub(super) worth: f32,
    /// What no document exceeds.
    pub(super) most: f32,
}

impl<'q> Word<'q> {
    /// The forms of a word.
    pub(super) fn open(
        search: &'q TextSearch,
        part: &'q Part,
        spots: &[Spot],
        rareness: f32,
    ) -> io::Result<Self> {
        let mut word = Self {
            sources: Vec::with_capacity(spots.len()),
            fields: vec![Bound::default(); search.weights.len()],
            completed: None,
            cost: 0,
            most: 0.0,
        };
        for spots in spots.chunk_by(|a, b| a.field == b.field) {
            let Some(number) = spots.first().map(|spot| spot.field) else {
                continue;
            };
            let (Some(field), Some(lengths), Some(weight), Some(bound)) = (
                part.fields.get(number),
                search.lengths.get(number),
                search.weights.get(number),
                word.fields.get_mut(number),
            ) else {
                continue;
            };
            let mut most = 0.0_f32;
            for spot in spots {
                let facts = &field.facts;
                let frequency = facts.most_frequent(&field.inverted, &spot.info)?;
                let source = Source {
                    number,
                    field,
                    lengths,
                    weight: rareness * weight * MOST * spot.factor,
                    most: rareness * weight * MOST * spot.factor * lengths.highest(frequency),
                    kind: spot.kind,
                    info: spot.info.clone(),
                    block: None,
                    at: 0,
                    doc: TERMINATED,
                    bound: None,
                    places: None,
                };
                most = most.max(source.most);
                bound.weight = bound.weight.max(source.weight);
                bound.frequency = bound.frequency.max(frequency);
                word.cost += u64::from(spot.info.doc_freq);
                word.sources.push(source);
            }
            word.most += most;
        }
        Ok(word)
    }

    /// Lets completions count too.
    pub(super) fn complete(&mut self, search: &TextSearch, begun: &'q PartBegun, worth: f32) {
        self.completed = Some(Completed {
            sets: &begun.fields,
            worth,
            most: worth * search.completed_most(),
        });
        self.cost += begun.cost;
    }

    /// What the word counts in a document; nothing when none of its forms is there. Documents must be asked for in ascending order. Fields are passed over in which it
    /// is known not to be.
    pub(super) fn score(
        &mut self,
        doc: u32,
        may_be_in: impl Fn(usize) -> bool,
    ) -> io::Result<Option<f32>> {
        let mut is_there = false;
        let (mut total, mut best, mut number) = (0.0, 0.0_f32, usize::MAX);
        for source in &mut self.sources {
            if !may_be_in(source.number) || source.seek(doc)? != doc {
                continue;
            }
            is_there = true;
            if source.number != number {
                total += best;
                best = 0.0;
                number = source.number;
            }
            best = best.max(source.score());
        }
        Ok(is_there.then_some(total + best))
    }

    /// Goes back to the first document.
    pub(super) fn rewind(&mut self) {
        for source in &mut self.sources {
            source.block = None;
            source.doc = TERMINATED;
            source.bound = None;
            source.places = None;
        }
    }

    /// The sources in a field that stand at a document.
    pub(super) fn at(&mut self, field: usize, doc: u32) -> impl Iterator<Item = &mut Source<'q>> {
        let sources = self.sources.iter_mut();
        sources.filter(move |source| source.number == field && source.doc == doc)
    }
}

impl Completed<'_> {
    /// Whether a document has a completion in any field.
    pub(super) fn contains(&self, doc: u32) -> bool {
        self.sets.iter().any(|set| set.contains(doc))
    }

    /// What completions count in a document; nothing when none is there.
    pub(super) fn score(&self, search: &TextSearch, part: &Part, doc: u32) -> Option<f32> {
        self.score_in(search, part, doc, |field| {
            self.sets.get(field).is_some_and(|set| set.contains(doc))
        })
    }

    /// The same where it is known in which fields they are.
    pub(super) fn score_in(
        &self,
        search: &TextSearch,
        part: &Part,
        doc: u32,
        is_in: impl Fn(usize) -> bool,
    ) -> Option<f32> {
        let share = search.completed(part, doc, is_in)?;
        Some(self.worth * share)
    }
}

/// A form in a field.
pub(super) struct Source<'q> {
    /// The field's number.
    pub(super) number: usize,
    pub(super) field: &'q PartField,
    lengths: &'q Lengths,
    /// What it counts, were it to occur without end.
    weight: f32,
    /// What no document exceeds.
    pub(super) most: f32,
    pub(super) kind: Kind,
    pub(super) info: TermInfo,
    /// Read when it is first wanted.
    block: Option<Box<BlockSegmentPostings>>,
    at: usize,
    doc: u32,
    /// What no document of the block exceeds, once it is known.
    bound: Option<f32>,
    places: Option<Box<SegmentPostings>>,
}

impl Source<'_> {
    /// The document that it stands at; [`TERMINATED`] past the last.
    pub(super) fn doc(&self) -> u32 {
        self.doc
    }

    /// Goes on to the first document from `target` on.
    pub(super) fn seek(&mut self, target: u32) -> io::Result<u32> {
        let Some(block) = &mut self.block else {
            let option = IndexRecordOption::WithFreqs;
            let inverted = &self.field.inverted;
            let mut block = inverted.read_block_postings_from_terminfo(&self.info, option)?;
            self.at = block.seek(target);
            self.doc = block.doc(self.at);
            self.block = Some(Box::new(block));
            return Ok(self.doc);
        };
        if self.doc >= target {
            return Ok(self.doc);
        }
        let len = block.block_len();
        if self.at + 1 < len && block.doc(self.at + 1) >= target {
            self.at += 1;
        } else {
            if block.doc(len - 1) < target {
                self.bound = None;
            }
            self.at = block.seek(target);
        }
        self.doc = block.doc(self.at);
        Ok(self.doc)
    }

    /// Goes on to the first document of the block where it counts so much; tells whether there is one.
    pub(super) fn seek_score(&mut self, least: f32) -> bool {
        let Some(block) = &self.block else {
            return false;
        };
        let docs = block.docs().iter().zip(block.freqs()).enumerate();
        for (at, (doc, frequency)) in docs.skip(self.at) {
            let length = self.field.lengths.fieldnorm_id(*doc);
            if self.weight * self.lengths.share(*frequency, length) >= least {
                self.at = at;
                self.doc = *doc;
                return true;
            }
        }
        false
    }

    /// What it counts in the document that it stands at.
    pub(super) fn score(&self) -> f32 {
        let frequency = self.block.as_ref().map_or(0, |block| block.freq(self.at));
        let length = self.field.lengths.fieldnorm_id(self.doc);
        self.weight * self.lengths.share(frequency, length)
    }

    /// What no document exceeds from the present through the one that is told with it.
    pub(super) fn bound(&mut self) -> (f32, u32) {
        let Some(block) = &mut self.block else {
            return (self.most, TERMINATED);
        };
        let last = block.doc(block.block_len() - 1);
        let bound = *self.bound.get_or_insert_with(|| {
            let rating = block.block_max_score(&self.field.lengths, &self.field.rating);
            self.weight * self.lengths.highest_rated(rating, self.field)
        });
        (bound, last)
    }

    /// The places in the document that it stands at.
    pub(super) fn places(&mut self, out: &mut Vec<u32>) -> io::Result<()> {
        let postings = match &mut self.places {
            Some(postings) => postings,
            None => {
                let option = IndexRecordOption::WithFreqsAndPositions;
                let inverted = &self.field.inverted;
                let opened = inverted.read_postings_from_terminfo(&self.info, option)?;
                self.places.insert(Box::new(opened))
            }
        };
        if postings.seek(self.doc) == self.doc {
            postings.append_positions_with_offset(0, out);
        }
        Ok(())
    }
}
