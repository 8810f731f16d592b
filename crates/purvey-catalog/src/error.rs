//! What can go wrong in a catalog, and what the caller can do about it.

use purvey_odp::report::Invalid;
use std::path::{Path, PathBuf};

/// Every failure of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A record, manifest or request breaks rules: fix the places named.
    #[error("{0}")]
    Invalid(Invalid),
    /// The manifest does not fit the catalog or the table that it is used with: fix the places named in it.
    #[error("the manifest: {0}")]
    Manifest(Invalid),
    /// No such Collection or Offering.
    #[error("not found")]
    NotFound,
    /// The change does not fit the catalog's state, for example deleting a Collection that has members: read the detail.
    #[error("{detail}")]
    Conflict {
        /// What stands in the way and what to do.
        detail: String,
    },
    /// The record is not at the revision that the caller named: read it again.
    #[error("the record is at revision {}", .revision.map_or_else(|| "none (absent)".to_owned(), |r| r.to_string()))]
    PreconditionFailed {
        /// Its present revision; `None` when it is absent.
        revision: Option<u64>,
    },
    /// Somebody else is writing, for example an import: try again.
    #[error(
        "the catalog is being written by another process; try again in {retry_after_seconds} s"
    )]
    Busy {
        /// Seconds after which trying again makes sense.
        retry_after_seconds: u64,
    },
    /// A write that did not come about, with nothing of it remaining: try again once the cause is gone.
    #[error("not written: {detail}")]
    NotWritten {
        /// What stood in the way.
        detail: String,
    },
    /// Records that cannot be read to their end: a file is missing, damaged or not of its format.
    #[error("{0}")]
    Source(#[from] crate::reader::ReadError),
    /// A continuation that this Service did not issue for this operation and context.
    #[error("the cursor is not one that this operation issued")]
    CursorInvalid,
    /// A continuation whose time is over.
    #[error("the continuation has expired; start the operation again")]
    CursorExpired,
    /// Stored data of a format that this version does not read.
    #[error("{} has format {found}; this version reads up to {supported}: use a newer version", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format that can be read.
        supported: u32,
    },
    /// Stored data that fails its checks: restore it from a backup or import again.
    #[error("{} is corrupt: {detail}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Which check failed.
        detail: String,
    },
    /// The operating system refused a file operation.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Its answer.
        source: std::io::Error,
    },
    /// The record store failed.
    #[error("record store: {0}")]
    Store(#[from] rusqlite::Error),
}

impl Error {
    /// Wraps an I/O error with the path that it is about.
    pub fn io(path: impl AsRef<Path>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Self::Io { path, source }
    }
}

impl Error {
    /// The failure of a transaction, for one more of the changes that were in it.
    pub(crate) fn again(&self) -> Self {
        match self {
            Self::Busy {
                retry_after_seconds,
            } => Self::Busy {
                retry_after_seconds: *retry_after_seconds,
            },
            other => Self::NotWritten {
                detail: other.to_string(),
            },
        }
    }
}

impl From<Invalid> for Error {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}
