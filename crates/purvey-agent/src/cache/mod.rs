//! A private cache (RFC 9111; ODP §12).
//!
//! HTTP's own rules come first; a response that says nothing about its freshness is fresh as long as its class says. Only whole,
//! checked bodies of successful `GET`s are stored, apart for each authentication context, and never more than was asked for.

mod directory;
mod entry;
mod freshness;
mod key;
mod memory;

pub use key::{Context, Key};

pub(crate) use entry::{Entry, Lookup};

use directory::Directory;
use memory::Memory;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use url::Url;

/// Most entries of a cache, however small they are.
const MAX_ENTRIES: usize = 8_192;

/// Stored responses, the least recently used leaving first. Clones share them.
#[derive(Clone, Debug)]
pub struct Cache(Store);

#[derive(Clone, Debug)]
enum Store {
    Memory(Arc<Memory>),
    Directory(Arc<Directory>),
}

impl Cache {
    /// A cache in memory, of at most `bytes` for bodies and what belongs to them, and at most 8,192 entries.
    pub fn memory(bytes: usize) -> Self {
        Self(Store::Memory(Arc::new(Memory::new(bytes, MAX_ENTRIES))))
    }

    /// A cache in a directory of its own, of about `bytes` and at most 8,192 entries. It outlives the process and may be shared
    /// by processes: a writer replaces whole files, and a file that is not whole is no entry. On Unix only the user can read it;
    /// it holds no credentials, but it holds what they gave access to.
    ///
    /// # Errors
    /// When the directory can be neither found nor made.
    pub fn directory(path: impl Into<PathBuf>, bytes: u64) -> io::Result<Self> {
        let directory = Directory::open(path.into(), bytes, MAX_ENTRIES)?;
        Ok(Self(Store::Directory(Arc::new(directory))))
    }

    /// What is stored for `key`.
    pub(crate) async fn get(&self, key: &Key) -> Option<Entry> {
        match &self.0 {
            Store::Memory(memory) => memory.get(key),
            Store::Directory(directory) => {
                let key = key.clone();
                aside(directory, move |directory| directory.get(&key)).await?
            }
        }
    }

    /// Stores an entry, unless it alone is too large. A cache that cannot be written to only costs time.
    pub(crate) async fn put(&self, key: &Key, entry: Entry) {
        match &self.0 {
            Store::Memory(memory) => memory.put(key, entry),
            Store::Directory(directory) => {
                let key = key.clone();
                aside(directory, move |directory| directory.put(&key, &entry)).await;
            }
        }
    }

    /// Forgets whatever is stored for `url`, in every variant and context.
    pub(crate) async fn forget(&self, url: &Url) {
        match &self.0 {
            Store::Memory(memory) => memory.forget(url),
            Store::Directory(directory) => {
                let url = url.clone();
                aside(directory, move |directory| directory.forget(&url)).await;
            }
        }
    }
}

/// Does blocking work where it blocks nobody.
async fn aside<T: Send + 'static>(
    directory: &Arc<Directory>,
    work: impl FnOnce(&Directory) -> T + Send + 'static,
) -> Option<T> {
    let directory = Arc::clone(directory);
    tokio::task::spawn_blocking(move || work(&directory))
        .await
        .ok()
}
