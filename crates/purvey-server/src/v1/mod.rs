//! `/v1`: the operator's catalog writes, and the Work API.

mod auth;
mod condition;
mod lines;
pub(crate) mod problem;
mod record;
mod stream;
mod work;

use crate::{
    Response, ServerConfig, Surfaces, body::BodyError, front::Refusal, request_id::RequestId,
};
use axum::{
    Router,
    extract::{Path, Request, rejection::PathRejection},
    routing::{get, post},
};
use problem::{Code, Failure};
use purvey_catalog::catalog::Catalog;
use purvey_work::Platform;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Whether failures under this path have the form of `/v1`.
pub(crate) fn owns(path: &str) -> bool {
    path.strip_prefix("/v1")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// What every handler works with.
#[derive(Clone)]
struct Context {
    catalog: Catalog,
    work: Option<Platform>,
    config: Arc<ServerConfig>,
}

/// All of `/v1`; once `closing` is cancelled nothing waits for news any more.
pub(crate) fn router(
    surfaces: Surfaces,
    config: Arc<ServerConfig>,
    closing: CancellationToken,
) -> Router {
    let Surfaces { catalog, work } = surfaces;
    let api = work
        .clone()
        .map(|platform| work::router(work::Work::new(platform, Arc::clone(&config), closing)));
    let record = get(record::read).put(record::put).delete(record::delete);
    Router::new()
        .route("/v1/catalog/{kind}/{id}", record)
        .route("/v1/catalog/records", post(stream::records))
        .route("/v1/problems/{code}", get(page))
        .route("/v1", axum::routing::any(nothing_here))
        .route("/v1/", axum::routing::any(nothing_here))
        .route("/v1/{*rest}", axum::routing::any(nothing_here))
        .merge(api.unwrap_or_default())
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(Context {
            catalog,
            work,
            config,
        })
}

async fn nothing_here(request: Request) -> Response {
    Failure::new(Code::NotFound).response(&id_of(&request))
}

async fn method_not_allowed(request: Request) -> Response {
    Failure::new(Code::MethodNotAllowed).response(&id_of(&request))
}

/// The page that a problem's `type` leads to.
async fn page(code: Result<Path<String>, PathRejection>, request: Request) -> Response {
    match code.ok().and_then(|Path(code)| Code::from_text(&code)) {
        Some(code) => code.page(),
        None => Failure::new(Code::NotFound).response(&id_of(&request)),
    }
}

fn id_of(request: &Request) -> RequestId {
    request
        .extensions()
        .get()
        .cloned()
        .unwrap_or_else(|| RequestId::of(request.headers()))
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Full { retry_after } => {
                Self::new(Code::ServerUnavailable).retry_after(retry_after)
            }
            Refusal::TooFast {
                retry_after,
                per_second,
            } => Self::new(Code::RateLimited)
                .retry_after(retry_after)
                .limit(per_second),
            Refusal::Panicked => Self::new(Code::ServerError),
            Refusal::Unaddressed => Self::new(Code::RequestUnaddressed),
            Refusal::HeadTooLarge => Self::new(Code::RequestHeadTooLarge),
        }
    }
}

impl From<BodyError> for Failure {
    fn from(error: BodyError) -> Self {
        Self::new(match error {
            BodyError::TooLarge => Code::RequestTooLarge,
            BodyError::TimedOut => Code::RequestTimeout,
            BodyError::Broken => Code::RequestBroken,
        })
    }
}
