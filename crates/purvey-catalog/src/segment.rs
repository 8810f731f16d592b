//! Segments: immutable sorted files of rendered documents.
//!
//! A segment holds documents in ascending byte order of their ids, each rendered as Terse and Full item bytes, with sparse variants in other
//! languages and, per Collection, a bitmap of its direct members. Items of one representation lie in id order with a comma between them,
//! so a page of neighbours is one read.
//!
//! File, format 2, little-endian: header (magic, format, 4 zero bytes), Full items, Terse items, variants, sums (4 bytes of xxh3 for each Full, Terse,
//! and variant), [search columns](crate::search::Columns), index, footer (lengths of the six parts, flags, xxh3 of the index, xxh3 of the footer). Index
//! and footer are checked when a segment is opened, columns when they are first used, items whenever they are read.
//!
//! Flag 1: beside the segment stands its [text index](crate::text), in a file of its own that is part of it: opened, verified and deleted with it.
//!
//! Format 1 has neither columns nor flags. It is read, so that what was begun is finished, but it cannot be searched.

pub(crate) mod codec;
mod index;
mod merge;
mod place;
mod reader;
mod texts;
mod writer;

pub(crate) use merge::merge;
pub(crate) use place::Place;
pub(crate) use reader::Region;
pub use reader::Segment;
pub use texts::TextPlan;
pub use writer::{Entry, SegmentWriter, Variant};

use codec::Frame;
use std::path::{Path, PathBuf};

const FRAME: Frame = Frame {
    magic: *b"PURVSEGM",
    format: 2,
};
const HEADER_BYTES: u64 = 16;
const FOOTER_BYTES: u64 = 72;
/// The flag of a segment with a text index beside it.
const WITH_TEXT: u64 = 1;

/// Longest item, in bytes; far above what the protocol lets any record be.
pub const ITEM_BYTES: usize = 1 << 24;

/// Names a segment. Drawn at random, so an id never returns, not even after a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId(pub(crate) u64);

impl SegmentId {
    /// The file of this segment in the segments' directory.
    pub fn path(self, dir: &Path) -> PathBuf {
        dir.join(format!("{self}.seg"))
    }

    /// The file of its text index there.
    pub fn text_path(self, dir: &Path) -> PathBuf {
        dir.join(format!("{self}.text"))
    }

    /// The segment that a file belongs to, by its name.
    pub(crate) fn of_file(name: &str) -> Option<Self> {
        let digits = name
            .strip_suffix(".seg")
            .or_else(|| name.strip_suffix(".text"))
            .filter(|digits| digits.len() == 16)?;
        u64::from_str_radix(digits, 16).ok().map(Self)
    }
}

impl std::fmt::Display for SegmentId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
