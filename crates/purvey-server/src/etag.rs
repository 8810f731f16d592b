//! Strong entity tags and the conditions that name them (RFC 9110 §8.8.3, §13.1).

use crate::encoding::Coding;
use http::{HeaderMap, HeaderValue, header::IF_NONE_MATCH};
use xxhash_rust::xxh3::xxh3_128;

/// The strong tag of a representation: a digest of its content and, since another coding is other bytes, the coding.
pub(crate) fn of_content(body: &[u8], coding: Coding) -> HeaderValue {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut tag = [0_u8; 40];
    tag[0] = b'"';
    let mut at = 1;
    for byte in xxh3_128(body).to_be_bytes() {
        tag[at] = HEX[usize::from(byte >> 4)];
        tag[at + 1] = HEX[usize::from(byte & 15)];
        at += 2;
    }
    for byte in coding.etag_suffix().bytes() {
        tag[at] = byte;
        at += 1;
    }
    tag[at] = b'"';
    HeaderValue::from_bytes(&tag[..=at]).unwrap_or(HeaderValue::from_static("\"\""))
}

/// The tag of a stored record: its revision.
pub(crate) fn of_revision(revision: u64) -> HeaderValue {
    HeaderValue::from_str(&format!("\"{revision}\"")).unwrap_or(HeaderValue::from_static("\"\""))
}

/// Whether `If-None-Match` names `tag` (weak comparison), or is `*`: the caller has this representation already.
pub(crate) fn none_match_names(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .any(|value| Tags(value.as_bytes()).any(|t| t == Tag::Any || t.opaque() == tag.as_bytes()))
}

/// One element of a list of tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag<'a> {
    /// `*`
    Any,
    /// A strong tag, with its quotes.
    Strong(&'a [u8]),
    /// A weak tag, with its quotes and without `W/`.
    Weak(&'a [u8]),
    /// What is no tag; the rest of the list is not read.
    Malformed,
}

impl<'a> Tag<'a> {
    fn opaque(self) -> &'a [u8] {
        match self {
            Self::Strong(tag) | Self::Weak(tag) => tag,
            Self::Any | Self::Malformed => b"",
        }
    }
}

/// The tags of one header value; a comma inside quotes does not separate.
pub(crate) struct Tags<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Tags<'a> {
    type Item = Tag<'a>;

    fn next(&mut self) -> Option<Tag<'a>> {
        let start = self
            .0
            .iter()
            .position(|b| !matches!(b, b' ' | b'\t' | b','))?;
        let rest = &self.0[start..];
        self.0 = b"";
        let (tag, after) = if let Some(after) = rest.strip_prefix(b"*") {
            (Tag::Any, after)
        } else {
            let (weak, quoted) = rest
                .strip_prefix(b"W/")
                .map_or((false, rest), |quoted| (true, quoted));
            let inner = quoted.strip_prefix(b"\"");
            let Some(end) = inner.and_then(|inner| inner.iter().position(|&b| b == b'"')) else {
                return Some(Tag::Malformed);
            };
            let (opaque, after) = quoted.split_at(end + 2);
            if weak {
                (Tag::Weak(opaque), after)
            } else {
                (Tag::Strong(opaque), after)
            }
        };
        let next = after.iter().find(|b| !matches!(b, b' ' | b'\t'));
        if !matches!(next, None | Some(b',')) {
            return Some(Tag::Malformed);
        }
        self.0 = after;
        Some(tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_depends_on_content_and_coding() {
        // XXH3-128 of the empty input, from the algorithm's own test values.
        assert_eq!(
            of_content(b"", Coding::Identity),
            "\"99aa06d3014798d86001c324468d497f\""
        );
        assert_eq!(
            of_content(b"", Coding::Brotli),
            "\"99aa06d3014798d86001c324468d497f-br\""
        );
        assert_ne!(
            of_content(b"a", Coding::Identity),
            of_content(b"b", Coding::Identity)
        );
    }

    #[test]
    fn lists_weak_tags_and_stars_are_compared() {
        let tag = HeaderValue::from_static("\"a,b\"");
        let named = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(IF_NONE_MATCH, HeaderValue::from_static(value));
            }
            none_match_names(&headers, &tag)
        };
        for yes in [
            &["\"a,b\""][..],
            &["W/\"a,b\""],
            &["\"x\" , W/\"a,b\",\"y\""],
            &["*"],
            &["\"x\"", "\"a,b\""],
        ] {
            assert!(named(yes), "{yes:?}");
        }
        for no in [
            &[][..],
            &["\"a\""],
            &["a,b"],
            &["\"b\""],
            &["\"x\"\"a,b\""],
            &["w/\"a,b\""],
            &["\"a,b"],
        ] {
            assert!(!named(no), "{no:?}");
        }
    }
}
