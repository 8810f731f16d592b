//! The one table of failures under `/v1`.

use crate::{Response, request_id::RequestId};
use axum::{body::Body, response::IntoResponse};
use http::{
    HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, RETRY_AFTER, WWW_AUTHENTICATE},
};
use purvey_catalog::Error;
use purvey_odp::{
    media,
    report::{Invalid, Violation},
};
use purvey_work as work;
use serde::Serialize;
use std::borrow::Cow;

macro_rules! codes {
    ($($name:ident $text:literal $status:ident $title:literal $detail:literal;)*) => {
        /// A stable code: of the surface itself, or of the run platform.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Code {
            $($name,)*
            /// One that only the run platform gives.
            Work(work::Code),
        }

        impl Code {
            #[cfg(test)]
            const OWN: &[Self] = &[$(Self::$name),*];

            /// Its dotted text.
            pub(crate) const fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* Self::Work(code) => code.text() }
            }

            /// The code with this text.
            pub(crate) fn from_text(text: &str) -> Option<Self> {
                match text {
                    $($text => Some(Self::$name),)*
                    _ => work::Code::from_text(text).map(Self::Work),
                }
            }

            /// The status of an answer that fails with it; none for what only ends runs.
            const fn status(self) -> Option<StatusCode> {
                match self { $(Self::$name => Some(StatusCode::$status),)* Self::Work(code) => of_work(code) }
            }

            const fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)* Self::Work(code) => code.title() }
            }

            /// What happened and what to do about it.
            pub(crate) const fn detail(self) -> &'static str {
                match self { $(Self::$name => $detail,)* Self::Work(code) => code.detail() }
            }
        }
    };
}

codes! {
    RequestBroken "request.broken" BAD_REQUEST "Broken request"
        "The request ended before its body was complete; send it again.";
    RequestUnaddressed "request.unaddressed" BAD_REQUEST "Request names no host"
        "Host must be there once and be a name or an address, with or without a port; under HTTP/2 :authority must be, and say the same.";
    AuthMissing "auth.missing" UNAUTHORIZED "Not authenticated"
        "This needs a token, as Authorization: Bearer: the operator's (the server gets it from --admin-token-file or PURVEY_ADMIN_TOKEN) or a user's with the scope for it.";
    AuthInvalid "auth.invalid" UNAUTHORIZED "Not authenticated"
        "The bearer token is none of this server's, or its time is over; the operator's is there once the server gets it (--admin-token-file, PURVEY_ADMIN_TOKEN).";
    NotFound "resource.not_found" NOT_FOUND "Not found"
        "There is nothing under this path, or no record of this kind with this id.";
    MethodNotAllowed "request.method_not_allowed" METHOD_NOT_ALLOWED "Method not allowed"
        "The path exists, but not with this method; Allow lists those that do.";
    RequestTimeout "request.timeout" REQUEST_TIMEOUT "Request took too long"
        "The body did not arrive in time; send it faster or in smaller pieces.";
    Conflict "state.conflict" CONFLICT "Conflict with the catalog"
        "The change does not fit the catalog as it is; the detail of the answer says what stands in the way.";
    Busy "catalog.busy" CONFLICT "Catalog is being written"
        "Another writer, for example an import, holds the catalog; wait as long as Retry-After says.";
    PreconditionFailed "state.precondition_failed" PRECONDITION_FAILED "Precondition failed"
        "The record is not at the revision that If-Match or If-None-Match asks for; read it again.";
    RequestTooLarge "request.too_large" PAYLOAD_TOO_LARGE "Request too large"
        "The body or a line of it is larger than the server takes; make it smaller (or raise --max-record-bytes).";
    RequestHeadTooLarge "request.head_too_large" REQUEST_HEADER_FIELDS_TOO_LARGE "Request header too large"
        "The request's header has more fields or bytes than the server reads; send less of it.";
    UnsupportedMediaType "request.unsupported_media_type" UNSUPPORTED_MEDIA_TYPE "Unsupported media type"
        "Send a record as application/odp+json and a stream of records as application/x-ndjson.";
    RangeNotSatisfiable "request.range_not_satisfiable" RANGE_NOT_SATISFIABLE "Range not satisfiable"
        "The range lies behind the end of the bytes; Content-Range says how many there are.";
    RequestInvalid "request.invalid" UNPROCESSABLE_ENTITY "Invalid request"
        "The request breaks rules; errors says which, and where.";
    RateLimited "rate.limited" TOO_MANY_REQUESTS "Too many requests"
        "This address sends more requests than the server is set to take; wait as long as Retry-After says.";
    ServerError "server.error" INTERNAL_SERVER_ERROR "Internal error"
        "The server failed; its log names the cause under the request id.";
    ServerUnavailable "server.unavailable" SERVICE_UNAVAILABLE "Server is busy"
        "The server cannot do this now; wait as long as Retry-After says, then send it again.";
}

/// The status that each code of the run platform has as an answer (Work §2).
const fn of_work(code: work::Code) -> Option<StatusCode> {
    use work::Code as W;
    Some(match code {
        W::RequestInvalid | W::KeyMissing => StatusCode::UNPROCESSABLE_ENTITY,
        W::AuthMissing | W::AuthInvalid | W::AuthRevoked => StatusCode::UNAUTHORIZED,
        W::PermissionScope | W::PermissionRole | W::PermissionVisibility => StatusCode::FORBIDDEN,
        W::SizeMismatch | W::ChecksumMismatch => StatusCode::BAD_REQUEST,
        W::NotFound => StatusCode::NOT_FOUND,
        W::KeyReused
        | W::StateConflict
        | W::UploadActive
        | W::UploadFailed
        | W::ArtifactDeleted
        | W::MetadataMismatch => StatusCode::CONFLICT,
        W::QueueFull
        | W::UploadCapacity
        | W::StorageQuota
        | W::RateLimited
        | W::BudgetStopped
        | W::DailyCost
        | W::DailyAllowance
        | W::DailyPlatform
        | W::NeedsApproval => StatusCode::TOO_MANY_REQUESTS,
        W::ServerError => StatusCode::INTERNAL_SERVER_ERROR,
        W::ServerUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        _ => return None,
    })
}

impl From<work::Code> for Code {
    fn from(code: work::Code) -> Self {
        Self::from_text(code.text()).unwrap_or(Self::Work(code))
    }
}

impl Code {
    /// The page about this code.
    pub(super) fn page(self) -> Response {
        let (code, title, detail) = (self.text(), self.title(), self.detail());
        let status = match self.status() {
            Some(status) => format!("status {}", status.as_u16()),
            None => "how a run ends".into(),
        };
        let html = format!(
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{code}</title>\
             <h1>{title}</h1><p><code>{code}</code>, {status}</p><p>{detail}</p></html>\n"
        );
        axum::response::Html(html).into_response()
    }
}

/// One broken rule: where, and what it asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Fault {
    r#in: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'static str>,
    reason: Cow<'static, str>,
}

impl Fault {
    /// At a JSON Pointer of the body.
    pub(crate) fn body(pointer: impl Into<String>, reason: impl Into<Cow<'static, str>>) -> Self {
        Self {
            r#in: "body",
            pointer: Some(pointer.into()),
            name: None,
            reason: reason.into(),
        }
    }

    /// In a query parameter.
    pub(crate) fn query(name: &'static str, reason: impl Into<Cow<'static, str>>) -> Self {
        Self {
            r#in: "query",
            pointer: None,
            name: Some(name),
            reason: reason.into(),
        }
    }

    /// In a header field.
    pub(crate) fn header(name: &'static str, reason: impl Into<Cow<'static, str>>) -> Self {
        Self {
            r#in: "header",
            ..Self::query(name, reason)
        }
    }

    /// Every violation of a body.
    pub(crate) fn all(invalid: Invalid) -> Vec<Self> {
        let fault = |Violation { pointer, reason }| Self::body(pointer, reason);
        invalid.into_violations().into_iter().map(fault).collect()
    }
}

/// A code with what this occurrence adds to it.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) detail: Cow<'static, str>,
    pub(crate) errors: Vec<Fault>,
    pub(super) retry_after: Option<u64>,
    pub(super) limit: Option<Box<Limit>>,
    pub(super) etag: Option<HeaderValue>,
}

impl Failure {
    pub(crate) fn new(code: Code) -> Self {
        Self {
            code,
            detail: code.detail().into(),
            errors: Vec::new(),
            retry_after: None,
            limit: None,
            etag: None,
        }
    }

    /// 422 with these faults.
    pub(crate) fn invalid(errors: Vec<Fault>) -> Self {
        Self {
            errors,
            ..Self::new(Code::RequestInvalid)
        }
    }

    /// Waiting this many seconds helps.
    pub(crate) fn retry_after(self, seconds: u64) -> Self {
        Self {
            retry_after: Some(seconds),
            ..self
        }
    }

    /// The rate that was passed, in requests a second.
    pub(crate) fn limit(self, per_second: u32) -> Self {
        Self {
            limit: Some(Box::new(Limit::Rate {
                code: self.code.text(),
                requests_per_second: per_second,
                retry_after_seconds: self.retry_after,
            })),
            ..self
        }
    }

    /// The response that says it.
    pub(crate) fn response(self, id: &RequestId) -> Response {
        let status = self
            .code
            .status()
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let wire = Wire {
            r#type: format!("/v1/problems/{}", self.code.text()),
            title: self.code.title(),
            status: status.as_u16(),
            code: self.code.text(),
            detail: &self.detail,
            request_id: id.as_str(),
            errors: &self.errors,
            limit_detail: self.limit.as_deref(),
        };
        let mut response =
            http::Response::new(Body::from(serde_json::to_vec(&wire).unwrap_or_default()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media::PROBLEM));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        if let Some(tag) = self.etag {
            headers.insert(ETAG, tag);
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid(invalid) => Self::invalid(Fault::all(invalid)),
            Error::NotFound => Self::new(Code::NotFound),
            Error::Conflict { detail } => Self {
                detail: detail.into(),
                ..Self::new(Code::Conflict)
            },
            Error::PreconditionFailed { revision } => Self {
                etag: revision.map(crate::etag::of_revision),
                ..Self::new(Code::PreconditionFailed)
            },
            Error::Busy {
                retry_after_seconds,
            } => Self::new(Code::Busy).retry_after(retry_after_seconds),
            Error::NotWritten { detail } => {
                tracing::error!(detail, "a write did not come about");
                Self::new(Code::ServerUnavailable).retry_after(1)
            }
            error => {
                tracing::error!(%error, "a write failed");
                Self::new(Code::ServerError)
            }
        }
    }
}

impl From<work::Error> for Failure {
    fn from(error: work::Error) -> Self {
        match error {
            work::Error::Refused(refusal) => (*refusal).into(),
            work::Error::Unavailable { detail } => {
                tracing::error!(detail, "the run store cannot be used");
                Self::new(Code::ServerUnavailable).retry_after(1)
            }
            error => {
                tracing::error!(%error, "a request failed");
                Self::new(Code::ServerError)
            }
        }
    }
}

impl From<work::Refusal> for Failure {
    fn from(refusal: work::Refusal) -> Self {
        let fault = |fault: work::Fault| match fault.place {
            work::Place::Body(pointer) => Fault::body(pointer, fault.reason),
            work::Place::Query(name) => Fault::query(name, fault.reason),
            work::Place::Header(name) => Fault::header(name, fault.reason),
        };
        Self {
            code: refusal.code.into(),
            detail: refusal.detail,
            errors: refusal.errors.into_iter().map(fault).collect(),
            // Waiting for less than what was asked would be too early.
            retry_after: refusal
                .retry_after
                .map(|wait| wait.as_secs() + u64::from(wait.subsec_nanos() > 0)),
            limit: refusal
                .limit_detail
                .map(|limit| Box::new(Limit::Work(limit))),
            etag: None,
        }
    }
}

#[derive(Serialize)]
struct Wire<'a> {
    r#type: String,
    title: &'static str,
    status: u16,
    code: &'static str,
    detail: &'a str,
    request_id: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [Fault],
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_detail: Option<&'a Limit>,
}

/// The limit that was met.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Limit {
    Rate {
        code: &'static str,
        requests_per_second: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        retry_after_seconds: Option<u64>,
    },
    Work(work::LimitDetail),
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn codes_are_dotted_lower_case_and_distinct() {
        let texts: HashSet<&str> = Code::OWN.iter().map(|code| code.text()).collect();
        assert_eq!(texts.len(), Code::OWN.len());
        for code in Code::OWN {
            let text = code.text();
            assert_eq!(Code::from_text(text), Some(*code));
            assert_eq!(text.split('.').count(), 2, "{text}");
            assert!(
                text.bytes()
                    .all(|b| b.is_ascii_lowercase() || b"._".contains(&b))
            );
        }
        assert_eq!(Code::from_text("no.such"), None);
    }
}
