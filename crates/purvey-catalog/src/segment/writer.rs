//! Writing a segment in one pass.

use super::codec::corrupt;
use super::index::Index;
use super::place::sum;
use super::{FRAME, HEADER_BYTES, ITEM_BYTES, SegmentId, TextPlan, WITH_TEXT};
use crate::Error;
use crate::fs::{Durability, TEMPORARY, beside};
use crate::search::Columns;
use crate::text::{Prepared, TextWriter};
use purvey_odp::language::LanguageTag;
use roaring::RoaringBitmap;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Seek, SeekFrom, Write, copy};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

const BUFFER_BYTES: usize = 256 * 1024;

/// One document to write. Items are JSON objects with at least one member and without `odp_version`.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// Its local id, at most 255 bytes.
    pub id: &'a str,
    /// Terse item in the document's own language.
    pub terse: &'a [u8],
    /// Full item in the document's own language.
    pub full: &'a [u8],
    /// The same in other languages.
    pub variants: &'a [Variant<'a>],
    /// Index, in the segment's language table, of the language that the item names in `language`; `None` when it names none: then it is in the table's
    /// first.
    pub language: Option<u16>,
    /// Collections that it is a direct member of, or the parents of a Collection; and, under keys that no Collection has, who may see it.
    pub postings: &'a [&'a str],
}

/// A document in another language; the items name it in `language`.
#[derive(Debug, Clone, Copy)]
pub struct Variant<'a> {
    /// Index in the segment's language table.
    pub language: u16,
    /// Terse item.
    pub terse: &'a [u8],
    /// Full item.
    pub full: &'a [u8],
}

/// Writes a segment. Holds ids, lengths and members in memory (some 30 bytes a document); items go to files as they come.
pub struct SegmentWriter {
    id: SegmentId,
    dir: PathBuf,
    durability: Durability,
    index: Index,
    sums: Vec<u8>,
    full: Part,
    terse: Part,
    variants: Option<Part>,
    columns: Option<Columns>,
    text: Option<TextWriter>,
    last_id: Option<String>,
}

impl SegmentWriter {
    /// Begins a segment in the segments' directory `dir`; hold the index lock until the generation that uses it is published.
    /// `languages[0]` is the Service's default language.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn create(
        dir: &Path,
        languages: &[LanguageTag],
        durability: Durability,
    ) -> Result<Self, Error> {
        let (id, full) = loop {
            let id = SegmentId(
                getrandom::u64().map_err(|error| Error::io(dir)(std::io::Error::other(error)))?,
            );
            if id.path(dir).exists() {
                continue;
            }
            match Part::create(beside(&id.path(dir), TEMPORARY)) {
                Err(Error::Io { source, .. }) if source.kind() == ErrorKind::AlreadyExists => {}
                part => break (id, part?),
            }
        };
        let mut writer = Self {
            id,
            dir: dir.to_owned(),
            durability,
            index: Index::new(languages.to_vec()),
            sums: Vec::new(),
            full,
            terse: Part::create(beside(&id.path(dir), "terse.tmp"))?,
            variants: None,
            columns: None,
            text: None,
            last_id: None,
        };
        let mut header = FRAME.magic.to_vec();
        header.extend(FRAME.format.to_le_bytes());
        header.resize(HEADER_BYTES as usize, 0);
        writer.full.write(&header)?;
        Ok(writer)
    }

    /// Documents so far.
    pub fn len(&self) -> usize {
        self.index.ids.len()
    }

    /// Whether there are none so far.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The index of a language in the table, which gets it when it is new.
    ///
    /// # Errors
    /// [`Error::Conflict`] when the table is full.
    pub fn language(&mut self, tag: &LanguageTag) -> Result<u16, Error> {
        let table = &mut self.index.languages;
        let at = table.iter().position(|known| known == tag);
        let at = at.unwrap_or_else(|| {
            table.push(tag.clone());
            table.len() - 1
        });
        u16::try_from(at).map_err(|_| conflict("the segment has too many languages".to_owned()))
    }

    /// Adds a document.
    ///
    /// # Errors
    /// [`Error::Conflict`] when its id is not after the one before, an item is empty or longer than [`ITEM_BYTES`], a language is not in the table, or the segment is full
    /// (4 GiB of ids); [`Error::Io`]. The segment is useless after an error: drop the writer.
    pub fn push(&mut self, entry: &Entry<'_>) -> Result<(), Error> {
        let sums = (sum(entry.full), sum(entry.terse));
        let ordinal =
            self.push_document(entry.id, entry.terse, entry.full, entry.language, sums)?;
        for variant in entry.variants {
            let sums = (sum(variant.full), sum(variant.terse));
            self.push_variant(ordinal, variant, sums)?;
        }
        for collection in entry.postings {
            match self.index.postings.get_mut(*collection) {
                Some(members) => members.insert(ordinal),
                None => self
                    .index
                    .postings
                    .entry((*collection).to_owned())
                    .or_default()
                    .insert(ordinal),
            };
        }
        Ok(())
    }

    /// Adds a document without variants and members. The sums are passed in so that copies keep those of the original.
    pub(super) fn push_document(
        &mut self,
        id: &str,
        terse: &[u8],
        full: &[u8],
        language: Option<u16>,
        sums: (u32, u32),
    ) -> Result<u32, Error> {
        if self.last_id.as_deref().is_some_and(|last| last >= id) {
            return Err(conflict(format!(
                "the id {id} does not come after the one before it"
            )));
        }
        if id.is_empty() || id.len() > 255 {
            return Err(conflict(format!("an id has {} bytes", id.len())));
        }
        let lens = (item_len(terse)?, item_len(full)?);
        self.check_language(language.unwrap_or_default(), language.is_none())?;
        let ordinal = self
            .index
            .push(id, lens.0, lens.1)
            .ok_or_else(|| conflict("the segment is full".to_owned()))?;
        if let Some(language) = language {
            self.index.named.push((ordinal, language));
        }
        self.full.item(ordinal, full)?;
        self.terse.item(ordinal, terse)?;
        self.sums.extend(sums.0.to_le_bytes());
        self.sums.extend(sums.1.to_le_bytes());
        let last = self.last_id.get_or_insert_default();
        last.clear();
        last.push_str(id);
        Ok(ordinal)
    }

    /// Adds a variant of the document added last.
    pub(super) fn push_variant(
        &mut self,
        ordinal: u32,
        variant: &Variant<'_>,
        sums: (u32, u32),
    ) -> Result<(), Error> {
        self.check_language(variant.language, false)?;
        let (terse_len, full_len) = (item_len(variant.terse)?, item_len(variant.full)?);
        self.index
            .push_variant(ordinal, variant.language, terse_len, full_len);
        let part = match &mut self.variants {
            Some(part) => part,
            None => self.variants.insert(Part::create(beside(
                &self.id.path(&self.dir),
                "variants.tmp",
            ))?),
        };
        // The sums of variants lie among those of the documents, in the order of writing.
        part.write(variant.terse)?;
        part.write(variant.full)?;
        self.sums.extend(sums.0.to_le_bytes());
        self.sums.extend(sums.1.to_le_bytes());
        Ok(())
    }

    /// Begins a text index beside the segment; then every document is followed by its [text](Self::push_text).
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn index_text(&mut self, plan: &TextPlan) -> Result<(), Error> {
        let path = self.id.text_path(&self.dir);
        let writer = TextWriter::create(&path, plan.config(), self.durability.clone())?;
        self.text = Some(writer);
        Ok(())
    }

    /// Adds the text of the document that was added last; without a text index nothing happens.
    ///
    /// # Errors
    /// [`Error::Conflict`] when it was prepared for other fields; [`Error::Io`].
    pub fn push_text(&mut self, text: Prepared) -> Result<(), Error> {
        match &mut self.text {
            Some(writer) => writer.push(text),
            None => Ok(()),
        }
    }

    /// Sets the search columns over all documents; without them the segment cannot be searched.
    pub fn set_columns(&mut self, columns: Columns) {
        self.columns = Some(columns);
    }

    pub(super) fn set_postings(&mut self, postings: BTreeMap<String, RoaringBitmap>) {
        self.index.postings = postings;
    }

    fn check_language(&self, language: u16, absent: bool) -> Result<(), Error> {
        if absent || usize::from(language) < self.index.languages.len() {
            return Ok(());
        }
        Err(conflict(format!(
            "there is no language {language} in the segment's table"
        )))
    }

    /// Completes the file; its contents are durable, its name when the generation is published.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Conflict`] when more Collections or languages were used than the format can hold, or the columns are over other documents.
    pub fn finish(mut self) -> Result<SegmentId, Error> {
        for members in self.index.postings.values_mut() {
            members.optimize();
        }
        let index = self
            .index
            .encode()
            .ok_or_else(|| conflict("a table of the segment is full".to_owned()))?;
        let flags = if self.text.is_some() { WITH_TEXT } else { 0 };
        if let Some(text) = self.text.take() {
            text.finish()?;
        }
        self.full.append(&mut self.terse)?;
        if let Some(variants) = &mut self.variants {
            self.full.append(variants)?;
        }
        let columns = match &self.columns {
            Some(columns) if columns.documents() as usize != self.len() => {
                return Err(conflict("the columns are over other documents".to_owned()));
            }
            Some(columns) => columns.encode()?,
            None => Vec::new(),
        };
        let mut footer = Vec::new();
        for len in self.index.region_lens() {
            footer.extend(len.to_le_bytes());
        }
        for part in [&self.sums, &columns, &index] {
            footer.extend((part.len() as u64).to_le_bytes());
        }
        footer.extend(flags.to_le_bytes());
        footer.extend(xxh3_64(&index).to_le_bytes());
        footer.extend(xxh3_64(&footer).to_le_bytes());
        for part in [&self.sums, &columns, &index] {
            self.full.write(part)?;
        }
        self.full.write(&footer)?;
        self.full.flush()?;
        self.durability
            .sync_file(self.full.file.get_ref(), &self.full.path)?;
        self.durability
            .rename(&self.full.path, &self.id.path(&self.dir))?;
        Ok(self.id)
    }
}

fn conflict(detail: String) -> Error {
    Error::Conflict { detail }
}

fn item_len(item: &[u8]) -> Result<u32, Error> {
    match u32::try_from(item.len()) {
        Ok(len) if item.len() > 2 && item.len() <= ITEM_BYTES => Ok(len),
        _ => Err(conflict(format!("an item has {} bytes", item.len()))),
    }
}

/// A file being written; removed when dropped, unless it was renamed.
struct Part {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Part {
    fn create(path: PathBuf) -> Result<Self, Error> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(Error::io(&path))?;
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(Self { path, file })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file.write_all(bytes).map_err(Error::io(&self.path))
    }

    fn item(&mut self, ordinal: u32, item: &[u8]) -> Result<(), Error> {
        if ordinal > 0 {
            self.write(b",")?;
        }
        self.write(item)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.file.flush().map_err(Error::io(&self.path))
    }

    fn append(&mut self, other: &mut Self) -> Result<(), Error> {
        self.flush()?;
        other.flush()?;
        let source = other.file.get_mut();
        let len = source.stream_position().map_err(Error::io(&other.path))?;
        source
            .seek(SeekFrom::Start(0))
            .map_err(Error::io(&other.path))?;
        let copied = copy(source, self.file.get_mut()).map_err(Error::io(&self.path))?;
        if copied != len {
            return Err(corrupt(
                &other.path,
                "it changed while the segment was being written",
            ));
        }
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // After the rename there is nothing left under this name.
        let _ = std::fs::remove_file(&self.path);
    }
}
