//! What of a segment is held in memory: ids, offsets, languages, members. About 12 bytes and the id for each document; the sums beside it are 8 more.

use super::ITEM_BYTES;
use super::codec::{Decoder, put_block, put_text};
use purvey_odp::language::LanguageTag;
use roaring::RoaringBitmap;
use std::collections::BTreeMap;

/// Documents between two fences: their ids and ends fit a few cache lines, and all fences of a million ids fit the second-level cache.
const FENCE: usize = 64;
/// Offsets that share a base: 64 longest items stay below 4 GiB.
const SHARED: usize = 64;

/// Texts in one allocation.
#[derive(Default)]
pub(super) struct Texts {
    joined: String,
    /// Where each text ends.
    ends: Vec<u32>,
}

impl Texts {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, at: usize) -> &str {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.joined
            .get(start as usize..self.ends[at] as usize)
            .unwrap_or_default()
    }

    /// `None` when all texts together pass 4 GiB.
    pub(super) fn push(&mut self, text: &str) -> Option<()> {
        let end = u32::try_from(self.joined.len() + text.len()).ok()?;
        self.joined.push_str(text);
        self.ends.push(end);
        Some(())
    }

    /// First place in `range` whose text does not satisfy `below`, all before it being known to do.
    fn partition(&self, range: std::ops::Range<usize>, below: impl Fn(&str) -> bool) -> usize {
        let (mut low, mut high) = (range.start, range.end);
        while low < high {
            let middle = low + (high - low) / 2;
            if below(self.get(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// Where items begin: a base for every 64 and 4 bytes for each. Items lie one byte (a comma) apart.
pub(super) struct Offsets {
    bases: Vec<u64>,
    deltas: Vec<u32>,
    next: u64,
}

impl Offsets {
    fn with_capacity(items: usize) -> Self {
        let mut offsets = Self {
            bases: Vec::with_capacity(items / SHARED + 1),
            deltas: Vec::with_capacity(items + 1),
            next: 0,
        };
        offsets.mark();
        offsets
    }

    fn mark(&mut self) {
        if self.deltas.len().is_multiple_of(SHARED) {
            self.bases.push(self.next);
        }
        let base = self.bases.last().copied().unwrap_or_default();
        // Fits: at most 64 items of ITEM_BYTES each lie above their base.
        self.deltas.push((self.next - base) as u32);
    }

    fn push(&mut self, len: u32) {
        self.next += u64::from(len) + 1;
        self.mark();
    }

    fn start(&self, at: usize) -> u64 {
        self.bases[at / SHARED] + u64::from(self.deltas[at])
    }

    /// Where the items from `first` to `last` lie, the commas between them included.
    pub(super) fn span(&self, first: u32, last: u32) -> std::ops::Range<u64> {
        self.start(first as usize)..self.start(last as usize + 1) - 1
    }

    fn region_len(&self) -> u64 {
        self.next.saturating_sub(1)
    }
}

/// A document in a language that is not its own.
#[derive(Clone, Copy)]
pub(super) struct VariantPlace {
    pub(super) ordinal: u32,
    pub(super) language: u16,
    pub(super) terse_len: u32,
    pub(super) full_len: u32,
    /// Where its Terse begins among the variants; its Full follows.
    pub(super) start: u64,
}

/// The tables of one segment; collected while writing, held while reading.
pub(super) struct Index {
    pub(super) ids: Texts,
    fences: Texts,
    pub(super) terse: Offsets,
    pub(super) full: Offsets,
    pub(super) languages: Vec<LanguageTag>,
    /// Ascending by ordinal.
    pub(super) variants: Vec<VariantPlace>,
    /// Documents that name their language, ascending by ordinal, with the index of the language.
    pub(super) named: Vec<(u32, u16)>,
    pub(super) postings: BTreeMap<String, RoaringBitmap>,
    variants_len: u64,
}

impl Index {
    pub(super) fn new(languages: Vec<LanguageTag>) -> Self {
        Self {
            ids: Texts::default(),
            fences: Texts::default(),
            terse: Offsets::with_capacity(0),
            full: Offsets::with_capacity(0),
            languages,
            variants: Vec::new(),
            named: Vec::new(),
            postings: BTreeMap::new(),
            variants_len: 0,
        }
    }

    /// Adds a document; its ordinal, or `None` when the segment is full.
    pub(super) fn push(&mut self, id: &str, terse_len: u32, full_len: u32) -> Option<u32> {
        let ordinal = u32::try_from(self.ids.len())
            .ok()
            .filter(|at| *at < u32::MAX)?;
        self.ids.push(id)?;
        if (ordinal as usize).is_multiple_of(FENCE) {
            self.fences.push(id)?;
        }
        self.terse.push(terse_len);
        self.full.push(full_len);
        Some(ordinal)
    }

    /// Adds a variant of the document that was added last.
    pub(super) fn push_variant(
        &mut self,
        ordinal: u32,
        language: u16,
        terse_len: u32,
        full_len: u32,
    ) {
        self.variants.push(VariantPlace {
            ordinal,
            language,
            terse_len,
            full_len,
            start: self.variants_len,
        });
        self.variants_len += u64::from(terse_len) + u64::from(full_len);
    }

    /// Lengths of the Full, Terse and variant parts.
    pub(super) fn region_lens(&self) -> [u64; 3] {
        [
            self.full.region_len(),
            self.terse.region_len(),
            self.variants_len,
        ]
    }

    /// First ordinal whose id is not before `id`.
    pub(super) fn seek(&self, id: &str) -> usize {
        self.partition(|other| other < id)
    }

    /// First ordinal whose id is after `id`.
    pub(super) fn seek_after(&self, id: &str) -> usize {
        self.partition(|other| other <= id)
    }

    fn partition(&self, below: impl Fn(&str) -> bool) -> usize {
        let fence = self.fences.partition(0..self.fences.len(), &below);
        // The fence before is the last document known to lie below.
        let start = fence.saturating_sub(1) * FENCE;
        let end = (fence * FENCE).min(self.ids.len());
        self.ids.partition(start..end, below)
    }

    /// Variants of all documents before this one.
    pub(super) fn variants_before(&self, ordinal: u32) -> usize {
        self.variants
            .partition_point(|variant| variant.ordinal < ordinal)
    }

    /// The variants of one document.
    pub(super) fn variants_of(&self, ordinal: u32) -> &[VariantPlace] {
        let rest = &self.variants[self.variants_before(ordinal)..];
        let len = rest
            .iter()
            .take_while(|variant| variant.ordinal == ordinal)
            .count();
        &rest[..len]
    }

    /// `None` when something does not fit its field.
    pub(super) fn encode(&self) -> Option<Vec<u8>> {
        let count = self.ids.len();
        let mut out = Vec::with_capacity(self.ids.joined.len() + count * 9 + 64);
        out.extend(u32::try_from(count).ok()?.to_le_bytes());
        put_block(&mut out, self.ids.joined.as_bytes())?;
        for at in 0..count {
            out.push(u8::try_from(self.ids.get(at).len()).ok()?);
        }
        for offsets in [&self.terse, &self.full] {
            for at in 0..count {
                let len = offsets.start(at + 1) - offsets.start(at) - 1;
                out.extend(u32::try_from(len).ok()?.to_le_bytes());
            }
        }
        out.extend(u16::try_from(self.languages.len()).ok()?.to_le_bytes());
        for language in &self.languages {
            put_text(&mut out, language.as_str())?;
        }
        out.extend(u32::try_from(self.named.len()).ok()?.to_le_bytes());
        for (ordinal, language) in &self.named {
            out.extend(ordinal.to_le_bytes());
            out.extend(language.to_le_bytes());
        }
        out.extend(u32::try_from(self.variants.len()).ok()?.to_le_bytes());
        for variant in &self.variants {
            out.extend(variant.ordinal.to_le_bytes());
            out.extend(variant.language.to_le_bytes());
            out.extend(variant.terse_len.to_le_bytes());
            out.extend(variant.full_len.to_le_bytes());
        }
        out.extend(u32::try_from(self.postings.len()).ok()?.to_le_bytes());
        for (collection, members) in &self.postings {
            put_text(&mut out, collection)?;
            out.extend(u32::try_from(members.serialized_size()).ok()?.to_le_bytes());
            members.serialize_into(&mut out).ok()?;
        }
        Some(out)
    }

    /// `None` when the bytes are not an index.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let decoder = &mut Decoder(bytes);
        let count = decoder.u32()?;
        let size = usize::try_from(count).ok()?;
        let joined = std::str::from_utf8(decoder.block()?).ok()?.to_owned();
        let mut ends = Vec::with_capacity(size.min(bytes.len()));
        let mut end = 0_u32;
        for len in decoder.bytes(size)? {
            end = end.checked_add(u32::from(*len))?;
            ends.push(end);
        }
        let ids = Texts { joined, ends };
        if end as usize != ids.joined.len() {
            return None;
        }
        let mut fences = Texts::default();
        for at in (0..size).step_by(FENCE) {
            fences.push(ids.get(at))?;
        }
        let terse = decode_offsets(decoder, size)?;
        let full = decode_offsets(decoder, size)?;
        let mut index = Self {
            ids,
            fences,
            terse,
            full,
            ..Self::new(Vec::new())
        };
        for _ in 0..decoder.u16()? {
            index
                .languages
                .push(LanguageTag::parse(decoder.text()?).ok()?);
        }
        for _ in 0..decoder.u32()? {
            let (ordinal, language) = (decoder.u32()?, decoder.u16()?);
            index.check(
                index.named.last().map(|last| last.0),
                ordinal,
                count,
                language,
            )?;
            index.named.push((ordinal, language));
        }
        for _ in 0..decoder.u32()? {
            let (ordinal, language) = (decoder.u32()?, decoder.u16()?);
            let (terse_len, full_len) = (decoder.u32()?, decoder.u32()?);
            index.check(
                index.variants.last().map(|last| last.ordinal),
                ordinal,
                count,
                language,
            )?;
            index.push_variant(ordinal, language, terse_len, full_len);
        }
        for _ in 0..decoder.u32()? {
            let collection = decoder.text()?.to_owned();
            let members = RoaringBitmap::deserialize_from(decoder.block()?).ok()?;
            members
                .max()
                .is_none_or(|last| last < count)
                .then_some(())?;
            index.postings.insert(collection, members);
        }
        index.variants.shrink_to_fit();
        index.named.shrink_to_fit();
        decoder.end()?;
        Some(index)
    }

    fn check(&self, last: Option<u32>, ordinal: u32, count: u32, language: u16) -> Option<()> {
        let known = usize::from(language) < self.languages.len();
        (known && ordinal < count && last.is_none_or(|last| last <= ordinal)).then_some(())
    }
}

fn decode_offsets(decoder: &mut Decoder<'_>, count: usize) -> Option<Offsets> {
    let lens = decoder.bytes(count.checked_mul(4)?)?;
    let mut offsets = Offsets::with_capacity(count);
    for len in lens.chunks_exact(4) {
        let len = u32::from_le_bytes(len.try_into().ok()?);
        if len as usize > ITEM_BYTES {
            return None;
        }
        offsets.push(len);
    }
    Some(offsets)
}
