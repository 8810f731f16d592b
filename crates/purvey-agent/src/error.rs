//! What went wrong, in one type.

use crate::challenge::{self, Challenge, Demand};
use http::{HeaderMap, StatusCode, header};
use purvey_odp::decode::{self, Bounds};
use purvey_odp::media;
use purvey_odp::problem::{self, InvalidParam, Problem};
use purvey_odp::report::Invalid;
use std::fmt;
use std::time::{Duration, SystemTime};
use url::Url;

/// What kind of failure it is, for programs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// The Service answered with a valid problem of this code. One that is not of ODP 1.0 means what the HTTP status means.
    Problem(problem::Code),
    /// The Service answered with a status other than success and without a valid problem; [`Error::status`] says all.
    Status,
    /// The request is one that the Service would refuse; it was not sent. [`Error::invalid_params`] says why.
    InvalidRequest,
    /// The Service does not advertise what the request takes; it was not sent.
    NotAdvertised,
    /// The URL may not be fetched: scheme, user information, host.
    UrlNotAllowed,
    /// The host is, or has among its addresses, one that is not public.
    AddressNotAllowed,
    /// The host's name has no address.
    NameNotResolved,
    /// No connection could be made: refused, unreachable, or TLS failed.
    ConnectFailed,
    /// The connection was lost before the response was whole.
    ConnectionLost,
    /// A time limit was passed: for connecting, for the header, between two pieces of the body, or in all.
    Timeout,
    /// The response is not proper HTTP, or its content coding cannot be undone.
    InvalidResponse,
    /// The response has another media type than the one asked for.
    UnexpectedMediaType,
    /// The response, its header, or what it leads to is larger than its limit.
    ResponseLimitExceeded,
    /// A redirect leads to another origin, in a circle, too far, or would change the method.
    RedirectRefused,
    /// The document breaks a rule of the protocol.
    InvalidDocument,
    /// The document is of a protocol version other than 1.0.
    UnsupportedVersion,
    /// A page's `next` must not be followed: another origin, its own URL, or one seen before; or an identity came again.
    InvalidContinuation,
    /// An attribute schema uses what is not supported.
    UnsupportedSchema,
    /// The Agent or one of its parts cannot be set up as asked.
    InvalidConfiguration,
}

impl Code {
    /// The code in upper case with underscores: a problem's own, or one that is local to the Agent.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Problem(code) => code.as_str(),
            Self::Status => "HTTP_STATUS",
            Self::InvalidRequest => "INVALID_REQUEST",
            Self::NotAdvertised => "NOT_ADVERTISED",
            Self::UrlNotAllowed => "URL_NOT_ALLOWED",
            Self::AddressNotAllowed => "ADDRESS_NOT_ALLOWED",
            Self::NameNotResolved => "NAME_NOT_RESOLVED",
            Self::ConnectFailed => "CONNECT_FAILED",
            Self::ConnectionLost => "CONNECTION_LOST",
            Self::Timeout => "TIMEOUT",
            Self::InvalidResponse => "INVALID_RESPONSE",
            Self::UnexpectedMediaType => "UNEXPECTED_MEDIA_TYPE",
            Self::ResponseLimitExceeded => "RESPONSE_LIMIT_EXCEEDED",
            Self::RedirectRefused => "REDIRECT_REFUSED",
            Self::InvalidDocument => "INVALID_DOCUMENT",
            Self::UnsupportedVersion => "UNSUPPORTED_VERSION",
            Self::InvalidContinuation => "INVALID_CONTINUATION",
            Self::UnsupportedSchema => "UNSUPPORTED_SCHEMA",
            Self::InvalidConfiguration => "INVALID_CONFIGURATION",
        }
    }

    /// Whether a network that mends itself can make the same read succeed.
    fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::NameNotResolved | Self::ConnectFailed | Self::ConnectionLost | Self::Timeout
        )
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A failed operation. It is never a partial success; what an earlier page yielded stays.
///
/// Programs go by [`code`](Self::code), [`status`](Self::status) and [`retryable`](Self::retryable); prose is for people. Text
/// that came from a Service is untrusted: escape it before it reaches a terminal or a page.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}: {}", .0.code, .0.message)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    code: Code,
    message: String,
    retryable: bool,
    retry_after: Option<Duration>,
    status: Option<u16>,
    invalid_params: Vec<InvalidParam>,
    request_id: Option<String>,
    problem: Option<Problem>,
    challenges: Vec<Challenge>,
    url: Option<Url>,
}

impl Error {
    /// A failure of the Agent's own, with a sentence for people. Failures of the network read as retryable.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            retryable: code.is_transient(),
            code,
            message: message.into(),
            retry_after: None,
            status: None,
            invalid_params: Vec::new(),
            request_id: None,
            problem: None,
            challenges: Vec::new(),
            url: None,
        }))
    }

    /// A request that breaks rules, refused before it is sent: one parameter for each of the first 32 violations, as a Service
    /// would name them.
    pub fn invalid_request(invalid: &Invalid) -> Self {
        let mut error = Self::new(Code::InvalidRequest, invalid.to_string());
        error.0.invalid_params = Problem::invalid_body(invalid).invalid_params().to_vec();
        error
    }

    /// The same with a parameter that was wrong.
    pub(crate) fn with_invalid_param(mut self, param: InvalidParam) -> Self {
        self.0.invalid_params.push(param);
        self
    }

    /// The failure that a response other than success tells. `body` is the decoded body, if it was within its limit. It is
    /// taken for a problem only when its media type is `application/problem+json`; one that is malformed or has more than
    /// 16,384 bytes changes nothing about the status (ODP §6). `now` is what a date in `Retry-After` is seen from.
    pub fn from_response(
        status: StatusCode,
        headers: &HeaderMap,
        body: Option<&[u8]>,
        now: SystemTime,
    ) -> Self {
        let problem = body
            .filter(|_| is_problem(headers))
            .and_then(|body| decode::decode(body, Bounds::PROBLEM).ok())
            .and_then(|value| Problem::read_lenient(value, status.as_u16()).ok());
        let (code, message) = match &problem {
            Some(problem) => (
                Code::Problem(problem.code().clone()),
                problem
                    .detail()
                    .unwrap_or_else(|| problem.title())
                    .to_owned(),
            ),
            None => (
                Code::Status,
                format!("The response has the status {status}."),
            ),
        };
        let mut error = Self::new(code, message);
        let inner = &mut *error.0;
        inner.retryable = matches!(status.as_u16(), 429 | 503);
        inner.retry_after =
            retry_after(headers).and_then(|field| purvey_retry::retry_after(field, now));
        inner.status = Some(status.as_u16());
        inner.invalid_params = problem
            .as_ref()
            .map(|problem| problem.invalid_params().to_vec())
            .unwrap_or_default();
        inner.request_id = request_id(headers);
        inner.challenges = challenge::read(status, headers);
        inner.problem = problem;
        error
    }

    /// The same with the HTTP status of the response that it is about.
    #[must_use]
    pub fn with_status(mut self, status: StatusCode) -> Self {
        self.0.status = Some(status.as_u16());
        self
    }

    /// The same with the URL that it is about.
    #[must_use]
    pub fn with_url(mut self, url: Url) -> Self {
        self.0.url = Some(url);
        self
    }

    /// The same, never to be retried: the request may have had its effect.
    #[must_use]
    pub fn not_retryable(mut self) -> Self {
        self.0.retryable = false;
        self
    }

    /// What kind of failure it is, for programs.
    pub fn code(&self) -> &Code {
        &self.0.code
    }

    /// What happened, for people.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Whether the same operation can succeed later without anything else being changed. The Agent's own retries are over when
    /// an error is seen.
    pub fn retryable(&self) -> bool {
        self.0.retryable
    }

    /// How long the Service asks to wait, counted from its response.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// The HTTP status of the response; nothing when none came.
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// The parameters that were wrong, at most 32; those whose place is not known are left out.
    pub fn invalid_params(&self) -> &[InvalidParam] {
        &self.0.invalid_params
    }

    /// The response's `X-Request-Id`, if it has at most 128 printable ASCII characters.
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// The problem in the response's body.
    pub fn problem(&self) -> Option<&Problem> {
        self.0.problem.as_ref()
    }

    /// The challenges of a 401 or 402, as received (ODP §13). Nothing is done about them.
    pub fn challenges(&self) -> &[Challenge] {
        &self.0.challenges
    }

    /// What the challenges demand, by protocol; authentication before payment.
    pub fn demands(&self) -> Vec<Demand> {
        challenge::demands(self.challenges())
    }

    /// The URL that failed.
    pub fn url(&self) -> Option<&Url> {
        self.0.url.as_ref()
    }
}

/// Most characters of a request id that is worth keeping.
const REQUEST_ID_CHARS: usize = 128;

fn request_id(headers: &HeaderMap) -> Option<String> {
    let text = headers.get("x-request-id")?.to_str().ok()?;
    let fits = (1..=REQUEST_ID_CHARS).contains(&text.len());
    fits.then(|| text.to_owned())
}

/// The one `Retry-After` of a response. Several contradict each other and count as none.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<&str> {
    let mut fields = headers.get_all(header::RETRY_AFTER).iter();
    let field = fields.next()?;
    fields.next().is_none().then(|| field.to_str().ok())?
}

fn is_problem(headers: &HeaderMap) -> bool {
    content_type(headers).as_deref() == Some(media::PROBLEM)
}

/// The media type of a response, in lower case and without parameters; nothing when it is absent, malformed or there twice.
pub(crate) fn content_type(headers: &HeaderMap) -> Option<String> {
    let mut fields = headers.get_all(header::CONTENT_TYPE).iter();
    let field = fields.next()?.to_str().ok()?;
    fields.next().is_none().then(|| media::essence(field))?
}
