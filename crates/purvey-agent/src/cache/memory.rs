//! A cache in memory.

use super::{Entry, Key};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use url::Url;

#[derive(Debug)]
pub(super) struct Memory {
    bytes: usize,
    entries: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    slots: HashMap<Key, Slot>,
    /// Keys by when they were last used.
    order: BTreeMap<u64, Key>,
    bytes: usize,
    uses: u64,
}

#[derive(Debug)]
struct Slot {
    entry: Entry,
    size: usize,
    used: u64,
}

impl Memory {
    pub(super) fn new(bytes: usize, entries: usize) -> Self {
        Self {
            bytes,
            entries,
            held: Mutex::default(),
        }
    }

    pub(super) fn get(&self, key: &Key) -> Option<Entry> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let used = held.next_use();
        let slot = held.slots.get_mut(key)?;
        let before = std::mem::replace(&mut slot.used, used);
        let entry = slot.entry.clone();
        held.order.remove(&before);
        held.order.insert(used, key.clone());
        Some(entry)
    }

    pub(super) fn put(&self, key: &Key, entry: Entry) {
        // The key is held twice.
        let size = entry.size() + 2 * key.url().as_str().len();
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.remove(key);
        if size > self.bytes {
            return;
        }
        let used = held.next_use();
        held.bytes += size;
        held.order.insert(used, key.clone());
        held.slots.insert(key.clone(), Slot { entry, size, used });
        while held.bytes > self.bytes || held.slots.len() > self.entries {
            let Some(oldest) = held.order.values().next().cloned() else {
                return;
            };
            held.remove(&oldest);
        }
    }

    pub(super) fn forget(&self, url: &Url) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let keys: Vec<_> = held
            .slots
            .keys()
            .filter(|key| key.url() == url)
            .cloned()
            .collect();
        for key in keys {
            held.remove(&key);
        }
    }
}

impl Held {
    fn next_use(&mut self) -> u64 {
        self.uses += 1;
        self.uses
    }

    fn remove(&mut self, key: &Key) {
        if let Some(slot) = self.slots.remove(key) {
            self.order.remove(&slot.used);
            self.bytes -= slot.size;
        }
    }
}
