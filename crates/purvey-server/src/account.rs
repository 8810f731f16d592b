//! What ends with a response's last byte and not with its head: the request's place in flight, its line in the log, and the
//! watch for a reader that stops reading.

use crate::request_id::RequestId;
use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http::{Method, request::Parts, uri::PathAndQuery};
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use std::{
    collections::HashMap,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, Instant},
};

/// The log's target for one line a request, so that a filter can name it.
pub(crate) const ACCESS: &str = "purvey_server::access";
/// Under HTTP/2 a body is handed over in pieces of this many bytes, each once the reader has room: what waits stays counted.
const PIECE: usize = 64 * 1_024;

/// One request, from its head to the last byte of its response.
pub(crate) struct Account {
    id: RequestId,
    method: Method,
    target: Option<PathAndQuery>,
    start: Instant,
    status: Option<u16>,
    bytes: u64,
    /// Its place in flight.
    _place: Option<Box<dyn Send + Sync>>,
}

impl Account {
    /// Begins for the request with this head.
    pub(crate) fn open(id: &RequestId, parts: &Parts) -> Self {
        Self {
            id: id.clone(),
            method: parts.method.clone(),
            target: parts.uri.path_and_query().cloned(),
            start: Instant::now(),
            status: None,
            bytes: 0,
            _place: None,
        }
    }

    /// Holds `place` until the end.
    pub(crate) fn hold(&mut self, place: impl Send + Sync + 'static) {
        self._place = Some(Box::new(place));
    }

    /// The same response, accounted for; `stalls` watches its reader when the HTTP version needs that.
    pub(crate) fn follow(
        mut self,
        response: http::Response<Body>,
        stalls: Option<Arc<Stalls>>,
    ) -> http::Response<Accounted> {
        self.status = Some(response.status().as_u16());
        response.map(|body| Accounted {
            rest: Bytes::new(),
            watch: stalls.map(Watch::new),
            body,
            account: self,
        })
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let milliseconds = self.start.elapsed().as_micros() as f64 / 1_000.0;
        let request_id = self.id.as_str();
        let method = self.method.as_str();
        let path = self.target.as_ref().map_or("", |target| target.path());
        // Outside of any span: what one says is in the line already.
        match self.status {
            Some(status @ 500..) => tracing::warn!(
                target: ACCESS, parent: None::<tracing::span::Id>, request_id, method, path, status, bytes = self.bytes, milliseconds, "answered"
            ),
            Some(status) => tracing::info!(
                target: ACCESS, parent: None::<tracing::span::Id>, request_id, method, path, status, bytes = self.bytes, milliseconds, "answered"
            ),
            None => tracing::info!(
                target: ACCESS, parent: None::<tracing::span::Id>, request_id, method, path, milliseconds, "the caller went away before the answer"
            ),
        }
    }
}

/// A response body with its account.
pub(crate) struct Accounted {
    body: Body,
    /// What of a frame was not handed over yet.
    rest: Bytes,
    watch: Option<Watch>,
    account: Account,
}

impl Accounted {
    /// The next piece of at most [`PIECE`] bytes of what is in `rest`.
    fn piece(&mut self) -> Frame<Bytes> {
        let piece = if self.watch.is_some() && self.rest.len() > PIECE {
            self.rest.split_to(PIECE)
        } else {
            std::mem::take(&mut self.rest)
        };
        self.account.bytes += piece.len() as u64;
        Frame::data(piece)
    }
}

impl HttpBody for Accounted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if !self.rest.is_empty() {
            let piece = self.piece();
            if let Some(watch) = &self.watch {
                watch.handed_over();
            }
            return Poll::Ready(Some(Ok(piece)));
        }
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Some(watch) = &self.watch {
            match &polled {
                Poll::Ready(Some(Ok(_))) => watch.handed_over(),
                // It is us who have nothing, or nothing more.
                _ => watch.idle(),
            }
        }
        match polled {
            Poll::Ready(Some(Ok(frame))) => Poll::Ready(Some(Ok(match frame.into_data() {
                Ok(data) => {
                    self.rest = data;
                    self.piece()
                }
                Err(frame) => frame,
            }))),
            other => other,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        let body = self.body.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower().saturating_add(rest));
        if let Some(upper) = body.upper().and_then(|upper| upper.checked_add(rest)) {
            hint.set_upper(upper);
        }
        hint
    }
}

impl axum::response::IntoResponse for Accounted {
    fn into_response(self) -> axum::response::Response {
        axum::response::Response::new(Body::new(self.map_err(axum::Error::new)))
    }
}

/// The bodies of one connection that wait for their reader, and since when.
#[derive(Default)]
pub(crate) struct Stalls {
    waiting: Mutex<HashMap<u64, Instant>>,
    next: AtomicU64,
}

impl Stalls {
    /// How long the one that waits longest has been waiting.
    pub(crate) fn longest(&self) -> Duration {
        let waiting = self.waiting();
        let since = waiting.values().min();
        since.map_or(Duration::ZERO, Instant::elapsed)
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, Instant>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One body's entry.
struct Watch {
    stalls: Arc<Stalls>,
    id: u64,
}

impl Watch {
    fn new(stalls: Arc<Stalls>) -> Self {
        let id = stalls.next.fetch_add(1, Ordering::Relaxed);
        let watch = Self { stalls, id };
        // Without room at the reader, not even the first piece is asked for.
        watch.handed_over();
        watch
    }

    /// From now it is the reader's turn.
    fn handed_over(&self) {
        self.stalls.waiting().insert(self.id, Instant::now());
    }

    /// Now it is ours.
    fn idle(&self) {
        self.stalls.waiting().remove(&self.id);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.idle();
    }
}
