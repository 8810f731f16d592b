//! Lines out of a stream of pieces, in bounded memory.

use bytes::{Buf, Bytes, BytesMut};

/// Cuts pieces into lines.
#[derive(Debug)]
pub(super) struct Lines {
    limit: usize,
    rest: BytesMut,
    searched: usize,
    number: u64,
    skipping: bool,
}

/// One line, numbered from 1, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Its bytes.
    Whole(u64, Bytes),
    /// It is longer than the limit; its bytes are gone.
    TooLong(u64),
}

impl Lines {
    /// Lines of at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            rest: BytesMut::new(),
            searched: 0,
            number: 0,
            skipping: false,
        }
    }

    /// Takes a piece; then call [`Self::next`] until it has none.
    pub(super) fn push(&mut self, piece: &[u8]) {
        self.rest.extend_from_slice(piece);
    }

    /// The next whole line.
    pub(super) fn next(&mut self) -> Option<Line> {
        loop {
            let Some(end) = self.rest[self.searched..].iter().position(|&b| b == b'\n') else {
                self.searched = self.rest.len();
                if self.rest.len() > self.limit {
                    self.rest.clear();
                    self.searched = 0;
                    if !std::mem::replace(&mut self.skipping, true) {
                        self.number += 1;
                        return Some(Line::TooLong(self.number));
                    }
                }
                return None;
            };
            let line = self.rest.split_to(self.searched + end);
            self.rest.advance(1);
            self.searched = 0;
            if !std::mem::take(&mut self.skipping) {
                return Some(self.number(line));
            }
        }
    }

    /// The line that the end of the stream ends.
    pub(super) fn last(&mut self) -> Option<Line> {
        let line = self.rest.split();
        (!line.is_empty() && !self.skipping).then(|| self.number(line))
    }

    fn number(&mut self, line: BytesMut) -> Line {
        self.number += 1;
        if line.len() > self.limit {
            Line::TooLong(self.number)
        } else {
            Line::Whole(self.number, line.freeze())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(pieces: &[&str], limit: usize) -> Vec<Line> {
        let mut lines = Lines::new(limit);
        let mut out = Vec::new();
        for piece in pieces {
            lines.push(piece.as_bytes());
            out.extend(std::iter::from_fn(|| lines.next()));
        }
        out.extend(lines.last());
        out
    }

    fn whole(number: u64, text: &'static str) -> Line {
        Line::Whole(number, Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn lines_are_the_same_however_they_arrive() {
        let expected = vec![
            whole(1, "one"),
            whole(2, ""),
            whole(3, "three\r"),
            whole(4, "4"),
        ];
        let text = "one\n\nthree\r\n4";
        assert_eq!(cut(&[text], 10), expected);
        let single: Vec<String> = text.chars().map(String::from).collect();
        let single: Vec<&str> = single.iter().map(String::as_str).collect();
        assert_eq!(cut(&single, 10), expected);
        assert_eq!(cut(&["a\n"], 10), vec![whole(1, "a")]);
    }

    #[test]
    fn a_long_line_is_counted_and_skipped_without_being_kept() {
        let long = "x".repeat(8);
        let expected = vec![whole(1, "a"), Line::TooLong(2), whole(3, "b")];
        assert_eq!(cut(&["a\n", &long, &long, &long, "\nb"], 10), expected);
        assert_eq!(cut(&["a\nxxxxxxxxxxxx\nb\n"], 10), expected);
        assert_eq!(cut(&["a\n", &long, &long], 10), expected[..2]);
        assert_eq!(cut(&["xxxxxxxxxx\n"], 10), vec![whole(1, "xxxxxxxxxx")]);
    }
}
