//! Time and chance, passed in.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// A moment, in milliseconds since 1970-01-01T00:00:00Z; on the wire RFC 3339 in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// A day of UTC, counted from 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(i64);

const DAY_MILLIS: i64 = 86_400_000;

impl Timestamp {
    /// From milliseconds since 1970.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since 1970.
    #[must_use]
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// This much later; the last moment that can be named if that is past it.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self(
            self.0
                .saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX)),
        )
    }

    /// This much earlier.
    #[must_use]
    pub fn before(self, wait: Duration) -> Self {
        Self(
            self.0
                .saturating_sub(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX)),
        )
    }

    /// How long from `earlier` to this; nothing if it is not earlier.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// The day of UTC that holds it.
    #[must_use]
    pub const fn day(self) -> Day {
        Day(self.0.div_euclid(DAY_MILLIS))
    }
}

impl Day {
    /// From the number of days since 1970-01-01.
    #[must_use]
    pub const fn from_number(number: i64) -> Self {
        Self(number)
    }

    /// Days since 1970-01-01.
    #[must_use]
    pub const fn number(self) -> i64 {
        self.0
    }

    /// The midnight that ends it: when daily limits reset (Work §4).
    #[must_use]
    pub const fn end(self) -> Timestamp {
        Timestamp((self.0 + 1) * DAY_MILLIS)
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let millis = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self(match time.duration_since(UNIX_EPOCH) {
            Ok(after) => millis(after),
            Err(before) => -millis(before.duration()),
        })
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => write!(f, "{time:.3}"),
            Err(_) => f.write_str("9999-12-31T23:59:59.999Z"),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let time: jiff::Timestamp = text
            .parse()
            .map_err(|_| D::Error::custom("must be a date-time of RFC 3339"))?;
        Ok(Self(time.as_millisecond()))
    }
}

/// What time it is.
pub trait Clock: Send + Sync {
    /// The present moment.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        SystemTime::now().into()
    }
}

/// Where randomness comes from: identifiers, tokens, jitter.
pub trait Chance: Send + Sync {
    /// Fills `bytes`.
    fn fill(&self, bytes: &mut [u8]);
}

/// The operating system's randomness.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemChance;

impl Chance for SystemChance {
    fn fill(&self, bytes: &mut [u8]) {
        if getrandom::fill(bytes).is_err() {
            // Without randomness no token could be trusted: nothing may go on.
            std::process::abort();
        }
    }
}

/// What a decision is made with: the moment it is made at, and its chance.
#[derive(Clone, Copy)]
pub(crate) struct Cx<'a> {
    pub(crate) now: Timestamp,
    pub(crate) chance: &'a dyn Chance,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_in_utc_and_days_end_at_midnight() {
        let noon = Timestamp::from_millis(1_767_268_800_123);
        assert_eq!(noon.to_string(), "2026-01-01T12:00:00.123Z");
        assert_eq!(noon.day().end().to_string(), "2026-01-02T00:00:00.000Z");
        assert_eq!(Timestamp::from_millis(-1).day().number(), -1);
        let read: Timestamp = serde_json::from_str("\"2026-01-01T13:00:00.123+01:00\"").unwrap();
        assert_eq!(read, noon);
    }
}
