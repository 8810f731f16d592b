//! The file: the index's own files end to end, checked block by block whenever they are read.
//!
//! Format 1, little-endian: header (magic, format, 4 zero bytes), the files, sums (4 bytes of xxh3 for each block of [`BLOCK`] bytes from the beginning to the end of the files),
//! table (configuration, fields, parts and their files), footer (lengths of the bytes before the sums, of the sums, of the table; xxh3 of sums and table; xxh3
//! of the footer).

use super::recent::Recent;
use crate::Error;
use crate::fs::{Durability, TEMPORARY, beside};
use crate::segment::codec::{Decoder, Frame, corrupt, put_text};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread::{self, ThreadId};
use tantivy::directory::OwnedBytes;
use xxhash_rust::xxh3::xxh3_64;

const FRAME: Frame = Frame {
    magic: *b"PURVTEXT",
    format: 1,
};
const HEADER_BYTES: u64 = 16;
const FOOTER_BYTES: u64 = 40;
const BLOCK: usize = 4096;

/// Memory for what was read lately, in bytes, where an eighth of the file is not less.
const RECENT_BYTES: u64 = 32 << 20;
/// Memory that what was read takes beside its bytes, about: the rest of its blocks, an entry.
const RECENT_EXTRA: usize = BLOCK + 128;
/// What is read at once by those who read on and on.
const AHEAD_BYTES: u64 = 256 << 10;

/// What is in a file.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// The digest of the configuration.
    pub(super) config: u64,
    pub(super) fields: u32,
    pub(super) parts: Vec<PartEntry>,
}

/// Documents that were indexed together; their numbers go on where those of the part before end.
#[derive(Debug, Default)]
pub(super) struct PartEntry {
    pub(super) documents: u32,
    /// Names of files and where they are.
    pub(super) files: Vec<(String, Range<u64>)>,
}

impl Table {
    fn encode(&self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        out.extend(self.config.to_le_bytes());
        out.extend(self.fields.to_le_bytes());
        out.extend(u32::try_from(self.parts.len()).ok()?.to_le_bytes());
        for part in &self.parts {
            out.extend(part.documents.to_le_bytes());
            out.extend(u32::try_from(part.files.len()).ok()?.to_le_bytes());
            for (name, place) in &part.files {
                put_text(&mut out, name)?;
                out.extend(place.start.to_le_bytes());
                out.extend(place.end.to_le_bytes());
            }
        }
        Some(out)
    }

    /// Reads a table whose files must end at `end`.
    fn decode(bytes: &[u8], end: u64) -> Option<Self> {
        let mut decoder = Decoder(bytes);
        let mut table = Self {
            config: decoder.u64()?,
            fields: decoder.u32()?,
            parts: Vec::new(),
        };
        for _ in 0..decoder.u32()? {
            let mut part = PartEntry {
                documents: decoder.u32()?,
                files: Vec::new(),
            };
            for _ in 0..decoder.u32()? {
                let name = decoder.text()?.to_owned();
                let place = decoder.u64()?..decoder.u64()?;
                if place.start > place.end || place.end > end {
                    return None;
                }
                part.files.push((name, place));
            }
            table.parts.push(part);
        }
        decoder.end()?;
        Some(table)
    }
}

/// Writes a file under a temporary name, which is removed unless it is finished.
pub(super) struct Packer {
    path: PathBuf,
    temporary: PathBuf,
    file: BufWriter<File>,
    durability: Durability,
    written: u64,
    block: Vec<u8>,
    sums: Vec<u8>,
}

impl Packer {
    pub(super) fn create(path: &Path, durability: Durability) -> Result<Self, Error> {
        let temporary = beside(path, TEMPORARY);
        let file = File::create(&temporary).map_err(Error::io(&temporary))?;
        let mut packer = Self {
            path: path.to_owned(),
            temporary,
            file: BufWriter::with_capacity(1 << 16, file),
            durability,
            written: 0,
            block: Vec::with_capacity(BLOCK),
            sums: Vec::new(),
        };
        let mut header = FRAME.magic.to_vec();
        header.extend(FRAME.format.to_le_bytes());
        header.resize(HEADER_BYTES as usize, 0);
        packer.write(&header)?;
        Ok(packer)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes so far.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    pub(super) fn write(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        self.written += bytes.len() as u64;
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK - self.block.len()));
            self.block.extend(now);
            bytes = later;
            if self.block.len() == BLOCK {
                self.flush_block()?;
            }
        }
        Ok(())
    }

    fn flush_block(&mut self) -> Result<(), Error> {
        if !self.block.is_empty() {
            self.sums.extend(sum(&self.block).to_le_bytes());
            let written = self.file.write_all(&self.block);
            written.map_err(Error::io(&self.temporary))?;
            self.block.clear();
        }
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = self.file.write_all(bytes);
        written.map_err(Error::io(&self.temporary))
    }

    pub(super) fn finish(mut self, table: &Table) -> Result<(), Error> {
        self.flush_block()?;
        let mut tail = std::mem::take(&mut self.sums);
        let sums = tail.len() as u64;
        tail.extend(table.encode().ok_or_else(|| Error::Conflict {
            detail: "the table of the text index is full".to_owned(),
        })?);
        let mut footer = Vec::new();
        for len in [self.written, sums, tail.len() as u64 - sums] {
            footer.extend(len.to_le_bytes());
        }
        footer.extend(xxh3_64(&tail).to_le_bytes());
        footer.extend(xxh3_64(&footer).to_le_bytes());
        self.put(&tail)?;
        self.put(&footer)?;
        self.file.flush().map_err(Error::io(&self.temporary))?;
        self.durability
            .sync_file(self.file.get_ref(), &self.temporary)?;
        self.durability.rename(&self.temporary, &self.path)
    }
}

impl Drop for Packer {
    fn drop(&mut self) {
        // After the rename there is nothing left under this name.
        let _ = std::fs::remove_file(&self.temporary);
    }
}

fn sum(block: &[u8]) -> u32 {
    xxh3_64(block) as u32
}

/// The blocks of an open file. Nothing is handed out that does not have its sum.
#[derive(Debug)]
pub(super) struct Blocks {
    path: PathBuf,
    file: File,
    len: u64,
    /// Where the files end.
    end: u64,
    sums: Vec<u32>,
    recent: Recent<Range<u64>, OwnedBytes>,
    /// What threads that read on and on have read ahead, and where it begins.
    ahead: Mutex<HashMap<ThreadId, (u64, OwnedBytes)>>,
}

/// While it exists, its thread reads more than it is asked for.
pub(super) struct Ahead<'a>(&'a Blocks);

impl Drop for Ahead<'_> {
    fn drop(&mut self) {
        self.0.ahead.lock().remove(&thread::current().id());
    }
}

impl Blocks {
    pub(super) fn open(path: &Path) -> Result<(Self, Table), Error> {
        let file = File::open(path).map_err(Error::io(path))?;
        let len = file.metadata().map_err(Error::io(path))?.len();
        if len < HEADER_BYTES + FOOTER_BYTES {
            return Err(corrupt(path, "it is cut short"));
        }
        let mut header = [0; HEADER_BYTES as usize];
        file.read_exact_at(&mut header, 0)
            .map_err(Error::io(path))?;
        FRAME.head(path, &mut Decoder(&header))?;
        let mut footer = [0; FOOTER_BYTES as usize];
        file.read_exact_at(&mut footer, len - FOOTER_BYTES)
            .map_err(Error::io(path))?;
        let [end, sums, table, tail_sum] =
            read_footer(&footer).ok_or_else(|| corrupt(path, "its footer is damaged"))?;
        let parts = [end, sums, table, FOOTER_BYTES];
        let sum = parts.iter().try_fold(0_u64, |sum, n| sum.checked_add(*n));
        if sum != Some(len) || end < HEADER_BYTES || sums != end.div_ceil(BLOCK as u64) * 4 {
            return Err(corrupt(path, "its length does not match"));
        }
        let mut tail = vec![0; usize::try_from(sums + table).unwrap_or(usize::MAX)];
        file.read_exact_at(&mut tail, end)
            .map_err(Error::io(path))?;
        if xxh3_64(&tail) != tail_sum {
            return Err(corrupt(path, "the checksum of its table does not match"));
        }
        let (sums, table) = tail.split_at(sums as usize);
        let table =
            Table::decode(table, end).ok_or_else(|| corrupt(path, "its table is damaged"))?;
        let (sums, _) = sums.as_chunks::<4>();
        let blocks = Self {
            path: path.to_owned(),
            file,
            len,
            end,
            recent: Recent::new((len / 8).min(RECENT_BYTES) as usize),
            ahead: Mutex::default(),
            sums: sums.iter().map(|sum| u32::from_le_bytes(*sum)).collect(),
        };
        Ok((blocks, table))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Reads a range.
    pub(super) fn read(&self, range: &Range<u64>) -> io::Result<OwnedBytes> {
        if range.is_empty() {
            return Ok(OwnedBytes::empty());
        }
        if range.end > self.end {
            let message = "a place is named that is not there";
            return Err(io::Error::new(ErrorKind::InvalidData, message));
        }
        if let Some(bytes) = self.read_on(range)? {
            return Ok(bytes);
        }
        if let Some(bytes) = self.recent.get(range) {
            return Ok(bytes);
        }
        let (blocks, begin) = self.read_blocks(range)?;
        let start = (range.start - begin) as usize;
        let bytes =
            OwnedBytes::new(blocks).slice(start..start + (range.end - range.start) as usize);
        let size = bytes.len() + RECENT_EXTRA;
        self.recent.put(range.clone(), bytes.clone(), size);
        Ok(bytes)
    }

    /// From now on this thread reads what follows each other.
    pub(super) fn read_ahead(&self) -> Ahead<'_> {
        let nothing = (0, OwnedBytes::empty());
        self.ahead.lock().insert(thread::current().id(), nothing);
        Ahead(self)
    }

    /// Reads a range where this thread reads ahead.
    fn read_on(&self, range: &Range<u64>) -> io::Result<Option<OwnedBytes>> {
        let thread = thread::current().id();
        let ahead = self.ahead.lock().get(&thread).cloned();
        let Some((begin, bytes)) = ahead else {
            return Ok(None);
        };
        let end = begin + bytes.len() as u64;
        let (begin, bytes) = if begin <= range.start && range.end <= end {
            (begin, bytes)
        } else {
            let end = range.end.max(range.start + AHEAD_BYTES).min(self.end);
            let (read, begin) = self.read_blocks(&(range.start..end))?;
            let bytes = OwnedBytes::new(read);
            let ahead = (begin, bytes.clone());
            self.ahead.lock().insert(thread, ahead);
            (begin, bytes)
        };
        let slice = (range.start - begin) as usize..(range.end - begin) as usize;
        Ok(Some(bytes.slice(slice)))
    }

    /// Reads and checks the blocks that a range touches; tells where they begin.
    fn read_blocks(&self, range: &Range<u64>) -> io::Result<(Vec<u8>, u64)> {
        let block = BLOCK as u64;
        let first = range.start / block;
        let begin = first * block;
        let end = range.end.next_multiple_of(block).min(self.end);
        let len = usize::try_from(end - begin).map_err(io::Error::other)?;
        let mut bytes = vec![0; len];
        self.file.read_exact_at(&mut bytes, begin)?;
        let sums = self.sums.iter().skip(first as usize);
        if !bytes
            .chunks(BLOCK)
            .map(sum)
            .eq(sums.copied().take(len.div_ceil(BLOCK)))
        {
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                "a checksum does not match",
            ));
        }
        Ok((bytes, begin))
    }

    /// Reads everything.
    pub(super) fn verify(&self) -> Result<(), Error> {
        let mut at = 0;
        while at < self.end {
            let next = (at + (1 << 20)).min(self.end);
            self.read_blocks(&(at..next)).map_err(|e| self.failed(e))?;
            at = next;
        }
        Ok(())
    }

    /// What an error of reading means: the operating system refused it, or the contents are not what was written.
    pub(super) fn failed(&self, error: io::Error) -> Error {
        if error.raw_os_error().is_some() {
            return Error::io(&self.path)(error);
        }
        corrupt(&self.path, error.to_string())
    }
}

fn read_footer(footer: &[u8]) -> Option<[u64; 4]> {
    let mut decoder = Decoder(footer);
    let values = [
        decoder.u64()?,
        decoder.u64()?,
        decoder.u64()?,
        decoder.u64()?,
    ];
    let summed = footer.get(..footer.len().checked_sub(8)?)?;
    (decoder.u64()? == xxh3_64(summed)).then_some(values)
}
