//! Page bodies and single documents, as they go over the wire.

use crate::Error;
use crate::generation::{Generation, Item, ListOutcome, ListQuery, Wanted};
use crate::render;
use purvey_odp::identity::ResourceType;
use purvey_odp::language::LanguageTag;
use purvey_odp::limits;
use purvey_odp::offering::Representation;
use purvey_odp::refinement::RefinementGroup;
use serde_json::Value;

const HEAD: &[u8] = b"{\"odp_version\":\"1.0\",\"items\":[";
const DOCUMENT_HEAD: &[u8] = b"{\"odp_version\":\"1.0\",";
const EXPANDING_HEAD: &[u8] = b"{\"odp_version\":\"1.0\",\"auth_expands\":true,";
/// The member that tells that authentication can expand what the page holds, at its end.
const EXPANDS: &[u8] = b",\"auth_expands\":true";
const REFINEMENTS: &[u8] = b",\"refinements\":";
/// At least what a group takes beside its id and its values, each with a comma.
const GROUP_BYTES: usize = r#"{"filter_id":"","values":[]},"#.len();
const NEXT: &[u8] = b",\"next\":\"";
/// What a page holds besides its items, with the longest `next`.
const ENVELOPE_BYTES: usize = HEAD.len() + NEXT.len() + limits::NEXT_CHARS + EXPANDS.len() + 3;

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
    let last_id = outcome.last_id.as_deref().filter(|_| outcome.more);
    bytes.push(b']');
    close(&mut bytes, last_id.map(next).transpose()?, auth_expands)?;
    Ok(PageBody { bytes, outcome })
}

/// Ends a page.
fn close(bytes: &mut Vec<u8>, next: Option<String>, auth_expands: bool) -> Result<(), Error> {
    if let Some(next) = next {
        let harmless = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
        if next.len() > limits::NEXT_CHARS || !next.bytes().all(harmless) {
            let detail = format!("a continuation of {} bytes cannot be sent", next.len());
            return Err(Error::Conflict { detail });
        }
        bytes.extend(NEXT);
        bytes.extend(next.as_bytes());
        bytes.push(b'"');
    }
    if auth_expands {
        bytes.extend(EXPANDS);
    }
    bytes.push(b'}');
    Ok(())
}

/// Builds a page of what a search found: its documents, fewer when they would not fit (ODP §6), and the groups of refinements, of which only unusually long values
/// do not fit. `next` makes the continuation from the number of items delivered and is called only when there are more. Also returns the languages
/// of the items, each once.
///
/// # Errors
/// As [`page`].
pub(crate) fn found(
    generation: &Generation,
    wanted: &Wanted<'_>,
    groups: &[RefinementGroup],
    more: bool,
    auth_expands: bool,
    next: impl FnOnce(usize) -> Result<String, Error>,
) -> Result<(Vec<u8>, Vec<LanguageTag>), Error> {
    let room = wanted.max_bytes.min(limits::PAGE_BYTES - ENVELOPE_BYTES);
    let mut refinements = refinements(groups, room / 2);
    let mut languages = Vec::new();
    let mut bytes = HEAD.to_vec();
    let wanted = Wanted {
        max_bytes: room.saturating_sub(refinements.len()),
        ..*wanted
    };
    let count = generation.append_items(&wanted, &mut bytes, &mut languages)?;
    let taken = bytes.len() - HEAD.len();
    if taken + refinements.len() > room {
        // It is one item, which is delivered in any case.
        refinements = self::refinements(groups, room.saturating_sub(taken));
    }
    bytes.push(b']');
    bytes.extend(&refinements);
    let is_last = !more && count == wanted.documents.len();
    let next = (!is_last && count > 0).then(|| next(count)).transpose()?;
    close(&mut bytes, next, auth_expands)?;
    Ok((bytes, languages))
}

/// The member `refinements` after a comma, in at most `room` bytes; nothing without groups. Where not all fit, every group has as many of its first values, the
/// most useful ones; and where not one of each fits, the first groups have one.
fn refinements(groups: &[RefinementGroup], room: usize) -> Vec<u8> {
    let lens = |group: &RefinementGroup| {
        let values = group.values().iter();
        let lens = values.map(|bucket| render::bytes(&bucket.to_value()).len() + 1);
        (
            GROUP_BYTES + group.filter_id().as_str().len(),
            lens.collect::<Vec<_>>(),
        )
    };
    let lens: Vec<_> = groups.iter().map(lens).collect();
    let fits = |(groups, values): &(usize, usize)| {
        let groups = lens.iter().take(*groups);
        let bytes = groups.map(|(group, lens)| group + lens.iter().take(*values).sum::<usize>());
        REFINEMENTS.len() + 2 + bytes.sum::<usize>() <= room
    };
    let fewer_values = (1..=limits::REFINEMENT_VALUES)
        .rev()
        .map(|values| (groups.len(), values));
    let fewer_groups = (1..groups.len()).rev().map(|groups| (groups, 1));
    let Some((count, values)) = fewer_values
        .chain(fewer_groups)
        .find(fits)
        .filter(|(count, _)| *count > 0)
    else {
        return Vec::new();
    };
    let kept = groups.iter().take(count);
    let kept: Value = kept.map(|group| group.first(values).to_value()).collect();
    [REFINEMENTS, &render::bytes(&kept)].concat()
}

/// Builds a page of values that stand for themselves.
///
/// # Errors
/// As [`page`].
pub(crate) fn values(values: &[Vec<u8>], next: Option<String>) -> Result<Vec<u8>, Error> {
    let mut bytes = HEAD.to_vec();
    bytes.extend(values.join(&b','));
    bytes.push(b']');
    // Definitions are the same for everybody who sees what they belong to.
    close(&mut bytes, next, false)?;
    Ok(bytes)
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
