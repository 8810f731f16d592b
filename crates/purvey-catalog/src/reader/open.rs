//! Opening sources: where they are, their format, compression, and how far reading has come.

use super::array::{Elements, Step};
use super::lines::{Lines, Piece};
use super::table::{Header, Quoting};
use super::{Content, RECORD_BYTES, Raw, ReadError};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const BUFFER: usize = 256 * 1024;

/// How records are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One JSON document: an array of records, or one record.
    Json,
    /// A JSON document on each line; empty lines are passed over.
    Ndjson,
    /// Comma-separated with RFC 4180 quotes; the first line names the columns.
    Csv,
    /// Tab-separated without quoting; the first line names the columns.
    Tsv,
}

impl Format {
    /// The format that a file's extension names, before `.gz` or `.zst`.
    pub fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let name = name
            .strip_suffix(".gz")
            .or_else(|| name.strip_suffix(".zst"))
            .unwrap_or(&name);
        match name.rsplit_once('.')?.1 {
            "json" => Some(Self::Json),
            "ndjson" | "jsonl" => Some(Self::Ndjson),
            "csv" => Some(Self::Csv),
            "tsv" | "tab" => Some(Self::Tsv),
            _ => None,
        }
    }
}

/// Where records come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Standard input, written `-`.
    Stdin,
    /// A file.
    File(PathBuf),
}

impl Source {
    /// The source of a command line's argument.
    pub fn of(argument: impl Into<PathBuf>) -> Self {
        let path = argument.into();
        if path.as_os_str() == "-" {
            Self::Stdin
        } else {
            Self::File(path)
        }
    }

    /// What messages call it: the path, or `-`.
    pub fn name(&self) -> &Path {
        match self {
            Self::Stdin => Path::new("-"),
            Self::File(path) => path,
        }
    }
}

/// How far reading has come, in bytes of the files as they are (compressed). Clones watch the same reader.
#[derive(Clone, Debug)]
pub struct Progress {
    read: Arc<AtomicU64>,
    total: Option<u64>,
}

impl Progress {
    /// Bytes read so far.
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Bytes of all sources together; unknown when one is standard input or a pipe.
    pub fn total(&self) -> Option<u64> {
        self.total
    }
}

/// Opens `sources`, one after the other. `format` overrides what their extensions say; standard input is NDJSON without it.
///
/// # Errors
/// A file that is not there, or whose extension names no format.
pub fn open(sources: Vec<Source>, format: Option<Format>) -> Result<Reader, ReadError> {
    let mut total = Some(0_u64);
    let mut formats = Vec::new();
    for source in &sources {
        let fail = |reason: String| ReadError {
            source_name: source.name().to_owned(),
            line: None,
            reason,
        };
        formats.push(match (source, format) {
            (_, Some(format)) => format,
            (Source::Stdin, None) => Format::Ndjson,
            (Source::File(path), None) => Format::of(path).ok_or_else(|| {
                fail("the name ends in none of .json .ndjson .jsonl .csv .tsv (with or without .gz or .zst): say the format".to_owned())
            })?,
        });
        let size = match source {
            Source::Stdin => None,
            Source::File(path) => {
                let metadata = std::fs::metadata(path).map_err(|error| fail(error.to_string()))?;
                metadata.is_file().then_some(metadata.len())
            }
        };
        total = total.zip(size).map(|(total, size)| total + size);
    }
    Ok(Reader {
        sources,
        formats,
        next: 0,
        current: None,
        headers: Vec::new(),
        progress: Progress {
            read: Arc::default(),
            total,
        },
    })
}

/// Iterates over the records of all sources. After a [`ReadError`] it goes on with the next source.
pub struct Reader {
    sources: Vec<Source>,
    formats: Vec<Format>,
    next: usize,
    current: Option<Cutter>,
    headers: Vec<Arc<Header>>,
    progress: Progress,
}

type Input = Box<dyn BufRead + Send>;

enum Cutter {
    Json(Elements<Input>),
    Ndjson(Lines<Input>),
    Table {
        lines: Lines<Input>,
        quoting: Quoting,
        header: Option<Arc<Header>>,
    },
}

impl Reader {
    /// Watches this reader from elsewhere.
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// The headers of the tables that were read to their end, those without rows too.
    pub fn headers(&self) -> &[Arc<Header>] {
        &self.headers
    }

    /// The sources, in the order of [`Raw::source`].
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    fn start(&self, source: &Source, format: Format) -> io::Result<Cutter> {
        let raw: Box<dyn Read + Send> = match source {
            Source::Stdin => Box::new(io::stdin()),
            Source::File(path) => Box::new(File::open(path)?),
        };
        let input = decompress(Counted {
            inner: raw,
            read: Arc::clone(&self.progress.read),
        })?;
        Ok(match format {
            Format::Json => Cutter::Json(Elements::new(input, RECORD_BYTES)),
            Format::Ndjson => Cutter::Ndjson(Lines::new(input, RECORD_BYTES, Quoting::None)),
            Format::Csv => Cutter::table(input, Quoting::Csv),
            Format::Tsv => Cutter::table(input, Quoting::None),
        })
    }
}

impl Iterator for Reader {
    type Item = Result<Raw, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some(cutter) = &mut self.current else {
                let source = self.sources.get(self.next)?;
                let format = *self.formats.get(self.next)?;
                let started = self.start(source, format).map_err(|error| ReadError {
                    source_name: source.name().to_owned(),
                    line: None,
                    reason: error.to_string(),
                });
                self.next += 1;
                match started {
                    Ok(cutter) => self.current = Some(cutter),
                    Err(error) => return Some(Err(error)),
                }
                continue;
            };
            let source = self.next - 1;
            match cutter.cut() {
                Ok(Some((piece, content))) => {
                    return Some(Ok(Raw {
                        source,
                        line: piece.line,
                        bytes: piece.bytes,
                        content,
                    }));
                }
                Ok(None) => {
                    self.headers.extend(cutter.header().cloned());
                    self.current = None;
                }
                Err((line, reason)) => {
                    self.current = None;
                    return Some(Err(ReadError {
                        source_name: self.sources.get(source)?.name().to_owned(),
                        line: Some(line),
                        reason,
                    }));
                }
            }
        }
    }
}

impl Cutter {
    fn table(input: Input, quoting: Quoting) -> Self {
        Self::Table {
            lines: Lines::new(input, RECORD_BYTES, quoting),
            quoting,
            header: None,
        }
    }

    /// The header of a table, once it was read.
    fn header(&self) -> Option<&Arc<Header>> {
        match self {
            Self::Table { header, .. } => header.as_ref(),
            Self::Json(_) | Self::Ndjson(_) => None,
        }
    }

    /// The next record, or the line and reason of what makes reading on impossible.
    fn cut(&mut self) -> Result<Option<(Piece, Content)>, (u64, String)> {
        match self {
            Self::Json(elements) => match elements.step() {
                Ok(Step::Record(piece)) => Ok(Some(judged(piece, Content::Json))),
                Ok(Step::End) => Ok(None),
                Ok(Step::Broken(line, reason)) => Err((line, reason)),
                Err(error) => Err((elements.position(), error.to_string())),
            },
            Self::Ndjson(lines) => Ok(filled(lines)?.map(|piece| judged(piece, Content::Json))),
            Self::Table {
                lines,
                quoting,
                header,
            } => loop {
                let Some(piece) = filled(lines)? else {
                    return Ok(None);
                };
                match header {
                    Some(header) => {
                        let content = Content::Row(Arc::clone(header), *quoting);
                        return Ok(Some(judged(piece, content)));
                    }
                    None if piece.overlong => {
                        return Err((piece.line, "the header is too long".to_owned()));
                    }
                    None => {
                        let read = Header::read(&piece.bytes, *quoting);
                        *header = Some(Arc::new(read.map_err(|reason| (piece.line, reason))?));
                    }
                }
            },
        }
    }
}

/// The next piece that is not blank.
fn filled(lines: &mut Lines<Input>) -> Result<Option<Piece>, (u64, String)> {
    loop {
        let line = lines.position();
        match lines.piece() {
            Ok(Some(piece)) if piece.bytes.iter().all(|b| matches!(b, b' ' | b'\r')) => {}
            Ok(piece) => return Ok(piece),
            Err(error) => return Err((line, error.to_string())),
        }
    }
}

fn judged(piece: Piece, content: Content) -> (Piece, Content) {
    let content = if piece.overlong {
        Content::Bad(format!("Must have at most {RECORD_BYTES} bytes."))
    } else {
        content
    };
    (piece, content)
}

/// Counts the bytes that pass.
struct Counted {
    inner: Box<dyn Read + Send>,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// Undoes gzip or zstd, which their first bytes tell, and passes over a byte order mark.
fn decompress(raw: Counted) -> io::Result<Input> {
    // A pipe may hand over less than a magic number at once.
    let mut raw = raw;
    let mut first = Vec::with_capacity(4);
    raw.by_ref().take(4).read_to_end(&mut first)?;
    let gzip = first.starts_with(&[0x1f, 0x8b]);
    let zstandard = first == [0x28, 0xb5, 0x2f, 0xfd];
    let raw = BufReader::with_capacity(BUFFER, io::Cursor::new(first).chain(raw));
    let mut input: Input = if gzip {
        Box::new(BufReader::with_capacity(
            BUFFER,
            flate2::bufread::MultiGzDecoder::new(raw),
        ))
    } else if zstandard {
        Box::new(BufReader::with_capacity(
            BUFFER,
            zstd::stream::read::Decoder::with_buffer(raw)?,
        ))
    } else {
        Box::new(raw)
    };
    if input.fill_buf()?.starts_with(b"\xef\xbb\xbf") {
        input.consume(3);
    }
    Ok(input)
}
