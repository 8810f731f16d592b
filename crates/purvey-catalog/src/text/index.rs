//! Reading the text index of a segment.

use super::directory::Packed;
use super::facts::Facts;
use super::file::{Ahead, Blocks, PartEntry};
use super::prefix::{self, Begun};
use super::recent::Recent;
use crate::Error;
use crate::segment::codec::corrupt;
use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use tantivy::directory::error::OpenReadError;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::query::Bm25Weight;
use tantivy::schema::Field;
use tantivy::{Index, InvertedIndexReader, SegmentReader, TantivyError};

/// The open text index of a segment. Its file stays readable through the open handle when its name is removed. Word lists and lengths are in memory (some tens of
/// bytes for each word, one for each document and field); where words occur is read when it is wanted.
pub struct TextIndex {
    blocks: Arc<Blocks>,
    config: u64,
    documents: u32,
    pub(super) parts: Vec<Part>,
    /// By beginning.
    pub(super) prefixes: Recent<String, Arc<Begun>>,
}

/// Every part but the last has a multiple of so many documents, so that parts of bitmaps are whole words.
pub(super) const PART_STEP: u32 = 64;

/// Documents that were indexed together.
pub(super) struct Part {
    /// The ordinal of the first.
    pub(super) base: u32,
    pub(super) documents: u32,
    pub(super) fields: Vec<PartField>,
}

pub(super) struct PartField {
    pub(super) inverted: Arc<InvertedIndexReader>,
    pub(super) lengths: FieldNormReader,
    total: OnceLock<u64>,
    /// Forms in a document, on average.
    pub(super) average: f32,
    /// How well the blocks of postings were rated when they were written.
    pub(super) rating: Bm25Weight,
    pub(super) facts: Facts,
}

impl PartField {
    fn open(reader: &SegmentReader, field: Field) -> tantivy::Result<Self> {
        let inverted = reader.inverted_index(field)?;
        let average = inverted.total_num_tokens() as f32 / reader.max_doc() as f32;
        Ok(Self {
            lengths: reader.get_fieldnorms_reader(field)?,
            rating: Bm25Weight::for_one_term(1, 2, average),
            average,
            inverted,
            total: OnceLock::new(),
            facts: Facts::default(),
        })
    }

    /// The lengths of all documents, as they are kept, added up.
    pub(super) fn total(&self) -> u64 {
        *self.total.get_or_init(|| {
            let docs = 0..self.lengths.num_docs();
            docs.map(|doc| u64::from(self.lengths.fieldnorm(doc))).sum()
        })
    }
}

impl TextIndex {
    /// Opens a file that a [`TextWriter`](super::TextWriter) finished. All that is read is checked, now and later.
    ///
    /// # Errors
    /// [`Error::Io`], also when there is no such file; [`Error::Format`]; [`Error::Corrupt`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        let (blocks, table) = Blocks::open(path)?;
        let mut index = Self {
            blocks: Arc::new(blocks),
            config: table.config,
            documents: 0,
            parts: Vec::new(),
            prefixes: Recent::new(0),
        };
        for entry in table.parts {
            let documents = entry.documents;
            if !index.documents.is_multiple_of(PART_STEP) {
                return Err(corrupt(path, "a part of it begins where none can"));
            }
            let part = index.open_part(entry, table.fields)?;
            index.parts.push(part);
            let sum = index.documents.checked_add(documents);
            index.documents = sum.ok_or_else(|| corrupt(path, "its table is damaged"))?;
        }
        index.prefixes = Recent::new(prefix::budget(index.documents));
        Ok(index)
    }

    fn open_part(&self, entry: PartEntry, fields: u32) -> Result<Part, Error> {
        let files = entry.files.into_iter();
        let packed = Packed {
            blocks: Arc::clone(&self.blocks),
            files: Arc::new(files.map(|(name, at)| (name.into(), at)).collect()),
        };
        let reader = open_segment(packed).map_err(|e| self.library_failed(&e))?;
        let documents = reader.as_ref().map_or(0, SegmentReader::max_doc);
        let (Some(reader), true) = (reader, documents == entry.documents) else {
            return Err(corrupt(self.blocks.path(), "a part of it is not complete"));
        };
        let fields = (0..fields).map(Field::from_field_id);
        let fields = fields.map(|field| PartField::open(&reader, field));
        let fields = fields.collect::<tantivy::Result<_>>();
        Ok(Part {
            base: self.documents,
            documents,
            fields: fields.map_err(|e| self.library_failed(&e))?,
        })
    }

    /// Documents, dead ones included: as many as the segment has.
    pub fn documents(&self) -> u32 {
        self.documents
    }

    /// [`TextConfig::digest`](super::TextConfig::digest) of the configuration that it was built with.
    pub fn config_digest(&self) -> u64 {
        self.config
    }

    /// The length of the file, in bytes.
    pub fn disk_bytes(&self) -> u64 {
        self.blocks.len()
    }

    /// Reads everything and compares it with its checksums.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub fn verify(&self) -> Result<(), Error> {
        self.blocks.verify()
    }

    /// From now on this thread reads what follows each other.
    pub(super) fn read_ahead(&self) -> Ahead<'_> {
        self.blocks.read_ahead()
    }

    /// What an error of reading means.
    pub(super) fn failed(&self, error: io::Error) -> Error {
        self.blocks.failed(error)
    }

    fn library_failed(&self, error: &TantivyError) -> Error {
        let refused = match error {
            TantivyError::IoError(error) => error.raw_os_error(),
            TantivyError::OpenReadError(OpenReadError::IoError { io_error, .. }) => {
                io_error.raw_os_error()
            }
            _ => None,
        };
        match refused {
            Some(code) => self.failed(io::Error::from_raw_os_error(code)),
            None => corrupt(self.blocks.path(), error.to_string()),
        }
    }
}

fn open_segment(packed: Packed) -> tantivy::Result<Option<SegmentReader>> {
    let index = Index::open(packed)?;
    let segments = index.searchable_segments()?;
    let [segment] = segments.as_slice() else {
        return Ok(None);
    };
    SegmentReader::open(segment).map(Some)
}
