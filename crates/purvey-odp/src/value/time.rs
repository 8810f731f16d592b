//! Calendar dates and instants as RFC 3339 spells them.

use super::decimal::digit_key;
use std::fmt;

/// A day of the proleptic Gregorian calendar, years 0000 through 9999 (RFC 3339 `full-date`). Ordered by the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Date {
    year: u16,
    month: u8,
    day: u8,
}

/// An instant on the UTC timeline (RFC 3339 `date-time`), its fraction of a second of any length and exact.
///
/// Equality and order are those of the instant, whatever offset it was written with. A leap second lies between `:59` and
/// the next minute.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DateTime {
    /// Minutes since 0000-01-01T00:00Z; an offset can move it out of the years 0000 through 9999.
    minute: i64,
    /// 0 through 60.
    second: u8,
    /// Decimal digits as 0–9, the last not 0.
    fraction: Box<[u8]>,
}

const DAY: i64 = 24 * 60;
/// Minutes of the years 0000 through 9999.
const MINUTES: i64 = 3_652_425 * DAY;

impl Date {
    /// The day, when the calendar has it: `year` at most 9999, `month` and `day` from 1.
    pub fn new(year: u16, month: u8, day: u8) -> Option<Self> {
        let known = year <= 9999
            && (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day);
        known.then_some(Self { year, month, day })
    }

    /// Reads `YYYY-MM-DD`; `None` for any other text and for days the calendar lacks.
    pub fn parse(text: &str) -> Option<Self> {
        let mut input = Input(text.as_bytes());
        let date = input.date()?;
        input.0.is_empty().then_some(date)
    }

    /// The year, 0 through 9999.
    pub fn year(&self) -> u16 {
        self.year
    }

    /// The month, from 1.
    pub fn month(&self) -> u8 {
        self.month
    }

    /// The day of the month, from 1.
    pub fn day(&self) -> u8 {
        self.day
    }

    /// Appends four bytes in the order of the calendar.
    pub fn order_key(&self, out: &mut Vec<u8>) {
        out.extend(self.year.to_be_bytes());
        out.extend([self.month, self.day]);
    }

    /// Days since 0000-01-01.
    fn days(self) -> i64 {
        let year = i64::from(self.year);
        let leap_days = if year == 0 {
            0
        } else {
            let before = year - 1;
            // Year 0 is a leap year, which the three terms do not count.
            before / 4 - before / 100 + before / 400 + 1
        };
        let months: i64 = (1..self.month)
            .map(|month| i64::from(days_in_month(self.year, month)))
            .sum();
        year * 365 + leap_days + months + i64::from(self.day) - 1
    }

    /// The day `days` after 0000-01-01, which must lie before the year 10000.
    fn from_days(days: i64) -> Self {
        // At most the year looked for, and less than two before it.
        let mut year = u16::try_from((days * 400 / 146_097 - 1).clamp(0, 9999)).unwrap_or_default();
        let first = |year| {
            Self {
                year,
                month: 1,
                day: 1,
            }
            .days()
        };
        while year < 9999 && first(year + 1) <= days {
            year += 1;
        }
        let mut rest = days - first(year);
        let mut month = 1;
        while month < 12 && rest >= i64::from(days_in_month(year, month)) {
            rest -= i64::from(days_in_month(year, month));
            month += 1;
        }
        let day = u8::try_from(rest + 1).unwrap_or(1);
        Self { year, month, day }
    }

    fn is_last_of_month(self) -> bool {
        self.day == days_in_month(self.year, self.month)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl DateTime {
    /// Reads an RFC 3339 `date-time` (`T` and `Z` in either case); `None` for any other text.
    ///
    /// Second 60 is read where UTC can have a leap second: in the last minute of a month (RFC 3339 §5.7). Which months had
    /// one is not checked, since the future ones are unknown.
    pub fn parse(text: &str) -> Option<Self> {
        let mut input = Input(text.as_bytes());
        let date = input.date()?;
        input.one_of(b"Tt")?;
        let hour = input.two(23)?;
        input.one_of(b":")?;
        let minute = input.two(59)?;
        input.one_of(b":")?;
        let second = u8::try_from(input.two(60)?).ok()?;
        let fraction = if input.one_of(b".").is_some() {
            input.digits()?
        } else {
            &[]
        };
        let offset = match input.one_of(b"Zz+-")? {
            sign @ (b'+' | b'-') => {
                let hours = input.two(23)?;
                input.one_of(b":")?;
                let offset = hours * 60 + input.two(59)?;
                if sign == b'-' { -offset } else { offset }
            }
            _ => 0,
        };
        if !input.0.is_empty() {
            return None;
        }
        let minute = date.days() * DAY + hour * 60 + minute - offset;
        if second == 60 && !can_leap(minute) {
            return None;
        }
        let digits = fraction.len() - fraction.iter().rev().take_while(|b| **b == b'0').count();
        Some(Self {
            minute,
            second,
            fraction: fraction[..digits].iter().map(|b| b - b'0').collect(),
        })
    }

    /// Appends bytes whose lexicographic order is that of the instants and whose equality is that of the instants. No key is
    /// a prefix of another.
    pub fn order_key(&self, out: &mut Vec<u8>) {
        // An offset moves an instant by less than a day: the sum is positive and fits five bytes.
        let minute = self.minute + DAY;
        out.extend(&minute.to_be_bytes()[3..]);
        out.push(self.second);
        digit_key(&self.fraction, out);
    }
}

/// In UTC, except for the few instants that only an offset can write within the years 0000 through 9999.
impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shift, offset) = match self.minute {
            ..0 => (DAY - 1, "+23:59"),
            0..MINUTES => (0, "Z"),
            _ => (1 - DAY, "-23:59"),
        };
        let local = self.minute + shift;
        let (date, minute) = (
            Date::from_days(local.div_euclid(DAY)),
            local.rem_euclid(DAY),
        );
        write!(
            f,
            "{date}T{:02}:{:02}:{:02}",
            minute / 60,
            minute % 60,
            self.second
        )?;
        if !self.fraction.is_empty() {
            f.write_str(".")?;
            for digit in &self.fraction {
                fmt::Write::write_char(f, char::from(b'0' + digit))?;
            }
        }
        f.write_str(offset)
    }
}

/// Whether this UTC minute (since 0000-01-01) is the last of a month.
fn can_leap(minute: i64) -> bool {
    let last_of_day = minute.rem_euclid(DAY) == DAY - 1;
    // Outside the years 0000 through 9999: December ends where they begin.
    last_of_day
        && match minute {
            ..0 => minute == -1,
            0..MINUTES => Date::from_days(minute.div_euclid(DAY)).is_last_of_month(),
            _ => false,
        }
}

fn days_in_month(year: u16, month: u8) -> u8 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// What is left to read.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn one_of(&mut self, bytes: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        if !bytes.contains(first) {
            return None;
        }
        self.0 = rest;
        Some(*first)
    }

    /// Two digits of at most `max`.
    fn two(&mut self, max: i64) -> Option<i64> {
        let tens = self.one_of(b"0123456789")?;
        let units = self.one_of(b"0123456789")?;
        let value = i64::from(tens - b'0') * 10 + i64::from(units - b'0');
        (value <= max).then_some(value)
    }

    /// One digit or more, as ASCII.
    fn digits(&mut self) -> Option<&'a [u8]> {
        let count = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at(count);
        self.0 = rest;
        (count > 0).then_some(digits)
    }

    fn date(&mut self) -> Option<Date> {
        let year = self.two(99)? * 100 + self.two(99)?;
        self.one_of(b"-")?;
        let month = self.two(12)?;
        self.one_of(b"-")?;
        let day = self.two(31)?;
        Date::new(
            u16::try_from(year).ok()?,
            u8::try_from(month).ok()?,
            u8::try_from(day).ok()?,
        )
    }
}
