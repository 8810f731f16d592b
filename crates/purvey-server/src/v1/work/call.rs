//! One call: who makes it, what it brings, how it is answered.

use super::{BODY_BYTES, Work, query::Query};
use crate::{
    Response, body,
    request_id::RequestId,
    v1::{
        auth, id_of,
        problem::{Failure, Fault},
        record::expect_media,
    },
};
use axum::{
    body::Body,
    extract::{FromRequestParts, Path, Request},
};
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION},
    request::Parts,
};
use purvey_odp::{
    decode::{self, Bounds, DecodeError},
    media,
};
use purvey_work::Principal;
use serde::Serialize;
use serde_json::Value;
use std::convert::Infallible;

/// Containers in a body, at most.
const DEPTH: usize = 64;
const JSON: &str = "application/json";
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// A call by somebody known.
pub(super) struct Call {
    pub(super) principal: Principal,
    pub(super) headers: HeaderMap,
    pub(super) query: Query,
    body: Option<Body>,
    work: Work,
}

/// What is answered to a call that came about.
pub(super) struct Answer {
    status: StatusCode,
    body: Option<Vec<u8>>,
    location: Option<String>,
    replayed: bool,
    media: &'static str,
}

/// The parts of a path that name something. What is not UTF-8 names nothing that there is.
pub(super) struct Names<const N: usize>(pub(super) [String; N]);

impl<const N: usize, S: Sync> FromRequestParts<S> for Names<N> {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let path = Path::<Vec<(String, String)>>::from_request_parts(parts, &()).await;
        let mut names = path
            .map(|Path(names)| names)
            .unwrap_or_default()
            .into_iter();
        Ok(Self(std::array::from_fn(|_| {
            names.next().map(|(_, value)| value).unwrap_or_default()
        })))
    }
}

/// Judges who calls, and answers whatever comes of the work.
pub(super) async fn answer<F, T>(work: Work, request: Request, act: F) -> Response
where
    F: AsyncFnOnce(Call) -> Result<T, Failure>,
    T: Into<Answer>,
{
    let id = id_of(&request);
    match handle(work, request, act).await {
        Ok(answer) => answer.response(),
        Err(failure) => failure.response(&id),
    }
}

/// The caller of a request, and the request id that its answer carries.
pub(super) async fn open(work: Work, request: Request) -> Result<(Call, RequestId), Response> {
    let id = id_of(&request);
    match call(work, request).await {
        Ok(call) => Ok((call, id)),
        Err(failure) => Err(failure.response(&id)),
    }
}

async fn handle<F, T>(work: Work, request: Request, act: F) -> Result<Answer, Failure>
where
    F: AsyncFnOnce(Call) -> Result<T, Failure>,
    T: Into<Answer>,
{
    act(call(work, request).await?).await.map(Into::into)
}

async fn call(work: Work, request: Request) -> Result<Call, Failure> {
    let platform = Some(&work.platform);
    let principal = auth::principal(work.operator(), platform, request.headers()).await?;
    let (parts, body) = request.into_parts();
    Ok(Call {
        principal,
        query: Query::new(parts.uri.query()),
        headers: parts.headers,
        body: Some(body),
        work,
    })
}

impl Call {
    /// The JSON body.
    pub(super) async fn json(&mut self) -> Result<Value, Failure> {
        json(
            &self.work,
            &self.headers,
            self.body.take().unwrap_or_default(),
        )
        .await
    }

    /// The header field `name`, which may be there once.
    pub(super) fn header(&self, name: &'static str) -> Result<Option<String>, Failure> {
        header(&self.headers, name)
    }

    pub(super) fn work(&self) -> &Work {
        &self.work
    }
}

/// A JSON body: its media type first, then its size, then its form.
pub(super) async fn json(work: &Work, headers: &HeaderMap, body: Body) -> Result<Value, Failure> {
    expect_media(headers, JSON).map_err(|failure| Failure {
        detail: "Send the body as application/json, without a content coding.".into(),
        ..failure
    })?;
    let bytes = body::read(headers, body, BODY_BYTES, work.config.body_timeout).await?;
    let bounds = Bounds {
        bytes: BODY_BYTES,
        depth: DEPTH,
    };
    decode::decode(&bytes, bounds).map_err(|error| {
        Failure::invalid(match error {
            DecodeError::DuplicateKeys { pointers } => pointers
                .into_iter()
                .map(|pointer| Fault::body(pointer, "Must occur once."))
                .collect(),
            error => vec![Fault::body("", error.to_string())],
        })
    })
}

/// The header field `name`, which may be there once.
pub(super) fn header(headers: &HeaderMap, name: &'static str) -> Result<Option<String>, Failure> {
    let mut sent = headers.get_all(name).iter();
    let fault = |reason| Failure::invalid(vec![Fault::header(name, reason)]);
    match (sent.next(), sent.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => match value.to_str() {
            Ok(text) => Ok(Some(text.to_owned())),
            Err(_) => Err(fault("Must be visible ASCII characters.")),
        },
        _ => Err(fault("Must be there once.")),
    }
}

impl Answer {
    /// 200 with a JSON body.
    pub(super) fn ok(value: &impl Serialize) -> Self {
        Self::json(StatusCode::OK, value)
    }

    /// 201 with a JSON body and where the new thing is.
    pub(super) fn created(value: &impl Serialize, location: String) -> Self {
        Self {
            location: Some(location),
            ..Self::json(StatusCode::CREATED, value)
        }
    }

    /// 202, or 200 for a replay, with a JSON body and where the run is.
    pub(super) fn started(
        value: &impl Serialize,
        run: impl std::fmt::Display,
        replayed: bool,
    ) -> Self {
        let status = if replayed {
            StatusCode::OK
        } else {
            StatusCode::ACCEPTED
        };
        Self {
            location: Some(format!("/v1/runs/{run}")),
            replayed,
            ..Self::json(status, value)
        }
    }

    /// 201, or 200 for a replay, with a JSON body and where the artifact is.
    pub(super) fn uploaded(value: &impl Serialize, location: String, replayed: bool) -> Self {
        let status = if replayed {
            StatusCode::OK
        } else {
            StatusCode::CREATED
        };
        Self {
            location: Some(location),
            replayed,
            ..Self::json(status, value)
        }
    }

    /// 200 with a JSON Schema.
    pub(super) fn schema(value: &impl Serialize) -> Self {
        Self {
            media: media::SCHEMA,
            ..Self::ok(value)
        }
    }

    /// 204.
    pub(super) fn nothing() -> Self {
        Self {
            status: StatusCode::NO_CONTENT,
            body: None,
            location: None,
            replayed: false,
            media: JSON,
        }
    }

    fn json(status: StatusCode, value: &impl Serialize) -> Self {
        Self {
            status,
            body: Some(serde_json::to_vec(value).unwrap_or_default()),
            location: None,
            replayed: false,
            media: JSON,
        }
    }

    pub(super) fn response(self) -> Response {
        let has_body = self.body.is_some();
        let mut response = http::Response::new(Body::from(self.body.unwrap_or_default()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if has_body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.media));
        }
        if let Some(location) = self
            .location
            .and_then(|place| HeaderValue::try_from(place).ok())
        {
            headers.insert(LOCATION, location);
        }
        if self.replayed {
            headers.insert(REPLAYED, HeaderValue::from_static("true"));
        }
        response
    }
}
