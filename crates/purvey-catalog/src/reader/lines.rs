//! Cutting a stream into lines, or into the logical lines of CSV, with bounded memory.

use super::table::Quoting;
use std::io::{self, BufRead};

/// One cut piece.
pub(super) struct Piece {
    /// Line on which it starts, from 1.
    pub(super) line: u64,
    /// Without its end; only the beginning when `overlong`.
    pub(super) bytes: Vec<u8>,
    /// It had more bytes than the limit: the rest was passed over.
    pub(super) overlong: bool,
}

/// Lines ended by LF or CR LF; under [`Quoting::Csv`] a line's end inside quotes belongs to a cell.
pub(super) struct Lines<R> {
    input: R,
    next: u64,
    limit: usize,
    quoting: Quoting,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R, limit: usize, quoting: Quoting) -> Self {
        Self {
            input,
            next: 1,
            limit,
            quoting,
        }
    }

    /// The line that comes next.
    pub(super) fn position(&self) -> u64 {
        self.next
    }

    /// The next piece; `None` at the end.
    pub(super) fn piece(&mut self) -> io::Result<Option<Piece>> {
        let line = self.next;
        let mut bytes = Vec::new();
        let mut overlong = false;
        let mut quoted = Quoted::default();
        let mut any = false;
        loop {
            let buffer = match self.input.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if buffer.is_empty() {
                if !any {
                    return Ok(None);
                }
                self.next += 1;
                break;
            }
            any = true;
            let newline = memchr::memchr(b'\n', buffer);
            let used = newline.map_or(buffer.len(), |at| at + 1);
            let (chunk, _) = buffer.split_at(used);
            if self.quoting == Quoting::Csv {
                quoted.pass(chunk);
            }
            let room = (self.limit + 2).saturating_sub(bytes.len());
            overlong |= chunk.len() > room;
            bytes.extend_from_slice(chunk.get(..room).unwrap_or(chunk));
            self.input.consume(used);
            if newline.is_some() {
                self.next += 1;
                if !quoted.open() {
                    break;
                }
            }
        }
        if !overlong {
            if bytes.last() == Some(&b'\n') {
                bytes.pop();
            }
            if bytes.last() == Some(&b'\r') {
                bytes.pop();
            }
            overlong = bytes.len() > self.limit;
        }
        if overlong {
            bytes.truncate(self.limit);
        }
        Ok(Some(Piece {
            line,
            bytes,
            overlong,
        }))
    }
}

/// Whether a position in CSV lies inside quotes; a quote inside a bare cell is a character like others (RFC 4180 §2).
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Quoted {
    #[default]
    CellStart,
    Bare,
    Inside,
    /// After a quote inside quotes: the end, or the first half of a doubled one.
    Ending,
}

impl Quoted {
    fn pass(&mut self, bytes: &[u8]) {
        for byte in bytes {
            *self = match (*self, byte) {
                (Self::Inside, b'"') => Self::Ending,
                (Self::Inside, _) | (Self::CellStart | Self::Ending, b'"') => Self::Inside,
                (_, b',' | b'\n') => Self::CellStart,
                (_, _) => Self::Bare,
            };
        }
    }

    fn open(self) -> bool {
        self == Self::Inside
    }
}
