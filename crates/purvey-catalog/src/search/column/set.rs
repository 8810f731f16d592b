//! All columns of a segment, as they are stored.

use super::{Column, ColumnWriter};
use crate::Error;
use crate::search::mapping::{ColumnName, Mapping};
use crate::segment::codec::{Decoder, Frame, corrupt, put_block, put_text};
use purvey_odp::value::Scalar;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The frame is versioned by itself, so that columns can change without the rest of a segment.
const FRAME: Frame = Frame {
    magic: *b"PURVCOLS",
    format: 1,
};

/// All columns of a segment.
///
/// Stored little-endian: magic, format, documents, number of columns, and for each, by name, its name and its bytes: type, whether it is many-valued,
/// documents, values, order keys and JSON texts (ends, then bytes), totals, starts if many-valued, width of codes, codes. Then xxh3 of everything.
#[derive(Debug, Default)]
pub struct Columns {
    documents: u32,
    columns: BTreeMap<ColumnName, Arc<Column>>,
}

impl Columns {
    /// Columns over `documents` documents; those over another number are left out.
    pub fn new(
        documents: u32,
        columns: impl IntoIterator<Item = (ColumnName, Arc<Column>)>,
    ) -> Self {
        let columns = columns
            .into_iter()
            .filter(|(_, column)| column.documents() == documents)
            .collect();
        Self { documents, columns }
    }

    /// Documents of the segment.
    pub fn documents(&self) -> u32 {
        self.documents
    }

    /// A column; `None` when no document was mapped by such a filter.
    pub fn get(&self, name: &ColumnName) -> Option<&Arc<Column>> {
        self.columns.get(name)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&ColumnName, &Arc<Column>)> {
        self.columns.iter()
    }

    /// Memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.columns.values().map(|column| column.bytes()).sum()
    }

    /// The stored form.
    ///
    /// # Errors
    /// [`Error::Conflict`] when a column takes more than 4 GiB.
    pub fn encode(&self) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        out.extend(self.documents.to_le_bytes());
        out.extend((self.columns.len() as u32).to_le_bytes());
        for (name, column) in &self.columns {
            let mut bytes = Vec::new();
            column.encode(&mut bytes);
            put_text(&mut out, name.as_str())
                .and_then(|()| put_block(&mut out, &bytes))
                .ok_or_else(super::writer::full)?;
        }
        Ok(FRAME.wrap(&out))
    }

    /// Reads the stored form; `path` is the file that it comes from, for messages.
    ///
    /// # Errors
    /// [`Error::Format`]; [`Error::Corrupt`].
    pub fn decode(path: &Path, bytes: &[u8]) -> Result<Self, Error> {
        let contents = FRAME.unwrap(path, bytes)?;
        Self::read(contents).ok_or_else(|| corrupt(path, "its search columns are damaged"))
    }

    fn read(contents: &[u8]) -> Option<Self> {
        let mut decoder = Decoder(contents);
        let documents = decoder.u32()?;
        let mut columns = BTreeMap::new();
        for _ in 0..decoder.u32()? {
            let name = ColumnName::from_text(decoder.text()?);
            let column = Column::decode(decoder.block()?, documents)?;
            columns.insert(name, Arc::new(column));
        }
        decoder.end()?;
        Some(Self { documents, columns })
    }

    /// The columns of a merged segment. `documents` names, for each of its documents in order, the source and the ordinal there.
    ///
    /// # Errors
    /// As [`ColumnWriter::push`].
    pub fn merge(sources: &[&Self], documents: &[(u32, u32)]) -> Result<Self, Error> {
        let mut types = BTreeMap::new();
        for (name, column) in sources.iter().flat_map(|source| source.iter()) {
            types.insert(name, column.scalar_type());
        }
        let mut columns = BTreeMap::new();
        for (name, scalar_type) in types {
            let parts: Vec<_> = sources
                .iter()
                .map(|source| source.columns.get(name).map(Arc::as_ref))
                .collect();
            let column = Column::merge(scalar_type, &parts, documents)?;
            if column.values() > 0 {
                columns.insert(name.clone(), Arc::new(column));
            }
        }
        Ok(Self {
            documents: documents.len() as u32,
            columns,
        })
    }
}

/// Builds the columns of a segment from Offerings in the order of their ordinals.
#[derive(Debug)]
pub struct ColumnsWriter<'a> {
    documents: u32,
    writers: Vec<(&'a Mapping, ColumnWriter)>,
}

impl<'a> ColumnsWriter<'a> {
    /// Begins with no documents; one column for each mapping.
    pub fn new(mappings: &'a [Mapping]) -> Self {
        let writers = mappings
            .iter()
            .map(|mapping| (mapping, ColumnWriter::new(mapping.scalar_type())));
        Self {
            documents: 0,
            writers: writers.collect(),
        }
    }

    /// Adds the next Offering in its Full form and own language.
    ///
    /// # Errors
    /// As [`ColumnWriter::push`].
    pub fn push(&mut self, full: &Value) -> Result<(), Error> {
        let mappings = self.writers.iter().map(|(mapping, _)| mapping.values(full));
        let values: Vec<_> = mappings.collect();
        self.push_values(&values)
    }

    /// Adds the next Offering with its mapped sets, in the order of the mappings; a missing one is empty.
    ///
    /// # Errors
    /// As [`ColumnWriter::push`].
    pub fn push_values(&mut self, values: &[Vec<Scalar>]) -> Result<(), Error> {
        for (at, (_, writer)) in self.writers.iter_mut().enumerate() {
            writer.push(values.get(at).map_or(&[], Vec::as_slice))?;
        }
        self.documents += 1;
        Ok(())
    }

    /// Completes the columns; those without any value are left out.
    ///
    /// # Errors
    /// As [`ColumnWriter::push`].
    pub fn finish(self) -> Result<Columns, Error> {
        let mut columns = BTreeMap::new();
        for (mapping, writer) in self.writers {
            let column = writer.finish()?;
            if column.values() > 0 {
                columns.insert(mapping.name().clone(), Arc::new(column));
            }
        }
        Ok(Columns {
            documents: self.documents,
            columns,
        })
    }
}
