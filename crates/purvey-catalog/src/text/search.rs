//! The text indexes of a generation, or of a caller's view of it, and what is known of all their documents.

use super::TextConfig;
use super::analyzer::Analyzer;
use super::completions::{Completions, Known};
use super::cursor::Spot;
use super::index::{Part, PartField, TextIndex};
use super::lengths::{Lengths, MOST};
use super::plan::{Form, Wanted, plan};
use super::query::{Places, QueryWord, TextQuery};
use super::recent::Recent;
use super::set::WINDOW;
use crate::Error;
use crate::search::Bitset;
use roaring::RoaringBitmap;
use std::io;
use std::sync::Arc;
use tantivy::postings::TermInfo;
use tantivy::schema::IndexRecordOption;

/// Memory for counts of visible documents, in bytes, and what one takes, about.
const COUNTS_BYTES: usize = 2 << 20;
const COUNT_BYTES: usize = 80;

/// Memory for what is known of beginnings, in bytes, and what one takes beside its documents and windows, about.
const KNOWN_BYTES: usize = 8 << 20;
const KNOWN_EXTRA: usize = 256;

/// A document in which a form is dead is looked for in the time that so many of the form's documents are gone through.
const SEEK_FACTOR: u64 = 8;

/// The text index of a segment, and which of its documents count.
pub struct TextSegment {
    pub(super) index: Arc<TextIndex>,
    /// Those that do not; `None` where all do.
    dead: Option<Dead>,
}

struct Dead {
    set: Bitset,
    count: u64,
}

impl TextSegment {
    /// A segment without its dead, which may include what the caller may not see.
    pub fn new(index: Arc<TextIndex>, dead: &RoaringBitmap) -> Self {
        let set = Bitset::from_roaring(index.documents(), dead);
        let count = u64::from(set.count());
        Self {
            dead: (count > 0).then_some(Dead { set, count }),
            index,
        }
    }

    fn documents(&self) -> u64 {
        let dead = self.dead.as_ref().map_or(0, |dead| dead.count);
        u64::from(self.index.documents()) - dead
    }

    /// The lengths of a field of all documents that count, added up.
    fn total(&self, field: usize) -> u64 {
        let parts = self.index.parts.iter().filter_map(|part| {
            let field = part.fields.get(field)?;
            let gone = |doc| u64::from(field.lengths.fieldnorm(doc));
            let gone: u64 = self.dead_of(part).map(gone).sum();
            Some(field.total() - gone)
        });
        parts.sum()
    }

    /// The dead of a part, numbered as there.
    fn dead_of(&self, part: &Part) -> impl Iterator<Item = u32> {
        let (base, end) = (part.base, part.base + part.documents);
        let dead = self.dead.iter();
        let dead = dead.flat_map(move |dead| dead.set.iter_from(base));
        dead.take_while(move |doc| *doc < end)
            .map(move |doc| doc - base)
    }

    /// How many of a segment's documents count among these.
    pub(super) fn count(&self, mut found: Bitset) -> u64 {
        if let Some(dead) = &self.dead {
            found.and_not(&dead.set);
        }
        u64::from(found.count())
    }

    /// How many documents that count have a form.
    fn documents_of(&self, part: &Part, field: &PartField, form: &TermInfo) -> io::Result<u64> {
        let all = u64::from(form.doc_freq);
        let Some(dead) = &self.dead else {
            return Ok(all);
        };
        let option = IndexRecordOption::Basic;
        let mut postings = field
            .inverted
            .read_block_postings_from_terminfo(form, option)?;
        let mut gone = 0;
        if dead.count * SEEK_FACTOR < all {
            for doc in self.dead_of(part) {
                let at = postings.seek(doc);
                gone += u64::from(postings.doc(at) == doc);
            }
        } else {
            while postings.block_len() > 0 {
                let docs = postings.docs().iter();
                let is_gone = |doc: &&u32| dead.set.contains(part.base + **doc);
                gone += docs.filter(is_gone).count() as u64;
                postings.advance();
            }
        }
        Ok(all - gone)
    }
}

/// The text indexes of a generation, or of a view, searchable. Documents that are dead in it do not count: nothing that is found, nor any score, depends on them.
pub struct TextSearch {
    pub(super) segments: Vec<TextSegment>,
    analyzer: Analyzer,
    /// For each field.
    pub(super) weights: Vec<f32>,
    pub(super) lengths: Vec<Lengths>,
    /// Documents that count.
    documents: u64,
    /// Documents that count and have a form, by where its postings are: segment, part, field, place.
    counts: Recent<(usize, usize, usize, usize), u64>,
    /// By beginning.
    known: Recent<String, Arc<Known>>,
}

impl TextSearch {
    /// Text indexes in the order of the segments, and the configuration that they were built with, save that weights may be others.
    pub fn new(segments: Vec<TextSegment>, config: &TextConfig) -> Self {
        let documents = segments.iter().map(TextSegment::documents).sum();
        let total = |field| segments.iter().map(|segment| segment.total(field)).sum();
        Self {
            lengths: (0..config.weights.len())
                .map(|field| Lengths::new(total(field), documents))
                .collect(),
            analyzer: Analyzer::new(config),
            weights: config.weights.clone(),
            documents,
            counts: Recent::new(COUNTS_BYTES),
            known: Recent::new(KNOWN_BYTES),
            segments,
        }
    }

    /// Reads a query: any text is one.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub fn query(&self, text: &str) -> Result<TextQuery<'_>, Error> {
        let wanted = self.analyzer.with_stems(|stems| plan(stems, text));
        let words = wanted.into_iter().map(|wanted| self.look_up(wanted));
        Ok(TextQuery::new(self, words.collect::<Result<_, _>>()?))
    }

    /// Finds a word in all indexes.
    fn look_up(&self, wanted: Wanted) -> Result<QueryWord, Error> {
        // Documents that have a form, by field and form.
        let mut counts = vec![0; wanted.forms.len() * self.weights.len()];
        let mut places: Places = Vec::with_capacity(self.segments.len());
        for (at, segment) in self.segments.iter().enumerate() {
            let mut parts = Vec::with_capacity(segment.index.parts.len());
            for number in 0..segment.index.parts.len() {
                let spots = self.spots((at, number), &wanted.forms, &mut counts);
                parts.push(spots.map_err(|e| segment.index.failed(e))?);
            }
            places.push(parts);
        }
        Ok(QueryWord {
            documents: counts.into_iter().max().unwrap_or_default(),
            wanted,
            places,
        })
    }

    /// Where the forms of a word are in a part, field after field.
    fn spots(
        &self,
        (at, number): (usize, usize),
        forms: &[Form],
        counts: &mut [u64],
    ) -> io::Result<Vec<Spot>> {
        let mut spots = Vec::new();
        let segment = self.segments.get(at);
        let Some((segment, part)) = segment.and_then(|s| Some((s, s.index.parts.get(number)?)))
        else {
            return Ok(spots);
        };
        let fields = part.fields.iter().enumerate().take(self.weights.len());
        for (field, of_field) in fields {
            let counts = counts.iter_mut().skip(field * forms.len());
            for (form, count) in forms.iter().zip(counts) {
                let Some(info) = of_field.inverted.terms().get(&form.text)? else {
                    continue;
                };
                let key = (at, number, field, info.postings_range.start);
                *count += match self.counts.get(&key) {
                    Some(known) => known,
                    None => {
                        let documents = segment.documents_of(part, of_field, &info)?;
                        if segment.dead.is_some() {
                            self.counts.put(key, documents, COUNT_BYTES);
                        }
                        documents
                    }
                };
                spots.push(Spot {
                    field,
                    factor: form.factor,
                    kind: form.kind,
                    info,
                });
            }
        }
        Ok(spots)
    }

    /// What begins so.
    pub(super) fn completions(&self, prefix: &str) -> Result<Completions, Error> {
        let segments = self.segments.iter();
        let begun = segments.map(|segment| segment.index.begun(prefix));
        let begun = begun.collect::<Result<Vec<_>, _>>()?;
        if let Some(known) = self.known.get(prefix) {
            return Ok(Completions { begun, known });
        }
        let mut documents = 0;
        let (mut windows, mut parts) = (0, 0);
        for (segment, begun) in self.segments.iter().zip(&begun) {
            let len = segment.index.documents();
            windows += (len / WINDOW) as usize + begun.parts.len();
            parts += begun.parts.len();
            let mut found = vec![0; (len as usize).div_ceil(64)];
            for (part, begun) in segment.index.parts.iter().zip(&begun.parts) {
                let sets = begun.fields.iter();
                sets.for_each(|set| set.add_to(&mut found, part.base));
            }
            documents += segment.count(Bitset::from_words(len, found));
        }
        let known = Arc::new(Known::new(documents, &begun));
        let bytes = KNOWN_EXTRA + prefix.len() + Known::bytes(windows, parts);
        self.known.put(prefix.to_owned(), Arc::clone(&known), bytes);
        Ok(Completions { begun, known })
    }

    /// How much a word says that so many documents have.
    pub(super) fn rareness(&self, documents: u64) -> f32 {
        let (n, all) = (documents as f64, self.documents as f64);
        (1.0 + (all - n + 0.5) / (n + 0.5)).ln() as f32
    }

    /// What completions in some fields of a document count, for a worth of 1; nothing when they are in none.
    pub(super) fn completed(
        &self,
        part: &Part,
        doc: u32,
        is_in: impl Fn(usize) -> bool,
    ) -> Option<f32> {
        let mut found = None;
        let fields = self.weights.iter().zip(&self.lengths).zip(&part.fields);
        for (number, ((weight, lengths), field)) in fields.enumerate() {
            if is_in(number) {
                let share = lengths.share(1, field.lengths.fieldnorm_id(doc));
                found = Some(found.unwrap_or(0.0) + weight * MOST * share);
            }
        }
        found
    }

    /// The most of that.
    pub(super) fn completed_most(&self) -> f32 {
        let fields = self.weights.iter().zip(&self.lengths);
        fields
            .map(|(weight, lengths)| weight * MOST * lengths.highest(1))
            .sum()
    }
}
