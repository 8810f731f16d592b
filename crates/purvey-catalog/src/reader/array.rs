//! Cutting a JSON document that is an array of records, or one record, into its records.

use super::lines::Piece;
use std::io::{self, BufRead};

/// Records of one JSON document. Only the array around them is looked at; each record is decoded later, strictly.
pub(super) struct Elements<R> {
    input: R,
    line: u64,
    limit: usize,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    /// In the array, where an element or its end may come.
    First,
    /// After a comma: an element must come.
    Next,
    /// After an element: a comma or the array's end must come.
    After,
    /// The document is over: nothing but white space may come.
    Over,
}

/// What came out of one step.
pub(super) enum Step {
    Record(Piece),
    End,
    /// The array itself is broken: nothing after it can be read.
    Broken(u64, String),
}

impl<R: BufRead> Elements<R> {
    pub(super) fn new(input: R, limit: usize) -> Self {
        Self {
            input,
            line: 1,
            limit,
            state: State::Start,
        }
    }

    /// The line being read.
    pub(super) fn position(&self) -> u64 {
        self.line
    }

    pub(super) fn step(&mut self) -> io::Result<Step> {
        loop {
            let Some(byte) = self.peek()? else {
                return Ok(match self.state {
                    State::Over => Step::End,
                    State::Start => self.broken("the document is empty"),
                    _ => self.broken("the array is not closed"),
                });
            };
            match (self.state, byte) {
                (_, b' ' | b'\t' | b'\r' | b'\n') => self.take(byte),
                (State::Start, b'[') => {
                    self.take(byte);
                    self.state = State::First;
                }
                (State::First | State::After, b']') => {
                    self.take(byte);
                    self.state = State::Over;
                }
                (State::After, b',') => {
                    self.take(byte);
                    self.state = State::Next;
                }
                (State::Start, _) => {
                    self.state = State::Over;
                    return self.element();
                }
                (State::First | State::Next, _) if !matches!(byte, b',' | b']' | b'}') => {
                    self.state = State::After;
                    return self.element();
                }
                (State::After, _) => return Ok(self.broken("a comma or ] must follow a record")),
                (State::Over, _) => return Ok(self.broken("something follows the document")),
                _ => return Ok(self.broken("a record must follow")),
            }
        }
    }

    fn broken(&self, reason: &str) -> Step {
        Step::Broken(self.line, reason.to_owned())
    }

    fn peek(&mut self) -> io::Result<Option<u8>> {
        loop {
            match self.input.fill_buf() {
                Ok(buffer) => return Ok(buffer.first().copied()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn take(&mut self, byte: u8) {
        self.line += u64::from(byte == b'\n');
        self.input.consume(1);
    }

    /// Takes bytes up to the end of the value that starts here.
    fn element(&mut self) -> io::Result<Step> {
        let line = self.line;
        let mut bytes = Vec::new();
        let mut overlong = false;
        let mut depth = 0_usize;
        let mut string = false;
        let mut escaped = false;
        'value: loop {
            let buffer = match self.input.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if buffer.is_empty() {
                break;
            }
            let mut used = 0;
            let mut over = false;
            for &byte in buffer {
                if string {
                    string = escaped || byte != b'"';
                    escaped = !escaped && byte == b'\\';
                } else {
                    match byte {
                        b'"' => string = true,
                        b'[' | b'{' => depth += 1,
                        b']' | b'}' if depth > 0 => depth -= 1,
                        b',' | b']' | b'}' if depth == 0 => {
                            over = true;
                            break;
                        }
                        _ => {}
                    }
                }
                used += 1;
                // A container or string that closes at the top is the whole element.
                if depth == 0 && !string && matches!(byte, b']' | b'}' | b'"') {
                    over = true;
                    break;
                }
            }
            let (chunk, _) = buffer.split_at(used);
            self.line += memchr::memchr_iter(b'\n', chunk).count() as u64;
            let room = self.limit.saturating_sub(bytes.len());
            overlong |= chunk.len() > room;
            bytes.extend_from_slice(chunk.get(..room).unwrap_or(chunk));
            self.input.consume(used);
            if over {
                break 'value;
            }
        }
        Ok(Step::Record(Piece {
            line,
            bytes,
            overlong,
        }))
    }
}
