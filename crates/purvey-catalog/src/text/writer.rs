//! Writing the text index of a segment.

use super::TextConfig;
use super::analyzer::{Forms, Prepared};
use super::directory::Scratch;
use super::file::{Packer, PartEntry, Table};
use super::index::PART_STEP;
use crate::Error;
use crate::fs::Durability;
use crossbeam_channel::{Sender, bounded};
use std::path::Path;
use std::thread::{self, JoinHandle};
use tantivy::schema::{IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::store::Compressor;
use tantivy::tokenizer::TokenizerManager;
use tantivy::{IndexBuilder, IndexSettings, SingleSegmentIndexWriter, TantivyError};

/// Memory for postings before a part is closed and another begun.
const PART_BYTES: usize = 256 << 20;

/// Memory that tables begin with; they grow.
const FIRST_BYTES: usize = 1 << 20;

/// Documents handed to the indexing thread at once; fewer in all are indexed without one.
const BATCH: usize = 256;

/// Batches that wait for the indexing thread at most.
const WAITING: usize = 16;

const TOKENIZER: &str = "forms";

/// Writes the text index of a segment in one pass. Holds some 256 MiB of postings at most, however many documents there are. Many documents are indexed by a thread of
/// its own while the caller prepares the next.
pub struct TextWriter {
    fields: usize,
    batch: Vec<Prepared>,
    work: Work,
}

/// Who indexes.
enum Work {
    /// Nobody yet.
    Here(Box<Indexer>),
    Thread(Sender<Vec<Prepared>>, JoinHandle<Result<Indexer, Error>>),
    /// It failed, and this was told.
    Failed,
}

impl TextWriter {
    /// Begins the file at `path`; hold the index lock until the generation that uses it is published.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn create(path: &Path, config: &TextConfig, durability: Durability) -> Result<Self, Error> {
        let indexer = Indexer {
            packer: Packer::create(path, durability)?,
            table: Table {
                config: config.digest(),
                fields: config.weights.len() as u32,
                parts: Vec::new(),
            },
            part: None,
            part_bytes: PART_BYTES,
        };
        Ok(Self {
            fields: config.weights.len(),
            batch: Vec::new(),
            work: Work::Here(Box::new(indexer)),
        })
    }

    /// Holds so many bytes of postings instead, about, and 4 MiB in any case: less memory, and slower searches. To be called before the first document.
    #[must_use]
    pub fn with_part_bytes(mut self, bytes: usize) -> Self {
        if let Work::Here(indexer) = &mut self.work {
            indexer.part_bytes = bytes;
        }
        self
    }

    /// Adds the next document of the segment: the first call is for ordinal 0. What fails may be told by a later call.
    ///
    /// # Errors
    /// [`Error::Conflict`] when it has not as many fields as the configuration; [`Error::Io`]. The index is useless after an error: drop the writer.
    pub fn push(&mut self, document: Prepared) -> Result<(), Error> {
        if document.fields() != self.fields {
            return Err(Error::Conflict {
                detail: format!(
                    "a document has {} text fields instead of {}",
                    document.fields(),
                    self.fields
                ),
            });
        }
        self.batch.push(document);
        if self.batch.len() < BATCH {
            return Ok(());
        }
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        if self.thread()?.send(batch).is_ok() {
            return Ok(());
        }
        // Nobody listens any more, so it failed.
        self.stop().and(Err(useless()))
    }

    fn thread(&mut self) -> Result<&Sender<Vec<Prepared>>, Error> {
        self.work = match std::mem::replace(&mut self.work, Work::Failed) {
            Work::Here(mut indexer) => {
                let (line, batches) = bounded(WAITING);
                let thread = thread::spawn(move || {
                    for batch in batches {
                        indexer.add(batch)?;
                    }
                    Ok(*indexer)
                });
                Work::Thread(line, thread)
            }
            work => work,
        };
        match &self.work {
            Work::Thread(line, _) => Ok(line),
            _ => Err(useless()),
        }
    }

    /// Waits for what is under way.
    fn stop(&mut self) -> Result<Indexer, Error> {
        match std::mem::replace(&mut self.work, Work::Failed) {
            Work::Here(indexer) => Ok(*indexer),
            Work::Thread(line, thread) => {
                drop(line);
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }
            Work::Failed => Err(useless()),
        }
    }

    /// Completes the file; its contents are durable, its name when the generation is published.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn finish(mut self) -> Result<(), Error> {
        let mut indexer = self.stop()?;
        indexer.add(std::mem::take(&mut self.batch))?;
        indexer.finish()
    }
}

impl Drop for TextWriter {
    fn drop(&mut self) {
        // The file must be gone afterwards; an error of a file that nobody wants is none.
        if let Work::Thread(line, thread) = std::mem::replace(&mut self.work, Work::Failed) {
            drop(line);
            let _ = thread.join();
        }
    }
}

fn useless() -> Error {
    Error::Conflict {
        detail: "the text index failed before".to_owned(),
    }
}

/// Indexes documents, and writes the file.
struct Indexer {
    packer: Packer,
    table: Table,
    part: Option<Part>,
    part_bytes: usize,
}

impl Indexer {
    fn add(&mut self, documents: Vec<Prepared>) -> Result<(), Error> {
        documents
            .into_iter()
            .try_for_each(|document| self.push(document))
    }

    fn push(&mut self, document: Prepared) -> Result<(), Error> {
        let mut part = match self.part.take() {
            Some(part) => part,
            None => Part::begin(self.packer.path(), self.table.fields)?,
        };
        let added = part.writer.add_document(document);
        added.map_err(|e| failed(self.packer.path(), e))?;
        part.documents += 1;
        if part.documents.is_multiple_of(PART_STEP) && part.writer.mem_usage() > self.part_bytes {
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

    fn finish(mut self) -> Result<(), Error> {
        if let Some(part) = self.part.take() {
            self.close(part)?;
        }
        self.packer.finish(&self.table)
    }
}

struct Part {
    writer: SingleSegmentIndexWriter<Prepared>,
    scratch: Scratch,
    documents: u32,
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
