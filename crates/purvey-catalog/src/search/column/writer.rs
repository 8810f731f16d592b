//! Building a column.

use super::codes::Codes;
use super::strings::Strings;
use super::{Column, Data};
use crate::Error;
use purvey_odp::value::{Scalar, ScalarType};
use std::collections::HashMap;

/// Collects the values of documents in the order of their ordinals. Holds each distinct value once (its text and some 80 bytes) and 4 bytes for each
/// document and value.
#[derive(Debug)]
pub struct ColumnWriter {
    scalar_type: ScalarType,
    /// Order keys with their numbers in the order of appearance.
    numbers: HashMap<Box<[u8]>, u32>,
    /// JSON texts in the order of appearance.
    texts: Strings,
    table: Table,
    key: Vec<u8>,
}

impl ColumnWriter {
    /// Begins a column without documents.
    pub fn new(scalar_type: ScalarType) -> Self {
        Self {
            scalar_type,
            numbers: HashMap::new(),
            texts: Strings::default(),
            table: Table::default(),
            key: Vec::new(),
        }
    }

    /// Adds the next document with its mapped set; a value may be repeated, one of another type is left out.
    ///
    /// # Errors
    /// [`Error::Conflict`] when the column is full: 4 GiB of distinct values, or 2^32 - 1 values.
    pub fn push(&mut self, values: &[Scalar]) -> Result<(), Error> {
        for value in values {
            if value.scalar_type() != self.scalar_type {
                continue;
            }
            self.key.clear();
            value.order_key(&mut self.key);
            let number = match self.numbers.get(&*self.key) {
                Some(number) => *number,
                None => {
                    let number = self.texts.len() as u32;
                    let text = value.to_value().to_string();
                    self.texts.push(text.as_bytes()).ok_or_else(full)?;
                    self.numbers.insert(self.key.as_slice().into(), number);
                    number
                }
            };
            self.table.add(number);
        }
        self.table.end_document().ok_or_else(full)
    }

    /// Completes the column.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn finish(self) -> Result<Column, Error> {
        let mut sorted: Vec<_> = self.numbers.into_iter().collect();
        sorted.sort_unstable();
        let mut places = vec![0; sorted.len()];
        let (mut keys, mut texts) = (Strings::default(), Strings::default());
        for (code, (key, number)) in sorted.iter().enumerate() {
            places[*number as usize] = code as u32;
            keys.push(key).ok_or_else(full)?;
            texts
                .push(self.texts.get(*number as usize))
                .ok_or_else(full)?;
        }
        Ok(self.table.finish(self.scalar_type, keys, texts, &places))
    }
}

/// Values of documents as numbers that stand for them.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Where the numbers of each document end.
    ends: Vec<u32>,
    numbers: Vec<u32>,
    is_multiple: bool,
}

impl Table {
    pub(super) fn add(&mut self, number: u32) {
        self.numbers.push(number);
    }

    /// Ends a document, each of whose numbers counts once; `None` when there is no room.
    pub(super) fn end_document(&mut self) -> Option<()> {
        let start = self.ends.last().map_or(0, |end| *end as usize);
        if self.numbers.len() > start + 1 {
            self.numbers[start..].sort_unstable();
            let mut kept = start + 1;
            for at in start + 1..self.numbers.len() {
                if self.numbers[at] != self.numbers[kept - 1] {
                    self.numbers[kept] = self.numbers[at];
                    kept += 1;
                }
            }
            self.numbers.truncate(kept);
            self.is_multiple |= kept > start + 1;
        }
        // Document and value numbers stay below the largest integer, so that a number past the end exists.
        let end = u32::try_from(self.numbers.len()).ok()?;
        self.ends.push(end);
        (self.ends.len() < u32::MAX as usize && end < u32::MAX).then_some(())
    }

    /// The column; `places` gives the code of every number.
    pub(super) fn finish(
        mut self,
        scalar_type: ScalarType,
        keys: Strings,
        texts: Strings,
        places: &[u32],
    ) -> Column {
        let values = keys.len() as u32;
        let mut totals = vec![0; keys.len()];
        for number in &mut self.numbers {
            *number = places[*number as usize];
            totals[*number as usize] += 1;
        }
        let documents = self.ends.len() as u32;
        let begins = || std::iter::once(0).chain(self.ends.iter().copied());
        let (starts, codes) = if self.is_multiple {
            let starts: Box<[u32]> = begins().collect();
            for ends in starts.windows(2) {
                self.numbers[ends[0] as usize..ends[1] as usize].sort_unstable();
            }
            let largest = values.saturating_sub(1);
            (Some(starts), Codes::pack(&self.numbers, largest))
        } else {
            let codes: Vec<u32> = begins()
                .zip(&self.ends)
                .map(|(start, end)| match start < *end {
                    true => self.numbers[start as usize],
                    false => values,
                })
                .collect();
            (None, Codes::pack(&codes, values))
        };
        Column::new(Data {
            scalar_type,
            documents,
            keys,
            texts,
            totals: totals.into(),
            starts,
            codes,
        })
    }
}

pub(super) fn full() -> Error {
    Error::Conflict {
        detail: "a search column of the segment is full".to_owned(),
    }
}
