//! What a Filter Expression selects of a column.

use super::codes::{Code, mask, with_codes};
use super::{Codes, Column};
use crate::search::bitset::Bitset;
use purvey_odp::filter::Condition;
use purvey_odp::value::Scalar;
use std::ops::Range;

/// The documents that a condition holds for, told by their codes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// None of them.
    Nothing,
    /// Those with a code in the range, which is not empty.
    Range(Range<u32>),
    /// Those with one of these codes.
    Codes(Bitset),
    /// Those without any code.
    Missing,
}

impl Column {
    /// Translates a condition.
    pub(crate) fn select(&self, condition: &Condition) -> Selection {
        let range = |range: Range<u32>| match range.is_empty() {
            true => Selection::Nothing,
            false => Selection::Range(range),
        };
        let values = self.values();
        match condition {
            Condition::Exists(true) => range(0..values),
            Condition::Exists(false) => Selection::Missing,
            Condition::Eq(bound) => match self.place(bound) {
                Some(Ok(code)) => range(code..code + 1),
                _ => Selection::Nothing,
            },
            Condition::In(bounds) => {
                let mut codes = Bitset::new(values);
                for bound in bounds {
                    if let Some(Ok(code)) = self.place(bound) {
                        codes.insert(code);
                    }
                }
                match codes.is_empty() {
                    true => Selection::Nothing,
                    false => Selection::Codes(codes),
                }
            }
            Condition::Lt(bound) => range(0..self.first_from(bound, 0)),
            Condition::Lte(bound) => range(0..self.first_after(bound, 0)),
            Condition::Gt(bound) => range(self.first_after(bound, values)..values),
            Condition::Gte(bound) => range(self.first_from(bound, values)..values),
        }
    }

    /// The first code whose value is at least the bound; `otherwise` when the bound is of another type.
    fn first_from(&self, bound: &Scalar, otherwise: u32) -> u32 {
        self.place(bound).map_or(otherwise, |place| match place {
            Ok(code) | Err(code) => code,
        })
    }

    /// The first code whose value is greater than the bound; `otherwise` when the bound is of another type.
    fn first_after(&self, bound: &Scalar, otherwise: u32) -> u32 {
        self.place(bound).map_or(otherwise, |place| match place {
            Ok(code) => code + 1,
            Err(code) => code,
        })
    }

    /// The place of a value; `None` when it is of another type.
    fn place(&self, value: &Scalar) -> Option<Result<u32, u32>> {
        let mut key = Vec::new();
        value.order_key(&mut key);
        (value.scalar_type() == self.scalar_type()).then(|| self.find(&key))
    }

    /// Removes from `set` what is not selected, looking at each of its documents.
    pub(crate) fn keep_selected(&self, selection: &Selection, set: &mut Bitset) {
        match (selection, self.starts()) {
            // A number that wraps around is not below the length of the range.
            (Selection::Range(Range { start, end }), None) => {
                let (start, values) = (*start, end - start);
                with_codes!(self.packed(), codes => {
                    set.retain(|ordinal| codes[ordinal as usize].get().wrapping_sub(start) < values);
                });
            }
            _ => set.retain(|ordinal| self.is_selected(selection, ordinal)),
        }
    }

    fn is_selected(&self, selection: &Selection, ordinal: u32) -> bool {
        let mut codes = self.codes(ordinal);
        match selection {
            Selection::Nothing => false,
            Selection::Missing => codes.next().is_none(),
            Selection::Range(range) => codes.any(|code| range.contains(&code)),
            Selection::Codes(set) => codes.any(|code| set.contains(code)),
        }
    }

    /// All selected documents.
    pub(crate) fn selected_documents(&self, selection: &Selection) -> Bitset {
        let words = match (selection, self.starts()) {
            (Selection::Nothing, _) => Vec::new(),
            (Selection::Missing, None) => in_range(self.packed(), self.values(), self.values()),
            (Selection::Range(range), None) => in_range(self.packed(), range.start, range.end - 1),
            (Selection::Codes(set), None) => with_codes!(self.packed(), codes => {
                words(codes, |code| set.contains(code.get()))
            }),
            (_, Some(starts)) => with_codes!(self.packed(), codes => {
                of_many(starts, codes, selection)
            }),
        };
        Bitset::from_words(self.documents(), words)
    }
}

/// Which codes lie between `first` and `last`, both of which fit the width.
fn in_range(packed: &Codes, first: u32, last: u32) -> Vec<u64> {
    fn scan<C: Code>(codes: &[C], first: u32, last: u32) -> Vec<u64> {
        let (first, last) = (C::of(first), C::of(last));
        words(codes, move |code| (code >= first) & (code <= last))
    }
    with_codes!(packed, codes => scan(codes, first, last))
}

fn words<C: Code>(codes: &[C], holds: impl Fn(C) -> bool + Copy) -> Vec<u64> {
    codes.chunks(64).map(|chunk| mask(chunk, holds)).collect()
}

fn of_many<C: Code>(starts: &[u32], codes: &[C], selection: &Selection) -> Vec<u64> {
    let of = |start: u32, end: u32| &codes[start as usize..end as usize];
    let scan = |holds: &dyn Fn(&[C]) -> bool| {
        let ends = &starts[1..];
        let chunks = starts.chunks(64).zip(ends.chunks(64));
        chunks
            .map(|(starts, ends)| {
                let places = starts.iter().zip(ends).enumerate();
                places.fold(0, |word, (at, (start, end))| {
                    word | u64::from(holds(of(*start, *end))) << at
                })
            })
            .collect()
    };
    match selection {
        Selection::Nothing => Vec::new(),
        Selection::Missing => scan(&|codes| codes.is_empty()),
        Selection::Range(range) => {
            let (first, end) = (range.start, range.end);
            scan(&|codes| codes.iter().any(|c| (first..end).contains(&c.get())))
        }
        Selection::Codes(set) => scan(&|codes| codes.iter().any(|c| set.contains(c.get()))),
    }
}
