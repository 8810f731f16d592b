//! The documents that have completions of a prefix.

use super::cursor::{Spot, each_block};
use super::index::Part;
use super::set::{Set, WINDOW, window};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, OnceLock};

/// Prefixes whose completions are remembered.
const PREFIXES: usize = 256;

/// Memory for the documents that have remembered completions, in bytes.
const BYTES: usize = 32 << 20;

/// What a prefix may stand for.
pub(super) struct Completions {
    /// Where completions are, by segment and part.
    pub(super) places: Vec<Vec<Vec<Spot>>>,
    /// Documents that have the most frequent of them.
    pub(super) most: u64,
    /// By segment and part, once it was read.
    read: Vec<Vec<OnceLock<PartCompletions>>>,
}

impl Completions {
    pub(super) fn new(places: Vec<Vec<Vec<Spot>>>, most: u64) -> Self {
        let parts = places.iter();
        Self {
            read: parts
                .map(|parts| parts.iter().map(|_| OnceLock::new()).collect())
                .collect(),
            places,
            most,
        }
    }
}

/// The highest score of a window, and where the window begins.
pub(super) type Ceiling = (f32, u32);

/// The documents of a part that have completions.
pub(super) struct PartCompletions {
    /// For each field those that have one there.
    pub(super) sets: Vec<Set>,
    /// Postings that they come from.
    pub(super) cost: u64,
    ceilings: Mutex<Option<(f32, Arc<[Ceiling]>)>>,
}

impl PartCompletions {
    fn read(part: &Part, spots: &[Spot]) -> io::Result<Self> {
        let mut sets = Vec::with_capacity(part.fields.len());
        for (number, field) in part.fields.iter().enumerate() {
            let mut found = Vec::new();
            for spot in spots.iter().filter(|spot| spot.field == number) {
                each_block(&field.inverted, &spot.info, |docs| found.extend(docs))?;
            }
            sets.push(Set::new(found, part.documents));
        }
        let costs = spots.iter().map(|spot| u64::from(spot.info.doc_freq));
        Ok(Self {
            sets,
            cost: costs.sum(),
            ceilings: Mutex::default(),
        })
    }

    fn bytes(&self, documents: u32) -> usize {
        let sets = self.sets.iter().map(Set::bytes);
        sets.sum::<usize>() + documents.div_ceil(WINDOW) as usize * size_of::<Ceiling>()
    }

    /// For each window of the part the highest score there, highest first; `worth` stands for how scores come about.
    pub(super) fn ceilings(
        &self,
        part: &Part,
        worth: f32,
        score: impl Fn(u32) -> f32,
    ) -> Arc<[Ceiling]> {
        if let Some((known, ceilings)) = &*self.ceilings.lock()
            && known.to_bits() == worth.to_bits()
        {
            return Arc::clone(ceilings);
        }
        let windows = (0..part.documents).step_by(WINDOW as usize);
        let mut ceilings: Vec<Ceiling> = windows.map(|base| (0.0, base)).collect();
        for set in &self.sets {
            let mut doc = set.next(0);
            while doc < part.documents {
                if let Some((ceiling, _)) = ceilings.get_mut((window(doc) / WINDOW) as usize) {
                    *ceiling = ceiling.max(score(doc));
                }
                doc = set.next(doc + 1);
            }
        }
        ceilings.sort_by(|a, b| b.0.total_cmp(&a.0));
        let ceilings: Arc<[Ceiling]> = ceilings.into();
        *self.ceilings.lock() = Some((worth, Arc::clone(&ceilings)));
        ceilings
    }
}

/// Remembers what prefixes stand for, in bounded memory.
#[derive(Default)]
pub(super) struct Remembered(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    by_prefix: HashMap<String, Arc<Completions>>,
    bytes: usize,
}

impl Remembered {
    pub(super) fn get(&self, prefix: &str) -> Option<Arc<Completions>> {
        self.0.lock().by_prefix.get(prefix).map(Arc::clone)
    }

    pub(super) fn put(&self, prefix: &str, completions: &Arc<Completions>) {
        let mut entries = self.0.lock();
        if entries.by_prefix.len() >= PREFIXES {
            *entries = Entries::default();
        }
        let completions = Arc::clone(completions);
        entries.by_prefix.insert(prefix.to_owned(), completions);
    }

    /// Reads the documents of a part that have completions, once.
    pub(super) fn read<'c>(
        &self,
        completions: &'c Completions,
        part: &Part,
        (segment, at): (usize, usize),
    ) -> io::Result<Option<&'c PartCompletions>> {
        let cell = completions
            .read
            .get(segment)
            .and_then(|parts| parts.get(at));
        let spots = completions.places.get(segment);
        let spots = spots.and_then(|parts| parts.get(at));
        let (Some(cell), Some(spots)) = (cell, spots) else {
            return Ok(None);
        };
        if cell.get().is_none() {
            let read = PartCompletions::read(part, spots)?;
            let bytes = read.bytes(part.documents);
            if cell.set(read).is_ok() {
                let mut entries = self.0.lock();
                entries.bytes += bytes;
                if entries.bytes > BYTES {
                    *entries = Entries::default();
                }
            }
        }
        Ok(cell.get())
    }
}
