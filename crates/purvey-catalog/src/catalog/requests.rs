//! Requests that are too long for a continuation: kept in files named by their digest until no continuation can name them any more.
//!
//! Not in the record store: an import holds its write lock for long, and a page must not wait for that.

use crate::error::Error;
use crate::fs::{Durability, TEMPORARY, names, read};
use crate::generation::{IndexLock, PIN_GRACE_SECONDS};
use crate::segment::codec::{Decoder, Frame, corrupt};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

const FRAME: Frame = Frame {
    magic: *b"PURVREQS",
    format: 1,
};
const ENDING: &str = "req";
/// Bytes of all kept requests together; further ones are refused until some have lapsed.
const MOST_BYTES: u64 = 256 << 20;
/// Seconds after which trying again makes sense when there is no room.
const RETRY_SECONDS: u64 = 60;

/// The kept requests of one data directory.
#[derive(Debug)]
pub(super) struct Requests {
    dir: PathBuf,
    durability: Durability,
    /// Known to be on disk: until when, and how large.
    known: Mutex<HashMap<u128, (u64, u64)>>,
}

impl Requests {
    /// Opens those of the data directory `dir`.
    pub(super) fn open(dir: &Path, durability: &Durability) -> Result<Self, Error> {
        let dir = durability.create_dir(dir, "requests")?;
        // Names that a killed process had made and not yet synced are read all the same.
        durability.sync_dir(&dir)?;
        let requests = Self {
            dir,
            durability: durability.clone(),
            known: Mutex::default(),
        };
        let mut known = HashMap::new();
        for name in names(&requests.dir)? {
            let Some(digest) = of_file(&name) else {
                continue;
            };
            match requests.load(digest) {
                Ok(Some((until, text))) => {
                    known.insert(digest, (until, text.len() as u64));
                }
                // The next collection deletes it.
                Ok(None) | Err(Error::Corrupt { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        *requests.known.lock() = known;
        Ok(requests)
    }

    /// Keeps a request until `until` (Unix seconds) at least; durable when it returns. Cheap when the file lasts that long already.
    ///
    /// # Errors
    /// [`Error::Busy`] when there is no room; [`Error::Io`].
    pub(super) fn keep(&self, text: &[u8], until: u64) -> Result<u128, Error> {
        let digest = digest(text);
        let lasts = |known: &HashMap<u128, (u64, u64)>| {
            known.get(&digest).is_some_and(|(known, _)| *known >= until)
        };
        if lasts(&self.known.lock()) {
            return Ok(digest);
        }
        // One at a time, across processes.
        let _lock = self.lock()?;
        if lasts(&self.known.lock()) {
            return Ok(digest);
        }
        let bytes: u64 = {
            let known = self.known.lock();
            let others = known.iter().filter(|(known, _)| **known != digest);
            others.map(|(_, (_, bytes))| bytes).sum()
        };
        if bytes + text.len() as u64 > MOST_BYTES {
            return Err(Error::Busy {
                retry_after_seconds: RETRY_SECONDS,
            });
        }
        // Another process may have kept it for longer.
        let until = match self.load(digest) {
            Ok(known) => until.max(known.map_or(0, |(until, _)| until)),
            Err(Error::Corrupt { .. }) => until,
            Err(error) => return Err(error),
        };
        let mut contents = until.to_le_bytes().to_vec();
        contents.extend(text);
        self.durability
            .write(&self.path(digest), &FRAME.wrap(&contents))?;
        self.known.lock().insert(digest, (until, text.len() as u64));
        Ok(digest)
    }

    /// The request with this digest.
    ///
    /// # Errors
    /// [`Error::CursorExpired`] when it is gone; [`Error::Corrupt`]; [`Error::Io`].
    pub(super) fn read(&self, digest: u128) -> Result<Vec<u8>, Error> {
        let (_, text) = self.load(digest)?.ok_or(Error::CursorExpired)?;
        Ok(text)
    }

    /// Deletes what no continuation can name any more at `now`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn collect(&self, now: u64) -> Result<(), Error> {
        let _lock = self.lock()?;
        let mut kept = HashMap::new();
        for name in names(&self.dir)? {
            let path = self.dir.join(&name);
            if path.extension().is_some_and(|ending| ending == TEMPORARY) {
                self.durability.remove(&path)?;
                continue;
            }
            let Some(digest) = of_file(&name) else {
                continue;
            };
            match self.load(digest) {
                Ok(Some((until, text))) if now <= until.saturating_add(PIN_GRACE_SECONDS) => {
                    kept.insert(digest, (until, text.len() as u64));
                }
                Ok(_) | Err(Error::Corrupt { .. }) => {
                    self.durability.remove(&path)?;
                }
                Err(error) => return Err(error),
            }
        }
        *self.known.lock() = kept;
        Ok(())
    }

    fn lock(&self) -> Result<IndexLock, Error> {
        IndexLock::acquire(&self.dir.join("lock"))
    }

    fn load(&self, digest: u128) -> Result<Option<(u64, Vec<u8>)>, Error> {
        let path = self.path(digest);
        let Some(bytes) = read(&path)? else {
            return Ok(None);
        };
        let mut decoder = Decoder(FRAME.unwrap(&path, &bytes)?);
        let until = decoder
            .u64()
            .ok_or_else(|| corrupt(&path, "it holds no time"))?;
        Ok(Some((until, decoder.0.to_vec())))
    }

    fn path(&self, digest: u128) -> PathBuf {
        self.dir.join(format!("{digest:032x}.{ENDING}"))
    }
}

fn of_file(name: &str) -> Option<u128> {
    let digits = name.strip_suffix(ENDING)?.strip_suffix('.')?;
    u128::from_str_radix(digits, 16).ok()
}

/// Half of SHA-256: nobody can make two requests of one digest.
fn digest(text: &[u8]) -> u128 {
    let digest = Sha256::digest(text);
    digest
        .iter()
        .take(16)
        .fold(0, |digest, byte| digest << 8 | u128::from(*byte))
}
