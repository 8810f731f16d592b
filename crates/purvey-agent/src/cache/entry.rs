//! One stored response.

use super::freshness;
use bytes::Bytes;
use http::header::{
    AGE, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ETAG, IF_MODIFIED_SINCE,
    IF_NONE_MATCH, LAST_MODIFIED, SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use http_cache_semantics::{BeforeRequest, CachePolicy};
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};

/// Fields that are of a connection or of a transfer and not of what is stored, and those that are secrets.
const NOT_STORED: [HeaderName; 10] = [
    AGE,
    CONNECTION,
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    CONTENT_RANGE,
    SET_COOKIE,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// A stored response: its fields, its whole body without codings, and what decides about its reuse.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(super) policy: CachePolicy,
}

/// All of an entry but its body, as it is written to a directory.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Meta {
    headers: Vec<(String, String)>,
    policy: CachePolicy,
}

/// What may be done with an entry for a request.
pub(crate) enum Lookup {
    /// It answers the request.
    Fresh,
    /// It answers the request when the Service confirms it; the fields to ask with.
    Confirm(HeaderMap),
    /// It does not answer the request.
    Unusable,
}

impl Entry {
    /// The entry for a response with status 200, or nothing when it must not be stored or could never be used.
    ///
    /// `request` are the fields of the request that choose a representation; `sent` is when it was sent.
    pub(crate) fn new(
        request: &HeaderMap,
        headers: &HeaderMap,
        body: Bytes,
        sent: SystemTime,
        fallback: Duration,
    ) -> Option<Self> {
        let policy = freshness::policy(request, headers, sent, fallback);
        let useful = !policy.is_stale(sent) || validators(headers).is_some();
        (policy.is_storable() && useful).then(|| Self {
            headers: stored(headers),
            body,
            policy,
        })
    }

    /// What may be done for a request with these representation fields, now.
    pub(crate) fn look(&self, request: &HeaderMap, now: SystemTime) -> Lookup {
        match self.policy.before_request(&freshness::asked(request), now) {
            BeforeRequest::Fresh(_) => Lookup::Fresh,
            BeforeRequest::Stale { matches: true, .. } => {
                validators(&self.headers).map_or(Lookup::Unusable, Lookup::Confirm)
            }
            BeforeRequest::Stale { .. } => Lookup::Unusable,
        }
    }

    /// The fields that must be confirmed with the Service first, whatever the freshness.
    pub(crate) fn confirm(&self) -> Lookup {
        validators(&self.headers).map_or(Lookup::Unusable, Lookup::Confirm)
    }

    /// The entry after a 304 with these fields, or nothing when the 304 is about another state of the resource.
    pub(crate) fn confirmed(
        &self,
        request: &HeaderMap,
        headers: &HeaderMap,
        sent: SystemTime,
        fallback: Duration,
    ) -> Option<Self> {
        if !is_of_same_state(&self.headers, headers) {
            return None;
        }
        let mut merged = self.headers.clone();
        let news = stored(headers);
        for name in news.keys() {
            merged.remove(name);
        }
        for (name, value) in &news {
            merged.append(name, value.clone());
        }
        let mut told = merged.clone();
        if let Some(age) = headers.get(AGE) {
            told.insert(AGE, age.clone());
        }
        Some(Self {
            policy: freshness::policy(request, &told, sent, fallback),
            headers: merged,
            body: self.body.clone(),
        })
    }

    /// The fields for the caller, with the age.
    pub(crate) fn headers_at(&self, now: SystemTime) -> HeaderMap {
        let mut headers = self.headers.clone();
        headers.insert(AGE, HeaderValue::from(self.policy.age(now).as_secs()));
        headers
    }

    /// Whether it may be stored after it was confirmed.
    pub(crate) fn is_storable(&self) -> bool {
        self.policy.is_storable()
    }

    /// About how many bytes it takes.
    pub(super) fn size(&self) -> usize {
        const OVERHEAD: usize = 1_024;
        let headers: usize = self
            .headers
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len())
            .sum();
        self.body.len() + 2 * headers + OVERHEAD
    }

    pub(super) fn meta(&self) -> Meta {
        let headers = self.headers.iter().filter_map(|(name, value)| {
            let value = value.to_str().ok()?;
            Some((name.as_str().to_owned(), value.to_owned()))
        });
        Meta {
            headers: headers.collect(),
            policy: self.policy.clone(),
        }
    }

    pub(super) fn from_meta(meta: Meta, body: Bytes) -> Option<Self> {
        let mut headers = HeaderMap::new();
        for (name, value) in meta.headers {
            let name = HeaderName::try_from(name).ok()?;
            headers
                .try_append(name, HeaderValue::try_from(value).ok()?)
                .ok()?;
        }
        Some(Self {
            headers,
            body,
            policy: meta.policy,
        })
    }
}

fn stored(headers: &HeaderMap) -> HeaderMap {
    let mut stored = headers.clone();
    let named: Vec<_> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|names| names.split(',').map(|name| name.trim().to_owned()))
        .collect();
    for name in named {
        stored.remove(name);
    }
    for name in NOT_STORED {
        stored.remove(name);
    }
    stored.remove("keep-alive");
    stored
}

/// The fields that ask whether a stored response is still right; nothing when it has no validator.
fn validators(headers: &HeaderMap) -> Option<HeaderMap> {
    let mut fields = HeaderMap::new();
    for (validator, field) in [(ETAG, IF_NONE_MATCH), (LAST_MODIFIED, IF_MODIFIED_SINCE)] {
        if let Some(value) = headers.get(validator) {
            fields.insert(field, value.clone());
        }
    }
    (!fields.is_empty()).then_some(fields)
}

/// Whether a 304 with the fields `news` is about the state that was stored (RFC 9111 §4.3.4).
fn is_of_same_state(stored: &HeaderMap, news: &HeaderMap) -> bool {
    let opaque = |headers: &HeaderMap| {
        let tag = headers.get(ETAG)?.as_bytes();
        Some(tag.strip_prefix(b"W/").unwrap_or(tag).to_vec())
    };
    match (opaque(news), news.get(LAST_MODIFIED)) {
        (Some(tag), _) => opaque(stored) == Some(tag),
        (None, Some(date)) => stored
            .get(LAST_MODIFIED)
            .is_none_or(|stored| stored == date),
        (None, None) => true,
    }
}
