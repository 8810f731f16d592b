//! When a provider says that its limit has passed (Work §5).

use crate::clock::Timestamp;
use http::{HeaderMap, HeaderName};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The longest that a run waits at once for its provider's limit.
pub const LONGEST_WAIT: Duration = Duration::from_secs(15 * 60);

/// Numbers from here on are seconds since 1970, not seconds to wait: no limit lasts thirty years.
const EPOCH_SECONDS: f64 = 1_000_000_000.0;
/// Numbers from here on are milliseconds since 1970.
const EPOCH_MILLIS: f64 = 1_000_000_000_000.0;

/// How long the response to a limited request asks to wait, seen from `now`. Not bounded by [`LONGEST_WAIT`].
///
/// Read are `retry-after-ms`, `Retry-After` (seconds or an HTTP date), and for every `NAME` the pairs `x-ratelimit-reset-NAME` with
/// `x-ratelimit-remaining-NAME` and `anthropic-ratelimit-NAME-reset` with `anthropic-ratelimit-NAME-remaining`. A reset is a duration
/// (`1m30.5s`, `6ms`), seconds, seconds or milliseconds since 1970, or a date-time of RFC 3339.
///
/// The latest counts of `Retry-After` (`retry-after-ms` in its place, being finer) and of the resets whose remaining is 0; without
/// any of these, the latest of the other resets, since the request was refused for one of them. What lies not in the future says
/// nothing. Waiting too long costs time, waiting too short may fail the run.
#[must_use]
pub fn reset_signal(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let mut told = retry_after_millis(headers).or_else(|| retry_after(headers, now));
    let mut vague = None;
    for (name, value) in headers {
        let Some(remaining) = remaining_of(name) else {
            continue;
        };
        let wait = value.to_str().ok().and_then(|text| moment(text, now));
        let used_up =
            text(headers, &remaining).is_some_and(|remaining| remaining.trim().parse() == Ok(0.0));
        match used_up {
            true => told = told.max(wait),
            false => vague = vague.max(wait),
        }
    }
    let future = |wait: &Duration| !wait.is_zero();
    told.filter(future).or(vague.filter(future))
}

/// The field that says what remains of the limit whose reset the field `name` says.
fn remaining_of(name: &HeaderName) -> Option<String> {
    let name = name.as_str();
    if let Some(limit) = name.strip_prefix("x-ratelimit-reset") {
        return Some(format!("x-ratelimit-remaining{limit}"));
    }
    let limit = name
        .strip_prefix("anthropic-ratelimit-")?
        .strip_suffix("-reset")?;
    Some(format!("anthropic-ratelimit-{limit}-remaining"))
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

fn retry_after_millis(headers: &HeaderMap) -> Option<Duration> {
    let millis: f64 = text(headers, "retry-after-ms")?.trim().parse().ok()?;
    Duration::try_from_secs_f64(millis / 1_000.0).ok()
}

fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let field = text(headers, "retry-after")?;
    purvey_retry::retry_after(field, system_time(now)?).or_else(|| seconds(field.trim()))
}

fn system_time(now: Timestamp) -> Option<SystemTime> {
    let millis = u64::try_from(now.millis()).ok()?;
    UNIX_EPOCH.checked_add(Duration::from_millis(millis))
}

/// How long it is from `now` to what a reset field says.
fn moment(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    if let Ok(number) = text.parse::<f64>() {
        return match number {
            number if number >= EPOCH_MILLIS => Some(until(number, now)),
            number if number >= EPOCH_SECONDS => Some(until(number * 1_000.0, now)),
            number => Duration::try_from_secs_f64(number).ok(),
        };
    }
    go_duration(text).or_else(|| {
        let time: jiff::Timestamp = text.parse().ok()?;
        Some(Timestamp::from_millis(time.as_millisecond()).since(now))
    })
}

fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.parse().ok()?).ok()
}

/// From `now` to a moment in milliseconds since 1970; these are whole far beyond any date.
#[allow(clippy::cast_possible_truncation)]
fn until(millis: f64, now: Timestamp) -> Duration {
    Timestamp::from_millis(millis as i64).since(now)
}

/// A duration as Go writes it: numbers with units, such as `1h2m3.5s` or `6ms`.
fn go_duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(digits);
        let letters = after
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let seconds = match unit {
            "d" => 86_400.0,
            "h" => 3_600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" | "μs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        let number: f64 = number.parse().ok()?;
        total = total.checked_add(Duration::try_from_secs_f64(number * seconds).ok()?)?;
        rest = after;
    }
    (!text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-01-01T12:00:00Z.
    const NOW: Timestamp = Timestamp::from_millis(1_767_268_800_000);

    fn wait(fields: &[(&str, &str)]) -> Option<u128> {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, value.parse().unwrap());
        }
        reset_signal(&headers, NOW).map(|wait| wait.as_millis())
    }

    #[test]
    fn retry_after_in_both_forms_and_finer() {
        assert_eq!(wait(&[("retry-after", "20")]), Some(20_000));
        assert_eq!(wait(&[("retry-after", "1.5")]), Some(1_500));
        let date = "Thu, 01 Jan 2026 12:02:00 GMT";
        assert_eq!(wait(&[("retry-after", date)]), Some(120_000));
        let both = [("retry-after", "2"), ("retry-after-ms", "1250")];
        assert_eq!(wait(&both), Some(1_250));
    }

    #[test]
    fn what_is_not_in_the_future_says_nothing() {
        assert_eq!(wait(&[]), None);
        assert_eq!(wait(&[("retry-after", "0")]), None);
        let date = "Thu, 01 Jan 2026 11:59:00 GMT";
        assert_eq!(wait(&[("retry-after", date)]), None);
        assert_eq!(wait(&[("retry-after", "soon")]), None);
        assert_eq!(wait(&[("retry-after", "-3")]), None);
        assert_eq!(wait(&[("retry-after-ms", "nan")]), None);
    }

    #[test]
    fn every_spelling_of_a_reset() {
        let reset = |value| wait(&[("x-ratelimit-reset-tokens", value)]);
        assert_eq!(reset("6ms"), Some(6));
        assert_eq!(reset("1s"), Some(1_000));
        assert_eq!(reset("1m30.5s"), Some(90_500));
        assert_eq!(reset("6m0s"), Some(360_000));
        assert_eq!(reset("2h1m"), Some(7_260_000));
        assert_eq!(reset("12"), Some(12_000));
        assert_eq!(reset("12.25"), Some(12_250));
        assert_eq!(reset("1767268830"), Some(30_000));
        assert_eq!(reset("1767268830500"), Some(30_500));
        assert_eq!(reset("2026-01-01T13:00:07+01:00"), Some(7_000));
        for bad in ["", "s", "5", "5x", "1m30", "abc", "1..5s", "9e99s"] {
            let expected = (bad == "5").then_some(5_000);
            assert_eq!(reset(bad), expected, "{bad:?}");
        }
        let anthropic = [(
            "anthropic-ratelimit-input-tokens-reset",
            "2026-01-01T12:00:45Z",
        )];
        assert_eq!(wait(&anthropic), Some(45_000));
    }

    #[test]
    fn the_limit_that_is_used_up_counts() {
        let openai = [
            ("x-ratelimit-remaining-requests", "59"),
            ("x-ratelimit-reset-requests", "50m"),
            ("x-ratelimit-remaining-tokens", "0"),
            ("x-ratelimit-reset-tokens", "7.5s"),
        ];
        assert_eq!(wait(&openai), Some(7_500));
        let anthropic = [
            ("anthropic-ratelimit-requests-remaining", "0"),
            ("anthropic-ratelimit-requests-reset", "2026-01-01T12:00:03Z"),
            ("anthropic-ratelimit-output-tokens-remaining", "0"),
            (
                "anthropic-ratelimit-output-tokens-reset",
                "2026-01-01T12:00:09Z",
            ),
            ("anthropic-ratelimit-tokens-remaining", "1000"),
            ("anthropic-ratelimit-tokens-reset", "2026-01-01T12:00:59Z"),
        ];
        assert_eq!(wait(&anthropic), Some(9_000));
    }

    #[test]
    fn the_latest_of_what_is_certain_counts() {
        let used_up = [
            ("retry-after", "2"),
            ("x-ratelimit-remaining-tokens", "0"),
            ("x-ratelimit-reset-tokens", "5s"),
        ];
        assert_eq!(wait(&used_up), Some(5_000));
        let later = [
            ("retry-after", "8"),
            ("x-ratelimit-remaining-tokens", "0"),
            ("x-ratelimit-reset-tokens", "5s"),
            ("x-ratelimit-reset-requests", "20s"),
        ];
        assert_eq!(wait(&later), Some(8_000));
    }

    #[test]
    fn without_anything_certain_the_latest_reset_counts() {
        let unclear = [
            ("x-ratelimit-remaining-tokens", "40"),
            ("x-ratelimit-reset-tokens", "6s"),
            ("x-ratelimit-reset-requests", "8ms"),
        ];
        assert_eq!(wait(&unclear), Some(6_000));
    }
}
