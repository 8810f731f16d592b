//! Columns: the values of one filter for every document of a segment.
//!
//! A column is a dictionary of the distinct values in their order, and per document the codes (places in the dictionary) of its values. A code stands for a
//! value everywhere in the segment, so filters, sorts and counts work on small integers and no value is ever rounded.

pub(crate) mod codes;
mod merge;
mod select;
mod set;
mod strings;
mod writer;

pub(crate) use select::Selection;
pub use set::{Columns, ColumnsWriter};
pub use writer::ColumnWriter;

use crate::segment::codec::Decoder;
use codes::{Codes, put_u32s, u32s};
use purvey_odp::sort::Direction;
use purvey_odp::value::ScalarType;
use std::sync::atomic::{AtomicU64, Ordering};
use strings::Strings;

/// The values of one filter for every document of a segment. Documents are named by ordinals, values by codes: a code is a place among the distinct values,
/// ascending.
#[derive(Debug)]
pub struct Column {
    /// Tells this column from every other one of the process.
    uid: u64,
    data: Data,
}

/// What a column consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Data {
    scalar_type: ScalarType,
    documents: u32,
    /// `Scalar::order_key` of every value, ascending.
    keys: Strings,
    /// JSON text of every value, in the one spelling that `Scalar::to_value` gives, so that it does not depend on the history of segments.
    texts: Strings,
    /// Documents that have the value, the dead too.
    totals: Box<[u32]>,
    /// Of many-valued documents: where the codes of each begin, and where the last ones end.
    starts: Option<Box<[u32]>>,
    /// Without `starts` one code per document, the number of values standing for none. With them the codes of every document ascending.
    codes: Codes,
}

impl Column {
    fn new(data: Data) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            uid: NEXT.fetch_add(1, Ordering::Relaxed),
            data,
        }
    }

    /// The type of the values.
    pub fn scalar_type(&self) -> ScalarType {
        self.data.scalar_type
    }

    /// Documents, with values or without.
    pub fn documents(&self) -> u32 {
        self.data.documents
    }

    /// Distinct values; codes are below it.
    pub fn values(&self) -> u32 {
        self.data.keys.len() as u32
    }

    /// The order key of a value; `code` is below [`values`](Self::values).
    pub fn key(&self, code: u32) -> &[u8] {
        self.data.keys.get(code as usize)
    }

    /// The JSON text of a value.
    pub fn text(&self, code: u32) -> &[u8] {
        self.data.texts.get(code as usize)
    }

    /// Documents that have each value, the dead too.
    pub fn totals(&self) -> &[u32] {
        &self.data.totals
    }

    /// The code of a value given by its order key.
    ///
    /// # Errors
    /// When the column lacks the value, the code that it would have.
    pub fn find(&self, key: &[u8]) -> Result<u32, u32> {
        let found = self.data.keys.search(key);
        found.map(|at| at as u32).map_err(|at| at as u32)
    }

    /// The codes of a document, ascending.
    pub fn codes(&self, ordinal: u32) -> impl Iterator<Item = u32> {
        let at = ordinal as usize;
        let range = match &self.data.starts {
            Some(starts) => starts[at] as usize..starts[at + 1] as usize,
            None if self.data.codes.get(at) == self.values() => 0..0,
            None => at..at + 1,
        };
        range.map(|at| self.data.codes.get(at))
    }

    /// The code that counts for sorting: the smallest when ascending, the largest when descending.
    pub fn selected(&self, ordinal: u32, direction: Direction) -> Option<u32> {
        let at = ordinal as usize;
        let Some(starts) = &self.data.starts else {
            return Some(self.data.codes.get(at)).filter(|code| *code != self.values());
        };
        let (start, end) = (starts[at] as usize, starts[at + 1] as usize);
        (start < end).then(|| match direction {
            Direction::Ascending => self.data.codes.get(start),
            Direction::Descending => self.data.codes.get(end - 1),
        })
    }

    pub(crate) fn uid(&self) -> u64 {
        self.uid
    }

    /// Where the codes of many-valued documents begin.
    pub(crate) fn starts(&self) -> Option<&[u32]> {
        self.data.starts.as_deref()
    }

    pub(crate) fn packed(&self) -> &Codes {
        &self.data.codes
    }

    /// Memory, in bytes.
    pub fn bytes(&self) -> usize {
        let data = &self.data;
        let starts = data.starts.as_ref().map_or(0, |starts| starts.len());
        let counts = (data.totals.len() + starts) * 4;
        counts + data.keys.bytes() + data.texts.bytes() + data.codes.bytes()
    }

    /// Appends the stored form, which [`Columns`] frames and checks.
    fn encode(&self, out: &mut Vec<u8>) {
        let data = &self.data;
        out.push(data.scalar_type as u8);
        out.push(u8::from(data.starts.is_some()));
        put_u32s(out, &[data.documents, self.values()]);
        data.keys.encode(out);
        data.texts.encode(out);
        put_u32s(out, &data.totals);
        if let Some(starts) = &data.starts {
            put_u32s(out, starts);
        }
        data.codes.encode(out);
    }

    /// Reads the stored form of a column over `documents` documents; every code is checked, so that no later access can fail.
    fn decode(bytes: &[u8], documents: u32) -> Option<Self> {
        let mut decoder = Decoder(bytes);
        let scalar_type = *ScalarType::ALL.get(usize::from(decoder.u8()?))?;
        let is_multiple = match decoder.u8()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        if decoder.u32()? != documents {
            return None;
        }
        let values = decoder.u32()?;
        let keys = Strings::decode(&mut decoder, values as usize)?;
        let texts = Strings::decode(&mut decoder, values as usize)?;
        let totals = u32s(&mut decoder, values as usize)?;
        let (starts, len) = if is_multiple {
            let starts = u32s(&mut decoder, documents as usize + 1)?;
            let is_whole = starts.first() == Some(&0) && starts.is_sorted();
            let len = *starts.last().filter(|_| is_whole)?;
            (Some(starts), len)
        } else {
            (None, documents)
        };
        let codes = Codes::decode(&mut decoder, len as usize)?;
        let missing = u32::from(!is_multiple);
        if codes.max().is_some_and(|max| max >= values + missing) {
            return None;
        }
        decoder.end()?;
        Some(Self::new(Data {
            scalar_type,
            documents,
            keys,
            texts,
            totals,
            starts,
            codes,
        }))
    }
}
