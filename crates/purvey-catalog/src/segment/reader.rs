//! Reading a segment.

use super::codec::{Decoder, corrupt};
use super::index::{Index, VariantPlace};
use super::{FOOTER_BYTES, FRAME, HEADER_BYTES, SegmentId, WITH_TEXT};
use crate::Error;
use crate::search::Columns;
use crate::text::TextIndex;
use parking_lot::Mutex;
use purvey_odp::language::LanguageTag;
use purvey_odp::offering::Representation;
use roaring::RoaringBitmap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// An open segment. Its file stays readable through the open handle when its name is removed.
pub struct Segment {
    id: SegmentId,
    pub(super) path: PathBuf,
    pub(super) file: File,
    pub(super) index: Index,
    /// As in the file; held because every read needs one of them.
    pub(super) sums: Vec<u8>,
    /// Where the Full items, Terse items, variants, sums, columns and the index begin, and where the index ends.
    starts: [u64; 7],
    footer_bytes: u64,
    /// Read when first wanted.
    columns: Mutex<Option<Arc<Columns>>>,
    text: Option<Arc<TextIndex>>,
}

/// The footer of format 1 lacks the length of the columns and the flags.
const FIRST_FOOTER_BYTES: u64 = FOOTER_BYTES - 16;

/// Items that lie in one file next to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Region {
    /// Terse items.
    Terse,
    /// Full items.
    Full,
}

impl From<Representation> for Region {
    fn from(representation: Representation) -> Self {
        match representation {
            Representation::Terse => Self::Terse,
            Representation::Full => Self::Full,
        }
    }
}

impl Segment {
    /// Opens a segment of the segments' directory `dir` and reads its index into memory.
    ///
    /// # Errors
    /// [`Error::Io`], also when there is no such file; [`Error::Format`]; [`Error::Corrupt`].
    pub fn open(dir: &Path, id: SegmentId) -> Result<Self, Error> {
        let path = id.path(dir);
        let file = File::open(&path).map_err(Error::io(&path))?;
        let len = file.metadata().map_err(Error::io(&path))?.len();
        let mut header = [0; HEADER_BYTES as usize];
        if len < HEADER_BYTES + FIRST_FOOTER_BYTES {
            return Err(corrupt(&path, "it is cut short"));
        }
        file.read_exact_at(&mut header, 0)
            .map_err(Error::io(&path))?;
        let format = FRAME.head_since(1, &path, &mut Decoder(&header))?;
        let footer_bytes = match format {
            1 => FIRST_FOOTER_BYTES,
            _ => FOOTER_BYTES,
        };
        let footer_start = len
            .checked_sub(footer_bytes)
            .filter(|start| *start >= HEADER_BYTES)
            .ok_or_else(|| corrupt(&path, "it is cut short"))?;
        let mut footer = vec![0; footer_bytes as usize];
        file.read_exact_at(&mut footer, footer_start)
            .map_err(Error::io(&path))?;
        let footer =
            read_footer(format, &footer).ok_or_else(|| corrupt(&path, "its footer is damaged"))?;
        let (lens, flags, index_sum) = footer;
        let mut starts = [HEADER_BYTES; 7];
        for (at, len) in lens.iter().enumerate() {
            starts[at + 1] = starts[at]
                .checked_add(*len)
                .ok_or_else(|| corrupt(&path, "its footer is damaged"))?;
        }
        if starts[6] != footer_start {
            return Err(corrupt(&path, "its length does not match"));
        }
        let mut bytes = vec![0; usize::try_from(lens[5]).unwrap_or(usize::MAX)];
        file.read_exact_at(&mut bytes, starts[5])
            .map_err(Error::io(&path))?;
        if xxh3_64(&bytes) != index_sum {
            return Err(corrupt(&path, "the checksum of its index does not match"));
        }
        let index = Index::decode(&bytes).ok_or_else(|| corrupt(&path, "its index is damaged"))?;
        let sums_len = (index.ids.len() + index.variants.len()) * 8;
        if index.region_lens() != lens[..3] || sums_len as u64 != lens[3] {
            return Err(corrupt(&path, "its parts do not match its index"));
        }
        let mut sums = vec![0; sums_len];
        file.read_exact_at(&mut sums, starts[3])
            .map_err(Error::io(&path))?;
        let text = match flags & WITH_TEXT {
            0 => None,
            _ => {
                let text_path = id.text_path(dir);
                let text = TextIndex::open(&text_path)?;
                if text.documents() as usize != index.ids.len() {
                    return Err(corrupt(&text_path, "it does not match its segment"));
                }
                Some(Arc::new(text))
            }
        };
        Ok(Self {
            id,
            path,
            file,
            index,
            sums,
            starts,
            footer_bytes,
            columns: Mutex::default(),
            text,
        })
    }

    /// Its name.
    pub fn segment_id(&self) -> SegmentId {
        self.id
    }

    /// Documents in it, dead ones included.
    pub fn len(&self) -> u32 {
        self.index.ids.len() as u32
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Size of its file, in bytes, without its text index.
    pub fn disk_bytes(&self) -> u64 {
        self.starts[6] + self.footer_bytes
    }

    /// Whether it was written with search columns.
    pub fn has_columns(&self) -> bool {
        self.starts[4] < self.starts[5]
    }

    /// The text index beside it.
    pub fn text(&self) -> Option<&Arc<TextIndex>> {
        self.text.as_ref()
    }

    /// The search columns; read and checked when first asked for, then kept.
    ///
    /// # Errors
    /// [`Error::Corrupt`], also when the segment has none; [`Error::Format`]; [`Error::Io`].
    pub fn columns(&self) -> Result<Arc<Columns>, Error> {
        let mut known = self.columns.lock();
        if let Some(columns) = &*known {
            return Ok(Arc::clone(columns));
        }
        if !self.has_columns() {
            return Err(self.lacks("it has no search columns"));
        }
        let mut bytes = Vec::new();
        self.read(&(self.starts[4]..self.starts[5]), &mut bytes)?;
        let columns = Columns::decode(&self.path, &bytes)?;
        if columns.documents() != self.len() {
            return Err(corrupt(&self.path, "its columns do not match its index"));
        }
        let columns = Arc::new(columns);
        *known = Some(Arc::clone(&columns));
        Ok(columns)
    }

    /// The ordinal of a document.
    pub fn find(&self, id: &str) -> Option<u32> {
        let at = self.index.seek(id);
        (at < self.index.ids.len() && self.index.ids.get(at) == id).then_some(at as u32)
    }

    /// The ordinal of the first document whose id comes after `id`; [`Self::len`] when there is none.
    pub fn seek_after(&self, id: &str) -> u32 {
        self.index.seek_after(id) as u32
    }

    /// The id of a document; empty past the end.
    pub fn id(&self, ordinal: u32) -> &str {
        if ordinal < self.len() {
            self.index.ids.get(ordinal as usize)
        } else {
            ""
        }
    }

    /// Ordinals of the direct members of a Collection; `None` when there are none.
    pub fn postings(&self, collection: &str) -> Option<&RoaringBitmap> {
        self.index.postings.get(collection)
    }

    /// All Collections with members here, and these, by id.
    pub(crate) fn all_postings(&self) -> impl Iterator<Item = (&str, &RoaringBitmap)> {
        self.index
            .postings
            .iter()
            .map(|(collection, members)| (collection.as_str(), members))
    }

    /// The language table; its first is the default language.
    pub fn languages(&self) -> &[LanguageTag] {
        &self.index.languages
    }

    pub(crate) fn has_variants(&self) -> bool {
        !self.index.variants.is_empty()
    }

    pub(crate) fn names_languages(&self) -> bool {
        !self.index.named.is_empty()
    }

    /// The language that a document names, as an index into the table.
    pub(crate) fn named_language(&self, ordinal: u32) -> Option<u16> {
        let named = &self.index.named;
        let at = named.binary_search_by_key(&ordinal, |entry| entry.0).ok()?;
        named.get(at).map(|entry| entry.1)
    }

    /// Every document that names a language, and every variant, with the index of the language in the table.
    pub(crate) fn named_entries(&self) -> impl Iterator<Item = (u32, u16)> {
        let variants = self.index.variants.iter();
        let variants = variants.map(|variant| (variant.ordinal, variant.language));
        self.index.named.iter().copied().chain(variants)
    }

    /// The languages of a document's variants, in the order in which they were written.
    pub(crate) fn variant_languages(&self, ordinal: u32) -> impl ExactSizeIterator<Item = u16> {
        self.index
            .variants_of(ordinal)
            .iter()
            .map(|variant| variant.language)
    }

    /// Where in the file the items from `first` to `last` lie, with the commas between them.
    pub(crate) fn span(&self, region: Region, first: u32, last: u32) -> Range<u64> {
        let (offsets, start) = match region {
            Region::Full => (&self.index.full, self.starts[0]),
            Region::Terse => (&self.index.terse, self.starts[1]),
        };
        let span = offsets.span(first, last);
        start + span.start..start + span.end
    }

    /// Where in the file the variant at place `at` of a document lies.
    pub(crate) fn variant_span(
        &self,
        region: Region,
        ordinal: u32,
        at: usize,
    ) -> Option<Range<u64>> {
        let variant: &VariantPlace = self.index.variants_of(ordinal).get(at)?;
        let start = self.starts[2] + variant.start;
        let middle = start + u64::from(variant.terse_len);
        Some(match region {
            Region::Terse => start..middle,
            Region::Full => middle..middle + u64::from(variant.full_len),
        })
    }

    /// What is wrong with the segment as a whole.
    pub(crate) fn lacks(&self, detail: &str) -> Error {
        corrupt(&self.path, detail)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads everything: order of ids, sum of every item, search columns, text index.
    ///
    /// # Errors
    /// [`Error::Corrupt`] names the first document that is damaged; [`Error::Io`].
    pub fn verify(&self) -> Result<(), Error> {
        for ordinal in 1..self.len() {
            if self.id(ordinal - 1) >= self.id(ordinal) {
                return Err(corrupt(
                    &self.path,
                    format!("{} is out of order", self.id(ordinal)),
                ));
            }
        }
        if self.has_columns() {
            self.columns()?;
        }
        if let Some(text) = &self.text {
            text.verify()?;
        }
        let mut copier = super::merge::Copier::new(self);
        for ordinal in 0..self.len() {
            copier.document(ordinal)?;
            for at in 0..self.index.variants_of(ordinal).len() {
                copier.variant(ordinal, at)?;
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Segment({}, {} documents)", self.id, self.len())
    }
}

/// Lengths of the six parts, flags, and the sum of the index.
fn read_footer(format: u32, footer: &[u8]) -> Option<([u64; 6], u64, u64)> {
    let (content, sum) = footer.split_at_checked(footer.len() - 8)?;
    let sum = Decoder(sum).u64()?;
    let mut decoder = Decoder(content);
    let mut lens = [0; 6];
    for (at, len) in lens.iter_mut().enumerate() {
        if format > 1 || at != 4 {
            *len = decoder.u64()?;
        }
    }
    let flags = match format {
        1 => 0,
        _ => decoder.u64()?,
    };
    let index_sum = decoder.u64()?;
    (xxh3_64(content) == sum && flags & !WITH_TEXT == 0).then_some((lens, flags, index_sum))
}
