//! Page bodies and single documents, as they go over the wire.

use crate::Error;
use crate::generation::{Generation, Item, ListOutcome, ListQuery};
use purvey_odp::identity::ResourceType;
use purvey_odp::language::LanguageTag;
use purvey_odp::limits;
use purvey_odp::offering::Representation;

const HEAD: &[u8] = b"{\"odp_version\":\"1.0\",\"items\":[";
const DOCUMENT_HEAD: &[u8] = b"{\"odp_version\":\"1.0\",";
const EXPANDING_HEAD: &[u8] = b"{\"odp_version\":\"1.0\",\"auth_expands\":true,";
/// The member that tells that authentication can expand what the page holds, at its end.
const EXPANDS: &[u8] = b",\"auth_expands\":true";
const NEXT: &[u8] = b"],\"next\":\"";
/// What a page holds besides its items, with the longest `next`.
const ENVELOPE_BYTES: usize = HEAD.len() + NEXT.len() + limits::NEXT_CHARS + EXPANDS.len() + 2;

/// A page body and what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageBody {
    /// The JSON text, at most [`limits::PAGE_BYTES`].
    pub bytes: Vec<u8>,
    /// What it holds.
    pub outcome: ListOutcome,
}

/// Builds a page: `query.limit` items, fewer when they would not fit (ODP §6); `query.max_bytes` may lower the limit further. `next` makes the continuation
/// from the last id and is called only when there are more items. `auth_expands` puts that member in (ODP §3).
///
/// # Errors
/// What `next` fails with; [`Error::Conflict`] when it is longer than [`limits::NEXT_CHARS`] or not printable ASCII without quotes; [`Error::Io`].
pub fn page(
    generation: &Generation,
    query: &ListQuery<'_>,
    auth_expands: bool,
    next: impl FnOnce(&str) -> Result<String, Error>,
) -> Result<PageBody, Error> {
    let max_bytes = query.max_bytes.min(limits::PAGE_BYTES - ENVELOPE_BYTES);
    let query = ListQuery {
        max_bytes,
        ..*query
    };
    let mut bytes = Vec::new();
    bytes.extend(HEAD);
    let outcome = generation.list(&query, &mut bytes)?;
    match &outcome.last_id {
        Some(last_id) if outcome.more => {
            let next = next(last_id)?;
            let harmless = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
            if next.len() > limits::NEXT_CHARS || !next.bytes().all(harmless) {
                let detail = format!("a continuation of {} bytes cannot be sent", next.len());
                return Err(Error::Conflict { detail });
            }
            bytes.extend(NEXT);
            bytes.extend(next.as_bytes());
            bytes.push(b'"');
        }
        _ => bytes.push(b']'),
    }
    if auth_expands {
        bytes.extend(EXPANDS);
    }
    bytes.push(b'}');
    Ok(PageBody { bytes, outcome })
}

/// One document as it is retrieved by itself, with `odp_version` and, if so, `auth_expands`, in the best language.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::Io`].
pub fn document(
    generation: &Generation,
    kind: ResourceType,
    id: &str,
    representation: Representation,
    preferred: &[LanguageTag],
    auth_expands: bool,
) -> Result<Item, Error> {
    let head = if auth_expands {
        EXPANDING_HEAD
    } else {
        DOCUMENT_HEAD
    };
    generation
        .get_with_head(kind, id, representation, preferred, head)?
        .ok_or(Error::NotFound)
}
