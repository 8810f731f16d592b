//! Walking through the documents that have a word.

use super::index::{Part, PartField};
use super::plan::Kind;
use super::search::TextSearch;
use crate::search::bitset::bits;
use std::io;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{BlockSegmentPostings, Postings, SegmentPostings, TermInfo};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, TERMINATED};

/// Postings up to which sorting documents takes less than going through the bits of all.
const FEW: u64 = 2_048;

/// BM25: how soon repetitions stop to count.
const K1: f32 = 1.2;
/// What a word without end counts at most, for a rareness and a weight of 1.
pub(super) const MOST: f32 = 1.0 + K1;
/// BM25: how much the length counts.
const B: f32 = 0.75;

/// The lengths of a field in all documents, as BM25 wants them.
pub(super) struct Lengths {
    average: f32,
    /// What is added to the frequency below the line, by the code of the length.
    norms: [f32; 256],
}

impl Lengths {
    pub(super) fn new(forms: u64, documents: u64) -> Self {
        let average = if forms == 0 {
            1.0
        } else {
            (forms as f64 / documents as f64) as f32
        };
        let norms = std::array::from_fn(|code| {
            let length = FieldNormReader::id_to_fieldnorm(code as u8);
            K1 * (1.0 - B + B * length as f32 / average)
        });
        Self { average, norms }
    }

    /// The share of its weight that a form has which occurs so often in a field of this length.
    fn share(&self, frequency: u32, length: u8) -> f32 {
        let frequency = frequency as f32;
        let norm = self.norms.get(usize::from(length)).copied();
        frequency / (frequency + norm.unwrap_or_default())
    }

    /// The highest share in a block of postings. Blocks were rated with the average of their part: a share there of at most `1 / (1 + c)` with an average `a` means
    /// one of at most `1 / (1 + min(1, a / b) c)` with an average `b`.
    fn highest_share(&self, rating: f32, field: &PartField) -> f32 {
        let rated = rating / (std::f32::consts::LN_2 * MOST);
        let c = (1.0 / rated - 1.0).max(0.0);
        1.0 / (1.0 + (field.average / self.average).min(1.0) * c)
    }
}

/// Where a form is: in a field of a part.
pub(super) struct Spot {
    pub(super) field: usize,
    pub(super) factor: f32,
    pub(super) kind: Kind,
    pub(super) info: TermInfo,
}

impl Spot {
    /// Adds the documents, counted from `base`, to a set.
    pub(super) fn fill(&self, part: &Part, base: u32, bits: &mut [u64]) -> io::Result<()> {
        let field = part.fields.get(self.field);
        field.map_or(Ok(()), |field| fill(field, &self.info, base, bits))
    }
}

fn fill(field: &PartField, info: &TermInfo, base: u32, bits: &mut [u64]) -> io::Result<()> {
    each_block(field, info, |docs| {
        for doc in docs {
            let at = base + doc;
            if let Some(word) = bits.get_mut(at as usize / 64) {
                *word |= 1 << (at % 64);
            }
        }
    })
}

/// Hands over the documents of a form, block by block.
fn each_block(field: &PartField, info: &TermInfo, mut take: impl FnMut(&[u32])) -> io::Result<()> {
    let option = IndexRecordOption::Basic;
    let mut block = (field.inverted).read_block_postings_from_terminfo(info, option)?;
    while block.block_len() > 0 {
        take(block.docs());
        block.advance();
    }
    Ok(())
}

/// A word of a query in a part: the documents that have any of its forms in any field.
#[derive(Default)]
pub(super) struct Word<'q> {
    /// Field after field.
    pub(super) sources: Vec<Source<'q>>,
    /// Postings of all sources.
    pub(super) cost: u64,
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
        let mut word = Self::default();
        for spots in spots.chunk_by(|a, b| a.field == b.field) {
            let Some(field) = Weighed::of(search, part, spots, rareness) else {
                continue;
            };
            for spot in spots {
                let option = IndexRecordOption::WithFreqs;
                let inverted = &field.field.inverted;
                let block = inverted.read_block_postings_from_terminfo(&spot.info, option)?;
                let doc = block.doc(0);
                let cursor = Cursor::Postings {
                    block: Box::new(block),
                    at: 0,
                    bound: None,
                };
                word.cost += u64::from(spot.info.doc_freq);
                word.sources.push(field.source(spot, cursor, doc));
            }
            let factors = spots.iter().map(|spot| spot.factor);
            word.most += field.weight * factors.fold(0.0, f32::max);
        }
        Ok(word)
    }

    /// The completions of a word, in documents that have none of its forms.
    pub(super) fn complete(
        search: &'q TextSearch,
        part: &'q Part,
        (completions, forms): (&[Spot], &[Spot]),
        rareness: f32,
    ) -> io::Result<Self> {
        let mut word = Self::default();
        let mut seen = vec![0_u64; (part.documents as usize).div_ceil(64)];
        for spot in forms {
            spot.fill(part, 0, &mut seen)?;
        }
        for spots in completions.chunk_by(|a, b| a.field == b.field) {
            let (Some(field), Some(first)) =
                (Weighed::of(search, part, spots, rareness), spots.first())
            else {
                continue;
            };
            let mut bits = vec![0; seen.len()];
            for spot in spots {
                spot.fill(part, 0, &mut bits)?;
                word.cost += u64::from(spot.info.doc_freq);
            }
            for (bits, seen) in bits.iter_mut().zip(&seen) {
                *bits &= !seen;
            }
            let doc = next_bit(&bits, 0);
            word.sources
                .push(field.source(first, Cursor::Set(bits), doc));
            word.most += field.weight * first.factor;
        }
        Ok(word)
    }

    /// Its documents in a part of so many, as bits.
    pub(super) fn set(&self, documents: u32) -> io::Result<Vec<u64>> {
        let mut all = vec![0; (documents as usize).div_ceil(64)];
        for source in &self.sources {
            match &source.cursor {
                Cursor::Postings { .. } => fill(source.field, &source.info, 0, &mut all)?,
                Cursor::Set(set) => all.iter_mut().zip(set).for_each(|(a, b)| *a |= b),
            }
        }
        Ok(all)
    }

    /// Its documents in a part of so many, in ascending order.
    pub(super) fn documents(&self, documents: u32) -> io::Result<Vec<u32>> {
        let mut found = Vec::new();
        if self.cost > FEW {
            let set = self.set(documents)?;
            let words = set.iter().zip((0..).step_by(64));
            words.for_each(|(word, base)| found.extend(bits(*word).map(|bit| base + bit)));
            return Ok(found);
        }
        for source in &self.sources {
            match &source.cursor {
                Cursor::Postings { .. } => {
                    each_block(source.field, &source.info, |docs| found.extend(docs))?;
                }
                Cursor::Set(set) => {
                    let words = set.iter().zip((0..).step_by(64));
                    words.for_each(|(word, base)| found.extend(bits(*word).map(|bit| base + bit)));
                }
            }
        }
        found.sort();
        found.dedup();
        Ok(found)
    }

    /// What the word counts in a document; nothing when it is not there. Documents must be asked for in ascending order.
    pub(super) fn score(&mut self, doc: u32) -> Option<f32> {
        let mut is_there = false;
        let (mut total, mut best, mut number) = (0.0, 0.0_f32, usize::MAX);
        for source in &mut self.sources {
            if source.seek(doc) != doc {
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
        is_there.then_some(total + best)
    }

    /// The sources in a field that stand at a document.
    pub(super) fn at(&mut self, field: usize, doc: u32) -> impl Iterator<Item = &mut Source<'q>> {
        let sources = self.sources.iter_mut();
        sources.filter(move |source| source.number == field && source.doc == doc)
    }
}

/// A field and what a word counts there, were it to occur without end.
struct Weighed<'q> {
    number: usize,
    field: &'q PartField,
    lengths: &'q Lengths,
    weight: f32,
}

impl<'q> Weighed<'q> {
    /// The field of some spots.
    fn of(search: &'q TextSearch, part: &'q Part, spots: &[Spot], rareness: f32) -> Option<Self> {
        let number = spots.first()?.field;
        Some(Self {
            number,
            field: part.fields.get(number)?,
            lengths: search.lengths.get(number)?,
            weight: rareness * search.weights.get(number)? * MOST,
        })
    }

    fn source(&self, spot: &Spot, cursor: Cursor, doc: u32) -> Source<'q> {
        Source {
            number: self.number,
            field: self.field,
            lengths: self.lengths,
            weight: self.weight * spot.factor,
            kind: spot.kind,
            info: spot.info.clone(),
            cursor,
            doc,
            places: None,
        }
    }
}

/// A form in a field, or all completions in a field.
pub(super) struct Source<'q> {
    /// The field's number.
    pub(super) number: usize,
    field: &'q PartField,
    lengths: &'q Lengths,
    /// What no document exceeds.
    pub(super) weight: f32,
    pub(super) kind: Kind,
    info: TermInfo,
    cursor: Cursor,
    doc: u32,
    places: Option<Box<SegmentPostings>>,
}

enum Cursor {
    Postings {
        block: Box<BlockSegmentPostings>,
        at: usize,
        /// What no document of the block exceeds, once it is known.
        bound: Option<f32>,
    },
    Set(Vec<u64>),
}

impl Source<'_> {
    /// The document that it stands at; [`TERMINATED`] past the last.
    pub(super) fn doc(&self) -> u32 {
        self.doc
    }

    /// Goes on to the first document from `target` on.
    pub(super) fn seek(&mut self, target: u32) -> u32 {
        if self.doc >= target {
            return self.doc;
        }
        match &mut self.cursor {
            Cursor::Set(bits) => self.doc = next_bit(bits, target),
            Cursor::Postings { block, at, bound } => {
                let len = block.block_len();
                if *at + 1 < len && block.doc(*at + 1) >= target {
                    *at += 1;
                } else {
                    if block.doc(len - 1) < target {
                        *bound = None;
                    }
                    *at = block.seek(target);
                }
                self.doc = block.doc(*at);
            }
        }
        self.doc
    }

    /// What it counts in the document that it stands at.
    pub(super) fn score(&self) -> f32 {
        let frequency = match &self.cursor {
            Cursor::Postings { block, at, .. } => block.freq(*at),
            Cursor::Set(_) => 1,
        };
        let length = self.field.lengths.fieldnorm_id(self.doc);
        self.weight * self.lengths.share(frequency, length)
    }

    /// What no document exceeds from the present through the one that is told with it.
    pub(super) fn bound(&mut self) -> (f32, u32) {
        let Cursor::Postings { block, bound, .. } = &mut self.cursor else {
            return (self.weight, TERMINATED);
        };
        let last = block.doc(block.block_len() - 1);
        let bound = *bound.get_or_insert_with(|| {
            let rating = block.block_max_score(&self.field.lengths, &self.field.rating);
            self.weight * self.lengths.highest_share(rating, self.field)
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

/// Whether a bit is set.
pub(super) fn has_bit(bits: &[u64], at: u32) -> bool {
    let word = bits.get(at as usize / 64);
    word.is_some_and(|word| word >> (at % 64) & 1 == 1)
}

/// The first set bit from `start` on; [`TERMINATED`] when there is none.
fn next_bit(bits: &[u64], start: u32) -> u32 {
    let first = start as usize / 64;
    let words = bits.iter().enumerate().skip(first);
    for (at, word) in words {
        let word = if at == first {
            word & (u64::MAX << (start % 64))
        } else {
            *word
        };
        if word != 0 {
            return at as u32 * 64 + word.trailing_zeros();
        }
    }
    TERMINATED
}
