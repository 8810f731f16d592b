//! Merging columns: dictionaries are united and codes renumbered, values are never read again.

use super::strings::Strings;
use super::writer::{Table, full};
use super::{Column, ColumnWriter};
use crate::Error;
use purvey_odp::value::ScalarType;
use std::collections::HashSet;

impl Column {
    /// The column of a merged segment. `documents` names, for each of its documents in order, the source and the ordinal there; a source without the
    /// column has no values. Values that no document has any more are left out.
    ///
    /// # Errors
    /// As [`ColumnWriter::push`].
    pub(super) fn merge(
        scalar_type: ScalarType,
        sources: &[Option<&Self>],
        documents: &[(u32, u32)],
    ) -> Result<Self, Error> {
        // A column of another type holds nothing that this one may hold.
        let sources: Vec<_> = sources
            .iter()
            .map(|source| source.filter(|column| column.scalar_type() == scalar_type))
            .collect();
        if sources.iter().all(Option::is_none) {
            let mut writer = ColumnWriter::new(scalar_type);
            documents.iter().try_for_each(|_| writer.push(&[]))?;
            return writer.finish();
        }
        let mut used: Vec<Vec<bool>> = sources
            .iter()
            .map(|source| vec![false; source.map_or(0, |column| column.values() as usize)])
            .collect();
        for (source, ordinal) in documents {
            let Some(column) = sources[*source as usize] else {
                continue;
            };
            for code in column.codes(*ordinal) {
                used[*source as usize][code as usize] = true;
            }
        }
        let united = Union::new(&sources, &used).ok_or_else(full)?;
        let mut table = Table::default();
        for (source, ordinal) in documents {
            if let Some(column) = sources[*source as usize] {
                for code in column.codes(*ordinal) {
                    table.add(united.codes[*source as usize][code as usize]);
                }
            }
            table.end_document().ok_or_else(full)?;
        }
        let places: Vec<u32> = (0..united.keys.len() as u32).collect();
        Ok(table.finish(scalar_type, united.keys, united.texts, &places))
    }
}

impl Column {
    /// The same column without the values whose JSON texts are in `gone`.
    ///
    /// # Errors
    /// As [`ColumnWriter::push`].
    pub(crate) fn without(&self, gone: &HashSet<Vec<u8>>) -> Result<Self, Error> {
        let (mut keys, mut texts) = (Strings::default(), Strings::default());
        let mut places = Vec::with_capacity(self.values() as usize);
        for code in 0..self.values() {
            let kept = !gone.contains(self.text(code));
            places.push(kept.then(|| keys.len() as u32));
            if kept {
                keys.push(self.key(code)).ok_or_else(full)?;
                texts.push(self.text(code)).ok_or_else(full)?;
            }
        }
        let mut table = Table::default();
        for ordinal in 0..self.documents() {
            let kept = self.codes(ordinal).filter_map(|code| places[code as usize]);
            kept.for_each(|place| table.add(place));
            table.end_document().ok_or_else(full)?;
        }
        let places: Vec<u32> = (0..keys.len() as u32).collect();
        Ok(table.finish(self.scalar_type(), keys, texts, &places))
    }
}

/// The used values of several dictionaries in one.
struct Union {
    keys: Strings,
    texts: Strings,
    /// For each source and code the new code; meaningless where the value is not used.
    codes: Vec<Vec<u32>>,
}

impl Union {
    /// `None` when there is no room.
    fn new(sources: &[Option<&Column>], used: &[Vec<bool>]) -> Option<Self> {
        let mut united = Self {
            keys: Strings::default(),
            texts: Strings::default(),
            codes: used.iter().map(|used| vec![0; used.len()]).collect(),
        };
        let next = |source: usize, from: usize| {
            let rest = used[source].get(from..)?;
            Some(from + rest.iter().position(|used| *used)?)
        };
        let mut heads: Vec<Option<usize>> = (0..sources.len()).map(|at| next(at, 0)).collect();
        let head_key = |source: usize, head: Option<usize>| -> Option<&[u8]> {
            Some(sources[source]?.key(head? as u32))
        };
        loop {
            let smallest = heads
                .iter()
                .enumerate()
                .filter_map(|(source, head)| Some((head_key(source, *head)?, source)))
                .min();
            let Some((key, first)) = smallest else {
                return Some(united);
            };
            let new = united.keys.len() as u32;
            united.keys.push(key)?;
            if let (Some(column), Some(code)) = (sources[first], heads[first]) {
                united.texts.push(column.text(code as u32))?;
            }
            for (source, head) in heads.iter_mut().enumerate() {
                if let Some(code) = *head
                    && head_key(source, Some(code)) == Some(key)
                {
                    united.codes[source][code] = new;
                    *head = next(source, code + 1);
                }
            }
        }
    }
}
