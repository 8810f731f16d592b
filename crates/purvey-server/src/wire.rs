//! The bytes of a connection: a reader that does not read is let go, and what the HTTP library answers by itself gets the form of
//! every other failure.

use crate::{
    account::ACCESS,
    odp::problem::Failure,
    request_id::{RequestId, X_REQUEST_ID},
};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CONNECTION, DATE},
};
use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
    time::{Duration, SystemTime},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

/// A connection's stream.
pub(crate) struct Wire<S> {
    stream: S,
    /// Longest wait for the reader to take anything.
    patience: Duration,
    /// Runs while nothing can be written.
    stalled: Option<Pin<Box<Sleep>>>,
    /// An answer of ours that is written in place of the library's, and how far.
    answer: Vec<u8>,
    written: usize,
}

impl<S: AsyncWrite + Unpin> Wire<S> {
    pub(crate) fn new(stream: S, patience: Duration) -> Self {
        Self {
            stream,
            patience,
            stalled: None,
            answer: Vec::new(),
            written: 0,
        }
    }

    /// Passes on how a write went; a wait that is too long is a failure.
    fn progress<T>(
        &mut self,
        cx: &mut Context<'_>,
        result: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.stalled = None;
            return result;
        }
        let patience = self.patience;
        let timer = self
            .stalled
            .get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(timer.as_mut().poll(cx));
        tracing::debug!("a connection ends: its reader has stopped reading");
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    /// Writes our own answer to its end.
    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self
            .answer
            .get(self.written..)
            .filter(|rest| !rest.is_empty())
        {
            let result = Pin::new(&mut self.stream).poll_write(cx, rest);
            match ready!(self.progress(cx, result))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.written += written,
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Takes over from the library when `bytes` are an answer of its own.
    fn take_over(&mut self, bytes: &[u8]) -> bool {
        let Some(status) = canned(bytes) else {
            return false;
        };
        self.answer = answer(status);
        self.written = 0;
        true
    }
}

/// The status of an answer that the HTTP library gives by itself: a head alone, without the `X-Request-Id` that each of ours has.
fn canned(bytes: &[u8]) -> Option<StatusCode> {
    const LONGEST: usize = 256;
    let status = bytes.strip_prefix(b"HTTP/1.1 4")?.first_chunk::<2>()?;
    let status = match status {
        b"00" => StatusCode::BAD_REQUEST,
        b"14" => StatusCode::URI_TOO_LONG,
        b"31" => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        _ => return None,
    };
    let text = std::str::from_utf8(bytes).ok()?;
    let alone = text.len() <= LONGEST && text.find("\r\n\r\n") == Some(text.len() - 4);
    let ours = text.to_ascii_lowercase().contains(X_REQUEST_ID.as_str());
    (alone && !ours).then_some(status)
}

/// A whole response about what was no request.
fn answer(status: StatusCode) -> Vec<u8> {
    let id = RequestId::of(&HeaderMap::new());
    tracing::info!(
        target: ACCESS,
        request_id = id.as_str(),
        status = status.as_u16(),
        "refused: what came is no HTTP request within bounds"
    );
    let (mut head, body) = Failure::Unreadable(status).into_parts();
    let headers = &mut head.headers;
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    if let Ok(date) = HeaderValue::from_str(&httpdate::fmt_http_date(SystemTime::now())) {
        headers.insert(DATE, date);
    }
    headers.insert(X_REQUEST_ID, id.0);
    let reason = status.canonical_reason().unwrap_or_default();
    let mut out = format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).into_bytes();
    for (name, value) in headers.iter() {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(&body);
    out
}

impl<S: AsyncRead + Unpin> AsyncRead for Wire<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_answer(cx))?;
        if self.take_over(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        let result = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.progress(cx, result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_answer(cx))?;
        if let [only] = slices
            && self.take_over(only)
        {
            return Poll::Ready(Ok(only.len()));
        }
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.progress(cx, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_answer(cx))?;
        let result = Pin::new(&mut self.stream).poll_flush(cx);
        self.progress(cx, result)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_answer(cx))?;
        let result = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.progress(cx, result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_librarys_own_answers_are_taken_over() {
        let own = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(
            canned(own),
            Some(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)
        );
        for other in [
            &b"HTTP/1.1 400 Bad Request\r\nx-request-id: a\r\ncontent-length: 0\r\n\r\n"[..],
            b"HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n{}",
            b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
            b"HTTP/1.1 400 Bad Requ",
            b"{\"name\":\"HTTP/1.1 400 Bad Request\"}",
            b"",
        ] {
            assert_eq!(canned(other), None);
        }
        let answer = String::from_utf8(answer(StatusCode::BAD_REQUEST)).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("\r\ncontent-length: {}\r\n", body.len())));
        assert!(body.contains("\"code\":\"INVALID_REQUEST\""), "{body}");
        // Never taken for the library's, whatever it is passed through.
        assert_eq!(canned(head.as_bytes()), None);
    }
}
