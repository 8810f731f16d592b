//! Any field value as `Retry-After`.

use purvey_retry::retry_after;
use std::time::{Duration, SystemTime};

/// 2026-01-01T00:00:00Z.
const NOW: Duration = Duration::from_secs(1_767_225_600);

/// A wait is the number that the field says, or leads to the date that it says; the clock changes nothing else.
pub fn holds(input: &[u8]) {
    let Ok(field) = std::str::from_utf8(input) else {
        return;
    };
    let now = SystemTime::UNIX_EPOCH + NOW;
    let wait = retry_after(field, now);
    assert_eq!(retry_after(&format!(" \t{field}\t"), now), wait);
    let trimmed = field.trim_matches([' ', '\t']);
    if let Some(seconds) = delay(trimmed) {
        assert_eq!(wait, seconds.map(Duration::from_secs));
        assert_eq!(retry_after(field, SystemTime::UNIX_EPOCH), wait);
        return;
    }
    let Some(wait) = wait else {
        return assert_eq!(imf_fixdate(trimmed), None, "{trimmed}");
    };
    // A date: it is as far away from the beginning of time as it says, and its wait shrinks as the clock runs, down to nothing.
    let since = retry_after(field, SystemTime::UNIX_EPOCH).expect("a date at any time");
    assert_eq!(since.subsec_nanos(), 0);
    assert_eq!(wait, since.saturating_sub(NOW));
    let canonical = httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + since);
    assert_eq!(imf_fixdate(&canonical), Some(since.as_secs()), "{trimmed}");
    assert_eq!(retry_after(&canonical, now), Some(wait));
    if trimmed.len() == canonical.len() && trimmed.ends_with("GMT") {
        assert_eq!(imf_fixdate(trimmed), Some(since.as_secs()), "{trimmed}");
    }
}

/// Decimal digits as a number, nothing when it is too large for one; `None` for what is not digits.
fn delay(text: &str) -> Option<Option<u64>> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| {
        text.bytes().try_fold(0_u64, |sum, b| {
            sum.checked_mul(10)?.checked_add(u64::from(b - b'0'))
        })
    })
}

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// The form of RFC 9110 §5.6.7 that is written today, by counting days: `Sun, 06 Nov 1994 08:49:37 GMT`. Only dates of the
/// calendar from 1970 on, with their day of the week.
fn imf_fixdate(text: &str) -> Option<u64> {
    let parts: Vec<&str> = text.split(' ').collect();
    let [weekday, day, month, year, time, "GMT"] = parts.as_slice() else {
        return None;
    };
    let month = MONTHS.iter().position(|known| known == month)?;
    let (day, year) = (number(day, 2)?, number(year, 4)?);
    let times: Vec<u64> = time
        .split(':')
        .map(|part| number(part, 2))
        .collect::<Option<_>>()?;
    let [hours @ 0..24, minutes @ 0..60, seconds @ 0..60] = times.as_slice() else {
        return None;
    };
    let lengths = |year| {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        [
            31,
            if leap { 29 } else { 28 },
            31,
            30,
            31,
            30,
            31,
            31,
            30,
            31,
            30,
            31_u64,
        ]
    };
    if year < 1970 || !(1..=lengths(year)[month]).contains(&day) {
        return None;
    }
    let years: u64 = (1970..year)
        .map(|year| lengths(year).iter().sum::<u64>())
        .sum();
    let days = years + lengths(year)[..month].iter().sum::<u64>() + day - 1;
    let expected = DAYS[usize::try_from(days % 7).ok()?];
    (weekday.strip_suffix(',') == Some(expected))
        .then(|| ((days * 24 + hours) * 60 + minutes) * 60 + seconds)
}

fn number(text: &str, digits: usize) -> Option<u64> {
    let plain = text.len() == digits && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}
