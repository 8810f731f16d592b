//! What belongs to no protocol: health, the start page, and paths where nothing is.

use crate::{
    Response,
    odp::{ALLOW_READ, problem::Failure},
};
use axum::{Router, body::Body, extract::State, response::IntoResponse, routing::get};
use http::{
    HeaderValue, Method, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE},
};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// `/`, `/livez` and `/readyz`.
pub(crate) fn router(ready: Arc<AtomicBool>) -> Router {
    Router::new()
        .route("/", get(start))
        .route("/livez", get(async || health(true, "live")))
        .route("/readyz", get(readiness))
        .method_not_allowed_fallback(read_only)
        .with_state(ready)
}

/// Any path that nobody owns.
pub(crate) async fn nothing_here(method: Method) -> Response {
    Failure::NotFound.response(&method)
}

async fn read_only(method: Method) -> Response {
    Failure::MethodNotAllowed { allow: ALLOW_READ }.response(&method)
}

async fn readiness(State(ready): State<Arc<AtomicBool>>) -> Response {
    if ready.load(Ordering::Relaxed) {
        health(true, "ready")
    } else {
        health(false, "stopping")
    }
}

fn health(ok: bool, text: &'static str) -> Response {
    let status = if ok {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let mut response = http::Response::new(Body::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

async fn start() -> Response {
    axum::response::Html(concat!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Purvey</title>",
        "<h1>An ODP Service</h1><p>Software reads this catalog through the Offering Discovery Protocol; ",
        "it starts at <a href=\"/.well-known/odp\">/.well-known/odp</a>.</p></html>\n"
    ))
    .into_response()
}
