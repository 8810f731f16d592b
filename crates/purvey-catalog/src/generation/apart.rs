//! Merges that would delay a publication, done beside it.
//!
//! Whoever holds the merge lock writes the merged segment into a directory of its own, without the index lock, and keeps both until a later publication
//! takes the segment over: it moves the files and marks what was replaced or deleted meanwhile. A crash leaves files that the next holder of
//! the lock deletes.

use super::builder::{GenerationBuilder, choose};
use super::lock::IndexLock;
use super::store::Generations;
use super::{Part, slot};
use crate::Error;
use crate::fs::names;
use crate::segment::{Segment, SegmentId, TextPlan, merge};
use purvey_odp::identity::ResourceType;
use roaring::RoaringBitmap;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Live documents that a publication merges itself, where larger merges are done apart: a fraction of a second.
pub(super) const PROMPT_DOCUMENTS: u64 = 10_000;
/// The directory of merges.
pub(super) const MERGING: &str = "merging";
const LOCK: &str = "lock";

/// A merge that is done and waits for a publication.
#[derive(Debug)]
pub(super) struct Merged {
    kind: ResourceType,
    /// What it replaces, each with the dead that it left out.
    sources: HashMap<SegmentId, Arc<RoaringBitmap>>,
    /// `None` when nothing was alive.
    segment: Option<SegmentId>,
    /// Nobody else merges apart meanwhile.
    _lock: IndexLock,
}

impl Generations {
    /// Whether the current generation has a merge that is to be done apart, and none is done already.
    pub fn wants_merge(&self) -> bool {
        self.defers_merges() && self.apart().lock().is_none() && self.next_merge().is_some()
    }

    /// Does one large merge of the current generation, for the next publication to take over; tells whether it did. `texts` says how the texts
    /// of each kind are indexed; `stop` ends it early, with an error and nothing done.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when an item that has to be copied is damaged; [`Error::NotWritten`] when it was stopped; [`Error::Io`].
    pub fn merge_apart(
        &self,
        texts: impl Fn(ResourceType) -> Arc<TextPlan>,
        stop: &AtomicBool,
    ) -> Result<bool, Error> {
        if self.apart().lock().is_some() {
            return Ok(false);
        }
        let dir = self.durability().create_dir(self.dir(), MERGING)?;
        let Some(lock) = IndexLock::try_acquire(&dir.join(LOCK))? else {
            return Ok(false);
        };
        for name in names(&dir)?.iter().filter(|name| *name != LOCK) {
            self.durability().remove(&dir.join(name))?;
        }
        let Some((kind, parts)) = self.next_merge() else {
            return Ok(false);
        };
        let sources: Vec<_> = parts
            .iter()
            .map(|part| (part.segment.as_ref(), part.dead.as_ref()))
            .collect();
        let plan = texts(kind);
        let durability = self.durability().clone();
        let segment = merge(&dir, &sources, Some(&plan), durability, Some(stop))?;
        *self.apart().lock() = Some(Merged {
            kind,
            sources: parts
                .iter()
                .map(|part| (part.segment.segment_id(), Arc::clone(&part.dead)))
                .collect(),
            segment,
            _lock: lock,
        });
        Ok(true)
    }

    /// The segments that are to be merged apart next.
    fn next_merge(&self) -> Option<(ResourceType, Vec<Part>)> {
        let current = self.current()?;
        [ResourceType::Offering, ResourceType::Collection]
            .into_iter()
            .find_map(|kind| {
                let parts = &current.parts[slot(kind)];
                let chosen = choose(parts, u64::MAX)?;
                let chosen = parts
                    .iter()
                    .filter(|part| chosen.contains(&part.segment.segment_id()));
                Some((kind, chosen.cloned().collect()))
            })
    }

    /// Takes a finished merge over into `builder`, unless its sources are gone.
    pub(super) fn take_over(&self, builder: &mut GenerationBuilder) -> Result<(), Error> {
        let Some(merged) = self.apart().lock().take() else {
            return Ok(());
        };
        let parts = builder.parts_mut(merged.kind);
        let is_source = |part: &Part| merged.sources.contains_key(&part.segment.segment_id());
        // What is not taken over is deleted by the next merge.
        if parts.iter().filter(|part| is_source(part)).count() != merged.sources.len() {
            return Ok(());
        }
        let Some(id) = merged.segment else {
            parts.retain(|part| !is_source(part));
            return Ok(());
        };
        let dir = self.dir().join(MERGING);
        for path in [SegmentId::text_path, SegmentId::path] as [fn(SegmentId, &Path) -> _; 2] {
            let from = path(id, &dir);
            if from.exists() {
                self.durability()
                    .rename(&from, &path(id, self.segments_dir()))?;
            }
        }
        let segment = self.open_segment(id)?;
        let dead = newly_dead(parts, &merged.sources, &segment);
        parts.retain(|part| !is_source(part));
        parts.push(Part::new(segment, dead));
        Ok(())
    }
}

/// The documents of a merged segment that have died in its sources since.
fn newly_dead(
    parts: &[Part],
    sources: &HashMap<SegmentId, Arc<RoaringBitmap>>,
    merged: &Segment,
) -> RoaringBitmap {
    let mut dead = RoaringBitmap::new();
    for part in parts {
        if let Some(then) = sources.get(&part.segment.segment_id()) {
            let since = part.dead.as_ref() - then.as_ref();
            let ids = since.iter().map(|ordinal| part.segment.id(ordinal));
            dead.extend(ids.filter_map(|id| merged.find(id)));
        }
    }
    dead
}
