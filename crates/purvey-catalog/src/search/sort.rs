//! The first documents of an order, without sorting all (ODP §5, Sort Definitions).

use super::bitset::{BLOCK, Bitset, bits};
use super::column::Column;
use super::column::codes::{Code, mask, with_codes};
use purvey_odp::limits;
use purvey_odp::sort::{Direction, Missing, SortKey};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A document's place in the order of a recipe within its segment: the rank of its value for each key, then its ordinal, which orders as its id does.
pub(crate) type Place = ([u32; limits::SORT_KEYS], u32);

/// The lowest place.
pub(crate) const START: Place = ([0; limits::SORT_KEYS], 0);

/// Members of a word from which on all its documents are looked at together.
const CROWDED: u32 = 6;

/// A key of a recipe over the column of one segment.
#[derive(Clone, Copy)]
pub(crate) struct RankedKey<'a> {
    key: &'a SortKey,
    /// `None` when no document of the segment has a value.
    column: Option<&'a Column>,
}

impl<'a> RankedKey<'a> {
    pub(crate) fn new(key: &'a SortKey, column: Option<&'a Column>) -> Self {
        Self { key, column }
    }

    fn values(&self) -> u32 {
        self.column.map_or(0, Column::values)
    }

    /// The rank of the first value.
    fn first(&self) -> u32 {
        u32::from(self.key.missing() == Missing::First)
    }

    /// The rank of documents without a value.
    fn missing(&self) -> u32 {
        match self.key.missing() {
            Missing::First => 0,
            Missing::Last => self.values(),
        }
    }

    fn of_code(&self, code: u32) -> u32 {
        self.first()
            + match self.key.direction() {
                Direction::Ascending => code,
                Direction::Descending => self.values() - 1 - code,
            }
    }

    fn code(&self, ordinal: u32) -> Option<u32> {
        self.column?.selected(ordinal, self.key.direction())
    }

    fn rank(&self, ordinal: u32) -> u32 {
        self.code(ordinal)
            .map_or(self.missing(), |code| self.of_code(code))
    }

    /// The order key of the value that counts for a document.
    pub(crate) fn value(&self, ordinal: u32) -> Option<&'a [u8]> {
        Some(self.column?.key(self.code(ordinal)?))
    }

    /// The order of two values by this key, given by their order keys.
    pub(crate) fn compare(&self, a: Option<&[u8]>, b: Option<&[u8]>) -> Ordering {
        let missing = match self.key.missing() {
            Missing::First => Ordering::Less,
            Missing::Last => Ordering::Greater,
        };
        match (a, b) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => missing,
            (Some(_), None) => missing.reverse(),
            (Some(a), Some(b)) => match self.key.direction() {
                Direction::Ascending => a.cmp(b),
                Direction::Descending => b.cmp(a),
            },
        }
    }

    /// The rank of a value of any segment; `Err` with the rank of what follows when this segment lacks the value.
    fn locate(&self, value: Option<&[u8]>) -> Result<u32, u32> {
        let Some(value) = value else {
            return Ok(self.missing());
        };
        let found = self.column.map_or(Err(0), |column| column.find(value));
        found
            .map(|code| self.of_code(code))
            .map_err(|code| match self.key.direction() {
                Direction::Ascending => self.first() + code,
                Direction::Descending => self.first() + self.values() - code,
            })
    }

    /// The documents of one word whose rank lies between two ranks; all of them where that takes longer to tell.
    fn word(&self, at: usize, low: u32, high: u32) -> u64 {
        let Some(column) = self.column.filter(|column| column.starts().is_none()) else {
            return u64::MAX;
        };
        let (first, values) = (self.first(), column.values());
        // Without a value the code is the number of values.
        let missing = (low..=high).contains(&self.missing()).then_some(values);
        let start = low.max(first) - first;
        let end = high.saturating_add(1).min(first + values).max(first) - first;
        let (from, to, or) = match (start < end, missing) {
            (false, None) => return 0,
            (false, Some(missing)) => (missing, missing, missing),
            (true, missing) => {
                let (from, to) = match self.key.direction() {
                    Direction::Ascending => (start, end - 1),
                    Direction::Descending => (values - end, values - 1 - start),
                };
                (from, to, missing.unwrap_or(from))
            }
        };
        with_codes!(column.packed(), codes => within(codes, at, from, to, or))
    }
}

/// Which codes of a word lie between two, or are a third.
fn within<C: Code>(codes: &[C], at: usize, from: u32, to: u32, or: u32) -> u64 {
    let codes = codes.get(at * 64..).unwrap_or_default();
    let (from, to, or) = (C::of(from), C::of(to), C::of(or));
    mask(&codes[..codes.len().min(64)], move |code| {
        ((code >= from) & (code <= to)) | (code == or)
    })
}

/// A recipe over one segment.
pub(crate) struct Ranking<'a> {
    pub(crate) keys: Vec<RankedKey<'a>>,
}

impl Ranking<'_> {
    fn place(&self, ordinal: u32) -> Place {
        let mut place = ([0; limits::SORT_KEYS], ordinal);
        for (rank, key) in place.0.iter_mut().zip(&self.keys) {
            *rank = key.rank(ordinal);
        }
        place
    }

    /// The lowest place of documents that come after a document, of which its values and the first ordinal with a greater id are known. The document can
    /// be in another segment.
    pub(crate) fn after(&self, values: &[Option<&[u8]>], next: u32) -> Place {
        let mut place = ([0; limits::SORT_KEYS], next);
        for (at, (key, value)) in self.keys.iter().zip(values).enumerate() {
            match key.locate(*value) {
                Ok(rank) => place.0[at] = rank,
                Err(rank) => {
                    // No document is equal here, so the further keys and the id do not matter.
                    place.0[at] = rank;
                    place.1 = 0;
                    return place;
                }
            }
        }
        place
    }

    /// The first `limit` of the candidates from a place on, in order. Work: a look at every word that has candidates, and memory for `limit` places.
    pub(crate) fn top(&self, candidates: &Bitset, from: Place, limit: usize) -> Vec<u32> {
        let Some(first) = self.keys.first() else {
            return candidates.iter_from(from.1).take(limit).collect();
        };
        if limit == 0 {
            return Vec::new();
        }
        let words = candidates.words();
        let mut best: BinaryHeap<Place> = BinaryHeap::with_capacity(limit + 1);
        let mut last = None;
        for block in scattered(words.len().div_ceil(BLOCK)) {
            for at in bits(candidates.filled(block)) {
                let at = block * BLOCK + at as usize;
                let mut word = words[at];
                if word.count_ones() >= CROWDED {
                    let high = last.map_or(u32::MAX, |last: Place| last.0[0]);
                    word &= first.word(at, from.0[0], high);
                }
                for bit in bits(word) {
                    let place = self.place((at * 64) as u32 + bit);
                    if place < from || last.is_some_and(|last| place >= last) {
                        continue;
                    }
                    best.push(place);
                    if best.len() > limit {
                        best.pop();
                    }
                    if best.len() == limit {
                        last = best.peek().copied();
                    }
                }
            }
        }
        let best = best.into_sorted_vec().into_iter();
        best.map(|(_, ordinal)| ordinal).collect()
    }
}

/// Every number below `len` once, far from each other in succession. Ids often follow the order that is sought, or its reverse; visited in a row, every document would
/// then be better than all before it.
fn scattered(len: usize) -> impl Iterator<Item = usize> {
    let golden = (len as f64 * 0.618) as usize;
    let step = (golden.max(1)..).find(|step| gcd(*step, len) == 1);
    let step = step.unwrap_or(1);
    (0..len).scan(0, move |at, _| {
        let now = *at;
        *at = (*at + step) % len;
        Some(now)
    })
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scattered_numbers_are_all_numbers() {
        for len in 0..300 {
            let mut seen: Vec<_> = scattered(len).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..len).collect::<Vec<_>>());
        }
    }
}
