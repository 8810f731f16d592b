//! One operation: attempts, waits, and when to stop (Work §8).

use crate::{
    download::Sink,
    error::{Error, Problem},
    redacted::Redacted,
    time::Time,
    upload::Source,
};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use http::{HeaderMap, HeaderValue, Method, header::RETRY_AFTER};
use purvey_retry::{Backoff, Budget, Decision, Failure, Policy, Rule};
use serde::Deserialize;
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tracing::Instrument;

/// Longest answer that is read, in bytes.
const ANSWER_BYTES: usize = 64 * 1_024 * 1_024;
/// Longest problem document that is read, in bytes.
const PROBLEM_BYTES: usize = 1_024 * 1_024;

/// Whether a request may be sent again when nobody knows what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It reads, or carries an idempotency key.
    Safe,
    /// It changes state without a key.
    Unsafe,
}

/// A request that can be made any number of times.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
    pub(crate) repeat: Repeat,
    /// Longest wait for an answer to one attempt; where bytes of files go along, for the next of them.
    pub(crate) patience: Duration,
    /// What the call may take beyond the client's deadline.
    pub(crate) more_time: Duration,
    /// Where the bytes of a successful answer go.
    pub(crate) sink: Option<Arc<Sink>>,
}

/// What is sent.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    None,
    Bytes(Bytes),
    /// A file, from its start in each attempt.
    File(Arc<Source>),
}

/// What every call goes through.
pub(crate) struct Caller {
    pub(crate) http: reqwest::Client,
    pub(crate) origin: url::Url,
    pub(crate) token: Option<Redacted<HeaderValue>>,
    pub(crate) attempts: u32,
    pub(crate) deadline: Duration,
    pub(crate) time: Arc<dyn Time>,
}

/// A successful answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

pub(crate) enum Failed {
    Status(Box<Problem>, Option<String>),
    /// Nothing was sent.
    Unsent(String),
    /// Sent, but no whole answer came.
    Lost(String),
    /// What this side reads or writes cannot be used.
    Local(Box<Error>),
}

impl Call {
    /// The path without its query: what a log may show.
    pub(crate) fn endpoint(&self) -> String {
        let path = self.path.split('?').next().unwrap_or_default();
        format!("{} {path}", self.method)
    }
}

impl Caller {
    /// Makes the call until it succeeds or no attempt helps any more.
    pub(crate) async fn call(&self, call: &Call) -> Result<Answer, Error> {
        let deadline = self.deadline + call.more_time;
        let policy = Policy {
            retries: self.attempts.saturating_sub(1),
            waiting: deadline,
            backoff: Backoff {
                base: Duration::from_millis(500),
                cap: Duration::from_secs(20),
            },
            rule: match call.repeat {
                Repeat::Safe => |failure| match failure {
                    Failure::Status(429) => Rule::WhenTold,
                    Failure::Status(500..=599) | Failure::Connection => Rule::Backoff,
                    _ => Rule::Never,
                },
                // A 503 with Retry-After and a 429 say that nothing was done.
                Repeat::Unsafe => |failure| match failure {
                    Failure::Status(429 | 503) => Rule::WhenTold,
                    Failure::Connection => Rule::Backoff,
                    _ => Rule::Never,
                },
            },
        };
        let start = self.time.now();
        let mut budget = Budget::new().with_deadline(start + deadline);
        for attempt in 1.. {
            let span = tracing::info_span!(
                "attempt",
                endpoint = call.endpoint(),
                attempt,
                status = tracing::field::Empty,
                request_id = tracing::field::Empty,
                detail = tracing::field::Empty,
            );
            let failed = match self.attempt(call, attempt).instrument(span.clone()).await {
                Err(Failed::Local(error)) => return Err(*error),
                Ok(answer) => {
                    span.record("status", answer.status);
                    if let Some(id) = text(&answer.headers, "x-request-id") {
                        span.record("request_id", id);
                    }
                    span.in_scope(|| tracing::debug!("answered"));
                    return Ok(answer);
                }
                Err(failed) => failed,
            };
            let (failure, told) = match &failed {
                Failed::Status(problem, told) => {
                    span.record("status", problem.status);
                    span.record("request_id", problem.request_id.as_deref());
                    span.record("detail", &problem.code);
                    (Failure::Status(problem.status), told.as_deref())
                }
                Failed::Unsent(detail) | Failed::Lost(detail) => {
                    span.record("detail", detail);
                    (Failure::Connection, None)
                }
                Failed::Local(_) => (Failure::Connection, None),
            };
            let ambiguous = matches!(failed, Failed::Lost(_)) && call.repeat == Repeat::Unsafe;
            let decision =
                policy.decide(failure, told, &budget, self.time.chance(), self.time.now());
            match decision {
                Decision::Wait(wait) if !ambiguous => {
                    span.in_scope(|| {
                        tracing::warn!(wait_ms = wait.as_millis() as u64, "trying again");
                    });
                    budget.spend(wait);
                    self.time.sleep(wait).await;
                }
                _ => {
                    span.in_scope(|| tracing::debug!("giving up"));
                    return Err(match failed {
                        Failed::Local(error) => *error,
                        Failed::Status(problem, _) => Error::Problem(problem),
                        Failed::Unsent(detail) | Failed::Lost(detail) => Error::Connection {
                            endpoint: call.endpoint(),
                            detail,
                            ambiguous,
                            attempts: attempt,
                        },
                    });
                }
            }
        }
        // The policy ends the loop long before the count does.
        Err(Error::Usage("too many attempts".into()))
    }

    async fn attempt(&self, call: &Call, attempt: u32) -> Result<Answer, Failed> {
        let response = self.send(call).await?;
        let status = response.status();
        let headers = response.headers().clone();
        if let Some(sink) = call.sink.as_ref().filter(|_| status.is_success()) {
            sink.take(call, response).await?;
            return Ok(Answer {
                status: status.as_u16(),
                headers,
                body: Bytes::new(),
            });
        }
        let limit = if status.is_success() {
            ANSWER_BYTES
        } else {
            PROBLEM_BYTES
        };
        let body = tokio::time::timeout(call.patience, whole(response, limit))
            .await
            .map_err(|_| Failed::Lost("the answer did not end in time".into()))?;
        if status.is_success() {
            let body = body.map_err(Failed::Lost)?;
            return Ok(Answer {
                status: status.as_u16(),
                headers,
                body,
            });
        }
        let told = text(&headers, RETRY_AFTER.as_str()).map(str::to_owned);
        let problem = self.problem(call, attempt, status, &headers, &body.unwrap_or_default());
        Err(Failed::Status(Box::new(problem), told))
    }

    /// One request; the answer's head.
    async fn send(&self, call: &Call) -> Result<reqwest::Response, Failed> {
        let url = self
            .origin
            .join(&call.path)
            .map_err(|error| Failed::Unsent(error.to_string()))?;
        let mut request = self
            .http
            .request(call.method.clone(), url)
            .headers(call.headers.clone());
        if let Some(token) = &self.token {
            request = request.header(http::header::AUTHORIZATION, token.expose().clone());
        }
        if let Some(sink) = &call.sink {
            for (name, value) in sink.range().await {
                request = request.header(name, value);
            }
        }
        let mut moving: Option<&Source> = None;
        match &call.body {
            Body::None => {}
            Body::Bytes(body) => request = request.body(body.clone()),
            Body::File(source) => {
                request = request.body(source.body().await.map_err(Failed::Local)?);
                moving = Some(source);
            }
        }
        let mut sent = std::pin::pin!(request.send());
        let mut before = 0;
        loop {
            match tokio::time::timeout(call.patience, &mut sent).await {
                Ok(Ok(response)) => return Ok(response),
                Ok(Err(error)) if error.is_connect() || error.is_builder() => {
                    return Err(Failed::Unsent(said(&error)));
                }
                Ok(Err(error)) => return Err(Failed::Lost(said(&error))),
                Err(_) => match moving.map(Source::sent) {
                    Some(now) if now > before => before = now,
                    _ => return Err(Failed::Lost("no answer in time".into())),
                },
            }
        }
    }

    /// The head of a stream's answer, with this client's retries before it begins.
    pub(crate) async fn open(&self, call: &Call) -> Result<reqwest::Response, Error> {
        match self.send(call).await {
            Ok(response) if response.status().is_success() => Ok(response),
            Ok(response) => {
                let (status, headers) = (response.status(), response.headers().clone());
                let body = whole(response, PROBLEM_BYTES).await.unwrap_or_default();
                Err(Error::Problem(Box::new(
                    self.problem(call, 1, status, &headers, &body),
                )))
            }
            Err(Failed::Unsent(detail) | Failed::Lost(detail)) => Err(Error::Connection {
                endpoint: call.endpoint(),
                detail,
                ambiguous: false,
                attempts: 1,
            }),
            Err(Failed::Status(problem, _)) => Err(Error::Problem(problem)),
            Err(Failed::Local(error)) => Err(*error),
        }
    }

    fn problem(
        &self,
        call: &Call,
        attempts: u32,
        status: http::StatusCode,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Problem {
        #[derive(Deserialize, Default)]
        struct Wire {
            code: Option<String>,
            title: Option<String>,
            detail: Option<String>,
            request_id: Option<String>,
            #[serde(default)]
            errors: Vec<crate::error::Fault>,
            limit_detail: Option<Value>,
        }
        let wire: Wire = serde_json::from_slice(body).unwrap_or_default();
        let reason = status.canonical_reason().unwrap_or("Failure");
        let title = wire.title.unwrap_or_else(|| reason.into());
        Problem {
            status: status.as_u16(),
            code: wire
                .code
                .unwrap_or_else(|| format!("http.{}", status.as_u16())),
            detail: wire.detail.unwrap_or_else(|| title.clone()),
            title,
            request_id: wire
                .request_id
                .or_else(|| text(headers, "x-request-id").map(str::to_owned)),
            errors: wire.errors,
            limit_detail: wire.limit_detail,
            retry_after: text(headers, RETRY_AFTER.as_str())
                .and_then(|field| purvey_retry::retry_after(field, self.time.now())),
            endpoint: call.endpoint(),
            attempts,
        }
    }
}

/// A whole body of at most `limit` bytes.
async fn whole(response: reqwest::Response, limit: usize) -> Result<Bytes, String> {
    let mut body = BytesMut::new();
    let mut pieces = response.bytes_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| said(&error))?;
        if body.len() + piece.len() > limit {
            return Err(format!("the answer is longer than {limit} bytes"));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body.freeze())
}

/// An error of the HTTP library with its causes, without the URL (a query may hold what is not for logs).
pub(crate) fn said(error: &reqwest::Error) -> String {
    let mut text = String::new();
    let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(error);
    while let Some(error) = cause {
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&error.to_string());
        cause = error.source();
    }
    if text.is_empty() {
        "the connection failed".into()
    } else {
        text
    }
}

pub(crate) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}
