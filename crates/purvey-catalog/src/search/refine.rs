//! Counting the values of a filter (ODP §5, Refinements). Counts are exact; there are several ways to the same number.

use super::bitset::{Bitset, bits};
use super::column::Column;
use super::column::codes::{Code, with_codes};
use purvey_odp::filter::FilterDefinition;
use purvey_odp::identity::CapabilityId;
use purvey_odp::limits;
use purvey_odp::refinement::{RefinementBucket, RefinementGroup};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// A request that filters by a value, without the value and the id of the filter.
const ASKING: &str = r#"{"odp_version":"1.0","filters":[{"id":"","operator":"eq","value":}]}"#;
/// Values kept by a bound on their sum, up to which they are looked up in every segment; above, everything is added up.
const LOOKED_UP: usize = 4_096;
/// Values up to which four counters of each stay in the nearest cache.
const LANED: usize = 1_024;

/// A way to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Plan {
    /// Nothing narrows the segment: its totals are the counts.
    Totals,
    /// Count the values of every document of the set.
    Iterate,
    /// Count those of every other document, and take them from the totals.
    Complement,
    /// Go through all documents in a row, in the set or not.
    Scan,
}

impl Plan {
    /// The cheapest way to count `count` of `live` documents.
    pub(crate) fn choose(column: &Column, count: u32, live: u32) -> Self {
        if count == live {
            return Self::Totals;
        }
        // In thirds of a nanosecond for each document, as measured; many values of one document cost the same whichever way.
        let iterate = u64::from(count) * 5;
        let complement = u64::from(live - count) * 5 + u64::from(column.values());
        let scan = u64::from(column.documents()) * 3;
        match iterate.min(complement).min(scan) {
            cost if cost == iterate => Self::Iterate,
            cost if cost == complement => Self::Complement,
            _ => Self::Scan,
        }
    }
}

/// The values of one segment's column that occur, with how many documents have them.
pub(crate) struct Tally<'a> {
    column: &'a Column,
    counts: Vec<u32>,
    /// Longest JSON text of a value that a request can ask for, in bytes.
    longest: usize,
}

impl<'a> Tally<'a> {
    /// Counts the documents in `set`, a part of the live ones, whose values altogether are counted by `totals`. `filter` is the id of the filter.
    pub(crate) fn new(
        filter: &CapabilityId,
        column: &'a Column,
        plan: Plan,
        set: &Bitset,
        live: &Bitset,
        totals: &[u32],
    ) -> Self {
        let counts = match plan {
            Plan::Totals => totals.to_vec(),
            Plan::Iterate => count(column, set),
            Plan::Complement => {
                let mut others = live.clone();
                others.and_not(set);
                let mut counts = count(column, &others);
                for (count, total) in counts.iter_mut().zip(totals) {
                    *count = total - *count;
                }
                counts
            }
            Plan::Scan => scan(column, set),
        };
        let asking = ASKING.len() + filter.as_str().len();
        Self {
            column,
            counts,
            longest: limits::REQUEST_BYTES - asking,
        }
    }

    /// Values that occur and that can be asked for, as code and count: what fits into no request narrows nothing.
    fn occurring(&self) -> impl Iterator<Item = (u32, u32)> {
        let counted = self.counts.iter().enumerate();
        counted
            .filter(|(_, count)| **count > 0)
            .map(|(code, count)| (code as u32, *count))
            .filter(|(code, _)| self.column.text(*code).len() <= self.longest)
    }

    fn count_of(&self, key: &[u8]) -> u64 {
        let code = self.column.find(key).ok();
        code.and_then(|code| self.counts.get(code as usize))
            .map_or(0, |count| (*count).into())
    }

    fn text_of(&self, key: &[u8]) -> Option<&[u8]> {
        Some(self.column.text(self.column.find(key).ok()?))
    }
}

/// How many documents of the set have each value.
pub(crate) fn count(column: &Column, set: &Bitset) -> Vec<u32> {
    // One counter more than values takes what is missing.
    let mut counts = vec![0; column.values() as usize + 1];
    with_codes!(column.packed(), codes => match column.starts() {
        None => set.iter().for_each(|ordinal| counts[codes[ordinal as usize].get() as usize] += 1),
        Some(starts) => set.iter().for_each(|ordinal| {
            let (start, end) = (starts[ordinal as usize], starts[ordinal as usize + 1]);
            add(&mut counts, &codes[start as usize..end as usize]);
        }),
    });
    counts.pop();
    counts
}

fn add<C: Code>(counts: &mut [u32], codes: &[C]) {
    for code in codes {
        counts[code.get() as usize] += 1;
    }
}

/// As [`count`], going through the documents in a row.
fn scan(column: &Column, set: &Bitset) -> Vec<u32> {
    with_codes!(column.packed(), codes => match column.starts() {
        None => scan_single(codes, set, column.values() as usize),
        Some(starts) => scan_many(starts, codes, set, column.values() as usize),
    })
}

fn scan_single<C: Code>(codes: &[C], set: &Bitset, values: usize) -> Vec<u32> {
    // A counter cannot be counted up twice at a time: neighbours, which are often alike, count in turns.
    let lanes = if values <= LANED { 4 } else { 1 };
    let width = values + 1;
    let mut counts = vec![0; width * lanes];
    for (word, chunk) in set.words().iter().zip(codes.chunks(64)) {
        if *word == 0 {
            continue;
        }
        for (at, code) in chunk.iter().enumerate() {
            counts[(at % lanes) * width + code.get() as usize] += (word >> at & 1) as u32;
        }
    }
    let (sums, others) = counts.split_at_mut(width);
    for other in others.chunks(width) {
        sums.iter_mut().zip(other).for_each(|(sum, n)| *sum += n);
    }
    counts.truncate(values);
    counts
}

fn scan_many<C: Code>(starts: &[u32], codes: &[C], set: &Bitset, values: usize) -> Vec<u32> {
    let mut counts = vec![0; values];
    for (at, word) in set.words().iter().enumerate() {
        let first = at * 64;
        let mut stretch = |from: usize, to: usize| {
            add(
                &mut counts,
                &codes[starts[from] as usize..starts[to] as usize],
            );
        };
        if *word == u64::MAX {
            stretch(first, first + 64);
        } else {
            bits(*word).for_each(|bit| stretch(first + bit as usize, first + bit as usize + 1));
        }
    }
    counts
}

/// The most useful values of all segments together: those of most documents, of equal ones the smaller value, and at most 32. `None` when no document has any.
pub(crate) fn group(
    definition: &FilterDefinition,
    tallies: &[Tally<'_>],
) -> Option<RefinementGroup> {
    group_with(definition, tallies, LOOKED_UP)
}

fn group_with(
    definition: &FilterDefinition,
    tallies: &[Tally<'_>],
    looked_up: usize,
) -> Option<RefinementGroup> {
    let chosen = match tallies {
        [only] => best(
            only.occurring()
                .map(|(code, count)| (u64::from(count), only.column.key(code))),
        ),
        _ => best(
            sums(tallies, looked_up)
                .into_iter()
                .map(|(key, count)| (count, key)),
        ),
    };
    let buckets = chosen.into_iter().filter_map(|(count, key)| {
        let text = tallies.iter().find_map(|tally| tally.text_of(key))?;
        let value = serde_json::from_slice(text).ok()?;
        Some(RefinementBucket {
            value: definition.scalar_type().scalar(&value)?,
            count,
            lower_bound: false,
        })
    });
    RefinementGroup::new(definition, buckets.collect()).ok()
}

/// The values that may be among the most useful, with their exact counts over all segments.
fn sums<'a>(tallies: &'a [Tally<'_>], looked_up: usize) -> Vec<(&'a [u8], u64)> {
    // The whole count of a value is at least its count in one segment, and at most that and the largest ones of all others.
    let largest: Vec<u64> = tallies
        .iter()
        .map(|tally| tally.counts.iter().copied().max().unwrap_or(0).into())
        .collect();
    let all: u64 = largest.iter().sum();
    let sure = tallies.iter().map(|tally| {
        let counted = tally.occurring();
        let best = best(counted.map(|(_, count)| (u64::from(count), [].as_slice())));
        let full = best.len() == limits::REFINEMENT_VALUES;
        best.last().filter(|_| full).map_or(0, |(count, _)| *count)
    });
    let sure = sure.max().unwrap_or(0);
    let mut sums: HashMap<&[u8], u64> = HashMap::new();
    for (tally, largest) in tallies.iter().zip(&largest) {
        for (code, count) in tally.occurring() {
            if u64::from(count) + (all - largest) >= sure {
                sums.insert(tally.column.key(code), 0);
            }
            if sums.len() > looked_up {
                return all_sums(tallies);
            }
        }
    }
    for (key, sum) in &mut sums {
        *sum = tallies.iter().map(|tally| tally.count_of(key)).sum();
    }
    sums.into_iter().collect()
}

fn all_sums<'a>(tallies: &'a [Tally<'_>]) -> Vec<(&'a [u8], u64)> {
    let mut sums: HashMap<&[u8], u64> = HashMap::new();
    for tally in tallies {
        for (code, count) in tally.occurring() {
            *sums.entry(tally.column.key(code)).or_default() += u64::from(count);
        }
    }
    sums.into_iter().collect()
}

/// The largest counts, of equal ones those of the smaller keys, in this order.
fn best<'a>(counted: impl Iterator<Item = (u64, &'a [u8])>) -> Vec<(u64, &'a [u8])> {
    // The worst of those kept is at the top.
    let mut kept: BinaryHeap<(Reverse<u64>, &[u8])> = BinaryHeap::new();
    for (count, key) in counted {
        let entry = (Reverse(count), key);
        if kept.len() < limits::REFINEMENT_VALUES {
            kept.push(entry);
        } else if let Some(mut worst) = kept.peek_mut()
            && entry < *worst
        {
            *worst = entry;
        }
    }
    let kept = kept.into_sorted_vec().into_iter();
    kept.map(|(count, key)| (count.0, key)).collect()
}
