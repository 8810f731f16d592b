//! Values with a unit, as written in flags, variables and files.

use serde::{Deserialize, Deserializer, de};
use std::{fmt, str::FromStr, time::Duration};

/// A time: a number with `ms`, `s`, `m`, `h` or `d`, for example `250ms` or `10s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Time(pub(crate) Duration);

impl FromStr for Time {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "a time is a whole number with ms, s, m, h or d, for example 10s";
        let (number, unit) = split(text).ok_or(WRONG)?;
        let milliseconds = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(WRONG),
        };
        let total = number.checked_mul(milliseconds).ok_or(WRONG)?;
        // A century is forever, and every sum with an instant still fits.
        let bounded = total.min(100 * 366 * 24 * 3_600_000);
        Ok(Self(Duration::from_millis(bounded)))
    }
}

impl Time {
    /// Reads the time for something that takes some.
    pub(crate) fn some(text: &str) -> Result<Self, &'static str> {
        match text.parse()? {
            Self(Duration::ZERO) => Err("must not be 0"),
            time => Ok(time),
        }
    }
}

/// A size: a number of bytes, or one with `KiB`, `MiB` or `GiB`, for example `2MiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

impl FromStr for Size {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str =
            "a size is a whole number of bytes, or one with KiB, MiB or GiB, for example 2MiB";
        let (number, unit) = split(text).ok_or(WRONG)?;
        let bytes = match unit {
            "" | "B" => 1,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            _ => return Err(WRONG),
        };
        number.checked_mul(bytes).map(Self).ok_or(WRONG)
    }
}

fn split(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    Some((number.parse().ok()?, unit.trim_start()))
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        parsed(from)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        parsed(from)
    }
}

fn parsed<'de, T: FromStr<Err: fmt::Display>, D: Deserializer<'de>>(
    from: D,
) -> Result<T, D::Error> {
    String::deserialize(from)?
        .parse()
        .map_err(de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_read() {
        assert_eq!("250ms".parse(), Ok(Time(Duration::from_millis(250))));
        assert_eq!("10 s".parse(), Ok(Time(Duration::from_secs(10))));
        assert_eq!("2h".parse(), Ok(Time(Duration::from_secs(7_200))));
        assert_eq!("30d".parse(), Ok(Time(Duration::from_secs(2_592_000))));
        assert_eq!("65536".parse(), Ok(Size(65_536)));
        assert_eq!("2MiB".parse(), Ok(Size(2_097_152)));
    }

    #[test]
    fn what_has_no_unit_or_a_wrong_one_is_refused() {
        for bad in ["", "10", "s", "-1s", "1.5s", "1w", "99999999999999999999s"] {
            assert!(bad.parse::<Time>().is_err(), "{bad}");
        }
        assert_eq!(Time::some("0ms"), Err("must not be 0"));
        assert_eq!(Time::some("1ms"), Ok(Time(Duration::from_millis(1))));
        for bad in ["", "MiB", "2MB", "-1", "18446744073709551615KiB"] {
            assert!(bad.parse::<Size>().is_err(), "{bad}");
        }
    }
}
