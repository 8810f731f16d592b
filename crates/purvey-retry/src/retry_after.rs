//! `Retry-After` (RFC 9110 §10.2.3).

use std::time::{Duration, SystemTime};

/// How long a `Retry-After` field asks to wait, seen from `now`: a number of seconds, or an HTTP date, which is no wait at all
/// once it has passed.
///
/// Nothing for anything else: a sign, a fraction, a number past `u64::MAX`, a date of another form. Such a field is treated as
/// absent.
pub fn retry_after(field: &str, now: SystemTime) -> Option<Duration> {
    let field = field.trim_matches([' ', '\t']);
    if !field.is_empty() && field.bytes().all(|b| b.is_ascii_digit()) {
        return field.parse().ok().map(Duration::from_secs);
    }
    let date = httpdate::parse_http_date(field).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}
