//! Collection: deleting what no kept generation needs.

use super::file::{self, GenerationFile};
use super::lock::IndexLock;
use super::store::Generations;
use crate::Error;
use crate::fs::{TEMPORARY, names, read};
use crate::segment::SegmentId;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

/// What a collection deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Collected {
    /// Superseded generations.
    pub generations: usize,
    /// Segments that no kept generation uses, and those of publications that never finished.
    pub segments: usize,
}

/// What a kept generation needs.
pub(super) struct References {
    segments: Vec<SegmentId>,
    meta: u128,
}

impl Generations {
    /// Deletes superseded generations whose pin has lapsed, and every file that no kept generation needs. `None` when somebody holds the index lock:
    /// whoever does collects after publishing.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Format`] when a newer version left a generation; [`Error::Corrupt`] when the current generation is damaged.
    pub fn collect(&self) -> Result<Option<Collected>, Error> {
        match self.try_lock()? {
            Some(lock) => self.collect_with(&lock).map(Some),
            None => Ok(None),
        }
    }

    /// Every generation on disk by number, with the Unix second until which it is pinned, if it is.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corrupt`] when a pin is damaged.
    pub fn kept(&self) -> Result<Vec<(u64, Option<u64>)>, Error> {
        let names = names(self.generations_dir())?;
        let mut numbers: Vec<u64> = names
            .iter()
            .filter_map(|name| GenerationFile::of_file(name))
            .collect();
        numbers.sort_unstable();
        let pinned = |number| Ok((number, self.pins().read(number)?));
        numbers.into_iter().map(pinned).collect()
    }

    /// As [`Self::collect`] for the holder of the lock, who must have no segment unfinished or unpublished.
    pub(super) fn collect_with(&self, _lock: &IndexLock) -> Result<Collected, Error> {
        let mut collected = Collected::default();
        // Without a current generation nothing tells what is superseded: the next publication sees to it.
        let Some(current) = self.read_current()? else {
            return Ok(collected);
        };
        let kept = self.delete_generations(current, &mut collected)?;
        let mut needed = HashSet::new();
        let mut metas = HashSet::new();
        for number in kept {
            match self.references(number) {
                Ok(references) => {
                    metas.insert(references.meta);
                    needed.extend(references.segments.iter().copied());
                }
                // It cannot serve anyone, and what it needed cannot be known.
                Err(Error::Corrupt { path, detail }) if number != current => {
                    tracing::warn!(path = %path.display(), detail, "deleting a damaged generation");
                    self.durability().remove(&path)?;
                    collected.generations += 1;
                }
                Err(error) => return Err(error),
            }
        }
        for name in names(self.segments_dir())? {
            let gone = match SegmentId::of_file(&name) {
                Some(id) => !needed.contains(&id),
                None => is_temporary(&name),
            };
            if gone && self.durability().remove(&self.segments_dir().join(&name))? {
                collected.segments += usize::from(name.ends_with(".seg"));
            }
        }
        for name in names(self.generations_dir())? {
            if is_temporary(&name)
                || file::meta_of_file(&name).is_some_and(|meta| !metas.contains(&meta))
            {
                self.durability()
                    .remove(&self.generations_dir().join(&name))?;
            }
        }
        Ok(collected)
    }

    /// Deletes the generations that may go and returns the numbers of the others.
    fn delete_generations(
        &self,
        current: u64,
        collected: &mut Collected,
    ) -> Result<HashSet<u64>, Error> {
        // Nobody pins while this decides and deletes; see `pin`.
        let _pins = self.pins().lock()?;
        let now = self.clock().now();
        let mut kept = HashSet::new();
        for name in names(self.generations_dir())? {
            let Some(number) = GenerationFile::of_file(&name) else {
                continue;
            };
            // What is above the current one was never published.
            let superseded = number < current;
            if current == number || (superseded && self.pins().holds(number, now)?) {
                kept.insert(number);
            } else if self
                .durability()
                .remove(&self.generations_dir().join(&name))?
            {
                collected.generations += 1;
            }
        }
        self.pins().clean(|number| kept.contains(&number))?;
        self.forget(&kept);
        Ok(kept)
    }

    /// What a kept generation needs; read once, as it never changes.
    fn references(&self, number: u64) -> Result<Arc<References>, Error> {
        if let Some(known) = self.known_references().lock().get(&number) {
            return Ok(Arc::clone(known));
        }
        let path = GenerationFile::path(self.generations_dir(), number);
        let bytes = read(&path)?.unwrap_or_default();
        let file = GenerationFile::decode(&path, &bytes)?;
        let segments = file.parts.iter().flatten().map(|(id, _)| *id).collect();
        let references = Arc::new(References {
            segments,
            meta: file.meta,
        });
        self.known_references()
            .lock()
            .insert(number, Arc::clone(&references));
        Ok(references)
    }
}

fn is_temporary(name: &str) -> bool {
    Path::new(name)
        .extension()
        .is_some_and(|ending| ending == TEMPORARY)
}
