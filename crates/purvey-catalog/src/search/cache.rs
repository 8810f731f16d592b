//! Which documents an expression selects, remembered.

use super::bitset::Bitset;
use super::column::Column;
use parking_lot::Mutex;
use purvey_odp::filter::Condition;
use purvey_odp::value::Scalar;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Selected documents by column and condition, the least recently used forgotten first. One cache serves all generations: a column never
/// changes, and the dead are taken away later.
#[derive(Debug)]
pub struct FilterCache {
    capacity: usize,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    by_key: HashMap<Key, (Arc<Bitset>, u64)>,
    /// Keys by the time of their last use.
    by_use: BTreeMap<u64, Key>,
    bytes: usize,
    clock: u64,
}

/// Column and condition. The text of a condition is shared between both maps.
type Key = (u64, Arc<[u8]>);

/// Beside the bits: key, maps, allocations.
const ENTRY_BYTES: usize = 200;

impl FilterCache {
    /// A cache that takes up to `capacity` bytes.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            entries: Mutex::default(),
        }
    }

    /// Memory taken, in bytes; at most the capacity.
    pub fn bytes(&self) -> usize {
        self.entries.lock().bytes
    }

    pub(crate) fn key(column: &Column, condition: &Condition) -> Key {
        (column.uid(), spell(condition).into())
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Bitset>> {
        let mut entries = self.entries.lock();
        let entries = &mut *entries;
        let (set, used) = entries.by_key.get_mut(key)?;
        let key = entries.by_use.remove(used)?;
        entries.clock += 1;
        *used = entries.clock;
        entries.by_use.insert(entries.clock, key);
        Some(Arc::clone(set))
    }

    pub(crate) fn put(&self, key: Key, set: &Arc<Bitset>) {
        let size = size_of_entry(&key, set);
        if size > self.capacity {
            return;
        }
        let mut entries = self.entries.lock();
        let entries = &mut *entries;
        entries.clock += 1;
        let entry = (Arc::clone(set), entries.clock);
        if let Some((old, used)) = entries.by_key.insert(key.clone(), entry) {
            entries.by_use.remove(&used);
            entries.bytes -= size_of_entry(&key, &old);
        }
        entries.by_use.insert(entries.clock, key);
        entries.bytes += size;
        while entries.bytes > self.capacity {
            let Some((_, oldest)) = entries.by_use.pop_first() else {
                break;
            };
            if let Some((set, _)) = entries.by_key.remove(&oldest) {
                entries.bytes -= size_of_entry(&oldest, &set);
            }
        }
    }
}

impl Default for FilterCache {
    /// 64 MiB: some 450 expressions over a million documents.
    fn default() -> Self {
        Self::new(64 << 20)
    }
}

fn size_of_entry(key: &Key, set: &Bitset) -> usize {
    ENTRY_BYTES + key.1.len() + set.bytes()
}

/// The condition as bytes, equal for equal conditions only.
fn spell(condition: &Condition) -> Vec<u8> {
    let mut out = vec![condition.operator() as u8];
    let bounds: &[Scalar] = match condition {
        Condition::Exists(present) => {
            out.push(u8::from(*present));
            &[]
        }
        Condition::In(bounds) => bounds,
        Condition::Eq(bound)
        | Condition::Lt(bound)
        | Condition::Lte(bound)
        | Condition::Gt(bound)
        | Condition::Gte(bound) => std::slice::from_ref(bound),
    };
    for bound in bounds {
        bound.order_key(&mut out);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u64) -> Key {
        (n, Arc::from([0_u8].as_slice()))
    }

    #[test]
    fn the_least_recently_used_goes_first_and_the_bound_holds() {
        let set = Arc::new(Bitset::full(640));
        let size = size_of_entry(&key(0), &set);
        let cache = FilterCache::new(3 * size);
        for n in 0..3 {
            cache.put(key(n), &set);
        }
        assert!(cache.get(&key(0)).is_some());
        cache.put(key(3), &set);
        let held = |n| cache.get(&key(n)).is_some();
        assert_eq!([0, 1, 2, 3].map(held), [true, false, true, true]);
        assert_eq!(cache.bytes(), 3 * size);
        // Putting again takes no more room, and something too large is not kept.
        cache.put(key(3), &set);
        assert_eq!(cache.bytes(), 3 * size);
        cache.put(key(9), &Arc::new(Bitset::full(64_000)));
        assert_eq!([0, 2, 3, 9].map(held), [true, true, true, false]);
    }
}
