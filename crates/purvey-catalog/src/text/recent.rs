//! What was read of a file lately.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::ops::Range;
use tantivy::directory::OwnedBytes;

/// Memory that an entry takes beside its bytes, about.
const ENTRY_BYTES: usize = 128;

/// Remembers what was read, in bounded memory: an eighth of the file, and no more than 32 MiB.
#[derive(Debug)]
pub(super) struct Recent {
    budget: usize,
    entries: Mutex<Entries>,
}

/// Two generations: when the new is half of the budget it becomes the old, and the old is forgotten.
#[derive(Debug, Default)]
struct Entries {
    new: HashMap<Range<u64>, OwnedBytes>,
    old: HashMap<Range<u64>, OwnedBytes>,
    new_bytes: usize,
}

impl Recent {
    pub(super) fn for_file(len: u64) -> Self {
        Self {
            budget: (len / 8).min(32 << 20) as usize,
            entries: Mutex::default(),
        }
    }

    pub(super) fn get(&self, place: &Range<u64>) -> Option<OwnedBytes> {
        let mut entries = self.entries.lock();
        if let Some(bytes) = entries.new.get(place) {
            return Some(bytes.clone());
        }
        let bytes = entries.old.remove(place)?;
        self.insert(&mut entries, place.clone(), bytes.clone());
        Some(bytes)
    }

    pub(super) fn put(&self, place: Range<u64>, bytes: OwnedBytes) {
        self.insert(&mut self.entries.lock(), place, bytes);
    }

    fn insert(&self, entries: &mut Entries, place: Range<u64>, bytes: OwnedBytes) {
        // Bytes come with the rest of their blocks.
        let cost = bytes.len() + 4096 + ENTRY_BYTES;
        if cost > self.budget / 4 {
            return;
        }
        if entries.new_bytes + cost > self.budget / 2 {
            entries.old = std::mem::take(&mut entries.new);
            entries.new_bytes = 0;
        }
        entries.new_bytes += cost;
        entries.new.insert(place, bytes);
    }
}
