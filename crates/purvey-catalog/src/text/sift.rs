//! Documents that have all words, window by window.

use super::cursor::{Source, Word};
use super::index::Part;
use super::set::{Bits, EMPTY, FULL, Set, WINDOW, add, keep, put, window};
use crate::search::Bitset;
use std::io;
use tantivy::TERMINATED;
use tantivy::postings::BlockSegmentPostings;
use tantivy::schema::IndexRecordOption;

/// Postings of a word that are gone through in the time that one of its documents is sought.
const FEED_FACTOR: u64 = 16;

/// Goes through the documents that have all fed words.
pub(super) struct Sift<'q> {
    /// The rarest words, rarest first.
    pub(super) fed: Vec<Fed<'q>>,
    /// Other words, so frequent that it takes less to look them up document by document; rarest first.
    pub(super) others: Vec<usize>,
    from: u32,
}

impl<'q> Sift<'q> {
    /// With what [`Fed`] tells of each field, or without, which takes less.
    pub(super) fn new(words: &[Word<'q>], part: &Part, by_field: bool) -> io::Result<Self> {
        let fields = if by_field { part.fields.len() } else { 0 };
        let mut order: Vec<usize> = (0..words.len()).collect();
        order.sort_by_key(|at| words.get(*at).map(|word| word.cost));
        let mut sift = Self {
            fed: Vec::with_capacity(words.len()),
            others: Vec::new(),
            from: 0,
        };
        let mut most = u64::MAX;
        for number in order {
            let Some(word) = words.get(number) else {
                continue;
            };
            if word.cost > most {
                sift.others.push(number);
                continue;
            }
            if sift.fed.is_empty() {
                most = word.cost.saturating_mul(FEED_FACTOR);
            }
            sift.fed.push(Fed::open(number, word, fields)?);
        }
        Ok(sift)
    }

    /// The next window with documents that have all fed words and are in `among`, and where it begins.
    pub(super) fn next(&mut self, part: &Part, among: Option<&Bitset>) -> Option<(u32, Bits)> {
        let (first, rest) = self.fed.split_first_mut()?;
        loop {
            let next = first.next(self.from);
            if next >= part.documents {
                return None;
            }
            let base = window(next);
            self.from = base + WINDOW;
            let mut found = among.map_or(FULL, |among| piece(among, part.base + base));
            first.sift(base, &mut found);
            for fed in &mut *rest {
                if found == EMPTY {
                    break;
                }
                fed.sift(base, &mut found);
            }
            if found != EMPTY {
                return Some((base, found));
            }
        }
    }

    /// Leaves completions out from now on.
    pub(super) fn forget_completions(&mut self) {
        self.fed.iter_mut().for_each(|fed| fed.completed = None);
    }
}

/// The piece of a set that begins at an ordinal, a multiple of 64.
pub(super) fn piece(set: &Bitset, start: u32) -> Bits {
    let mut piece = EMPTY;
    let words = set.words().iter().skip(start as usize / 64);
    piece.iter_mut().zip(words).for_each(|(a, b)| *a = *b);
    piece
}

/// A word whose documents are gone through.
pub(super) struct Fed<'q> {
    pub(super) word: usize,
    feeds: Vec<Feed>,
    completed: Option<&'q [Set]>,
    /// For each field the documents of the window that have a form there.
    pub(super) forms: Vec<Bits>,
    /// For each field those that have one more than once.
    pub(super) repeated: Vec<Bits>,
    /// For each field the documents of the window that have a completion there; empty when none are looked for.
    pub(super) completions: Vec<Bits>,
}

impl<'q> Fed<'q> {
    /// Over so many fields; with none, nothing is told of fields.
    pub(super) fn open(number: usize, word: &Word<'q>, fields: usize) -> io::Result<Self> {
        let completed = word.completed.as_ref().map(|completed| completed.sets);
        let sets = completed.filter(|_| fields > 0).map_or(0, <[Set]>::len);
        let option = match fields {
            0 => IndexRecordOption::Basic,
            _ => IndexRecordOption::WithFreqs,
        };
        Ok(Self {
            word: number,
            feeds: feeds(word, option)?,
            completed,
            forms: vec![EMPTY; fields],
            repeated: vec![EMPTY; fields],
            completions: vec![EMPTY; sets],
        })
    }

    /// The first document from `from` on.
    fn next(&mut self, from: u32) -> u32 {
        let feeds = self.feeds.iter_mut().map(|feed| feed.seek(from));
        let next = feeds.min().unwrap_or(TERMINATED);
        let sets = self.completed.unwrap_or_default();
        sets.iter().map(|set| set.next(from)).fold(next, u32::min)
    }

    /// Reads the window that begins at `base`, and keeps what is there.
    pub(super) fn sift(&mut self, base: u32, found: &mut Bits) {
        let any = match self.forms.is_empty() {
            true => self.fill(base),
            false => self.fill_by_field(base),
        };
        keep(found, &any);
    }

    /// Where any form or completion is in the window that begins at `base`.
    fn fill(&mut self, base: u32) -> Bits {
        let mut any = EMPTY;
        for feed in &mut self.feeds {
            feed.read(base, |docs, _| {
                docs.iter().for_each(|doc| put(&mut any, *doc));
            });
        }
        let sets = self.completed.unwrap_or_default();
        sets.iter().for_each(|set| set.fill(base, &mut any));
        any
    }

    /// As [`fill`](Self::fill), and notes what is in which field.
    fn fill_by_field(&mut self, base: u32) -> Bits {
        self.forms.fill(EMPTY);
        self.repeated.fill(EMPTY);
        for feed in &mut self.feeds {
            let forms = self.forms.get_mut(feed.field);
            if let (Some(forms), Some(repeated)) = (forms, self.repeated.get_mut(feed.field)) {
                feed.read(base, |docs, freqs| {
                    for (doc, frequency) in docs.iter().zip(freqs) {
                        let at = doc % WINDOW;
                        let word = at as usize / 64;
                        forms[word] |= 1 << (at % 64);
                        repeated[word] |= u64::from(*frequency > 1) << (at % 64);
                    }
                });
            }
        }
        let mut any = EMPTY;
        self.forms.iter().for_each(|forms| add(&mut any, forms));
        if let Some(sets) = self.completed {
            for (set, completions) in sets.iter().zip(&mut self.completions) {
                *completions = EMPTY;
                set.fill(base, completions);
                add(&mut any, completions);
            }
        } else {
            self.completions.clear();
        }
        any
    }
}

/// The documents of a word's forms; without forms whose documents have another form too.
fn feeds(word: &Word<'_>, option: IndexRecordOption) -> io::Result<Vec<Feed>> {
    let mut feeds = Vec::with_capacity(word.sources.len());
    for sources in word.sources.chunk_by(|a, b| a.number == b.number) {
        for (at, source) in sources.iter().enumerate() {
            // Forms come before their stems.
            let later = sources.get(at + 1..).unwrap_or_default();
            if !is_within_any(source, later)? {
                feeds.push(Feed::open(source, option)?);
            }
        }
    }
    Ok(feeds)
}

fn is_within_any(source: &Source<'_>, others: &[Source<'_>]) -> io::Result<bool> {
    for other in others {
        let field = source.field;
        let facts = &field.facts;
        if facts.is_within(&field.inverted, &source.info, &other.info)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The documents of a form in a field.
struct Feed {
    field: usize,
    block: Box<BlockSegmentPostings>,
    at: usize,
}

impl Feed {
    fn open(source: &Source<'_>, option: IndexRecordOption) -> io::Result<Self> {
        let inverted = &source.field.inverted;
        let block = inverted.read_block_postings_from_terminfo(&source.info, option)?;
        Ok(Self {
            field: source.number,
            block: Box::new(block),
            at: 0,
        })
    }

    /// The first document from `target` on.
    fn seek(&mut self, target: u32) -> u32 {
        let doc = self.block.doc(self.at);
        if doc >= target {
            return doc;
        }
        self.at = self.block.seek(target);
        self.block.doc(self.at)
    }

    /// Goes through the documents of the window that begins at `base`, some at a time, with how often each has the form where that is read.
    fn read(&mut self, base: u32, mut take: impl FnMut(&[u32], &[u32])) {
        let end = base + WINDOW;
        let mut doc = self.seek(base);
        while doc < end {
            let docs = self.block.docs().get(self.at..).unwrap_or_default();
            let freqs = self.block.freqs().get(self.at..).unwrap_or_default();
            let is_last = docs.last().is_some_and(|last| *last >= end);
            let here = if is_last {
                docs.partition_point(|doc| *doc < end)
            } else {
                docs.len()
            };
            take(docs.get(..here).unwrap_or_default(), freqs);
            if is_last {
                self.at += here;
                return;
            }
            self.block.advance();
            self.at = 0;
            doc = self.block.doc(0);
        }
    }
}
