//! Request bodies, bounded while they arrive.

use axum::body::{Body, HttpBody};
use bytes::{Bytes, BytesMut};
use http::{
    HeaderMap,
    header::{CONTENT_ENCODING, CONTENT_TYPE, EXPECT},
};
use http_body_util::BodyExt;
use purvey_odp::media;
use std::time::Duration;
use tokio::time::timeout;

/// Why a body could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyError {
    /// Declared or received bytes pass the limit.
    TooLarge,
    /// It did not arrive in time.
    TimedOut,
    /// The connection broke or the framing is wrong.
    Broken,
}

/// The media type of a body, in lower case and without parameters, when exactly one is named.
pub(crate) fn media(headers: &HeaderMap) -> Option<String> {
    let mut sent = headers.get_all(CONTENT_TYPE).iter();
    match (sent.next(), sent.next()) {
        (Some(value), None) => value.to_str().ok().and_then(media::essence),
        _ => None,
    }
}

/// The first content coding of a body that has one: we decode none, so that what is bounded is what is read.
pub(crate) fn coding(headers: &HeaderMap) -> Option<&str> {
    let values = headers.get_all(CONTENT_ENCODING).iter();
    values
        .flat_map(|value| value.to_str().unwrap_or("?").split(','))
        .map(str::trim)
        .find(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case("identity"))
}

/// The whole body, of at most `limit` bytes and within `time`; stops at the first byte too many.
pub(crate) async fn read(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    time: Duration,
) -> Result<Bytes, BodyError> {
    let read = async {
        let mut body = body;
        if body.size_hint().lower() > limit as u64 {
            // Who asks first has not sent anything, and must not be asked for it.
            if !headers.contains_key(EXPECT) {
                drain(body, DRAIN);
            }
            return Err(BodyError::TooLarge);
        }
        let mut whole = BytesMut::new();
        while let Some(piece) = next(&mut body).await? {
            if whole.len() + piece.len() > limit {
                drain(body, DRAIN);
                return Err(BodyError::TooLarge);
            }
            whole.extend_from_slice(&piece);
        }
        Ok(whole.freeze())
    };
    timeout(time, read)
        .await
        .unwrap_or(Err(BodyError::TimedOut))
}

/// The next piece of data, `None` at the end.
pub(crate) async fn next(body: &mut Body) -> Result<Option<Bytes>, BodyError> {
    loop {
        match body.frame().await {
            None => return Ok(None),
            Some(Err(_)) => return Err(BodyError::Broken),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// How much of a body that nobody wants is thrown away.
#[derive(Clone, Copy)]
pub(crate) struct Drain {
    pub(crate) bytes: usize,
    pub(crate) time: Duration,
}

const DRAIN: Drain = Drain {
    bytes: 1_024 * 1_024,
    time: Duration::from_secs(2),
};

/// Throws away a little of what still comes, beside the answer: a caller that is still sending gets to read it.
pub(crate) fn drain(mut body: Body, most: Drain) {
    tokio::spawn(timeout(most.time, async move {
        let mut seen = 0;
        while let Ok(Some(piece)) = next(&mut body).await {
            seen += piece.len();
            if seen > most.bytes {
                break;
            }
        }
    }));
}
