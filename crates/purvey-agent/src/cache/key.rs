//! What a stored response is stored for.

use http::{HeaderMap, Method};
use sha2::{Digest, Sha256};
use std::fmt;
use url::Url;

/// Who a response was given to: a digest of the credentials that went with the request, never the credentials (ODP §11).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Context([u8; 32]);

impl Context {
    /// The context of requests without credentials.
    pub const ANONYMOUS: Self = Self([0; 32]);

    /// The context of requests with these fields; of none it is [`Context::ANONYMOUS`].
    pub fn of(credentials: Option<&HeaderMap>) -> Self {
        match credentials {
            Some(fields) if !fields.is_empty() => Self(digest("context", &written(fields))),
            _ => Self::ANONYMOUS,
        }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::ANONYMOUS {
            "anonymous"
        } else {
            "authenticated"
        })
    }
}

/// All that a request and a stored response must have in common before freshness is even looked at: method, URL, the fields
/// that choose a representation, and the authentication context.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    method: Method,
    url: Url,
    representation: Vec<(String, Vec<u8>)>,
    context: Context,
}

impl Key {
    /// The key of a request. `representation` are the fields that choose among representations, as `Accept` and
    /// `Accept-Language`.
    pub fn new(method: Method, url: &Url, representation: &HeaderMap, context: Context) -> Self {
        let mut url = url.clone();
        url.set_fragment(None);
        Self {
            method,
            url,
            representation: written(representation),
            context,
        }
    }

    /// Whether a response that was stored for this key may answer a request with the key `request` (ODP §11): only when
    /// all parts are the same. Whether it is fresh is another question.
    pub fn is_reusable_for(&self, request: &Self) -> bool {
        self == request
    }

    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// The name of the entry in a directory: first the URL's part, then that of the whole key.
    pub(super) fn file_name(&self) -> String {
        let mut parts = self.representation.clone();
        parts.push(("method".to_owned(), self.method.as_str().into()));
        parts.push(("url".to_owned(), self.url.as_str().into()));
        parts.push(("context".to_owned(), self.context.0.to_vec()));
        let whole = digest("key", &parts);
        format!("{}-{}", url_part(&self.url), hex(&whole))
    }
}

/// The start of the names of all entries of a URL.
pub(super) fn url_part(url: &Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    let whole = digest("url", &[(String::new(), url.as_str().into())]);
    hex(whole.get(..8).unwrap_or_default())
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The fields in an order of their own.
fn written(fields: &HeaderMap) -> Vec<(String, Vec<u8>)> {
    let mut written: Vec<_> = fields
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()))
        .collect();
    written.sort_unstable();
    written
}

/// A digest in which no two different lists are written the same.
fn digest(purpose: &str, parts: &[(String, Vec<u8>)]) -> [u8; 32] {
    let mut hash = Sha256::new();
    let mut add = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    };
    add(purpose.as_bytes());
    for (name, value) in parts {
        add(name.as_bytes());
        add(value);
    }
    hash.finalize().into()
}
