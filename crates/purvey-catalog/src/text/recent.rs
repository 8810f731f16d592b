//! What was wanted lately, in bounded memory.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::Hash;

/// Remembers what is cheap to clone, in bounded memory; what was not asked for lately is forgotten.
#[derive(Debug)]
pub(super) struct Recent<K, V> {
    budget: usize,
    entries: Mutex<Entries<K, V>>,
}

/// Two generations: when the new is half of the budget it becomes the old, and the old is forgotten.
#[derive(Debug)]
struct Entries<K, V> {
    new: HashMap<K, (V, usize)>,
    old: HashMap<K, (V, usize)>,
    new_bytes: usize,
}

impl<K: Hash + Eq, V: Clone> Recent<K, V> {
    /// With so many bytes of memory at most.
    pub(super) fn new(budget: usize) -> Self {
        Self {
            budget,
            entries: Mutex::new(Entries {
                new: HashMap::new(),
                old: HashMap::new(),
                new_bytes: 0,
            }),
        }
    }

    pub(super) fn get<Q>(&self, key: &Q) -> Option<V>
    where
        K: std::borrow::Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let mut entries = self.entries.lock();
        if let Some((value, _)) = entries.new.get(key) {
            return Some(value.clone());
        }
        let (key, (value, bytes)) = entries.old.remove_entry(key)?;
        self.insert(&mut entries, key, value.clone(), bytes);
        Some(value)
    }

    /// Remembers something that takes so many bytes, unless that is more than a quarter of the budget.
    pub(super) fn put(&self, key: K, value: V, bytes: usize) {
        self.insert(&mut self.entries.lock(), key, value, bytes);
    }

    fn insert(&self, entries: &mut Entries<K, V>, key: K, value: V, bytes: usize) {
        if bytes > self.budget / 4 {
            return;
        }
        if entries.new_bytes + bytes > self.budget / 2 {
            entries.old = std::mem::take(&mut entries.new);
            entries.new_bytes = 0;
        }
        entries.new_bytes += bytes;
        entries.new.insert(key, (value, bytes));
    }
}
