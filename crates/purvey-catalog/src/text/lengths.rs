//! What an occurrence counts in a text of some length: BM25.

use super::index::PartField;
use tantivy::fieldnorm::FieldNormReader;

/// BM25: how soon repetitions stop to count.
const K1: f32 = 1.2;
/// What a word without end counts at most, for a rareness and a weight of 1.
pub(super) const MOST: f32 = 1.0 + K1;
/// BM25: how much the length counts.
const B: f32 = 0.75;

/// Lengths below have a code of their own; codes of longer ones stand for lengths that are up to a ninth shorter.
const EXACT: u32 = 40;

/// The lengths of a field in all documents, as BM25 wants them.
pub(super) struct Lengths {
    average: f32,
    /// What is added to the frequency below the line, by the code of the length.
    norms: [f32; 256],
    /// The longest length by its code.
    longest: [u32; 256],
}

impl Lengths {
    /// Of so many documents, with the lengths of all added up.
    pub(super) fn new(total: u64, documents: u64) -> Self {
        let average = if total == 0 {
            1.0
        } else {
            (total as f64 / documents as f64) as f32
        };
        let norms = std::array::from_fn(|code| {
            let length = FieldNormReader::id_to_fieldnorm(code as u8);
            K1 * (1.0 - B + B * length as f32 / average)
        });
        let longest = std::array::from_fn(|code| match u8::try_from(code + 1) {
            Ok(next) => FieldNormReader::id_to_fieldnorm(next) - 1,
            Err(_) => u32::MAX,
        });
        Self {
            average,
            norms,
            longest,
        }
    }

    /// The share of its weight that a form has which occurs so often in a field of this length.
    pub(super) fn share(&self, frequency: u32, length: u8) -> f32 {
        let frequency = frequency as f32;
        frequency / (frequency + self.norms[usize::from(length)])
    }

    /// The highest share in a field of this length of a form that occurs so often at most.
    pub(super) fn highest_at(&self, frequency: u32, length: u8) -> f32 {
        self.share(frequency.min(self.longest[usize::from(length)]), length)
    }

    /// The highest share in any document of a form that occurs so often at most: no field is shorter than what occurs in it.
    pub(super) fn highest(&self, frequency: u32) -> f32 {
        if frequency < EXACT {
            let shortest = FieldNormReader::fieldnorm_to_id(frequency);
            return self.share(frequency, shortest);
        }
        let norm = K1 * ((1.0 - B) / frequency as f32 + B * (8.0 / 9.0) / self.average);
        1.0 / (1.0 + norm)
    }

    /// The highest share in a block of postings. Blocks were rated with the average of their part: a share there of at most `1 / (1 + c)` with an average `a` means
    /// one of at most `1 / (1 + min(1, a / b) c)` with an average `b`.
    pub(super) fn highest_rated(&self, rating: f32, field: &PartField) -> f32 {
        let rated = rating / (std::f32::consts::LN_2 * MOST);
        let c = (1.0 / rated - 1.0).max(0.0);
        1.0 / (1.0 + (field.average / self.average).min(1.0) * c)
    }
}
