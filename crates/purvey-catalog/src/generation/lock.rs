//! The index lock: one process at a time writes and collects.

use crate::Error;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

/// The right to write segments, publish and collect, across processes. Ends when dropped, and with the process.
#[derive(Debug)]
pub struct IndexLock {
    _file: File,
}

impl IndexLock {
    /// `None` when somebody else has it.
    pub(super) fn try_acquire(path: &Path) -> Result<Option<Self>, Error> {
        let file = open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(Error::io(path)(error)),
        }
    }

    /// Waits for whoever has it.
    pub(crate) fn acquire(path: &Path) -> Result<Self, Error> {
        let file = open(path)?;
        file.lock().map_err(Error::io(path))?;
        Ok(Self { _file: file })
    }
}

fn open(path: &Path) -> Result<File, Error> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .map_err(Error::io(path))
}
