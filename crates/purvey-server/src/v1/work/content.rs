//! `GET /v1/artifacts/{id}/content`: the bytes, whole or one range of them (Work §7; RFC 9110 §13, §14; RFC 9530).

use super::{
    Work,
    call::{self, Call, Names},
};
use crate::{
    Response, etag,
    request_id::RequestId,
    v1::problem::{Code, Failure},
};
use axum::{
    body::Body,
    extract::{Request, State},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
    header::{
        ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE,
        CONTENT_TYPE, ETAG, IF_RANGE, RANGE, X_CONTENT_TYPE_OPTIONS,
    },
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use purvey_work::model::Artifact;
use std::ops::Range;

const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");
/// What stands for itself in an extended parameter (RFC 8187 §3.2.1), as far as it needs no thought.
const EXTENDED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

pub(super) async fn read(
    State(work): State<Work>,
    Names([artifact]): Names<1>,
    request: Request,
) -> Response {
    let head = request.method() == Method::HEAD;
    let (call, id) = match call::open(work, request).await {
        Ok(opened) => opened,
        Err(refused) => return refused,
    };
    match answer(call, artifact, head, &id).await {
        Ok(response) => response,
        Err(failure) => failure.response(&id),
    }
}

/// The part of the bytes that a request asks for.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    Whole,
    Some(Range<u64>),
    Beyond,
}

async fn answer(
    call: Call,
    artifact: String,
    head: bool,
    id: &RequestId,
) -> Result<Response, Failure> {
    let platform = call.work().platform.clone();
    let Call {
        principal, headers, ..
    } = call;
    let artifact = platform.artifact_content(principal, artifact).await?;
    let tag = tag(&artifact);
    let mut response = http::Response::new(Body::empty());
    describe(response.headers_mut(), &artifact, &tag);
    if etag::none_match_names(&headers, &tag) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return Ok(response);
    }
    let range = match part(&headers, &tag, artifact.size) {
        Part::Whole => 0..artifact.size,
        Part::Some(range) => {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            let (first, last) = (range.start, range.end - 1);
            set(
                response.headers_mut(),
                CONTENT_RANGE,
                &format!("bytes {first}-{last}/{}", artifact.size),
            );
            range
        }
        Part::Beyond => {
            let mut response = Failure::new(Code::RangeNotSatisfiable).response(id);
            set(
                response.headers_mut(),
                CONTENT_RANGE,
                &format!("bytes */{}", artifact.size),
            );
            return Ok(response);
        }
    };
    let fields = response.headers_mut();
    fields.insert(CONTENT_LENGTH, (range.end - range.start).into());
    fields.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/octet-stream"),
    );
    let bytes = platform.artifact_bytes(&artifact, range).await?;
    if !head {
        *response.body_mut() = Body::from_stream(bytes);
    }
    Ok(response)
}

fn tag(artifact: &Artifact) -> HeaderValue {
    HeaderValue::try_from(format!("\"{}\"", artifact.sha256))
        .unwrap_or(HeaderValue::from_static("\"\""))
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(name, value);
    }
}

/// What every answer about these bytes says of them.
fn describe(headers: &mut HeaderMap, artifact: &Artifact, tag: &HeaderValue) {
    headers.insert(ETAG, tag.clone());
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    // The bytes are anybody's: no browser is to take them for a page.
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    set(
        headers,
        CONTENT_DISPOSITION,
        &disposition(&artifact.filename),
    );
    if let Some(digest) = octets(&artifact.sha256) {
        set(
            headers,
            REPR_DIGEST,
            &format!("sha-256=:{}:", STANDARD.encode(digest)),
        );
    }
}

fn octets(hex: &str) -> Option<Vec<u8>> {
    let pairs = hex.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

/// To be saved, under a name that cannot break out of its quotes (RFC 6266 §4.3).
fn disposition(filename: &str) -> String {
    let plain = |character: char| {
        let safe = character == ' ' || character.is_ascii_graphic();
        if safe && !matches!(character, '"' | '\\' | '%' | '/') {
            character
        } else {
            '_'
        }
    };
    let fallback: String = filename.chars().map(plain).collect();
    let exact = utf8_percent_encode(filename, EXTENDED);
    format!("attachment; filename=\"{fallback}\"; filename*=UTF-8''{exact}")
}

/// One range is served; several, or what is no range of bytes, are answered with the whole, as RFC 9110 §14.2 allows.
fn part(headers: &HeaderMap, tag: &HeaderValue, size: u64) -> Part {
    let mut sent = headers.get_all(RANGE).iter();
    let (Some(range), None) = (sent.next(), sent.next()) else {
        return Part::Whole;
    };
    // Only what is strong and equal says that the caller has the beginning of these bytes.
    if headers.get(IF_RANGE).is_some_and(|known| known != tag) {
        return Part::Whole;
    }
    let Some((first, last)) = range
        .to_str()
        .ok()
        .and_then(|text| text.strip_prefix("bytes="))
        .and_then(|text| text.trim().split_once('-'))
    else {
        return Part::Whole;
    };
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().unwrap_or(u64::MAX))
    };
    match (number(first), number(last)) {
        (None, Some(count)) if first.is_empty() => match count.min(size) {
            0 => Part::Beyond,
            count => Part::Some(size - count..size),
        },
        (Some(start), end) if end.is_some() || last.is_empty() => {
            let end = end.unwrap_or(u64::MAX);
            if end < start {
                Part::Whole
            } else if start >= size {
                Part::Beyond
            } else {
                Part::Some(start..end.saturating_add(1).min(size))
            }
        }
        _ => Part::Whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_of_bytes_is_a_part() {
        let tag = HeaderValue::from_static("\"t\"");
        let of = |range: &'static str, size| {
            let mut headers = HeaderMap::new();
            headers.insert(RANGE, HeaderValue::from_static(range));
            part(&headers, &tag, size)
        };
        for (range, size, expected) in [
            ("bytes=0-0", 10, Part::Some(0..1)),
            ("bytes=2-5", 10, Part::Some(2..6)),
            ("bytes=2-", 10, Part::Some(2..10)),
            ("bytes=2-99", 10, Part::Some(2..10)),
            ("bytes=-3", 10, Part::Some(7..10)),
            ("bytes=-30", 10, Part::Some(0..10)),
            ("bytes=99999999999999999999999-", 10, Part::Beyond),
            ("bytes=10-", 10, Part::Beyond),
            ("bytes=-0", 10, Part::Beyond),
            ("bytes=0-", 0, Part::Beyond),
            ("bytes=-1", 0, Part::Beyond),
            ("bytes=5-2", 10, Part::Whole),
            ("bytes=-", 10, Part::Whole),
            ("bytes=0-1,3-4", 10, Part::Whole),
            ("bytes=a-2", 10, Part::Whole),
            ("bytes=+1-2", 10, Part::Whole),
            ("lines=0-1", 10, Part::Whole),
            ("bytes", 10, Part::Whole),
        ] {
            assert_eq!(of(range, size), expected, "{range} of {size}");
        }
    }

    #[test]
    fn a_range_of_other_bytes_is_no_part() {
        let tag = HeaderValue::from_static("\"t\"");
        let of = |known: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(RANGE, HeaderValue::from_static("bytes=1-"));
            headers.insert(IF_RANGE, HeaderValue::from_static(known));
            part(&headers, &tag, 3)
        };
        assert_eq!(of("\"t\""), Part::Some(1..3));
        assert_eq!(of("\"u\""), Part::Whole);
        assert_eq!(of("W/\"t\""), Part::Whole);
        assert_eq!(of("Tue, 01 Dec 2026 00:00:00 GMT"), Part::Whole);
    }

    #[test]
    fn no_filename_breaks_out_of_its_header() {
        assert_eq!(
            disposition("a b.txt"),
            "attachment; filename=\"a b.txt\"; filename*=UTF-8''a%20b.txt"
        );
        assert_eq!(
            disposition("\"; x=\\é%/\u{202e}"),
            "attachment; filename=\"_; x=_____\"; filename*=UTF-8''%22%3B%20x%3D%5C%C3%A9%25%2F%E2%80%AE"
        );
    }
}
