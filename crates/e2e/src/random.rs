//! Choices that a seed repeats.
//!
//! A test takes its seed from [`seed`]; the guard it makes prints the seed when the test fails, so that the run can be
//! repeated with `PURVEY_FAULT_SEED`.

use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A generator of pseudo-random numbers (`SplitMix64`): small, fast, the same on every machine.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator whose choices follow from `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number of the range, which must not be empty.
    pub fn within(&mut self, range: Range<usize>) -> usize {
        assert!(!range.is_empty(), "a choice among nothing");
        let width = (range.end - range.start) as u64;
        range.start + usize::try_from(self.bits() % width).expect("a range of usize")
    }

    /// True `percent` times of 100.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.within(0..100) < percent
    }

    /// One of the items, of which there must be some.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.within(0..items.len())]
    }

    /// A span below `limit`.
    pub fn below(&mut self, limit: Duration) -> Duration {
        let micros = usize::try_from(limit.as_micros()).expect("a short time");
        Duration::from_micros(self.within(0..micros.max(1)) as u64)
    }

    /// A generator of its own for one part of a test, so that parts do not disturb each other's choices.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self(self.bits())
    }
}

/// Says the seed if the test panics while it is held.
#[derive(Debug)]
pub struct Seed {
    value: u64,
}

impl Seed {
    /// The generator of this seed.
    #[must_use]
    pub const fn random(&self) -> Random {
        Random::new(self.value)
    }
}

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("repeat with PURVEY_FAULT_SEED={}", self.value);
        }
    }
}

/// The seed of this run: `PURVEY_FAULT_SEED`, or from the clock.
#[must_use]
pub fn seed() -> Seed {
    let value = number("PURVEY_FAULT_SEED").unwrap_or_else(|| {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("a clock past 1970");
        u64::from(now.subsec_nanos()) ^ now.as_secs()
    });
    Seed { value }
}

/// How many rounds a fault test makes: `usual`, times `PURVEY_FAULT_ROUNDS` when that is set (the long form).
#[must_use]
pub fn rounds(usual: usize) -> usize {
    number("PURVEY_FAULT_ROUNDS").map_or(usual, |times| {
        usual * usize::try_from(times).expect("few rounds")
    })
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} is not a number: {text}")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_choices() {
        // The first outputs of SplitMix64 for the seed 1234567, from its reference implementation.
        let mut random = Random::new(1_234_567);
        assert_eq!(random.bits(), 6_457_827_717_110_365_317);
        assert_eq!(random.bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn a_choice_stays_in_its_range() {
        let mut random = Random::new(1);
        assert!((0..1000).all(|_| (3..7).contains(&random.within(3..7))));
        assert!(!random.chance(0));
        assert!(random.chance(100));
    }
}
