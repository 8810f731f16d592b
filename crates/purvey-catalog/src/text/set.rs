//! Sets of documents of a part, and their pieces.

use crate::search::bitset::bits;
use tantivy::TERMINATED;

/// Documents of a window.
pub(super) const WINDOW: u32 = 4_096;

/// A bit for each document of a window.
pub(super) type Bits = [u64; WINDOW as usize / 64];

pub(super) const EMPTY: Bits = [0; WINDOW as usize / 64];
pub(super) const FULL: Bits = [u64::MAX; WINDOW as usize / 64];

/// The first document of the window that a document is in.
pub(super) fn window(doc: u32) -> u32 {
    doc - doc % WINDOW
}

/// Adds a document that is in the window.
pub(super) fn put(bits: &mut Bits, doc: u32) {
    let at = doc % WINDOW;
    bits[at as usize / 64] |= 1 << (at % 64);
}

/// Removes a document that is in the window.
pub(super) fn take(bits: &mut Bits, doc: u32) {
    let at = doc % WINDOW;
    bits[at as usize / 64] &= !(1 << (at % 64));
}

/// Whether a document that is in the window is in the set.
pub(super) fn has(bits: &Bits, doc: u32) -> bool {
    let at = doc % WINDOW;
    bits[at as usize / 64] >> (at % 64) & 1 == 1
}

pub(super) fn add(bits: &mut Bits, others: &Bits) {
    bits.iter_mut().zip(others).for_each(|(a, b)| *a |= b);
}

/// Adds the documents of a window to a set with a bit for each document, in which the window begins at `start`, a multiple of 64.
pub(super) fn put_window(set: &mut [u64], start: u32, window: &Bits) {
    let words = set.iter_mut().skip(start as usize / 64);
    words.zip(window).for_each(|(a, b)| *a |= b);
}

pub(super) fn keep(bits: &mut Bits, others: &Bits) {
    bits.iter_mut().zip(others).for_each(|(a, b)| *a &= b);
}

/// The documents of a window that begins at `base`.
pub(super) fn each(found: &Bits, base: u32) -> impl Iterator<Item = u32> {
    let words = found.iter().zip((base..).step_by(64));
    words.flat_map(|(word, base)| bits(*word).map(move |bit| base + bit))
}

/// Documents of a part.
pub(super) enum Set {
    /// One after the other.
    Few(Vec<u32>),
    /// A bit for each document of the part.
    Many(Vec<u64>),
}

impl Set {
    /// Of a bit for each document of the part.
    pub(super) fn from_words(all: Vec<u64>) -> Self {
        let found: usize = all.iter().map(|word| word.count_ones() as usize).sum();
        if found >= all.len() * 2 {
            return Self::Many(all);
        }
        let words = all.iter().zip((0..).step_by(64));
        let docs = words.flat_map(|(word, base)| bits(*word).map(move |bit| base + bit));
        let mut few = Vec::with_capacity(found);
        few.extend(docs);
        Self::Few(few)
    }

    /// How many they are.
    pub(super) fn count(&self) -> u64 {
        match self {
            Self::Few(docs) => docs.len() as u64,
            Self::Many(words) => words.iter().map(|word| u64::from(word.count_ones())).sum(),
        }
    }

    /// Adds them to a set of the segment in which the part begins at `start`, a multiple of 64.
    pub(super) fn add_to(&self, set: &mut [u64], start: u32) {
        let words = set.get_mut(start as usize / 64..).unwrap_or_default();
        match self {
            Self::Few(docs) => docs.iter().for_each(|doc| {
                if let Some(word) = words.get_mut(*doc as usize / 64) {
                    *word |= 1 << (doc % 64);
                }
            }),
            Self::Many(found) => words.iter_mut().zip(found).for_each(|(a, b)| *a |= b),
        }
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Few(docs) => docs.len() * 4,
            Self::Many(words) => words.len() * 8,
        }
    }

    pub(super) fn contains(&self, doc: u32) -> bool {
        match self {
            Self::Few(docs) => docs.binary_search(&doc).is_ok(),
            Self::Many(words) => {
                let word = words.get(doc as usize / 64);
                word.is_some_and(|word| word >> (doc % 64) & 1 == 1)
            }
        }
    }

    /// The first document from `start` on; [`TERMINATED`] when there is none.
    pub(super) fn next(&self, start: u32) -> u32 {
        let words = match self {
            Self::Few(docs) => {
                let at = docs.partition_point(|doc| *doc < start);
                return docs.get(at).copied().unwrap_or(TERMINATED);
            }
            Self::Many(words) => words,
        };
        let first = start as usize / 64;
        let mut mask = u64::MAX << (start % 64);
        for (word, base) in words
            .iter()
            .skip(first)
            .zip((start - start % 64..).step_by(64))
        {
            if word & mask != 0 {
                return base + (word & mask).trailing_zeros();
            }
            mask = u64::MAX;
        }
        TERMINATED
    }

    /// Adds the documents of the window that begins at `base`.
    pub(super) fn fill(&self, base: u32, window: &mut Bits) {
        match self {
            Self::Few(docs) => {
                let at = docs.partition_point(|doc| *doc < base);
                let docs = docs.iter().skip(at);
                docs.take_while(|doc| **doc - base < WINDOW)
                    .for_each(|doc| put(window, *doc));
            }
            Self::Many(words) => {
                let words = words.iter().skip(base as usize / 64);
                window.iter_mut().zip(words).for_each(|(a, b)| *a |= b);
            }
        }
    }
}
