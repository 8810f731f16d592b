//! The files of a generation.

use super::Head;
use super::changed::Changed;
use crate::Error;
use crate::segment::SegmentId;
use crate::segment::codec::{Decoder, Frame, corrupt, put_block};
use roaring::RoaringBitmap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_128;

const GENERATION: Frame = Frame {
    magic: *b"PURVGENR",
    format: 2,
};
const GENERATION_1: Frame = Frame {
    format: 1,
    ..GENERATION
};
const CURRENT: Frame = Frame {
    magic: *b"PURVCURR",
    format: 1,
};
const META: Frame = Frame {
    magic: *b"PURVMETA",
    format: 1,
};

/// What `generations/<n>.gen` says.
pub(super) struct GenerationFile {
    pub(super) head: Head,
    pub(super) meta: u128,
    pub(super) parts: [Vec<(SegmentId, RoaringBitmap)>; 2],
}

impl GenerationFile {
    pub(super) fn path(dir: &Path, number: u64) -> PathBuf {
        dir.join(format!("{number}.gen"))
    }

    /// The number that a file name stands for.
    pub(super) fn of_file(name: &str) -> Option<u64> {
        name.strip_suffix(".gen")?.parse().ok()
    }

    pub(super) fn decode(path: &Path, bytes: &[u8]) -> Result<Self, Error> {
        // Format 1 does not say when it was published, nor who sees what changed.
        let first = bytes.get(8..12) == Some(&GENERATION_1.format.to_le_bytes());
        let frame = if first { &GENERATION_1 } else { &GENERATION };
        let contents = frame.unwrap(path, bytes)?;
        Self::parse(first, contents).ok_or_else(|| corrupt(path, "its contents are damaged"))
    }

    fn parse(first: bool, contents: &[u8]) -> Option<Self> {
        let decoder = &mut Decoder(contents);
        let (number, epoch) = (decoder.u64()?, decoder.u64()?);
        let meta = u128::from_le_bytes(decoder.bytes(16)?.try_into().ok()?);
        let (published, opening, changed) = match first {
            true => (0, number, Changed::all(number)),
            false => (decoder.u64()?, decoder.u64()?, Changed::decode(decoder)?),
        };
        let mut file = Self {
            head: Head {
                number,
                epoch,
                published,
                opening,
                changed: Arc::new(changed),
            },
            meta,
            parts: [Vec::new(), Vec::new()],
        };
        for parts in &mut file.parts {
            for _ in 0..decoder.u32()? {
                let segment = SegmentId(decoder.u64()?);
                let dead = RoaringBitmap::deserialize_from(decoder.block()?).ok()?;
                parts.push((segment, dead));
            }
        }
        decoder.end()?;
        Some(file)
    }
}

/// Encodes `generations/<n>.gen`; `None` when a table is too large for its field.
pub(super) fn encode<'a>(
    head: &Head,
    meta: u128,
    parts: [impl ExactSizeIterator<Item = (SegmentId, &'a RoaringBitmap)>; 2],
) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    out.extend(head.number.to_le_bytes());
    out.extend(head.epoch.to_le_bytes());
    out.extend(meta.to_le_bytes());
    out.extend(head.published.to_le_bytes());
    out.extend(head.opening.to_le_bytes());
    head.changed.encode(&mut out)?;
    for parts in parts {
        out.extend(u32::try_from(parts.len()).ok()?.to_le_bytes());
        for (segment, dead) in parts {
            out.extend(segment.0.to_le_bytes());
            let mut bytes = Vec::with_capacity(dead.serialized_size());
            dead.serialize_into(&mut bytes).ok()?;
            put_block(&mut out, &bytes)?;
        }
    }
    Some(GENERATION.wrap(&out))
}

pub(super) fn encode_current(number: u64) -> Vec<u8> {
    CURRENT.wrap(&number.to_le_bytes())
}

pub(super) fn decode_current(path: &Path, bytes: &[u8]) -> Result<u64, Error> {
    let number = CURRENT
        .unwrap(path, bytes)?
        .try_into()
        .map(u64::from_le_bytes);
    number.map_err(|_| corrupt(path, "it holds no number"))
}

pub(super) fn meta_path(dir: &Path, digest: u128) -> PathBuf {
    dir.join(format!("{digest:032x}.meta"))
}

pub(super) fn meta_of_file(name: &str) -> Option<u128> {
    u128::from_str_radix(name.strip_suffix(".meta")?, 16).ok()
}

pub(super) fn digest(meta: &[u8]) -> u128 {
    xxh3_128(meta)
}

pub(super) fn encode_meta(meta: &[u8]) -> Vec<u8> {
    META.wrap(meta)
}

pub(super) fn decode_meta<'a>(path: &Path, bytes: &'a [u8]) -> Result<&'a [u8], Error> {
    META.unwrap(path, bytes)
}
