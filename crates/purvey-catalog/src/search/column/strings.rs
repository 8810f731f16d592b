//! Many byte strings in one allocation.

use super::codes::{put_u32s, u32s};
use crate::segment::codec::Decoder;

/// Byte strings by number; 4 GiB together at most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Strings {
    ends: Vec<u32>,
    bytes: Vec<u8>,
}

impl Strings {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, at: usize) -> &[u8] {
        let start = match at.checked_sub(1) {
            Some(before) => self.ends[before] as usize,
            None => 0,
        };
        &self.bytes[start..self.ends[at] as usize]
    }

    /// `None` when there is no room.
    pub(super) fn push(&mut self, string: &[u8]) -> Option<()> {
        let end = u32::try_from(self.bytes.len() + string.len()).ok()?;
        self.bytes.extend(string);
        self.ends.push(end);
        Some(())
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.ends.capacity() * 4 + self.bytes.capacity()
    }

    /// The place of a string among ascending ones, or where it would be.
    pub(super) fn search(&self, string: &[u8]) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.get(middle).cmp(string) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Ok(middle),
            }
        }
        Err(low)
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_u32s(out, &self.ends);
        out.extend(&self.bytes);
    }

    pub(super) fn decode(decoder: &mut Decoder<'_>, len: usize) -> Option<Self> {
        let ends = u32s(decoder, len)?.into_vec();
        let bytes = decoder.bytes(ends.last().map_or(0, |end| *end as usize))?;
        ends.is_sorted().then(|| Self {
            ends,
            bytes: bytes.to_vec(),
        })
    }
}
