//! The facade: one catalog in one data directory.
//!
//! Writes go to the store and are answered once durable, with the number of the generation that will hold them. Reads are
//! answered from the current generation, which an indexer thread keeps up with the store.

mod admin;
mod background;
mod definitions;
mod explain;
mod manifest;
mod read;
mod remove;
mod requests;
mod search;
mod types;
mod write;

pub use definitions::DefinitionPage;
pub use explain::Explanation;
pub(crate) use manifest::{
    Difference, check_records, check_stored, manifest_collections, store_manifest,
};
pub use search::SearchRequest;
pub use types::{
    Change, CheckReport, Document, ListRequest, Listing, Options, Page, Precondition, Snapshot,
    Stats, Stored, Written,
};

use crate::access::Access;
use crate::cursor::CursorKeys;
use crate::error::Error;
use crate::fs::Durability;
use crate::generation::{Generation, Generations};
use crate::index::{Indexer, Manifests};
use crate::manifest::Manifest;
use crate::search::FilterCache;
use crate::store::{Store, Writer};
use crate::tokens::Tokens;
use arc_swap::ArcSwap;
use background::Background;
use crossbeam_channel::{Receiver, Sender, bounded};
use parking_lot::{Condvar, Mutex};
use requests::Requests;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// An open catalog; clones share it. Several processes may have the same one open.
#[derive(Clone, Debug)]
pub struct Catalog {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    dir: PathBuf,
    options: Options,
    generations: Arc<Generations>,
    manifests: Arc<Manifests>,
    current: ArcSwap<Snapshot>,
    /// Notified whenever `current` changes.
    published: (Mutex<()>, Condvar),
    cursors: CursorKeys,
    tokens: Tokens,
    /// Requests that continuations name.
    requests: Requests,
    /// Remembers what filters select, for all generations.
    filters: Arc<FilterCache>,
    /// For reads of single records.
    store: Mutex<Store>,
    /// The newest manifest committed, with the change that brought it.
    newest: Mutex<(u64, Arc<Manifest>)>,
    indexer: Mutex<Indexer>,
    /// Ends a build under way.
    stop: Arc<AtomicBool>,
    /// Wakes the indexer thread; holds one message at most.
    wake: Receiver<()>,
    background: Mutex<Option<Background>>,
    writer: Mutex<Option<Arc<Writer>>>,
}

impl Catalog {
    /// Opens the catalog in `dir`, creating an empty one when there is none. Publishes what is committed when no generation can
    /// be opened; the indexer thread only starts with [`Catalog::start_indexer`].
    ///
    /// # Errors
    /// Data of a newer format, damaged data, and failures of the store and the disk.
    pub fn open(dir: &Path, options: Options) -> Result<Self, Error> {
        let store = open_store(dir, &options)?;
        let writing = open_store(dir, &options)?;
        let mut indexer = Indexer::open(dir, &options)?;
        let generations = indexer.generations();
        let manifests = indexer.manifests();
        let stop = indexer.stop();
        let generation = match generations.current() {
            Some(generation) => generation,
            None => indexer.catch_up(1)?,
        };
        // An older version wrote it: the store asks for another already.
        let manifest = manifests.of(&generation)?;
        let generation = match crate::index::is_searchable(&generation, &manifest) {
            true => generation,
            false => indexer.catch_up(generation.number() + 1)?,
        };
        let snapshot = snapshot(&manifests, generation)?;
        let newest = Mutex::new((0, Arc::clone(&snapshot.manifest)));
        let (wake_sender, wake) = bounded(1);
        let writer = Writer::start(writing, move || wake_up(&wake_sender))?;
        let inner = Inner {
            dir: dir.to_owned(),
            cursors: CursorKeys::open(dir, &options.durability)?,
            tokens: Tokens::open(dir, &options)?,
            requests: Requests::open(dir, &options.durability)?,
            filters: Arc::default(),
            options,
            generations,
            manifests,
            current: ArcSwap::from_pointee(snapshot),
            published: (Mutex::new(()), Condvar::new()),
            store: Mutex::new(store),
            newest,
            indexer: Mutex::new(indexer),
            stop,
            wake,
            background: Mutex::new(None),
            writer: Mutex::new(Some(Arc::new(writer))),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Starts the thread that publishes changes and adopts other processes' generations; once is enough.
    ///
    /// # Errors
    /// The operating system's, when no thread can be had.
    pub fn start_indexer(&self) -> Result<(), Error> {
        let mut background = self.inner.background.lock();
        if background.is_none() {
            *background = Some(Background::start(&self.inner, self.inner.wake.clone())?);
        }
        Ok(())
    }

    /// Publishes what is committed now, here; for programs without the indexer thread, and tests.
    ///
    /// # Errors
    /// Failures of the store and the disk.
    pub fn publish(&self) -> Result<Arc<Snapshot>, Error> {
        self.inner.advance()?;
        Ok(self.current())
    }

    /// Deletes generations and kept requests that no continuation can need any more; the indexer thread does it by itself.
    ///
    /// # Errors
    /// Failures of the store and the disk.
    pub fn collect(&self) -> Result<(), Error> {
        self.inner.collect()
    }

    /// Stops the threads after what was handed in is written. Reading goes on; writing is refused.
    pub fn shutdown(&self) {
        // The writer first: its last commit still wakes the indexer, which a later start would make up for anyway.
        drop(self.inner.writer.lock().take());
        let background = self.inner.background.lock().take();
        if background.is_some() {
            self.inner.stop.store(true, Ordering::Relaxed);
            drop(background);
            self.inner.stop.store(false, Ordering::Relaxed);
        }
    }

    /// The current generation with everything in it; a caller's requests are answered from [`Catalog::view`].
    pub fn current(&self) -> Arc<Snapshot> {
        self.inner.current.load_full()
    }

    /// The context of whoever presents the token `secret`; `None` when it is none, was revoked or has expired.
    ///
    /// # Errors
    /// Failures of the disk, and damaged data.
    pub fn authenticate(&self, secret: &str) -> Result<Option<Access>, Error> {
        self.inner.tokens.authenticate(secret)
    }

    /// The manifest that requests are answered by now.
    pub fn manifest(&self) -> Arc<Manifest> {
        Arc::clone(&self.inner.current.load().manifest)
    }

    /// Waits until requests are answered from a generation that holds change `generation`; `false` when `timeout` passes first.
    pub fn wait_published(&self, generation: u64, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let (lock, changed) = &self.inner.published;
        let mut guard = lock.lock();
        loop {
            if self.inner.current.load().generation.number() >= generation {
                return true;
            }
            let now = Instant::now();
            if now >= deadline {
                return false;
            }
            changed.wait_until(&mut guard, deadline);
        }
    }
}

impl Inner {
    /// Brings `current` up to date: other processes' generations are adopted, committed changes published. Tells whether it
    /// published.
    fn advance(&self) -> Result<bool, Error> {
        if let Err(error) = self.cursors.refresh() {
            tracing::warn!(%error, "the keys of continuations cannot be read; those known go on");
        }
        let published = self.indexer.lock().run_once()?;
        self.adopt()?;
        Ok(published.is_some())
    }

    /// Answers requests from the newest generation.
    fn adopt(&self) -> Result<(), Error> {
        let Some(newest) = self.generations.current() else {
            return Ok(());
        };
        if newest.number() > self.current.load().generation.number() {
            let snapshot = Arc::new(snapshot(&self.manifests, newest)?);
            let generation = &snapshot.generation;
            // Most callers are anonymous: none of them waits for their view.
            let public = Access::public();
            let changed = generation.changed_for(&public);
            if self.generations.steady(generation, changed).is_none() {
                generation.view(&public, &snapshot.manifest, generation);
            }
            let (lock, changed) = &self.published;
            let guard = lock.lock();
            self.current.store(snapshot);
            drop(guard);
            changed.notify_all();
        }
        Ok(())
    }

    fn collect(&self) -> Result<(), Error> {
        self.cursors.purge(self.options.clock.now())?;
        self.requests.collect(self.options.clock.now())?;
        self.indexer.lock().collect()
    }
}

fn snapshot(manifests: &Manifests, generation: Arc<Generation>) -> Result<Snapshot, Error> {
    let manifest = manifests.of(&generation)?;
    Ok(Snapshot {
        languages: generation.languages(&manifest),
        generation,
        manifest,
    })
}

fn wake_up(wake: &Sender<()>) {
    // Full: it is about to wake already.
    let _ = wake.try_send(());
}

/// Opens the store of `dir`, creating the directory and an empty catalog as needed.
pub(crate) fn open_store(dir: &Path, options: &Options) -> Result<Store, Error> {
    open_store_as(dir, options, Store::open)
}

/// As [`open_store`], but a new catalog only comes into being with the first write that is committed.
pub(crate) fn open_store_later(dir: &Path, options: &Options) -> Result<Store, Error> {
    open_store_as(dir, options, Store::open_uncreated)
}

fn open_store_as(
    dir: &Path,
    options: &Options,
    open: impl FnOnce(&Path, Duration, &Durability, &[u8]) -> Result<Store, Error>,
) -> Result<Store, Error> {
    create_dir_all(dir, options)?;
    let empty = Manifest::empty()?.to_toml();
    open(
        dir,
        options.busy_timeout,
        &options.durability,
        empty.as_bytes(),
    )
}

/// Creates `dir` and what lies above it, each durably.
fn create_dir_all(dir: &Path, options: &Options) -> Result<(), Error> {
    if dir.is_dir() {
        return Ok(());
    }
    let parent = match dir.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    create_dir_all(parent, options)?;
    std::fs::create_dir(dir)
        .or_else(|e| match e.kind() {
            std::io::ErrorKind::AlreadyExists => Ok(()),
            _ => Err(e),
        })
        .map_err(Error::io(dir))?;
    options.durability.sync_dir(parent)
}
