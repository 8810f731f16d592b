//! What a response says about its own freshness, put plainly.
//!
//! The rules of RFC 9111 are `http-cache-semantics`'s. It gets a header that cannot be misread: one `Cache-Control` in lower case,
//! an `Age` that counts `Date` in, and the class's freshness where the response says nothing.

use http::header::{AGE, CACHE_CONTROL, DATE, EXPIRES, PRAGMA, VARY};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_cache_semantics::{CacheOptions, CachePolicy};
use std::time::{Duration, SystemTime};

/// Largest number of seconds that is told apart (RFC 9111 §1.2.2).
const MAX_SECONDS: u64 = 1 << 31;

/// The policy of a response with `headers` to a request with the fields `request`, sent at `sent`.
pub(super) fn policy(
    request: &HeaderMap,
    headers: &HeaderMap,
    sent: SystemTime,
    fallback: Duration,
) -> CachePolicy {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::OK;
    *response.headers_mut() = plain(headers, sent, fallback);
    let options = CacheOptions {
        shared: false,
        // Guessing by Last-Modified is what the fallback is for.
        cache_heuristic: 0.0,
        ..CacheOptions::default()
    };
    CachePolicy::new_options(&asked(request), &response, sent, options)
}

/// The request as the policy sees it. Its URL is not looked at, since the key holds it.
pub(super) fn asked(fields: &HeaderMap) -> Request<()> {
    let mut request = Request::new(());
    *request.method_mut() = Method::GET;
    *request.headers_mut() = fields.clone();
    request
}

/// The fields that freshness depends on, in plain form.
fn plain(headers: &HeaderMap, sent: SystemTime, fallback: Duration) -> HeaderMap {
    let mut plain = HeaderMap::new();
    for name in [DATE, VARY] {
        for value in headers.get_all(&name) {
            plain.append(&name, value.clone());
        }
    }
    let mut control = Control::of(headers);
    if control.max_age.is_none() {
        match expires(headers) {
            Some(expires) => drop(plain.insert(EXPIRES, expires)),
            None => control.max_age = Some(fallback.as_secs().min(MAX_SECONDS)),
        }
    }
    if let Ok(control) = HeaderValue::try_from(control.to_string()) {
        plain.insert(CACHE_CONTROL, control);
    }
    plain.insert(AGE, HeaderValue::from(age(headers, sent)));
    plain
}

/// `Expires`; several contradict each other and count as past.
fn expires(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut fields = headers.get_all(EXPIRES).iter();
    let first = fields.next()?.clone();
    Some(match fields.next() {
        None => first,
        Some(_) => HeaderValue::from_static("0"),
    })
}

/// Seconds that the response has been on its way: what caches before say, or what its date tells, whichever is more.
fn age(headers: &HeaderMap, sent: SystemTime) -> u64 {
    let text = |name| {
        headers
            .get(name)
            .and_then(|value: &HeaderValue| value.to_str().ok())
    };
    let told = text(AGE).map_or(0, seconds);
    let apparent = text(DATE)
        .and_then(|date| httpdate::parse_http_date(date).ok())
        .and_then(|date| sent.duration_since(date).ok())
        .map_or(0, |age| age.as_secs());
    told.max(apparent).min(MAX_SECONDS)
}

/// A number of seconds; too large is the largest, and what is no number is none.
fn seconds(text: &str) -> u64 {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match text.parse() {
        Ok(seconds) if digits => MAX_SECONDS.min(seconds),
        Err(_) if digits => MAX_SECONDS,
        _ => 0,
    }
}

/// The directives of a response that a private cache heeds.
#[derive(Debug, Default)]
struct Control {
    no_store: bool,
    no_cache: bool,
    must_revalidate: bool,
    max_age: Option<u64>,
}

impl Control {
    fn of(headers: &HeaderMap) -> Self {
        let mut control = Self::default();
        let mut any = false;
        for field in headers.get_all(CACHE_CONTROL) {
            any = true;
            match field.to_str() {
                Ok(field) => control.read(field),
                // Whatever it says, it may be a prohibition.
                Err(_) => control.no_store = true,
            }
        }
        let pragma = |field: &HeaderValue| {
            field
                .to_str()
                .is_ok_and(|field| field.to_ascii_lowercase().contains("no-cache"))
        };
        control.no_cache |= !any && headers.get_all(PRAGMA).iter().any(pragma);
        control
    }

    fn read(&mut self, field: &str) {
        for directive in directives(field) {
            let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
            match name.trim().to_ascii_lowercase().as_str() {
                "no-store" => self.no_store = true,
                // With field names it asks for less; asking again is always right.
                "no-cache" => self.no_cache = true,
                "must-revalidate" => self.must_revalidate = true,
                "max-age" => {
                    let seconds = seconds(value.trim().trim_matches('"'));
                    // Of several, the most cautious.
                    self.max_age = Some(self.max_age.map_or(seconds, |before| before.min(seconds)));
                }
                _ => {}
            }
        }
    }
}

impl std::fmt::Display for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("private")?;
        for (set, name) in [
            (self.no_store, "no-store"),
            (self.no_cache, "no-cache"),
            (self.must_revalidate, "must-revalidate"),
        ] {
            if set {
                write!(f, ", {name}")?;
            }
        }
        match self.max_age {
            Some(seconds) => write!(f, ", max-age={seconds}"),
            None => Ok(()),
        }
    }
}

/// The elements of a list; commas within quotes divide nothing.
fn directives(field: &str) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    field.split(move |c| {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ',' => return !quoted,
            _ => {}
        }
        false
    })
}
