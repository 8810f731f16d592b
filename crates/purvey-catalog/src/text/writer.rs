//! Writing the text index of a segment.

use super::TextConfig;
use super::analyzer::{Forms, Prepared};
use super::directory::Scratch;
use super::file::{Packer, PartEntry, Table};
use crate::Error;
use crate::fs::Durability;
use std::path::Path;
use tantivy::schema::{IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::store::Compressor;
use tantivy::tokenizer::TokenizerManager;
use tantivy::{IndexBuilder, IndexSettings, SingleSegmentIndexWriter, TantivyError};

/// Memory for postings before a part is closed and another begun.
const PART_BYTES: usize = 256 << 20;

/// Memory that tables begin with; they grow.
const FIRST_BYTES: usize = 1 << 20;

/// Documents after which memory is looked at again.
const LOOK_AFTER: u32 = 64;

const TOKENIZER: &str = "forms";

/// Writes the text index of a segment in one pass. Holds some 256 MiB of postings at most, however many documents there are.
pub struct TextWriter {
    packer: Packer,
    table: Table,
    part: Option<Part>,
}

struct Part {
    writer: SingleSegmentIndexWriter<Prepared>,
    scratch: Scratch,
    documents: u32,
}

impl TextWriter {
    /// Begins the file at `path`; hold the index lock until the generation that uses it is published.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn create(path: &Path, config: &TextConfig, durability: Durability) -> Result<Self, Error> {
        Ok(Self {
            packer: Packer::create(path, durability)?,
            table: Table {
                config: config.digest(),
                fields: config.weights.len() as u32,
                parts: Vec::new(),
            },
            part: None,
        })
    }

    /// Adds the next document of the segment: the first call is for ordinal 0.
    ///
    /// # Errors
    /// [`Error::Conflict`] when it has not as many fields as the configuration; [`Error::Io`]. The index is useless after an error: drop the writer.
    pub fn push(&mut self, document: Prepared) -> Result<(), Error> {
        if document.fields() != self.table.fields as usize {
            return Err(Error::Conflict {
                detail: format!(
                    "a document has {} text fields instead of {}",
                    document.fields(),
                    self.table.fields
                ),
            });
        }
        let mut part = match self.part.take() {
            Some(part) => part,
            None => Part::begin(self.packer.path(), self.table.fields)?,
        };
        let added = part.writer.add_document(document);
        added.map_err(|e| failed(self.packer.path(), e))?;
        part.documents += 1;
        if part.documents % LOOK_AFTER == 0 && part.writer.mem_usage() > PART_BYTES {
            self.close(part)
        } else {
            self.part = Some(part);
            Ok(())
        }
    }

    fn close(&mut self, part: Part) -> Result<(), Error> {
        let path = self.packer.path().to_owned();
        let finished = part.writer.finalize();
        drop(finished.map_err(|e| failed(&path, e))?);
        let mut entry = PartEntry {
            documents: part.documents,
            files: Vec::new(),
        };
        for (name, scrap) in part.scratch.into_files() {
            let name = name.to_string_lossy().into_owned();
            // The library's own list of files that it may delete; nothing is deleted here.
            if name.starts_with('.') {
                continue;
            }
            let start = self.packer.written();
            let io = |error| Error::io(&path)(error);
            scrap.each_piece(io, |piece| self.packer.write(piece))?;
            entry.files.push((name, start..self.packer.written()));
        }
        self.table.parts.push(entry);
        Ok(())
    }

    /// Completes the file; its contents are durable, its name when the generation is published.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn finish(mut self) -> Result<(), Error> {
        if let Some(part) = self.part.take() {
            self.close(part)?;
        }
        self.packer.finish(&self.table)
    }
}

impl Part {
    fn begin(path: &Path, fields: u32) -> Result<Self, Error> {
        let indexing = TextFieldIndexing::default()
            .set_tokenizer(TOKENIZER)
            .set_index_option(IndexRecordOption::WithFreqsAndPositions);
        let options = TextOptions::default().set_indexing_options(indexing);
        let mut schema = Schema::builder();
        for field in 0..fields {
            schema.add_text_field(&field.to_string(), options.clone());
        }
        let tokenizers = TokenizerManager::new();
        tokenizers.register(TOKENIZER, Forms);
        let scratch = Scratch::new(path);
        let writer = IndexBuilder::new()
            .schema(schema.build())
            .tokenizers(tokenizers)
            .settings(IndexSettings {
                docstore_compression: Compressor::None,
                docstore_compress_dedicated_thread: false,
                ..IndexSettings::default()
            })
            .single_segment_index_writer(scratch.clone(), FIRST_BYTES)
            .map_err(|e| failed(path, e))?;
        Ok(Self {
            writer,
            scratch,
            documents: 0,
        })
    }
}

fn failed(path: &Path, error: TantivyError) -> Error {
    Error::io(path)(std::io::Error::other(error))
}
