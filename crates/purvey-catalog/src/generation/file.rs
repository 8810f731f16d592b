//! The files of a generation.

use crate::Error;
use crate::segment::SegmentId;
use crate::segment::codec::{Decoder, Frame, corrupt, put_block};
use roaring::RoaringBitmap;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_128;

const GENERATION: Frame = Frame {
    magic: *b"PURVGENR",
    format: 1,
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
    pub(super) number: u64,
    pub(super) epoch: u64,
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
        let contents = GENERATION.unwrap(path, bytes)?;
        Self::parse(contents).ok_or_else(|| corrupt(path, "its contents are damaged"))
    }

    fn parse(contents: &[u8]) -> Option<Self> {
        let decoder = &mut Decoder(contents);
        let mut file = Self {
            number: decoder.u64()?,
            epoch: decoder.u64()?,
            meta: u128::from_le_bytes(decoder.bytes(16)?.try_into().ok()?),
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
    number: u64,
    epoch: u64,
    meta: u128,
    parts: [impl ExactSizeIterator<Item = (SegmentId, &'a RoaringBitmap)>; 2],
) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    out.extend(number.to_le_bytes());
    out.extend(epoch.to_le_bytes());
    out.extend(meta.to_le_bytes());
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
