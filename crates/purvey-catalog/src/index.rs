//! The indexer: turns the store's committed changes into the next generation.
//!
//! Whoever holds the index lock reads the changes since the current generation in one read transaction, renders them on all
//! processors, writes one segment for each kind of resource, and publishes a generation whose number is the newest change it
//! holds. Nothing of this is durable state of its own: killed anywhere, the next run does it again.

mod build;

use crate::catalog::{Options, open_store};
use crate::error::Error;
use crate::generation::{Generation, Generations, IndexLock};
use crate::manifest::Manifest;
use crate::store::{Head, Store};
use parking_lot::Mutex;
use purvey_odp::identity::ResourceType;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Manifests of past generations that stay parsed.
const PARSED_MANIFESTS: usize = 8;

/// Publishes the changes of one data directory.
#[derive(Debug)]
pub struct Indexer {
    store: Store,
    generations: Arc<Generations>,
    manifests: Arc<Manifests>,
    stop: Arc<AtomicBool>,
}

/// The number that a new store stands at.
const FIRST_CHANGE: u64 = 1;

impl Indexer {
    /// Opens the indexer of `dir`.
    ///
    /// # Errors
    /// Data of a newer format, damaged data, and failures of the store and the disk.
    pub fn open(dir: &Path, options: &Options) -> Result<Self, Error> {
        let store = open_store(dir, options)?;
        let durability = options.durability.clone();
        let generations = Generations::open_with(dir, Arc::clone(&options.clock), durability)?;
        let mut indexer = Self {
            store,
            generations: Arc::new(generations),
            manifests: Arc::default(),
            stop: Arc::default(),
        };
        indexer.outrun()?;
        Ok(indexer)
    }

    /// Builds the index of `dir` anew from its records, whatever state it is in, and returns the generation. What is whole of superseded
    /// generations stays, and so do the continuations into them.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there are no records; failures of the store and the disk.
    pub fn rebuild(dir: &Path, options: &Options) -> Result<Arc<Generation>, Error> {
        let Some(mut store) = Store::open_existing(dir)? else {
            return Err(Error::NotFound);
        };
        let above = Generations::discard_current(dir, &options.durability)?;
        let mut write = store.write()?;
        // A number of its own, so that whoever has the damaged one open sees that there is another.
        let epoch = write.head().epoch;
        write.leap(above, epoch);
        let seq = write.head().seq;
        write.commit()?;
        drop(store);
        Self::open(dir, options)?.catch_up(seq)
    }

    /// A store that was restored from a backup is older than the generations beside it. Going on from its own number, it would publish
    /// nothing until it had caught up: it leaps past them instead, and the next generation is built from nothing. So it is when a generation lacks what
    /// this version searches in.
    fn outrun(&mut self) -> Result<(), Error> {
        let Some(current) = self.generations.current() else {
            return Ok(());
        };
        let seq = self.store.read()?.head()?.seq;
        if seq >= current.number() {
            return match is_searchable(&current, &*self.manifests.of(&current)?) {
                true => Ok(()),
                false => self.leap(&current, "an older version built the index"),
            };
        }
        // Nothing was ever written to it: it is not an older state of this catalog, but the loss of it.
        if seq <= FIRST_CHANGE {
            return Err(Error::Corrupt {
                path: crate::store::FILE.into(),
                detail: format!(
                    "it is empty beside an index of generation {}: restore it, or start a new catalog in another directory",
                    current.number()
                ),
            });
        }
        self.leap(&current, "the record store is older than the index")
    }

    /// Makes the next generation one that is built from nothing.
    fn leap(&mut self, current: &Generation, reason: &str) -> Result<(), Error> {
        let generation = current.number();
        tracing::warn!(generation, reason, "building the index again");
        let mut write = self.store.write()?;
        write.leap(current.number(), current.epoch());
        write.commit()
    }

    /// The generations that it publishes.
    pub fn generations(&self) -> Arc<Generations> {
        Arc::clone(&self.generations)
    }

    /// The parsed manifests of generations.
    pub fn manifests(&self) -> Arc<Manifests> {
        Arc::clone(&self.manifests)
    }

    /// Set, it makes a build under way end soon, with an error and nothing published: the next run does it again.
    pub fn stop(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Publishes what is committed and not yet in a generation, unless another process is indexing: that one will. Also adopts what
    /// others published. Returns the generation that it published.
    ///
    /// # Errors
    /// Failures of the store and the disk; the current generation stays.
    pub fn run_once(&mut self) -> Result<Option<Arc<Generation>>, Error> {
        self.generations.refresh()?;
        if self.is_current()? {
            return Ok(None);
        }
        match self.generations.try_lock()? {
            Some(lock) => self.publish(&lock),
            None => Ok(None),
        }
    }

    /// As [`Indexer::run_once`], but waits for another indexer, and returns the current generation, which holds change `seq`.
    ///
    /// # Errors
    /// As [`Indexer::run_once`].
    pub fn catch_up(&mut self, seq: u64) -> Result<Arc<Generation>, Error> {
        loop {
            self.generations.refresh()?;
            if let Some(current) = self.generations.current()
                && current.number() >= seq
            {
                return Ok(current);
            }
            let lock = self.generations.lock()?;
            if let Some(published) = self.publish(&lock)? {
                return Ok(published);
            }
        }
    }

    /// Deletes generations whose pins have lapsed, and tombstones that every generation covers.
    ///
    /// # Errors
    /// Failures of the store and the disk.
    pub fn collect(&mut self) -> Result<(), Error> {
        self.generations.collect()?;
        self.purge()
    }

    fn is_current(&mut self) -> Result<bool, Error> {
        let head = self.store.read()?.head()?;
        let current = self.generations.current();
        Ok(current.is_some_and(|current| current.number() >= head.seq))
    }

    fn publish(&mut self, lock: &IndexLock) -> Result<Option<Arc<Generation>>, Error> {
        // Somebody may have published while this waited for the lock.
        self.generations.refresh()?;
        let current = self.generations.current();
        let read = self.store.read()?;
        let head = read.head()?;
        let base = current.filter(|current| is_base(current, &head));
        if base.as_ref().is_some_and(|base| base.number() == head.seq) {
            return Ok(None);
        }
        let stored = read.manifest()?;
        let manifest = self.manifests.parse(&stored)?;
        let mut builder = match &base {
            Some(_) => self.generations.builder(lock)?,
            None => self.generations.empty_builder(lock),
        };
        builder.set_meta(&stored);
        for kind in [ResourceType::Collection, ResourceType::Offering] {
            builder.set_texts(kind, Arc::clone(manifest.text_plan(kind)));
        }
        let since = base.as_ref().map_or(0, |base| base.number());
        let job = build::Job {
            generations: &self.generations,
            lock,
            manifest: &manifest,
            stop: &self.stop,
        };
        job.build(&read, &mut builder, since)?;
        drop(read);
        let generation = self
            .generations
            .publish(lock, builder, head.seq, head.epoch)?;
        // The current generation covers them now; older ones are never built upon.
        if let Err(error) = self.purge() {
            tracing::debug!(%error, "tombstones stay until the next publication");
        }
        Ok(Some(generation))
    }

    fn purge(&mut self) -> Result<(), Error> {
        let Some(current) = self.generations.current() else {
            return Ok(());
        };
        let covered = current.number();
        if !self.store.read()?.has_tombstones(covered)? {
            return Ok(());
        }
        let mut write = self.store.write()?;
        write.purge(covered)?;
        write.commit()
    }
}

/// Whether the next generation can be built upon this one: its documents are rendered as the store asks, and no deletion since
/// then has been forgotten.
fn is_base(generation: &Generation, head: &Head) -> bool {
    generation.epoch() == head.epoch && generation.number() >= head.purged
}

/// Whether a generation has what searches under its manifest need; one that an older version built may lack it.
pub(crate) fn is_searchable(generation: &Generation, manifest: &Manifest) -> bool {
    let kinds = [ResourceType::Collection, ResourceType::Offering];
    kinds
        .into_iter()
        .all(|kind| generation.is_searchable(kind, manifest.text_plan(kind).config()))
}

/// Reads a stored manifest.
///
/// # Errors
/// [`Error::Corrupt`].
pub fn parse_manifest(stored: &[u8]) -> Result<Manifest, Error> {
    let corrupt = |detail: String| Error::Corrupt {
        path: crate::store::FILE.into(),
        detail: format!("the manifest: {detail}"),
    };
    let text = std::str::from_utf8(stored).map_err(|e| corrupt(e.to_string()))?;
    Manifest::parse_embedded(text, &[]).map_err(|e| corrupt(e.to_string()))
}

/// Manifests by their stored form: parsing one compiles its schemas, and a cursor needs that of its generation on every page.
#[derive(Debug, Default)]
pub struct Manifests(Mutex<Vec<(u128, Arc<Manifest>)>>);

impl Manifests {
    /// The manifest of a generation.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn of(&self, generation: &Generation) -> Result<Arc<Manifest>, Error> {
        self.known(generation.meta_digest(), generation.meta())
    }

    fn parse(&self, stored: &[u8]) -> Result<Arc<Manifest>, Error> {
        self.known(xxhash_rust::xxh3::xxh3_128(stored), stored)
    }

    fn known(&self, digest: u128, stored: &[u8]) -> Result<Arc<Manifest>, Error> {
        let mut known = self.0.lock();
        if let Some(at) = known.iter().position(|(d, _)| *d == digest) {
            // The last used comes last.
            let entry = known.remove(at);
            known.push(entry.clone());
            return Ok(entry.1);
        }
        let manifest = Arc::new(parse_manifest(stored)?);
        if known.len() >= PARSED_MANIFESTS {
            known.remove(0);
        }
        known.push((digest, Arc::clone(&manifest)));
        Ok(manifest)
    }
}
