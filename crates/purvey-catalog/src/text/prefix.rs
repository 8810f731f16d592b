//! The documents that have words with some beginning.

use super::index::{Part, PartField, TextIndex};
use super::set::Set;
use crate::Error;
use std::io;
use std::sync::Arc;
use tantivy::schema::IndexRecordOption;

/// Memory for remembered beginnings, in bytes: for each document so many, and never more than [`MOST_BYTES`].
const DOCUMENT_BYTES: usize = 32;
pub(super) const MOST_BYTES: usize = 32 << 20;

/// What an entry takes beside its sets, about.
const ENTRY_BYTES: usize = 256;

/// How much may be remembered of an index of so many documents.
pub(super) fn budget(documents: u32) -> usize {
    (documents as usize * DOCUMENT_BYTES).min(MOST_BYTES)
}

/// The documents of an index that have a word with some beginning.
pub(super) struct Begun {
    pub(super) parts: Vec<PartBegun>,
}

/// The documents of a part that have one.
pub(super) struct PartBegun {
    /// For each field those that have one there.
    pub(super) fields: Vec<Set>,
    /// Documents in all sets.
    pub(super) cost: u64,
}

impl TextIndex {
    /// The documents that have a word that begins with `prefix`. The first call reads all such words, later ones may remember.
    pub(super) fn begun(&self, prefix: &str) -> Result<Arc<Begun>, Error> {
        if let Some(known) = self.prefixes.get(prefix) {
            return Ok(known);
        }
        let parts = self.parts.iter().map(|part| self.read_begun(part, prefix));
        let begun = Arc::new(Begun {
            parts: parts
                .collect::<io::Result<_>>()
                .map_err(|e| self.failed(e))?,
        });
        let sets = begun.parts.iter().flat_map(|part| &part.fields);
        let bytes = ENTRY_BYTES + prefix.len() + sets.map(Set::bytes).sum::<usize>();
        self.prefixes
            .put(prefix.to_owned(), Arc::clone(&begun), bytes);
        Ok(begun)
    }

    fn read_begun(&self, part: &Part, prefix: &str) -> io::Result<PartBegun> {
        let fields = part.fields.iter();
        let fields = fields.map(|field| self.read_field(field, part.documents, prefix));
        let fields = fields.collect::<io::Result<Vec<Set>>>()?;
        Ok(PartBegun {
            cost: fields.iter().map(Set::count).sum(),
            fields,
        })
    }

    fn read_field(&self, field: &PartField, documents: u32, prefix: &str) -> io::Result<Set> {
        // No byte of UTF-8 is the highest there is.
        let mut end = prefix.as_bytes().to_vec();
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        let words = field.inverted.terms().range().ge(prefix).lt(end);
        let mut words = words.without_keys().into_stream()?;
        // Their postings lie one after the other.
        let _ahead = self.read_ahead();
        let mut found = vec![0_u64; (documents as usize).div_ceil(64)];
        let mut postings = None;
        while words.advance() {
            let postings =
                match &mut postings {
                    Some(postings) => {
                        let inverted = &field.inverted;
                        inverted.reset_block_postings_from_terminfo(words.value(), postings)?;
                        postings
                    }
                    none => none.insert(field.inverted.read_block_postings_from_terminfo(
                        words.value(),
                        IndexRecordOption::Basic,
                    )?),
                };
            while postings.block_len() > 0 {
                for doc in postings.docs() {
                    if let Some(word) = found.get_mut(*doc as usize / 64) {
                        *word |= 1 << (doc % 64);
                    }
                }
                postings.advance();
            }
        }
        Ok(Set::from_words(found))
    }
}
