//! Pins: until when a superseded generation stays.

use super::lock::IndexLock;
use crate::Error;
use crate::fs::{Durability, TEMPORARY, names, read};
use crate::segment::codec::{Frame, corrupt};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Pins are rounded up to this, so that they are rarely written.
pub const PIN_STEP_SECONDS: u64 = 900;
/// How long a generation stays after its pin has lapsed, for requests that were judged just before.
pub const PIN_GRACE_SECONDS: u64 = 60;

const PIN: Frame = Frame {
    magic: *b"PURVPINS",
    format: 1,
};

/// The pins of one data directory.
pub(super) struct Pins {
    dir: PathBuf,
    durability: Durability,
    /// Known to be on disk; pins only ever grow.
    known: Mutex<HashMap<u64, u64>>,
}

impl Pins {
    pub(super) fn new(dir: PathBuf, durability: Durability) -> Self {
        Self {
            dir,
            durability,
            known: Mutex::default(),
        }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Excludes every process from pinning or from deleting generations.
    pub(super) fn lock(&self) -> Result<IndexLock, Error> {
        IndexLock::acquire(&self.dir.join("lock"))
    }

    /// Whether the pin is known to last until then, without touching the disk.
    pub(super) fn covers(&self, number: u64, until: u64) -> bool {
        self.known
            .lock()
            .get(&number)
            .is_some_and(|known| *known >= until)
    }

    /// Writes a pin; call it under [`Self::lock`].
    pub(super) fn write(&self, number: u64, until: u64) -> Result<(), Error> {
        let until = until
            .checked_next_multiple_of(PIN_STEP_SECONDS)
            .unwrap_or(u64::MAX);
        // Another process may have pinned it for longer.
        let until = until.max(self.read(number)?.unwrap_or_default());
        self.durability
            .write(&self.path(number), &PIN.wrap(&until.to_le_bytes()))?;
        self.known.lock().insert(number, until);
        Ok(())
    }

    /// Whether the generation has to stay at `now`; call it under [`Self::lock`].
    pub(super) fn holds(&self, number: u64, now: u64) -> Result<bool, Error> {
        let lasts = |until: u64| now < until.saturating_add(PIN_GRACE_SECONDS);
        if self.known.lock().get(&number).copied().is_some_and(lasts) {
            return Ok(true);
        }
        let until = match self.read(number) {
            Err(Error::Corrupt { path, detail }) => {
                // Renames are atomic, so this is damage; holding on for ever would fill the disk.
                tracing::warn!(path = %path.display(), detail, "ignoring a damaged pin");
                None
            }
            until => until?,
        };
        if let Some(until) = until {
            self.known.lock().insert(number, until);
        }
        Ok(until.is_some_and(lasts))
    }

    /// Removes the pins of generations that are gone, and leftovers; call it under [`Self::lock`].
    pub(super) fn clean(&self, stays: impl Fn(u64) -> bool) -> Result<(), Error> {
        self.known.lock().retain(|number, _| stays(*number));
        for name in names(&self.dir)? {
            let gone = name.parse().map_or_else(
                |_| {
                    Path::new(&name)
                        .extension()
                        .is_some_and(|ending| ending == TEMPORARY)
                },
                |number| !stays(number),
            );
            if gone {
                self.durability.remove(&self.dir.join(name))?;
            }
        }
        Ok(())
    }

    /// Until when a generation is pinned, as it is on disk.
    pub(super) fn read(&self, number: u64) -> Result<Option<u64>, Error> {
        let path = self.path(number);
        let Some(bytes) = read(&path)? else {
            return Ok(None);
        };
        let until = PIN
            .unwrap(&path, &bytes)?
            .try_into()
            .map(u64::from_le_bytes);
        until
            .map(Some)
            .map_err(|_| corrupt(&path, "it holds no time"))
    }

    fn path(&self, number: u64) -> PathBuf {
        self.dir.join(number.to_string())
    }
}
