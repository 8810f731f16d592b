//! The first step of every document: bytes to a JSON value, bounded in size and depth (ODP §7).
//!
//! Stricter than most readers, because two readers that disagree about a document are a way in: UTF-8 only and without a byte
//! order mark, no duplicate keys, no lone surrogates, nothing after the value. Numbers keep their text. There is never a partial
//! value.

mod parser;
mod scan;

use serde_json::Value;
use std::fmt;

/// How large and how deep a document may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// Most bytes, after content decoding.
    pub bytes: usize,
    /// Most nested containers, the top-level one being 1; never more than [`Bounds::MAX_DEPTH`], whatever is asked for.
    pub depth: usize,
}

impl Bounds {
    /// The depth that no document may pass, so that recursion over values (as in freeing them) is safe.
    pub const MAX_DEPTH: usize = 128;

    /// Bounds of a request body.
    pub const REQUEST: Self = Self {
        bytes: crate::limits::REQUEST_BYTES,
        depth: crate::limits::JSON_DEPTH,
    };
    /// Bounds of a Service Document.
    pub const SERVICE_DOCUMENT: Self = Self {
        bytes: crate::limits::SERVICE_DOCUMENT_BYTES,
        depth: crate::limits::SERVICE_DOCUMENT_DEPTH,
    };
    /// Bounds of one Collection or Offering.
    pub const RESOURCE: Self = Self {
        bytes: crate::limits::RESOURCE_BYTES,
        depth: crate::limits::JSON_DEPTH,
    };
    /// Bounds of a page.
    pub const PAGE: Self = Self {
        bytes: crate::limits::PAGE_BYTES,
        depth: crate::limits::JSON_DEPTH,
    };
    /// Bounds of a problem.
    pub const PROBLEM: Self = Self {
        bytes: crate::limits::PROBLEM_BYTES,
        depth: crate::limits::JSON_DEPTH,
    };
    /// Bounds of one attribute schema.
    pub const ATTRIBUTE_SCHEMA: Self = Self {
        bytes: crate::limits::ATTRIBUTE_SCHEMA_BYTES,
        depth: crate::limits::JSON_DEPTH,
    };
    /// Bounds of an OpenAPI document.
    pub const OPENAPI: Self = Self {
        bytes: crate::limits::OPENAPI_BYTES,
        depth: crate::limits::OPENAPI_DEPTH,
    };
}

/// Why bytes are not an acceptable JSON document.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// More than `limit` bytes.
    TooLarge {
        /// Most bytes.
        limit: usize,
    },
    /// More than `limit` nested containers.
    TooDeep {
        /// Most nested containers.
        limit: usize,
    },
    /// Objects have members more than once.
    DuplicateKeys {
        /// JSON Pointers of the members in the order of the document, each once: the first [`crate::limits::INVALID_PARAMS`].
        pointers: Vec<String>,
    },
    /// Not UTF-8.
    Utf8 {
        /// Bytes before the first that is wrong.
        offset: usize,
    },
    /// Not JSON.
    Syntax {
        /// Bytes before the fault.
        offset: usize,
        /// Line of the fault, from 1.
        line: usize,
        /// Column of the fault in code points, from 1.
        column: usize,
        /// What is wrong, as a sentence.
        reason: &'static str,
    },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { limit } => write!(f, "The document has more than {limit} bytes."),
            Self::TooDeep { limit } => write!(f, "The document nests deeper than {limit}."),
            Self::DuplicateKeys { pointers } => match pointers.as_slice() {
                [pointer] => write!(f, "The member {pointer} occurs more than once."),
                pointers => {
                    let pointers = pointers.join(", ");
                    write!(f, "The members {pointers} occur more than once.")
                }
            },
            Self::Utf8 { offset } => write!(f, "The bytes from {offset} on are not UTF-8."),
            Self::Syntax {
                line,
                column,
                reason,
                ..
            } => write!(f, "Line {line}, column {column}: {reason}"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// The JSON value of a whole document.
///
/// # Errors
/// Whatever makes the document unacceptable; the size is looked at first.
pub fn decode(bytes: &[u8], bounds: Bounds) -> Result<Value, DecodeError> {
    if bytes.len() > bounds.bytes {
        return Err(DecodeError::TooLarge {
            limit: bounds.bytes,
        });
    }
    let text = std::str::from_utf8(bytes).map_err(|error| DecodeError::Utf8 {
        offset: error.valid_up_to(),
    })?;
    parser::parse(text, bounds.depth.min(Bounds::MAX_DEPTH))
}

/// Nested containers of `value`: 0 for a scalar.
pub fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Decodes a document that arrives in pieces. Bytes are counted as they come, so that the reader can stop at once.
#[derive(Debug)]
pub struct Decoder {
    bounds: Bounds,
    bytes: Vec<u8>,
    too_large: bool,
}

impl Decoder {
    /// A decoder that has seen nothing.
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            bytes: Vec::new(),
            too_large: false,
        }
    }

    /// Takes the next piece.
    ///
    /// # Errors
    /// [`DecodeError::TooLarge`] as soon as the bytes are more than the bound, and from then on; stop reading then.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), DecodeError> {
        if self.too_large || piece.len() > self.bounds.bytes - self.bytes.len() {
            self.too_large = true;
            self.bytes = Vec::new();
            return Err(DecodeError::TooLarge {
                limit: self.bounds.bytes,
            });
        }
        self.bytes.extend_from_slice(piece);
        Ok(())
    }

    /// The value of the document that is now complete.
    ///
    /// # Errors
    /// Whatever makes the document unacceptable.
    pub fn finish(self) -> Result<Value, DecodeError> {
        if self.too_large {
            return Err(DecodeError::TooLarge {
                limit: self.bounds.bytes,
            });
        }
        decode(&self.bytes, self.bounds)
    }
}

#[cfg(test)]
mod tests;
