//! The file of keys that seal cursors.

use crate::Error;
use crate::fs::read;
use crate::segment::codec::{Decoder, Frame, corrupt};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const KEYS: Frame = Frame {
    magic: *b"PURVKEYS",
    format: 2,
};
const KEYS_1: Frame = Frame { format: 1, ..KEYS };
pub(super) const KEY_BYTES: usize = 64;
/// How long a key is kept after the last cursor that it sealed has expired, in seconds: what is late is told so.
const KEPT_SECONDS: u64 = 86_400;

/// What was in the file, and which file it was.
pub(super) struct Loaded {
    pub(super) keys: Vec<Key>,
    pub(super) stamp: Stamp,
}

/// Tells one writing of the file from another.
pub(super) type Stamp = Option<(u64, i64, i64)>;

#[derive(Clone)]
pub(super) struct Key {
    pub(super) id: u8,
    /// Unix second up to which cursors that it sealed may work; `None` while it seals.
    pub(super) until: Option<u64>,
    pub(super) bytes: [u8; KEY_BYTES],
}

impl Key {
    pub(super) fn fresh(path: &Path, id: u8) -> Result<Self, Error> {
        let mut bytes = [0; KEY_BYTES];
        getrandom::fill(&mut bytes)
            .map_err(|error| Error::io(path)(std::io::Error::other(error)))?;
        Ok(Self {
            id,
            until: None,
            bytes,
        })
    }

    /// Whether it still opens what it sealed, be it to say that it has expired.
    pub(super) fn kept(&self, now: u64) -> bool {
        self.until
            .is_none_or(|until| now <= until.saturating_add(KEPT_SECONDS))
    }
}

pub(super) fn stamp(path: &Path) -> Result<Stamp, Error> {
    match std::fs::metadata(path) {
        Ok(file) => Ok(Some((file.ino(), file.mtime(), file.mtime_nsec()))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(path)(error)),
    }
}

pub(super) fn load(path: &Path) -> Result<Loaded, Error> {
    // Before the contents: what changes in between is read again.
    let stamp = stamp(path)?;
    let keys = decode_keys(path, &read(path)?.unwrap_or_default())?;
    Ok(Loaded { keys, stamp })
}

/// For each key its id, the second until which it opens (0: it seals), and its bytes.
pub(super) fn encode_keys(keys: &[Key]) -> Vec<u8> {
    let mut out = Vec::with_capacity(keys.len() * (KEY_BYTES + 9));
    for key in keys {
        out.push(key.id);
        out.extend(key.until.unwrap_or(0).to_le_bytes());
        out.extend(key.bytes);
    }
    KEYS.wrap(&out)
}

fn decode_keys(path: &Path, bytes: &[u8]) -> Result<Vec<Key>, Error> {
    // Format 1 had no second of retirement.
    let first = bytes.get(8..12) == Some(&KEYS_1.format.to_le_bytes());
    let frame = if first { &KEYS_1 } else { &KEYS };
    let mut decoder = Decoder(frame.unwrap(path, bytes)?);
    let mut key = || {
        let id = decoder.u8()?;
        let until = if first { 0 } else { decoder.u64()? };
        let bytes = decoder.bytes(KEY_BYTES)?.try_into().ok()?;
        let end = decoder.end().is_some();
        let until = (until > 0).then_some(until);
        Some((Key { id, until, bytes }, end))
    };
    let mut keys = Vec::new();
    loop {
        let Some((next, end)) = key() else {
            return Err(corrupt(path, "it holds no keys"));
        };
        keys.push(next);
        if end {
            return Ok(keys);
        }
    }
}
