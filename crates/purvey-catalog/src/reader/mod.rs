//! Records from files and standard input: JSON, NDJSON, CSV and TSV, plain or compressed, streamed with bounded memory.
//!
//! A reader only cuts its input into records and keeps their bytes; decoding is a step of its own ([`Raw::input`]), so that it
//! can run on other threads. What is wrong with one record is a fault of that record, never of the whole.

mod array;
mod lines;
mod open;
mod table;

pub use open::{Format, Progress, Source, open};
pub use table::{Header, Row};

use purvey_odp::decode::{Bounds, decode};
use purvey_odp::limits;
use purvey_odp::report::Invalid;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

/// Most bytes of one record in a file: four times what its default language may take, which leaves room for translations.
pub const RECORD_BYTES: usize = 4 * limits::RESOURCE_BYTES;
/// Most nested containers of one record in a file: translated attributes are two levels deeper than on the wire.
pub const RECORD_DEPTH: usize = limits::JSON_DEPTH + 2;

/// A source that cannot be read on: the file is missing, damaged or not of its format.
#[derive(Debug, thiserror::Error)]
#[error("{}{}: {reason}", source_name.display(), line.map_or_else(String::new, |line| format!(", line {line}")))]
pub struct ReadError {
    /// The file, or `-`.
    pub source_name: PathBuf,
    /// Line at which reading stopped, from 1, when there is one.
    pub line: Option<u64>,
    /// What happened.
    pub reason: String,
}

/// One record as it stands in its source.
#[derive(Clone, Debug)]
pub struct Raw {
    /// Index of its source among those opened.
    pub source: usize,
    /// Line on which it starts, from 1.
    pub line: u64,
    /// Its bytes, without the line's end: what a rejects file keeps. Of an overlong record, the beginning.
    pub bytes: Vec<u8>,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Json,
    Row(Arc<Header>, table::Quoting),
    Bad(String),
}

/// A decoded record: a JSON value, or a row of cells.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// A JSON document.
    Value(Value),
    /// A row of a table.
    Row(Row<'a>),
}

/// The value of one column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// A table's cell; never empty.
    Text(&'a str),
    /// A JSON object's member.
    Value(&'a Value),
}

impl Raw {
    /// The table's header, when it is a row.
    pub fn header(&self) -> Option<&Arc<Header>> {
        match &self.content {
            Content::Row(header, _) => Some(header),
            Content::Json | Content::Bad(_) => None,
        }
    }

    /// Decodes it.
    ///
    /// # Errors
    /// It is too long, not UTF-8, not JSON, or not of as many cells as the header.
    pub fn input(&self) -> Result<Input<'_>, Invalid> {
        match &self.content {
            Content::Json => {
                let bounds = Bounds {
                    bytes: RECORD_BYTES,
                    depth: RECORD_DEPTH,
                };
                decode(&self.bytes, bounds)
                    .map(Input::Value)
                    .map_err(|error| Invalid::one("", error.to_string()))
            }
            Content::Row(header, quoting) => {
                Row::read(&self.bytes, header, *quoting).map(Input::Row)
            }
            Content::Bad(reason) => Err(Invalid::one("", reason.as_str())),
        }
    }
}

impl Input<'_> {
    /// The value of a column, or of a JSON object's member; `None` when it is absent or its cell is empty.
    pub fn get(&self, column: &str) -> Option<Cell<'_>> {
        match self {
            Self::Value(value) => value.get(column).map(Cell::Value),
            Self::Row(row) => row.get(column).map(Cell::Text),
        }
    }
}
