//! The one table of failures under the ODP paths (ODP §6).

use super::respond;
use crate::{Response, body::BodyError};
use axum::body::Body;
use http::{
    HeaderValue, Method, StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
};
use purvey_catalog::Error;
use purvey_odp::{
    limits, media,
    problem::{Code, InvalidParam, Problem},
};

/// Everything that can go wrong under the ODP paths.
#[derive(Debug)]
pub(crate) enum Failure {
    InvalidRequest(Vec<InvalidParam>),
    NotFound,
    /// Something was presented that lets nobody in, or nothing where something has to be.
    NotAuthenticated {
        /// Whether it was a bearer token.
        invalid_token: bool,
        /// Whether Agents can enroll.
        enrollment: bool,
    },
    MethodNotAllowed {
        /// The methods that the resource answers to.
        allow: HeaderValue,
    },
    /// The body's media type or coding, and what to send.
    UnsupportedMedia(String),
    RequestTooLarge,
    RequestTimeout,
    /// The body ended before it was complete.
    RequestBroken,
    NotAcceptable(&'static str),
    ContinuationExpired,
    RateLimited {
        retry_after: u64,
    },
    Unavailable {
        retry_after: u64,
    },
    Internal,
    /// The catalog failed; whoever answers logs why.
    Broken(Box<Error>),
    /// What came was no request at all; the HTTP library's status says why.
    Unreadable(StatusCode),
}

impl Failure {
    /// The table: what each failure says.
    fn problem(&self) -> Problem {
        match self {
            Self::InvalidRequest(params) => Problem::invalid_request(params.clone()),
            Self::NotFound => Problem::not_found(),
            Self::NotAuthenticated {
                invalid_token: true,
                ..
            } => Problem::not_authenticated()
                .with_detail("The token is unknown, revoked or expired; without one, what is public can be read."),
            Self::NotAuthenticated { .. } => Problem::not_authenticated()
                .with_detail("Present a token of this Service as Authorization: Bearer, and nothing else."),
            Self::UnsupportedMedia(detail) => Problem::unsupported_media_type().with_detail(detail),
            Self::RequestTooLarge => Problem::request_too_large().with_detail(&format!(
                "The body must have at most {} bytes.",
                limits::REQUEST_BYTES
            )),
            Self::RequestTimeout => other(
                "REQUEST_TIMEOUT",
                StatusCode::REQUEST_TIMEOUT,
                "Request took too long",
            )
            .with_detail("The body did not arrive in time."),
            Self::RequestBroken => Problem::invalid_request(Vec::new())
                .with_detail("The body ended before it was complete; send it again."),
            Self::MethodNotAllowed { .. } => other(
                "METHOD_NOT_ALLOWED",
                StatusCode::METHOD_NOT_ALLOWED,
                "Method not allowed",
            )
            .with_detail("The resource does not answer to this method; Allow lists those that it does."),
            Self::NotAcceptable(media) => Problem::not_acceptable().with_detail(&format!(
                "The representation is {media}, which Accept excludes."
            )),
            Self::ContinuationExpired => Problem::continuation_expired()
                .with_detail("This continuation is over; start the operation again."),
            Self::RateLimited { .. } => Problem::rate_limited().with_detail(
                "Too many requests from this address; wait as long as Retry-After says.",
            ),
            Self::Unavailable { .. } => Problem::service_unavailable()
                .with_detail("The Service is busy; wait as long as Retry-After says."),
            Self::Internal | Self::Broken(_) => other(
                "INTERNAL_ERROR",
                StatusCode::INTERNAL_SERVER_ERROR,
                "Internal error",
            )
            .with_detail("The Service failed; its log has the cause under the X-Request-Id."),
            Self::Unreadable(StatusCode::URI_TOO_LONG) => {
                other("URI_TOO_LONG", StatusCode::URI_TOO_LONG, "URI too long")
                    .with_detail("The request's target is longer than the Service reads.")
            }
            Self::Unreadable(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE) => other(
                "REQUEST_HEADER_TOO_LARGE",
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "Request header too large",
            )
            .with_detail("The request's header has more fields or bytes than the Service reads."),
            Self::Unreadable(_) => Problem::invalid_request(Vec::new())
                .with_detail("The bytes are not an HTTP request."),
        }
    }

    /// The response that says it.
    pub(crate) fn response(self, method: &Method) -> Response {
        let (head, body) = self.into_parts();
        let body = if *method == Method::HEAD {
            Body::empty()
        } else {
            Body::from(body)
        };
        http::Response::from_parts(head, body)
    }

    /// Its head and body.
    pub(crate) fn into_parts(self) -> (http::response::Parts, Vec<u8>) {
        let problem = self.problem();
        let body = problem.to_body();
        let mut response = http::Response::new(body);
        *response.status_mut() =
            StatusCode::from_u16(problem.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let length = response.body().len();
        let headers = response.headers_mut();
        headers.reserve(12);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media::PROBLEM));
        headers.insert(CONTENT_LENGTH, length.into());
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        match self {
            Self::RateLimited { retry_after } | Self::Unavailable { retry_after } => {
                headers.insert(RETRY_AFTER, retry_after.into());
            }
            Self::NotAuthenticated {
                invalid_token,
                enrollment,
            } => {
                let challenge = match invalid_token {
                    true => "Bearer error=\"invalid_token\"",
                    false => "Bearer",
                };
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
                if enrollment {
                    headers.append(WWW_AUTHENTICATE, HeaderValue::from_static("AEP"));
                }
            }
            Self::MethodNotAllowed { allow } => {
                headers.insert(ALLOW, allow);
            }
            _ => {}
        }
        respond::share(headers);
        response.into_parts()
    }
}

/// A problem with a code that ODP has not; tests hold every such code to the rules of codes.
fn other(code: &str, status: StatusCode, title: &'static str) -> Problem {
    Code::parse(code).map_or_else(
        |_| Problem::service_unavailable(),
        |code| Problem::other(code, status.as_u16(), title),
    )
}

impl From<BodyError> for Failure {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge => Self::RequestTooLarge,
            BodyError::TimedOut => Self::RequestTimeout,
            BodyError::Broken => Self::RequestBroken,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid(invalid) => {
                let violations = invalid.violations().iter();
                Self::InvalidRequest(violations.map(InvalidParam::from).collect())
            }
            Error::NotFound => Self::NotFound,
            Error::CursorInvalid => Self::InvalidRequest(vec![InvalidParam::query(
                "cursor",
                "Must be one that this operation issued.",
            )]),
            Error::CursorExpired => Self::ContinuationExpired,
            Error::Busy {
                retry_after_seconds,
            } => Self::Unavailable {
                retry_after: retry_after_seconds,
            },
            error => Self::Broken(Box::new(error)),
        }
    }
}
