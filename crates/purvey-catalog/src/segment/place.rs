//! Reading items: whatever leaves a segment was held to its sum, so that damaged bytes are an error and never an answer.

use super::codec::corrupt;
use super::{Region, Segment};
use crate::Error;
use purvey_odp::offering::Representation;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use xxhash_rust::xxh3::xxh3_64;

/// Bytes of the sums of one Full and one Terse.
const PAIR_BYTES: usize = 8;

/// Where an item lies in its segment's file, and its sum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its bytes in the file.
    pub(crate) span: Range<u64>,
    /// The document that it is a form of.
    pub(crate) ordinal: u32,
    sum: u32,
}

impl Place {
    /// Length of the item, in bytes.
    pub(crate) fn len(&self) -> usize {
        (self.span.end - self.span.start) as usize
    }
}

/// The low half of the item's xxh3.
pub(super) fn sum(item: &[u8]) -> u32 {
    xxh3_64(item) as u32
}

impl Segment {
    /// Where a form of a document lies: in its own language, or the variant at the place `variant` among its variants.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such document or variant.
    pub(crate) fn place(
        &self,
        region: Region,
        ordinal: u32,
        variant: Option<usize>,
    ) -> Result<Place, Error> {
        if ordinal >= self.len() {
            return Err(Error::NotFound);
        }
        let span = match variant {
            None => self.span(region, ordinal, ordinal),
            Some(at) => self
                .variant_span(region, ordinal, at)
                .ok_or(Error::NotFound)?,
        };
        let (full, terse) = self.sums_of(ordinal, variant);
        Ok(Place {
            span,
            ordinal,
            sum: match region {
                Region::Full => full,
                Region::Terse => terse,
            },
        })
    }

    /// The sums of Full and Terse: those of a document lie before those of its variants, and after those of all documents before it.
    pub(super) fn sums_of(&self, ordinal: u32, variant: Option<usize>) -> (u32, u32) {
        let at = ordinal as usize
            + self.index.variants_before(ordinal)
            + variant.map_or(0, |variant| variant + 1);
        let pair = self.sums.get(at * PAIR_BYTES..(at + 1) * PAIR_BYTES);
        let mut decoder = super::codec::Decoder(pair.unwrap_or_default());
        decoder.u32().zip(decoder.u32()).unwrap_or_default()
    }

    /// Holds bytes read from a place to its sum.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub(crate) fn check(&self, place: &Place, item: &[u8]) -> Result<(), Error> {
        if sum(item) == place.sum {
            return Ok(());
        }
        Err(self.damaged(place.ordinal))
    }

    /// Appends a stretch of the file to `out`, unchecked.
    pub(crate) fn read(&self, span: &Range<u64>, out: &mut Vec<u8>) -> Result<(), Error> {
        let old = out.len();
        out.resize(old + (span.end - span.start) as usize, 0);
        self.file
            .read_exact_at(&mut out[old..], span.start)
            .map_err(Error::io(&self.path))
    }

    /// Appends an item to `out`.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`]; `out` is then undefined.
    pub(crate) fn append(&self, place: &Place, out: &mut Vec<u8>) -> Result<(), Error> {
        let start = out.len();
        self.read(&place.span, out)?;
        self.check(place, out.get(start..).unwrap_or_default())
    }

    /// Appends an item without the brace that it begins with.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub(crate) fn append_without_brace(
        &self,
        place: &Place,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let start = out.len();
        self.append(place, out)?;
        if start < out.len() {
            out.remove(start);
        }
        Ok(())
    }

    /// Appends the item of a document, in its own language, to `out`.
    ///
    /// # Errors
    /// [`Error::Corrupt`]; [`Error::Io`]; [`Error::NotFound`] past the end.
    pub fn append_item(
        &self,
        representation: Representation,
        ordinal: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        self.append(&self.place(representation.into(), ordinal, None)?, out)
    }

    /// What is wrong when the bytes of a document are not those that were written.
    pub(crate) fn damaged(&self, ordinal: u32) -> Error {
        let detail = format!("the item of {} is damaged", self.id(ordinal));
        corrupt(&self.path, detail)
    }
}
