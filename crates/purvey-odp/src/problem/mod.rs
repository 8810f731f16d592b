//! Problem Details: how a failure is told (ODP §6).

mod code;
mod param;

pub use code::{Code, OtherCode, TYPE_BASE};
pub use param::{In, InvalidParam};

use crate::report::{Invalid, Place, Report};
use crate::text::{Name, Text};
use crate::{limits, page, reference, shape};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

type Detail = Text<{ limits::PROBLEM_DETAIL_CHARS }>;

/// A problem. Its `type` follows from its code, and `invalid_params` go with `INVALID_REQUEST` alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    code: Code,
    status: u16,
    title: String,
    detail: Option<String>,
    instance: Option<Instance>,
    invalid_params: Vec<InvalidParam>,
}

impl Problem {
    /// 400: the request's syntax or values are invalid. Of `invalid_params` the first 32 are kept; none is fine.
    pub fn invalid_request(invalid_params: Vec<InvalidParam>) -> Self {
        let mut problem = Self::new(Code::InvalidRequest, "Invalid request");
        problem.invalid_params = invalid_params;
        problem.invalid_params.truncate(limits::INVALID_PARAMS);
        problem
    }

    /// 400 for a request body: one parameter for each of the first 32 violations.
    pub fn invalid_body(invalid: &Invalid) -> Self {
        let violations = invalid.violations().iter().take(limits::INVALID_PARAMS);
        Self::invalid_request(violations.map(InvalidParam::from).collect())
    }

    /// 401: authentication is missing or not accepted.
    pub fn not_authenticated() -> Self {
        Self::new(Code::NotAuthenticated, "Not authenticated")
    }

    /// 403: the caller may not do this.
    pub fn not_authorized() -> Self {
        Self::new(Code::NotAuthorized, "Not authorized")
    }

    /// 404: there is no such resource, or none that the caller may see.
    pub fn not_found() -> Self {
        Self::new(Code::NotFound, "Not found")
    }

    /// 406: `Accept` excludes every representation.
    pub fn not_acceptable() -> Self {
        Self::new(Code::NotAcceptable, "Not acceptable")
    }

    /// 410: the continuation no longer works; traversal begins anew.
    pub fn continuation_expired() -> Self {
        Self::new(Code::ContinuationExpired, "Continuation expired")
    }

    /// 413: the request body has more than 65,536 bytes.
    pub fn request_too_large() -> Self {
        Self::new(Code::RequestTooLarge, "Request too large")
    }

    /// 415: the body's `Content-Type` is not the one for this operation.
    pub fn unsupported_media_type() -> Self {
        Self::new(Code::UnsupportedMediaType, "Unsupported media type")
    }

    /// 429: too many requests. The response must carry `Retry-After`.
    pub fn rate_limited() -> Self {
        Self::new(Code::RateLimited, "Rate limited")
    }

    /// 503: the Service cannot answer now. The response should carry `Retry-After`.
    pub fn service_unavailable() -> Self {
        Self::new(Code::ServiceUnavailable, "Service unavailable")
    }

    /// A problem that ODP 1.0 has no code for, such as 405; `status` is 400 through 599 and anything else reads as 500.
    pub fn other(code: Code, status: u16, title: &'static str) -> Self {
        Self {
            status: if (400..600).contains(&status) {
                status
            } else {
                500
            },
            ..Self::new(code, title)
        }
    }

    fn new(code: Code, title: &'static str) -> Self {
        Self {
            status: code.status().unwrap_or(500),
            code,
            title: title.to_owned(),
            detail: None,
            instance: None,
            invalid_params: Vec::new(),
        }
    }

    /// Says more, for people; cut to 2,048 code points. An empty text says nothing.
    #[must_use]
    pub fn with_detail(mut self, detail: &str) -> Self {
        self.detail = (!detail.is_empty())
            .then(|| shortened(detail, limits::PROBLEM_DETAIL_CHARS).to_owned());
        self
    }

    /// What went wrong, for machines.
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// The URL of the problem's class, which the code determines.
    pub fn type_url(&self) -> String {
        self.code.type_url()
    }

    /// The HTTP status, 400 through 599.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// What went wrong in general, for people.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// What went wrong this time, for people.
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    /// A URI reference that identifies this occurrence; never to be followed by itself.
    pub fn instance(&self) -> Option<&str> {
        self.instance.as_ref().map(|instance| &*instance.0)
    }

    /// The parameters that were wrong, at most 32.
    pub fn invalid_params(&self) -> &[InvalidParam] {
        &self.invalid_params
    }

    /// The body to send, at most 16,384 bytes: the last parameters are left out when it would be longer.
    pub fn to_body(&self) -> Vec<u8> {
        let mut problem = self.clone();
        loop {
            // Writing strings and numbers to memory cannot fail.
            let body = serde_json::to_vec(&problem).unwrap_or_default();
            if body.len() <= limits::PROBLEM_BYTES || problem.invalid_params.pop().is_none() {
                return body;
            }
        }
    }

    /// The problem in the body of a response with `http_status`, as a Service must write it. Unknown members are permitted.
    ///
    /// # Errors
    /// Every rule that the problem breaks.
    pub fn validate(value: Value, http_status: u16) -> Result<Self, Invalid> {
        let mut report = Report::new();
        let problem = Self::read(
            &mut report,
            &Place::ROOT,
            value,
            http_status,
            Reader::Strict,
        );
        report.finish(problem)
    }

    /// The problem in the body of a response with `http_status`, as an Agent takes it: parameters with an unknown `in` are
    /// ignored, a known code may come with another status than its own, and `invalid_params` beside any code but
    /// `INVALID_REQUEST` are a member that this version does not define there.
    ///
    /// # Errors
    /// Every rule that the problem breaks; the HTTP status alone then tells what happened.
    pub fn read_lenient(value: Value, http_status: u16) -> Result<Self, Invalid> {
        let mut report = Report::new();
        let problem = Self::read(
            &mut report,
            &Place::ROOT,
            value,
            http_status,
            Reader::Lenient,
        );
        report.finish(problem)
    }

    fn read(
        report: &mut Report,
        place: &Place<'_>,
        value: Value,
        http_status: u16,
        reader: Reader,
    ) -> Option<Self> {
        let mut map = shape::object(report, place, value)?;
        let before = report.len();
        // Before the code is taken out, which decides about them.
        let invalid_params = read_params(report, place, &mut map, reader);
        let type_url = shape::required(report, place, &mut map, "type", shape::string);
        let title = shape::required(report, place, &mut map, "title", Name::read);
        let status = shape::required(report, place, &mut map, "status", |report, place, value| {
            read_status(report, place, &value, http_status)
        });
        let code = shape::required(report, place, &mut map, "code", Code::read);
        let detail = shape::optional(report, place, &mut map, "detail", Detail::read);
        let instance = shape::optional(report, place, &mut map, "instance", Instance::read);
        let code = code?;
        if type_url.is_some_and(|type_url| type_url != code.type_url()) {
            let rule = format!("Must be {}, as the code says.", code.type_url());
            report.add(&place.key("type"), rule);
        }
        let own = code.status().unwrap_or(http_status);
        if reader == Reader::Strict && status.is_some() && own != http_status {
            let rule = format!("Must be {own}, the status of {}.", code.as_str());
            report.add(&place.key("status"), rule);
        }
        if !invalid_params.is_empty() && code != Code::InvalidRequest {
            report.add(
                &place.key("invalid_params"),
                "Must not be there unless the code is INVALID_REQUEST.",
            );
        }
        if report.len() > before {
            return None;
        }
        Some(Self {
            code,
            status: status?,
            title: title?.to_string(),
            detail: detail.map(|detail| detail.to_string()),
            instance,
            invalid_params,
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    Strict,
    Lenient,
}

fn read_status(
    report: &mut Report,
    place: &Place<'_>,
    value: &Value,
    http_status: u16,
) -> Option<u16> {
    let status = page::small_integer(value).and_then(|status| u16::try_from(status).ok());
    match status {
        Some(status) if !(400..=599).contains(&status) => {
            report.add(place, "Must be from 400 through 599.");
            None
        }
        Some(status) if status == http_status => Some(status),
        _ => {
            let rule = format!("Must be {http_status}, the status of the response.");
            report.add(place, rule);
            None
        }
    }
}

fn read_params(
    report: &mut Report,
    place: &Place<'_>,
    map: &mut Map<String, Value>,
    reader: Reader,
) -> Vec<InvalidParam> {
    let name = "invalid_params";
    let is_of_code = map.get("code").and_then(Value::as_str) == Some(Code::InvalidRequest.as_str());
    if reader == Reader::Lenient && !is_of_code {
        map.shift_remove(name);
    }
    if let (Reader::Lenient, Some(Value::Array(entries))) = (reader, map.get_mut(name)) {
        let had = !entries.is_empty();
        // Dropped before anything is counted: a later revision may name other places.
        entries.retain(|entry| !param::has_unknown_place(entry));
        if had && entries.is_empty() {
            map.shift_remove(name);
        }
    }
    let params = shape::optional(report, place, map, name, |report, place, value| {
        let count = 1..=limits::INVALID_PARAMS;
        shape::list(report, place, value, count, InvalidParam::read)
    });
    params.unwrap_or_default()
}

/// The start of `text`, at most `max` code points.
fn shortened(text: &str, max: usize) -> &str {
    let end = text
        .char_indices()
        .nth(max)
        .map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or_default()
}

/// A URI reference (RFC 3986) of at most 2,048 characters.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Instance(Box<str>);

impl Instance {
    /// Most characters, all of them ASCII.
    const MAX_CHARS: usize = 2_048;

    fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let text = shape::string(report, place, value)?;
        if text.len() <= Self::MAX_CHARS && reference::is_uri_reference(&text) {
            return Some(Self(text.into_boxed_str()));
        }
        report.add(
            place,
            "Must be a URI reference of at most 2,048 characters.",
        );
        None
    }
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Problem", 7)?;
        out.serialize_field("type", &self.type_url())?;
        out.serialize_field("title", &self.title)?;
        out.serialize_field("status", &self.status)?;
        out.serialize_field("code", self.code.as_str())?;
        if let Some(detail) = &self.detail {
            out.serialize_field("detail", detail)?;
        }
        if let Some(instance) = &self.instance {
            out.serialize_field("instance", &instance.0)?;
        }
        if !self.invalid_params.is_empty() {
            out.serialize_field("invalid_params", &self.invalid_params)?;
        }
        out.end()
    }
}

#[cfg(test)]
mod tests;
