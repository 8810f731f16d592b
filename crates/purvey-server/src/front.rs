//! What every request passes: request id, bounds on load, panics, log, and which surface answers.

use crate::{
    Response, ServerConfig, Surfaces,
    account::{Account, Accounted, Stalls},
    head,
    odp::{self, Odp, Target},
    rate::Limiter,
    request_id::{RequestId, X_REQUEST_ID},
    site, v1,
};
use axum::body::{Body, HttpBody};
use bytes::Bytes;
use futures_util::FutureExt;
use http::{Request, Version, request::Parts};
use std::{
    any::Any,
    convert::Infallible,
    net::{IpAddr, Ipv4Addr},
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use tracing::{Instrument, Span};

/// Seconds that a refused caller is told to wait when the server is full: it is rarely full for longer.
const FULL_RETRY_AFTER: u64 = 1;

/// The service behind every socket.
#[derive(Clone)]
pub(crate) struct Front {
    shared: Arc<Shared>,
    /// Whose connection; without one, requests are made in this process.
    peer: Option<IpAddr>,
    /// Of this connection.
    stalls: Arc<Stalls>,
}

struct Shared {
    config: Arc<ServerConfig>,
    odp: Odp,
    ready: Arc<AtomicBool>,
    closing: CancellationToken,
    in_flight: AtomicUsize,
    limiter: Option<Limiter>,
    other: axum::Router,
}

/// Why the front itself refuses or fails a request; each surface says it in its own words.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Refusal {
    Full {
        retry_after: u64,
    },
    TooFast {
        retry_after: u64,
        per_second: u32,
    },
    Panicked,
    /// It names no host, several, or one that is none.
    Unaddressed,
    HeadTooLarge,
}

impl Front {
    pub(crate) fn new(config: ServerConfig, surfaces: Surfaces) -> Self {
        let config = Arc::new(config);
        let ready = Arc::new(AtomicBool::new(true));
        let closing = CancellationToken::new();
        let other = site::router(Arc::clone(&ready))
            .merge(v1::router(
                surfaces.clone(),
                Arc::clone(&config),
                closing.clone(),
            ))
            .fallback(site::nothing_here);
        Self {
            shared: Arc::new(Shared {
                limiter: Limiter::new(&config),
                in_flight: AtomicUsize::new(0),
                odp: Odp::new(surfaces, Arc::clone(&config)),
                config,
                ready,
                closing,
                other,
            }),
            peer: None,
            stalls: Arc::default(),
        }
    }

    /// The same service for a connection from this address.
    pub(crate) fn for_peer(&self, peer: IpAddr) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            peer: Some(peer),
            stalls: Arc::default(),
        }
    }

    /// The responses of this connection whose reader does not read.
    pub(crate) fn stalls(&self) -> Arc<Stalls> {
        Arc::clone(&self.stalls)
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.shared.config)
    }

    /// What `/readyz` says from now on.
    pub(crate) fn set_ready(&self, ready: bool) {
        self.shared.ready.store(ready, Ordering::Relaxed);
    }

    /// From now on no answer waits for news.
    pub(crate) fn close(&self) {
        self.shared.closing.cancel();
    }

    /// Housekeeping, every minute or so.
    pub(crate) fn tidy(&self) {
        if let Some(limiter) = &self.shared.limiter {
            limiter.tidy();
        }
    }

    /// Answers one request, whatever happens. Its place in flight is free again when the response's body has ended.
    pub(crate) async fn answer<B>(&self, request: Request<B>) -> http::Response<Accounted>
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        let (parts, body) = request.into_parts();
        let id = RequestId::of(&parts.headers);
        let mut account = Account::open(&id, &parts);
        // Under HTTP/1 a stalled reader shows on the socket.
        let stalls = (parts.version == Version::HTTP_2).then(|| self.stalls());
        let mut response = match self.admit(&parts) {
            Err(refusal) => self.refuse(refusal, &parts, &id),
            Ok(held) => {
                if let Some(held) = held {
                    account.hold(held);
                }
                // Only what a refusal needs; a panic is rare, so the request's head is not copied for it.
                let surface = Surface::of(parts.uri.path());
                let method = parts.method.clone();
                let work = AssertUnwindSafe(self.dispatch(parts, body, &id));
                work.catch_unwind().await.unwrap_or_else(|panic| {
                    let request_id = id.as_str();
                    tracing::error!(request_id, panic = message(&*panic), "a request panicked");
                    surface.refuse(Refusal::Panicked, &method, &id)
                })
            }
        };
        response.headers_mut().insert(X_REQUEST_ID, id.0);
        account.follow(response, stalls)
    }

    async fn dispatch<B>(&self, parts: Parts, body: B, id: &RequestId) -> Response
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        let odp = &self.shared.odp;
        // Boxed is what reads do not need: every request would move it otherwise.
        if let Some(target) = odp.target(parts.uri.path()) {
            let work = odp.answer(&parts, &target, id, || Body::new(body));
            return match target {
                Target::Search(_) => Box::pin(work.instrument(span(&parts, id))).await,
                // A span would cost a tenth of a read, which itself logs nothing but its failure.
                _ => work.await,
            };
        }
        let span = span(&parts, id);
        let mut request = Request::from_parts(parts, Body::new(body));
        request.extensions_mut().insert(id.clone());
        let work = self.shared.other.clone().oneshot(request);
        match Box::pin(work.instrument(span)).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    fn admit(&self, parts: &Parts) -> Result<Option<Held>, Refusal> {
        if self.peer.is_some() {
            head::check(parts)?;
        }
        let path = parts.uri.path();
        // Whoever watches the server must get through when it is busiest.
        if path == "/livez" || path == "/readyz" {
            return Ok(None);
        }
        let shared = &*self.shared;
        if let Some(limiter) = &shared.limiter {
            limiter
                .take(self.peer.unwrap_or(Ipv4Addr::UNSPECIFIED.into()))
                .map_err(|retry_after| Refusal::TooFast {
                    retry_after,
                    per_second: shared.config.rate_per_second.map_or(0, Into::into),
                })?;
        }
        let held = Held(Arc::clone(&self.shared));
        if shared.in_flight.fetch_add(1, Ordering::Relaxed) >= shared.config.max_in_flight.max(1) {
            return Err(Refusal::Full {
                retry_after: FULL_RETRY_AFTER,
            });
        }
        Ok(Some(held))
    }

    fn refuse(&self, refusal: Refusal, parts: &Parts, id: &RequestId) -> Response {
        Surface::of(parts.uri.path()).refuse(refusal, &parts.method, id)
    }
}

/// Names the request in what is logged while it is answered. At the level of errors, so that every line that gets through the filter has it.
fn span(parts: &Parts, id: &RequestId) -> Span {
    tracing::error_span!(
        "request",
        request_id = id.as_str(),
        method = parts.method.as_str(),
        path = parts.uri.path(),
    )
}

/// Which table of failures a path belongs to.
#[derive(Clone, Copy)]
enum Surface {
    Odp,
    V1,
}

impl Surface {
    fn of(path: &str) -> Self {
        if v1::owns(path) { Self::V1 } else { Self::Odp }
    }

    fn refuse(self, refusal: Refusal, method: &http::Method, id: &RequestId) -> Response {
        match self {
            Self::Odp => odp::problem::Failure::from(refusal).response(method),
            Self::V1 => v1::problem::Failure::from(refusal).response(id),
        }
    }
}

/// One request in flight.
struct Held(Arc<Shared>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a panic said.
fn message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}

impl tower::Service<Request<Body>> for Front {
    type Response = http::Response<Accounted>;
    type Error = Infallible;
    type Future =
        Pin<Box<dyn Future<Output = Result<http::Response<Accounted>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let front = self.clone();
        Box::pin(async move { Ok(front.answer(request).await) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::{body::to_bytes, routing::any};
    use purvey_catalog::catalog::{Catalog, Options};

    #[tokio::test]
    async fn a_panic_becomes_a_problem_and_frees_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let catalog = Catalog::open(directory.path(), Options::default()).unwrap();
        let config = ServerConfig {
            max_in_flight: 1,
            ..ServerConfig::default()
        };
        let mut front = Front::new(config, catalog.into());
        let panics = any(async || -> &'static str { panic!("a secret of the inside") });
        Arc::get_mut(&mut front.shared).unwrap().other = axum::Router::new()
            .route("/v1/panics", panics.clone())
            .route("/panics", panics);
        for (path, code) in [
            ("/v1/panics", "server.error"),
            ("/panics", "INTERNAL_ERROR"),
            ("/v1/panics", "server.error"),
        ] {
            let request = Request::get(path).body(Body::empty()).unwrap();
            let response = front.answer(request).await;
            assert_eq!(response.status(), 500);
            assert!(response.headers().contains_key(X_REQUEST_ID));
            let body = to_bytes(Body::new(response.into_body()), 4_096)
                .await
                .unwrap();
            let body = String::from_utf8(body.to_vec()).unwrap();
            assert!(body.contains(&format!("\"code\":\"{code}\"")), "{body}");
            assert!(!body.contains("secret"), "{body}");
        }
    }
}
