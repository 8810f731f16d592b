//! `X-Request-Id`: the caller's when well formed, ours otherwise.

use http::{HeaderMap, HeaderName, HeaderValue};
use std::{
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// The header's name.
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A request's id; travels in the request's extensions to whoever must name it in a body.
#[derive(Clone, Debug)]
pub(crate) struct RequestId(pub(crate) HeaderValue);

impl RequestId {
    /// The caller's id if it sent exactly one of 1–128 unreserved characters, otherwise a fresh UUID version 7.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut sent = headers.get_all(X_REQUEST_ID).iter();
        match (sent.next(), sent.next()) {
            (Some(id), None) if well_formed(id.as_bytes()) => Self(id.clone()),
            _ => Self::fresh(),
        }
    }

    fn fresh() -> Self {
        // An id has to be unique, not secret: a seeded counter spares every request a call for randomness.
        static SEED: LazyLock<u64> =
            LazyLock::new(|| getrandom::u64().unwrap_or_else(|_| u64::from(std::process::id())));
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let bytes = xxh3_128_with_seed(&count.to_le_bytes(), *SEED).to_le_bytes();
        let mut random = [0; 10];
        random.copy_from_slice(&bytes[..10]);
        let millis = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |d| d.as_millis() as u64);
        let uuid = uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid();
        let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
        let text: &str = uuid.hyphenated().encode_lower(&mut text);
        Self(HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static("unknown")))
    }

    /// The id as text.
    pub(crate) fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

fn well_formed(id: &[u8]) -> bool {
    (1..=128).contains(&id.len())
        && id
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || b"-._~:/+=".contains(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn of(values: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(X_REQUEST_ID, HeaderValue::from_str(value).unwrap());
        }
        RequestId::of(&headers).as_str().to_owned()
    }

    #[test]
    fn a_well_formed_id_is_echoed_and_no_other() {
        assert_eq!(of(&["trace-7/a:b"]), "trace-7/a:b");
        let long = "x".repeat(129);
        for bad in [
            &[][..],
            &["with blank"],
            &["\"quoted\""],
            &[""],
            &[&long],
            &["a", "b"],
        ] {
            let id = of(bad);
            assert_eq!(id.len(), 36, "{bad:?}");
            assert_eq!(&id[14..15], "7", "a UUID of version 7: {id}");
        }
    }

    #[test]
    fn fresh_ids_differ() {
        let ids: HashSet<String> = (0..10_000).map(|_| of(&[])).collect();
        assert_eq!(ids.len(), 10_000);
    }
}
