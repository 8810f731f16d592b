//! All generations of a data directory.

use super::apart::{MERGING, Merged, PROMPT_DOCUMENTS};
use super::builder::GenerationBuilder;
use super::collect::References;
use super::file::{self, GenerationFile};
use super::lock::IndexLock;
use super::pins::Pins;
use super::{Generation, Meta, Part};
use crate::Error;
use crate::clock::Clock;
use crate::cursor::expiry;
use crate::fs::{Durability, names, parent, read};
use crate::segment::codec::corrupt;
use crate::segment::{Segment, SegmentId, SegmentWriter};
use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::Mutex;
use purvey_odp::language::LanguageTag;
use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// Superseded generations that stay open.
const OPEN_GENERATIONS: usize = 8;
/// Times that a reader follows a writer who is publishing faster than it can open.
const ATTEMPTS: usize = 100;

/// The generations of one data directory. Several processes may have it open; one at a time publishes.
pub struct Generations {
    dir: PathBuf,
    current_path: PathBuf,
    lock_path: PathBuf,
    generations_dir: PathBuf,
    clock: Arc<dyn Clock>,
    durability: Durability,
    registry: Arc<Registry>,
    pins: Pins,
    current: ArcSwapOption<Generation>,
    /// Superseded ones, the last used last.
    opened: Mutex<Vec<Arc<Generation>>>,
    references: Mutex<HashMap<u64, Arc<References>>>,
    /// The numbers of the generations that there are, ascending.
    kept: ArcSwap<Vec<u64>>,
    /// Whether large merges are left to [`Generations::merge_apart`].
    defers_merges: AtomicBool,
    apart: Mutex<Option<Merged>>,
}

impl Generations {
    /// Opens the data directory `dir`, which must exist, and collects what an interrupted publication left.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Format`]; [`Error::Corrupt`] when the current generation is damaged.
    pub fn open(dir: &Path, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        Self::open_with(dir, clock, Durability::Full)
    }

    /// As [`Self::open`], with another durability.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_with(
        dir: &Path,
        clock: Arc<dyn Clock>,
        durability: Durability,
    ) -> Result<Self, Error> {
        let segments_dir = durability.create_dir(dir, "segments")?;
        let generations_dir = durability.create_dir(dir, "generations")?;
        let pins = Pins::new(durability.create_dir(dir, "pins")?, durability.clone());
        let generations = Self {
            dir: dir.to_owned(),
            current_path: dir.join("CURRENT"),
            lock_path: dir.join("index.lock"),
            generations_dir,
            clock,
            registry: Arc::new(Registry {
                dir: segments_dir,
                durability: durability.clone(),
                segments: Mutex::default(),
            }),
            durability,
            pins,
            current: ArcSwapOption::empty(),
            opened: Mutex::default(),
            references: Mutex::default(),
            kept: ArcSwap::default(),
            defers_merges: AtomicBool::new(false),
            apart: Mutex::default(),
        };
        // Names that a killed process had made and not yet synced are read all the same; a power failure must not take them back.
        for dir in [
            &generations.registry.dir,
            &generations.generations_dir,
            generations.pins.dir(),
        ] {
            generations.durability.sync_dir(dir)?;
        }
        generations.refresh()?;
        generations.collect()?;
        Ok(generations)
    }

    /// Takes back which generation of the directory `dir` is current, deletes damaged manifests of generations, and returns the highest number of a generation there.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn discard_current(dir: &Path, durability: &Durability) -> Result<u64, Error> {
        let lock_path = dir.join("index.lock");
        let _lock = IndexLock::acquire(&lock_path)?;
        let generations_dir = durability.create_dir(dir, "generations")?;
        let names = names(&generations_dir)?;
        let highest = names
            .iter()
            .filter_map(|name| GenerationFile::of_file(name))
            .max();
        // A manifest is found by its digest: a damaged one would be taken for the one to be written.
        for name in names
            .iter()
            .filter(|name| file::meta_of_file(name).is_some())
        {
            let path = generations_dir.join(name);
            let bytes = read(&path)?.unwrap_or_default();
            if file::decode_meta(&path, &bytes).is_err() {
                durability.remove(&path)?;
            }
        }
        durability.sync_dir(&generations_dir)?;
        durability.remove(&dir.join("CURRENT"))?;
        durability.sync_dir(dir)?;
        Ok(highest.unwrap_or(0))
    }

    /// The newest generation that this process knows; `None` before the first was published.
    pub fn current(&self) -> Option<Arc<Generation>> {
        self.current.load_full()
    }

    /// Adopts what another process has published; tells whether there was something.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Format`]; [`Error::Corrupt`].
    pub fn refresh(&self) -> Result<bool, Error> {
        let mut number = self.read_current()?;
        for _ in 0..ATTEMPTS {
            let Some(wanted) = number else {
                return Ok(false);
            };
            if self.current().is_some_and(|known| known.number() >= wanted) {
                return Ok(false);
            }
            match self.load(wanted) {
                Ok(generation) => {
                    // Whoever published it may be about to sync the new name, or have been killed before.
                    self.durability.sync_dir(parent(&self.current_path))?;
                    return Ok(self.adopt(&Arc::new(generation)));
                }
                Err(error) => {
                    // It may have been superseded and collected meanwhile.
                    let newest = self.read_current()?;
                    if newest == number {
                        return Err(missing_is_damage(error));
                    }
                    number = newest;
                }
            }
        }
        Ok(false)
    }

    /// Makes a generation current unless a newer one is; tells whether it did.
    fn adopt(&self, generation: &Arc<Generation>) -> bool {
        let older = |known: &Option<Arc<Generation>>| {
            known
                .as_ref()
                .is_none_or(|known| known.number() < generation.number())
        };
        let before = self.current.rcu(|known| match known {
            known if older(known) => Some(Arc::clone(generation)),
            known => known.clone(),
        });
        if !older(&before) {
            return false;
        }
        // Others may have deleted files; what this process keeps open would keep their blocks.
        let exists = |number| GenerationFile::path(&self.generations_dir, number).exists();
        self.opened.lock().retain(|opened| exists(opened.number()));
        if let Err(error) = self.note_kept(generation) {
            // Callers are answered from the new one.
            tracing::warn!(%error, "superseded generations cannot be looked for");
            self.kept.store(Arc::default());
        }
        true
    }

    /// Looks which generations there are beside the one that became current.
    fn note_kept(&self, current: &Generation) -> Result<(), Error> {
        let names = names(&self.generations_dir)?;
        let numbers = names
            .iter()
            .filter_map(|name| GenerationFile::of_file(name));
        // What is above the current one was not published.
        let mut kept: Vec<u64> = numbers
            .filter(|number| *number <= current.number())
            .collect();
        kept.sort_unstable();
        self.kept.store(Arc::new(kept));
        Ok(())
    }

    /// The generation that a caller is answered from, who sees no change since generation `changed`: the oldest from then on that is still kept, so that
    /// what changes for others changes nothing for this caller. But none that was superseded before continuations last took another time of
    /// expiry: then all of them change anyway. `None` is `current`.
    pub(crate) fn steady(&self, current: &Generation, changed: u64) -> Option<u64> {
        let head = &current.head;
        let opening = match expiry(head.published) < expiry(self.clock.now()) {
            true => head.number,
            false => head.opening,
        };
        let from = changed.max(opening);
        if from >= head.number {
            return None;
        }
        let kept = self.kept.load();
        let number = kept.get(kept.partition_point(|number| *number < from))?;
        (*number < head.number).then_some(*number)
    }

    /// Notes that a generation answers nobody any more.
    pub(crate) fn note_gone(&self, gone: u64) {
        self.kept.rcu(|kept| {
            let others = kept.iter().filter(|number| **number != gone);
            others.copied().collect::<Vec<_>>()
        });
    }

    /// A generation by number: the current one, or a superseded one that still exists.
    ///
    /// # Errors
    /// [`Error::CursorExpired`] when it is gone or never was; [`Error::Io`]; [`Error::Format`]; [`Error::Corrupt`].
    pub fn get(&self, number: u64) -> Result<Arc<Generation>, Error> {
        if self.current().is_none_or(|known| known.number() < number) {
            self.refresh()?;
        }
        match self.current() {
            Some(current) if current.number() == number => return Ok(current),
            Some(current) if current.number() > number => {}
            _ => return Err(Error::CursorExpired),
        }
        let found = {
            let mut opened = self.opened.lock();
            let at = opened.iter().position(|known| known.number() == number);
            at.map(|at| {
                let known = opened.remove(at);
                opened.push(Arc::clone(&known));
                known
            })
        };
        if let Some(found) = found {
            return Ok(found);
        }
        let generation = match self.load(number) {
            Ok(generation) => Arc::new(generation),
            Err(error) if is_missing(&error) => return Err(Error::CursorExpired),
            Err(error) => return Err(error),
        };
        let mut opened = self.opened.lock();
        opened.retain(|known| known.number() != number);
        if opened.len() >= OPEN_GENERATIONS {
            opened.remove(0);
        }
        opened.push(Arc::clone(&generation));
        Ok(generation)
    }

    /// Keeps a generation until `until` (Unix seconds) at least; durable when it returns. Cheap when the pin on disk lasts that long already.
    ///
    /// # Errors
    /// [`Error::CursorExpired`] when the generation is gone already: another process superseded and collected it; [`Self::refresh`] and answer from the new one.
    /// [`Error::Io`].
    pub fn pin(&self, number: u64, until: u64) -> Result<(), Error> {
        if self.pins.covers(number, until) {
            return Ok(());
        }
        let _lock = self.pins.lock()?;
        if !GenerationFile::path(&self.generations_dir, number).exists() {
            self.note_gone(number);
            return Err(Error::CursorExpired);
        }
        self.pins.write(number, until)
    }

    /// The right to index; `None` when somebody else has it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn try_lock(&self) -> Result<Option<IndexLock>, Error> {
        IndexLock::try_acquire(&self.lock_path)
    }

    /// The right to index, after waiting for whoever has it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn lock(&self) -> Result<IndexLock, Error> {
        IndexLock::acquire(&self.lock_path)
    }

    /// Begins a segment for the next generation; `languages[0]` is the Service's default language.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn segment_writer(
        &self,
        _lock: &IndexLock,
        languages: &[LanguageTag],
    ) -> Result<SegmentWriter, Error> {
        SegmentWriter::create(&self.registry.dir, languages, self.durability.clone())
    }

    /// Begins a generation that changes the current one, other processes' publications included.
    ///
    /// # Errors
    /// As [`Self::refresh`].
    pub fn builder(&self, _lock: &IndexLock) -> Result<GenerationBuilder, Error> {
        self.refresh()?;
        let base = self.current();
        Ok(GenerationBuilder::new(
            Arc::clone(&self.registry),
            base.as_deref(),
        ))
    }

    /// Begins a generation from nothing.
    pub fn empty_builder(&self, _lock: &IndexLock) -> GenerationBuilder {
        GenerationBuilder::new(Arc::clone(&self.registry), None)
    }

    /// Merges as due, publishes the builder as generation `number` and collects. When this returns, the generation is durable and current; a crash before
    /// leaves the one before. No other segment of the lock's holder may be unfinished or unpublished.
    ///
    /// # Errors
    /// [`Error::Conflict`] when the number is not above the current one; [`Error::Io`]; [`Error::Corrupt`].
    pub fn publish(
        &self,
        lock: &IndexLock,
        mut builder: GenerationBuilder,
        number: u64,
        epoch: u64,
    ) -> Result<Arc<Generation>, Error> {
        if let Some(current) = self.read_current()?.filter(|current| *current >= number) {
            let detail =
                format!("generation {number} does not come after the current one, {current}");
            return Err(Error::Conflict { detail });
        }
        self.take_over(&mut builder)?;
        builder.merge_up_to(match self.defers_merges() {
            true => PROMPT_DOCUMENTS,
            false => u64::MAX,
        })?;
        self.durability.sync_dir(&self.registry.dir)?;
        let (digest, meta) = builder.meta();
        let meta_path = file::meta_path(&self.generations_dir, digest);
        if !meta_path.exists() {
            self.durability
                .write(&meta_path, &file::encode_meta(meta))?;
        }
        let head = builder.head(number, epoch, self.clock.now());
        let encoded = builder.encode(&head).ok_or_else(|| Error::Conflict {
            detail: "the generation has too many segments for its format".to_owned(),
        })?;
        self.durability.write(
            &GenerationFile::path(&self.generations_dir, number),
            &encoded,
        )?;
        self.durability
            .write(&self.current_path, &file::encode_current(number))?;
        let generation = Arc::new(builder.into_generation(head));
        self.adopt(&generation);
        if let Err(error) = self.collect_with(lock) {
            // The generation is published all the same; the next collection tries again.
            tracing::warn!(%error, "collecting superseded generations failed");
        }
        Ok(generation)
    }

    /// Leaves large merges to [`merge_apart`](Self::merge_apart), so that they delay no publication; by default publishing does all.
    pub fn defer_merges(&self, defer: bool) {
        self.defers_merges.store(defer, Ordering::Relaxed);
    }

    pub(super) fn defers_merges(&self) -> bool {
        self.defers_merges.load(Ordering::Relaxed)
    }

    pub(super) fn apart(&self) -> &Mutex<Option<Merged>> {
        &self.apart
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn open_segment(&self, id: SegmentId) -> Result<Arc<Segment>, Error> {
        self.registry.open(id)
    }

    /// Size of all files of segments and generations, in bytes.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn disk_bytes(&self) -> Result<u64, Error> {
        let mut bytes = 0;
        let merging = self.dir.join(MERGING);
        for dir in [&self.registry.dir, &self.generations_dir, &merging] {
            if *dir == merging && !merging.exists() {
                continue;
            }
            for name in names(dir)? {
                let path = dir.join(name);
                match std::fs::metadata(&path) {
                    Ok(metadata) => bytes += metadata.len(),
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    Err(error) => return Err(Error::io(&path)(error)),
                }
            }
        }
        Ok(bytes)
    }

    fn load(&self, number: u64) -> Result<Generation, Error> {
        let path = GenerationFile::path(&self.generations_dir, number);
        let bytes = std::fs::read(&path).map_err(Error::io(&path))?;
        let file = GenerationFile::decode(&path, &bytes)?;
        if file.head.number != number {
            let detail = format!("it is generation {}", file.head.number);
            return Err(corrupt(&path, detail));
        }
        let meta = self.load_meta(file.meta)?;
        let mut parts = [Vec::new(), Vec::new()];
        for (parts, entries) in parts.iter_mut().zip(file.parts) {
            for (id, dead) in entries {
                let segment = self.registry.open(id)?;
                if dead.max().is_some_and(|last| last >= segment.len()) {
                    return Err(corrupt(&path, "it does not match its segments"));
                }
                parts.push(Part::new(segment, dead));
            }
        }
        Ok(Generation::new(file.head, meta, parts))
    }

    fn load_meta(&self, digest: u128) -> Result<Meta, Error> {
        let shared = self.current().filter(|known| known.meta.digest == digest);
        if let Some(known) = shared {
            return Ok(known.meta.clone());
        }
        let path = file::meta_path(&self.generations_dir, digest);
        let bytes = std::fs::read(&path).map_err(Error::io(&path))?;
        let bytes = file::decode_meta(&path, &bytes)?;
        if file::digest(bytes) != digest {
            return Err(corrupt(&path, "it is not what its name says"));
        }
        let bytes = bytes.into();
        Ok(Meta { digest, bytes })
    }

    pub(super) fn read_current(&self) -> Result<Option<u64>, Error> {
        let bytes = read(&self.current_path)?;
        bytes
            .map(|bytes| file::decode_current(&self.current_path, &bytes))
            .transpose()
    }

    /// Lets go of what belongs to generations that are gone.
    pub(super) fn forget(&self, kept: &HashSet<u64>) {
        self.opened
            .lock()
            .retain(|opened| kept.contains(&opened.number()));
        self.kept.rcu(|known| {
            let left = known.iter().filter(|number| kept.contains(number));
            left.copied().collect::<Vec<_>>()
        });
        self.references
            .lock()
            .retain(|number, _| kept.contains(number));
    }

    pub(super) fn known_references(&self) -> &Mutex<HashMap<u64, Arc<References>>> {
        &self.references
    }

    pub(super) fn pins(&self) -> &Pins {
        &self.pins
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }

    pub(super) fn durability(&self) -> &Durability {
        &self.durability
    }

    pub(super) fn segments_dir(&self) -> &Path {
        &self.registry.dir
    }

    pub(super) fn generations_dir(&self) -> &Path {
        &self.generations_dir
    }
}

impl std::fmt::Debug for Generations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Generations")
            .field("dir", &self.generations_dir)
            .field("current", &self.current().map(|current| current.number()))
            .finish_non_exhaustive()
    }
}

/// Open segments, shared by the generations that use them.
pub(super) struct Registry {
    dir: PathBuf,
    durability: Durability,
    segments: Mutex<HashMap<SegmentId, Weak<Segment>>>,
}

impl Registry {
    pub(super) fn open(&self, id: SegmentId) -> Result<Arc<Segment>, Error> {
        if let Some(known) = self.segments.lock().get(&id).and_then(Weak::upgrade) {
            return Ok(known);
        }
        // Not under the mutex: opening a large one takes a while.
        let opened = Arc::new(Segment::open(&self.dir, id)?);
        let mut segments = self.segments.lock();
        segments.retain(|_, segment| segment.strong_count() > 0);
        if let Some(known) = segments.get(&id).and_then(Weak::upgrade) {
            return Ok(known);
        }
        segments.insert(id, Arc::downgrade(&opened));
        Ok(opened)
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn durability(&self) -> &Durability {
        &self.durability
    }
}

fn is_missing(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == ErrorKind::NotFound)
}

/// The current generation is never collected: if a file of it is missing, the directory is damaged.
fn missing_is_damage(error: Error) -> Error {
    match error {
        Error::Io { path, source } if source.kind() == ErrorKind::NotFound => {
            corrupt(&path, "the current generation needs it and it is missing")
        }
        error => error,
    }
}
