//! Walking through the documents that have a word.

use super::index::{Part, PartField};
use super::plan::Kind;
use super::search::TextSearch;
use std::io;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{BlockSegmentPostings, Postings, SegmentPostings, TermInfo};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, TERMINATED};

/// BM25: how soon repetitions stop to count.
const K1: f32 = 1.2;
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
        let rated = rating / (std::f32::consts::LN_2 * (1.0 + K1));
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
        let Some(field) = part.fields.get(self.field) else {
            return Ok(());
        };
        let option = IndexRecordOption::Basic;
        let inverted = &field.inverted;
        let mut block = inverted.read_block_postings_from_terminfo(&self.info, option)?;
        while block.block_len() > 0 {
            for doc in block.docs() {
                let at = base + doc;
                if let Some(word) = bits.get_mut(at as usize / 64) {
                    *word |= 1 << (at % 64);
                }
            }
            block.advance();
        }
        Ok(())
    }
}

/// A word of a query in a part: the documents that have any of its forms in any field.
pub(super) struct Word<'q> {
    /// Field after field.
    pub(super) sources: Vec<Source<'q>>,
    /// Postings of all sources.
    pub(super) cost: u64,
    /// What no document exceeds.
    pub(super) most: f32,
}

impl<'q> Word<'q> {
    pub(super) fn open(
        search: &'q TextSearch,
        part: &'q Part,
        spots: &'q [Spot],
        rareness: f32,
    ) -> io::Result<Self> {
        let mut sources = Vec::new();
        let mut most = 0.0;
        for spots in spots.chunk_by(|a, b| a.field == b.field) {
            let Some(at) = spots.first().map(|spot| spot.field) else {
                continue;
            };
            let (Some(field), Some(lengths), Some(weight)) = (
                part.fields.get(at),
                search.lengths.get(at),
                search.weights.get(at),
            ) else {
                continue;
            };
            let weight = rareness * weight * (1.0 + K1);
            let source = |cursor, doc, spot: &Spot| Source {
                number: at,
                field,
                lengths,
                weight: weight * spot.factor,
                kind: spot.kind,
                info: spot.info.clone(),
                cursor,
                doc,
                places: None,
            };
            let (completions, forms): (Vec<&Spot>, Vec<&Spot>) =
                spots.iter().partition(|spot| spot.kind == Kind::Completion);
            for spot in forms {
                let option = IndexRecordOption::WithFreqs;
                let inverted = &field.inverted;
                let block = inverted.read_block_postings_from_terminfo(&spot.info, option)?;
                let doc = block.doc(0);
                let block = Box::new(block);
                let (at, bound) = (0, None);
                sources.push(source(Cursor::Postings { block, at, bound }, doc, spot));
            }
            if let Some(spot) = completions.first() {
                let mut bits = vec![0; (part.documents as usize).div_ceil(64)];
                for spot in &completions {
                    spot.fill(part, 0, &mut bits)?;
                }
                let doc = next_bit(&bits, 0);
                sources.push(source(Cursor::Set(bits), doc, spot));
            }
            let factors = spots.iter().map(|spot| spot.factor);
            most += weight * factors.fold(0.0, f32::max);
        }
        let cost = spots.iter().map(|spot| u64::from(spot.info.doc_freq)).sum();
        Ok(Self {
            sources,
            cost,
            most,
        })
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
    fn score(&self) -> f32 {
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
