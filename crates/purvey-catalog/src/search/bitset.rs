//! Sets of document ordinals as dense bits.

use roaring::RoaringBitmap;

/// Words of a block: so many as a word has bits.
pub(crate) const BLOCK: usize = 64;
/// Filled words of a block from which on going through all its words takes less.
const CROWDED: u32 = 24;

/// A set of ordinals below its length, one bit each. Operands of one operation have the same length. What is empty costs little: a second level of bits tells which words
/// have members, so work grows with the words that do, and by one bit with those that do not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitset {
    len: u32,
    /// Bits from `len` on are never set.
    words: Box<[u64]>,
    /// For each block a bit for each of its words that is not zero.
    filled: Box<[u64]>,
}

impl Bitset {
    /// The empty set of ordinals below `len`.
    pub fn new(len: u32) -> Self {
        Self {
            len,
            words: vec![0; words(len)].into(),
            filled: vec![0; words(len).div_ceil(BLOCK)].into(),
        }
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
            filled: bits.chunks(BLOCK).map(filled).collect(),
            words: bits.into(),
        }
    }

    /// The length: ordinals are below it.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether nothing is in the set.
    pub fn is_empty(&self) -> bool {
        self.filled.iter().all(|filled| *filled == 0)
    }

    /// Members.
    pub fn count(&self) -> u32 {
        let blocks = self.words.chunks(BLOCK).zip(&self.filled);
        let counts = blocks.map(|(block, filled)| match filled.count_ones() {
            0 => 0,
            few if few < CROWDED => bits(*filled)
                .map(|at| block[at as usize].count_ones())
                .sum(),
            _ => block.iter().map(|word| word.count_ones()).sum::<u32>(),
        });
        counts.sum()
    }

    /// Whether `ordinal` is in the set; nothing from the length on is.
    pub fn contains(&self, ordinal: u32) -> bool {
        let word = self.words.get(ordinal as usize / 64);
        word.is_some_and(|word| word >> (ordinal % 64) & 1 == 1)
    }

    /// Adds an ordinal; from the length on nothing happens.
    pub fn insert(&mut self, ordinal: u32) {
        if ordinal < self.len {
            let at = ordinal as usize / 64;
            self.words[at] |= 1 << (ordinal % 64);
            self.filled[at / BLOCK] |= 1 << (at % BLOCK);
        }
    }

    /// Removes an ordinal.
    pub fn remove(&mut self, ordinal: u32) {
        if ordinal < self.len {
            let at = ordinal as usize / 64;
            self.words[at] &= !(1 << (ordinal % 64));
            if self.words[at] == 0 {
                self.filled[at / BLOCK] &= !(1 << (at % BLOCK));
            }
        }
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.words.fill(0);
        self.filled.fill(0);
    }

    /// Keeps what is in `other` too.
    pub fn and(&mut self, other: &Self) {
        self.narrow(other, |word, other| word & other);
    }

    /// Removes what is in `other`.
    pub fn and_not(&mut self, other: &Self) {
        self.narrow(other, |word, other| word & !other);
    }

    /// Replaces each word by what is left of it.
    fn narrow(&mut self, other: &Self, left: impl Fn(u64, u64) -> u64) {
        debug_assert_eq!(self.len, other.len);
        let blocks = self.words.chunks_mut(BLOCK).zip(&mut self.filled);
        for ((block, now), other) in blocks.zip(other.words.chunks(BLOCK)) {
            match now.count_ones() {
                0 => {}
                few if few < CROWDED => {
                    for at in bits(*now) {
                        let word = &mut block[at as usize];
                        *word = left(*word, other[at as usize]);
                        if *word == 0 {
                            *now &= !(1 << at);
                        }
                    }
                }
                _ => {
                    let pairs = block.iter_mut().zip(other);
                    pairs.for_each(|(word, other)| *word = left(*word, *other));
                    *now = filled(block);
                }
            }
        }
    }

    /// Keeps the members for which `holds`.
    pub(crate) fn retain(&mut self, holds: impl Fn(u32) -> bool) {
        let blocks = self.words.chunks_mut(BLOCK).zip(&mut self.filled);
        for ((block, now), first) in blocks.zip((0..).step_by(BLOCK)) {
            for at in bits(*now) {
                let word = &mut block[at as usize];
                let base = (first + at) * 64;
                for bit in bits(*word) {
                    *word &= !(u64::from(!holds(base + bit)) << bit);
                }
                if *word == 0 {
                    *now &= !(1 << at);
                }
            }
        }
    }

    /// Adds what is in `other`.
    pub fn or(&mut self, other: &Self) {
        debug_assert_eq!(self.len, other.len);
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word |= other;
        }
        for (filled, other) in self.filled.iter_mut().zip(&other.filled) {
            *filled |= other;
        }
    }

    /// Adds the members of a compressed bitmap that are below the length.
    pub fn or_roaring(&mut self, members: &RoaringBitmap) {
        let mut members = members.iter();
        while let Some(run) = members.next_range() {
            if *run.start() >= self.len {
                break;
            }
            let (first, last) = (*run.start(), (*run.end()).min(self.len - 1));
            insert_run(&mut self.words, first, last);
            insert_run(&mut self.filled, first / 64, last / 64);
        }
    }

    /// Members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.iter_from(0)
    }

    /// Members from `start` on, in ascending order.
    pub fn iter_from(&self, start: u32) -> impl Iterator<Item = u32> {
        let first = start / 64;
        let words = members(&self.filled, first);
        words.flat_map(move |at| {
            let word = self.words[at as usize];
            let head = if at == first {
                u64::MAX << (start % 64)
            } else {
                u64::MAX
            };
            bits(word & head).map(move |bit| at * 64 + bit)
        })
    }

    /// The bits, lowest ordinal first.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Which of the words from `64 * block` on are not zero, as bits; none past the last.
    pub(crate) fn filled(&self, block: usize) -> u64 {
        self.filled.get(block).copied().unwrap_or_default()
    }

    /// Memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + (self.words.len() + self.filled.len()) * 8
    }
}

fn words(len: u32) -> usize {
    (len as usize).div_ceil(64)
}

/// Which words of a block are not zero.
fn filled(block: &[u64]) -> u64 {
    let words = block.iter().enumerate();
    words.fold(0, |filled, (at, word)| filled | u64::from(*word != 0) << at)
}

/// Sets the bits from `first` through `last`, for which there are words.
fn insert_run(words: &mut [u64], first: u32, last: u32) {
    let (from, to) = (first as usize / 64, last as usize / 64);
    let head = u64::MAX << (first % 64);
    let tail = u64::MAX >> (63 - last % 64);
    if from == to {
        words[from] |= head & tail;
    } else {
        words[from] |= head;
        words[from + 1..to].fill(u64::MAX);
        words[to] |= tail;
    }
}

/// Places of the set bits from `start` on, lowest first.
fn members(words: &[u64], start: u32) -> impl Iterator<Item = u32> {
    let first = (start as usize / 64).min(words.len());
    let words = words[first..].iter().enumerate();
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
            len in 1..20_000_u32,
            a in prop::collection::btree_set(0..20_500_u32, 0..400),
            runs in prop::collection::vec((0..20_500_u32, 0..6_000_u32), 0..4),
            start in 0..21_000_u32,
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
            let mut both = or.clone();
            both.or(&and);
            prop_assert_eq!(&both, &or);
            for (set, expected) in [(&and, &x & &y), (&not, &x - &y), (&or, &x | &y)] {
                prop_assert_eq!(got(set), expected.clone());
                prop_assert_eq!(set.count() as usize, expected.len());
                prop_assert_eq!(set.is_empty(), expected.is_empty());
                // However it came about, equal sets are equal.
                prop_assert_eq!(set, &build(&expected));
            }
            let mut even = and.clone();
            even.retain(|ordinal| ordinal % 2 == 0);
            prop_assert_eq!(even, build(&(&x & &y).into_iter().filter(|ordinal| ordinal % 2 == 0).collect()));
            let mut emptied = and;
            got(&emptied).into_iter().for_each(|ordinal| emptied.remove(ordinal));
            prop_assert_eq!(emptied, Bitset::new(len));
        }
    }
}
