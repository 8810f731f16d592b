//! Sets of document ordinals as dense bits.

use roaring::RoaringBitmap;

/// A set of ordinals below its length, one bit each. Operands of one operation have the same length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitset {
    len: u32,
    /// Bits from `len` on are never set.
    words: Box<[u64]>,
}

impl Bitset {
    /// The empty set of ordinals below `len`.
    pub fn new(len: u32) -> Self {
        Self::from_words(len, vec![0; words(len)])
    }

    /// All ordinals below `len`.
    pub fn full(len: u32) -> Self {
        Self::from_words(len, vec![u64::MAX; words(len)])
    }

    /// The members below `len` of a compressed bitmap.
    pub fn from_roaring(len: u32, members: &RoaringBitmap) -> Self {
        let mut set = Self::new(len);
        set.or_roaring(members);
        set
    }

    /// Takes bits as they are, lowest ordinal first; those from `len` on are cleared.
    pub(crate) fn from_words(len: u32, mut bits: Vec<u64>) -> Self {
        bits.resize(words(len), 0);
        if let (rest @ 1.., Some(last)) = (len % 64, bits.last_mut()) {
            *last &= (1 << rest) - 1;
        }
        Self {
            len,
            words: bits.into(),
        }
    }

    /// The length: ordinals are below it.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether nothing is in the set.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Members.
    pub fn count(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether `ordinal` is in the set; nothing from the length on is.
    pub fn contains(&self, ordinal: u32) -> bool {
        let word = self.words.get(ordinal as usize / 64);
        word.is_some_and(|word| word >> (ordinal % 64) & 1 == 1)
    }

    /// Adds an ordinal; from the length on nothing happens.
    pub fn insert(&mut self, ordinal: u32) {
        if ordinal < self.len {
            self.words[ordinal as usize / 64] |= 1 << (ordinal % 64);
        }
    }

    /// Removes an ordinal.
    pub fn remove(&mut self, ordinal: u32) {
        if ordinal < self.len {
            self.words[ordinal as usize / 64] &= !(1 << (ordinal % 64));
        }
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.words.fill(0);
    }

    /// Keeps what is in `other` too.
    pub fn and(&mut self, other: &Self) {
        debug_assert_eq!(self.len, other.len);
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= other;
        }
    }

    /// Removes what is in `other`.
    pub fn and_not(&mut self, other: &Self) {
        debug_assert_eq!(self.len, other.len);
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= !other;
        }
    }

    /// Adds what is in `other`.
    pub fn or(&mut self, other: &Self) {
        debug_assert_eq!(self.len, other.len);
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word |= other;
        }
    }

    /// Adds the members of a compressed bitmap that are below the length.
    pub fn or_roaring(&mut self, members: &RoaringBitmap) {
        let mut members = members.iter();
        while let Some(run) = members.next_range() {
            if *run.start() >= self.len {
                break;
            }
            self.insert_run(*run.start(), (*run.end()).min(self.len - 1));
        }
    }

    /// Adds `first` through `last`, both below the length.
    fn insert_run(&mut self, first: u32, last: u32) {
        let (from, to) = (first as usize / 64, last as usize / 64);
        let head = u64::MAX << (first % 64);
        let tail = u64::MAX >> (63 - last % 64);
        if from == to {
            self.words[from] |= head & tail;
        } else {
            self.words[from] |= head;
            self.words[from + 1..to].fill(u64::MAX);
            self.words[to] |= tail;
        }
    }

    /// Members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.iter_from(0)
    }

    /// Members from `start` on, in ascending order.
    pub fn iter_from(&self, start: u32) -> impl Iterator<Item = u32> {
        let first = (start as usize / 64).min(self.words.len());
        let words = self.words[first..].iter().enumerate();
        words.flat_map(move |(at, word)| {
            let head = if at == 0 {
                u64::MAX << (start % 64)
            } else {
                u64::MAX
            };
            let base = ((first + at) * 64) as u32;
            bits(word & head).map(move |bit| base + bit)
        })
    }

    /// The bits, lowest ordinal first.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.words.len() * 8
    }
}

fn words(len: u32) -> usize {
    (len as usize).div_ceil(64)
}

/// Places of the set bits of a word, lowest first.
pub(crate) fn bits(mut word: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros())?;
        word &= word - 1;
        Some(bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn edges_of_words_and_of_the_length() {
        let full = Bitset::full(130);
        assert_eq!(full.count(), 130);
        assert!(full.contains(129) && !full.contains(130) && !full.contains(9_999));
        assert_eq!(full.iter_from(127).collect::<Vec<_>>(), [127, 128, 129]);
        assert_eq!(full.iter_from(130).count(), 0);
        assert_eq!(full.iter_from(u32::MAX).count(), 0);
        assert_eq!(Bitset::full(0).count(), 0);
        assert_eq!(Bitset::full(64).words(), [u64::MAX]);
        let mut set = Bitset::new(65);
        for ordinal in [0, 63, 64, 65, 1_000] {
            set.insert(ordinal);
        }
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64]);
        set.remove(63);
        set.remove(999);
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 64]);
    }

    proptest! {
        #[test]
        fn sets_behave_as_sets(
            len in 1..300_u32,
            a in prop::collection::btree_set(0..320_u32, 0..200),
            runs in prop::collection::vec((0..320_u32, 0..150_u32), 0..4),
            start in 0..330_u32,
        ) {
            let b: BTreeSet<u32> = runs.iter().flat_map(|(from, n)| *from..from + n).collect();
            let build = |set: &BTreeSet<u32>| Bitset::from_roaring(len, &set.iter().copied().collect());
            let below = |set: &BTreeSet<u32>| set.iter().copied().filter(|x| *x < len).collect::<BTreeSet<u32>>();
            let (x, y) = (below(&a), below(&b));
            let got = |set: &Bitset| set.iter().collect::<BTreeSet<u32>>();
            let set = build(&a);
            prop_assert_eq!(got(&set), x.clone());
            prop_assert_eq!(set.count() as usize, x.len());
            prop_assert_eq!(set.is_empty(), x.is_empty());
            prop_assert_eq!(set.iter_from(start).collect::<Vec<_>>(), x.range(start..).copied().collect::<Vec<_>>());
            let (mut and, mut not, mut or) = (set.clone(), set.clone(), set);
            and.and(&build(&b));
            not.and_not(&build(&b));
            or.or_roaring(&b.iter().copied().collect());
            prop_assert_eq!(got(&and), &x & &y);
            prop_assert_eq!(got(&not), &x - &y);
            prop_assert_eq!(got(&or), &x | &y);
        }
    }
}
