//! Query parameters of the ODP operations.

use purvey_odp::{limits::PAGE_LIMIT, problem::InvalidParam};
use std::borrow::Cow;

/// What a list operation was asked: a first page or the continuation of one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ListQuery<'a> {
    /// A first request.
    First {
        /// `representation`
        representation: Option<Wanted>,
        /// `limit`
        limit: Option<u64>,
    },
    /// A `next` being followed; it carries everything else.
    Continue {
        /// `cursor`
        cursor: Cow<'a, str>,
    },
}

/// `representation`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// `terse`
    Terse,
    /// `full`
    Full,
}

/// Reads a list's query: `representation`, `limit` and `cursor` at most once each, everything else ignored (ODP §3, §4).
pub(crate) fn list(query: Option<&str>) -> Result<ListQuery<'_>, Vec<InvalidParam>> {
    let mut faults = Vec::new();
    let representation = representation(query, &mut faults);
    page(query, representation, faults)
}

/// Reads the query of a sequence of definitions: `limit` and `cursor` at most once each, everything else ignored (ODP §5).
pub(crate) fn definitions(query: Option<&str>) -> Result<ListQuery<'_>, Vec<InvalidParam>> {
    page(query, None, Vec::new())
}

/// Whether there is a `cursor`, of whatever value.
pub(crate) fn continues(query: Option<&str>) -> bool {
    named(query, "cursor").next().is_some()
}

fn page(
    query: Option<&str>,
    representation: Option<Wanted>,
    mut faults: Vec<InvalidParam>,
) -> Result<ListQuery<'_>, Vec<InvalidParam>> {
    let limit = single(query, "limit", &mut faults);
    let cursor = single(query, "cursor", &mut faults);
    let limit = limit.and_then(|text| {
        let limit = number(&text).filter(|limit| PAGE_LIMIT.contains(limit));
        if limit.is_none() {
            fault(
                &mut faults,
                "limit",
                "Must be an integer from 1 through 100.",
            );
        }
        limit
    });
    if let Some(cursor) = cursor {
        let given = [
            ("representation", representation.is_some()),
            ("limit", limit.is_some()),
        ];
        for (name, _) in given.into_iter().filter(|(_, given)| *given) {
            fault(
                &mut faults,
                name,
                "Must be absent beside cursor, which carries it already.",
            );
        }
        return finish(ListQuery::Continue { cursor }, faults);
    }
    finish(
        ListQuery::First {
            representation,
            limit,
        },
        faults,
    )
}

/// Reads a retrieval's query: `representation` at most once, everything else ignored (ODP §4).
pub(crate) fn retrieval(query: Option<&str>) -> Result<Option<Wanted>, Vec<InvalidParam>> {
    let mut faults = Vec::new();
    let representation = representation(query, &mut faults);
    finish(representation, faults)
}

fn representation(query: Option<&str>, faults: &mut Vec<InvalidParam>) -> Option<Wanted> {
    match single(query, "representation", faults)?.as_ref() {
        "terse" => Some(Wanted::Terse),
        "full" => Some(Wanted::Full),
        _ => {
            fault(faults, "representation", "Must be terse or full.");
            None
        }
    }
}

/// The decoded value of the parameter `name`; a fault when it is given twice or is not percent-encoded UTF-8.
pub(crate) fn single<'a>(
    query: Option<&'a str>,
    name: &'static str,
    faults: &mut Vec<InvalidParam>,
) -> Option<Cow<'a, str>> {
    let mut found = named(query, name);
    let value = found.next()?;
    if found.next().is_some() {
        fault(faults, name, "Must be given at most once.");
        return None;
    }
    let value = decode(value);
    if value.is_none() {
        fault(faults, name, "Must be percent-encoded UTF-8.");
    }
    value
}

/// The values of the parameters `name`, as they were sent.
fn named<'a>(query: Option<&'a str>, name: &'static str) -> impl Iterator<Item = &'a str> {
    query
        .unwrap_or_default()
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .filter(move |(key, _)| decode(key).as_deref() == Some(name))
        .map(|(_, value)| value)
}

fn fault(faults: &mut Vec<InvalidParam>, name: &'static str, reason: &'static str) {
    faults.push(InvalidParam::query(name, reason));
}

fn finish<T>(value: T, faults: Vec<InvalidParam>) -> Result<T, Vec<InvalidParam>> {
    if faults.is_empty() {
        Ok(value)
    } else {
        Err(faults)
    }
}

/// Plain decimal digits without a sign or a leading zero.
fn number(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    plain.then(|| text.parse().ok()).flatten()
}

/// Form decoding: `+` is a space, `%XX` a byte.
fn decode(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains(['%', '+']) {
        return Some(Cow::Borrowed(text));
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => {
                let high = char::from(bytes.next()?).to_digit(16)?;
                let low = char::from(bytes.next()?).to_digit(16)?;
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(out).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(representation: Option<Wanted>, limit: Option<u64>) -> ListQuery<'static> {
        ListQuery::First {
            representation,
            limit,
        }
    }

    #[test]
    fn known_parameters_are_read_and_unknown_ones_ignored() {
        assert_eq!(list(None), Ok(first(None, None)));
        assert_eq!(list(Some("")), Ok(first(None, None)));
        assert_eq!(
            list(Some("x=1&limit=50&x=2&representation=full&Limit=0&%zz=1")),
            Ok(first(Some(Wanted::Full), Some(50)))
        );
        assert_eq!(list(Some("%6cimit=1%30")), Ok(first(None, Some(10))));
        assert_eq!(
            list(Some("cursor=a%2Db")),
            Ok(ListQuery::Continue {
                cursor: "a-b".into()
            })
        );
        assert_eq!(
            retrieval(Some("limit=0&representation=terse")),
            Ok(Some(Wanted::Terse))
        );
    }

    #[test]
    fn bad_and_repeated_ones_are_named() {
        for (query, names) in [
            ("limit=0", &["limit"][..]),
            ("limit=101", &["limit"]),
            ("limit=010", &["limit"]),
            ("limit=+5", &["limit"]),
            ("limit=", &["limit"]),
            ("limit", &["limit"]),
            ("limit=1&limit=1", &["limit"]),
            ("limit=99999999999999999999999", &["limit"]),
            ("representation=Full", &["representation"]),
            (
                "representation=full&representation=full",
                &["representation"],
            ),
            ("representation=x&limit=x", &["representation", "limit"]),
            ("cursor=%ff", &["cursor"]),
            (
                "cursor=a&limit=5&representation=terse",
                &["representation", "limit"],
            ),
            ("cursor=a&cursor=a", &["cursor"]),
        ] {
            let faults = list(Some(query)).unwrap_err();
            let found: Vec<&str> = faults.iter().map(InvalidParam::name).collect();
            assert_eq!(found, names, "{query}");
        }
    }
}
