//! An Agent's error, as whoever typed the command can use it.

use crate::{
    failure::{FAILED, Failure, USAGE},
    text,
};
use purvey_agent::{Code, Error};
use purvey_odp::problem::{self, In, InvalidParam};

/// There is no such thing, or the Service does not do that.
pub(super) const NOT_THERE: u8 = 4;
/// Authentication, permission or payment is missing.
const NOT_PERMITTED: u8 = 5;
/// The Service cannot be reached, or not now.
const UNREACHABLE: u8 = 6;
/// The answer breaks the protocol, passes a limit or comes from where it must not.
const UNTRUSTED: u8 = 7;

/// What was typed, so that an error can be told in its words.
#[derive(Clone, Debug, Default)]
pub(super) struct Typed {
    pub(super) query: Option<String>,
    pub(super) filters: Vec<String>,
    pub(super) sort: Option<String>,
    pub(super) refine: Vec<String>,
    pub(super) within: Option<String>,
    /// It invokes an Action, whose parameters are its own.
    pub(super) action: bool,
}

/// The failure of an operation that took nothing but identifiers.
pub(super) fn failure(error: &Error) -> Failure {
    failure_of(error, &Typed::default())
}

/// The failure of an operation that was asked for like this.
pub(super) fn failure_of(error: &Error, typed: &Typed) -> Failure {
    let mut failure = Failure::new(message(error)).exit_code(exit_code(error));
    for param in error.invalid_params() {
        failure = failure.detail(text::line(&param_line(param, typed)));
    }
    if let Some(instance) = error.problem().and_then(problem::Problem::instance) {
        failure = failure.detail(format_args!("instance: {}", text::line(instance)));
    }
    for challenge in error.challenges() {
        let value = String::from_utf8_lossy(challenge.value().as_bytes());
        failure = failure.detail(format_args!(
            "challenge: {}: {}",
            challenge.name(),
            text::line(&value)
        ));
    }
    if let Some(url) = error.url() {
        failure = failure.detail(format_args!("address: {}", text::line(url.as_str())));
    }
    if let Some(id) = error.request_id() {
        failure = failure.detail(format_args!("request id: {}", text::line(id)));
    }
    if let Some(wait) = error.retry_after() {
        failure = failure.detail(format_args!("retry after: {} s", wait.as_secs()));
    }
    match hint(error) {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn message(error: &Error) -> String {
    // The rules that were broken follow one by one.
    let message = match error.code() {
        Code::InvalidRequest if !error.invalid_params().is_empty() => {
            "The Service would refuse this request; it was not sent."
        }
        _ => error.message(),
    };
    let status = match (error.code(), error.status()) {
        (_, None | Some(200..=299)) | (Code::Status, _) => String::new(),
        (_, Some(status)) => format!(", status {status}"),
    };
    format!("{} ({}{status})", text::line(message), error.code())
}

fn exit_code(error: &Error) -> u8 {
    match error.code() {
        Code::InvalidRequest | Code::InvalidConfiguration | Code::UrlNotAllowed => USAGE,
        Code::NotAdvertised => NOT_THERE,
        Code::NameNotResolved | Code::ConnectFailed | Code::ConnectionLost | Code::Timeout => {
            UNREACHABLE
        }
        Code::Problem(problem::Code::ContinuationExpired) => FAILED,
        Code::Problem(_) | Code::Status => match error.status() {
            Some(400) => USAGE,
            Some(401..=403) => NOT_PERMITTED,
            Some(404 | 410) => NOT_THERE,
            Some(408 | 429 | 500..) => UNREACHABLE,
            _ => FAILED,
        },
        Code::AddressNotAllowed
        | Code::InvalidResponse
        | Code::UnexpectedMediaType
        | Code::ResponseLimitExceeded
        | Code::RedirectRefused
        | Code::InvalidDocument
        | Code::UnsupportedVersion
        | Code::InvalidContinuation
        | Code::UnsupportedSchema => UNTRUSTED,
        // The library may learn of further failures.
        _ => FAILED,
    }
}

fn hint(error: &Error) -> Option<String> {
    let demands: Vec<&str> = error
        .demands()
        .iter()
        .map(|demand| demand.as_str())
        .collect();
    let hint = match (error.code(), error.status()) {
        _ if !demands.is_empty() => {
            return Some(format!(
                "it asks for {}; nothing was enrolled or paid",
                demands.join(", then ")
            ));
        }
        (Code::AddressNotAllowed | Code::UrlNotAllowed, _) => {
            "only public addresses are connected to; --local allows those of this machine"
        }
        (Code::NotAdvertised, _) => "`purvey inspect ORIGIN` shows what it does",
        (Code::Problem(problem::Code::ContinuationExpired), _) => "begin the list again",
        (Code::Timeout, _) => "allow more time with --timeout",
        (_, Some(401)) => "put a token into PURVEY_TOKEN",
        (_, Some(404)) if is_service_document(error) => "there is no ODP Service at this origin",
        _ => return None,
    };
    Some(hint.to_owned())
}

fn is_service_document(error: &Error) -> bool {
    error
        .url()
        .is_some_and(|url| url.path() == "/.well-known/odp")
}

fn param_line(param: &InvalidParam, typed: &Typed) -> String {
    let (name, reason) = (param.name(), param.reason());
    match typed.flag(param) {
        Some(flag) if typed.action && (name.is_empty() || param.location() != In::Body) => {
            format!("{flag}: {reason}")
        }
        Some(flag) => format!("{flag}: {reason} ({name})"),
        None if name.is_empty() => reason.to_owned(),
        None => format!("{name}: {reason}"),
    }
}

impl Typed {
    /// What of the command line a parameter of the request came from.
    fn flag(&self, param: &InvalidParam) -> Option<String> {
        if self.action {
            return Some(match (param.location(), param.name()) {
                (In::Body, _) => "--input".to_owned(),
                (_, name) => format!("--param {name}"),
            });
        }
        let name = match (param.location(), param.name()) {
            (In::Query, "limit") => return Some("--page-size".to_owned()),
            (In::Query, "representation") => return Some("--full".to_owned()),
            (In::Header, name) if name.eq_ignore_ascii_case("accept-language") => {
                return Some("--lang".to_owned());
            }
            (In::Path, _) => return Some("the identifier".to_owned()),
            (In::Body, name) => name,
            _ => return None,
        };
        let mut tokens = name.strip_prefix('/')?.split('/');
        let member = tokens.next()?;
        let index = tokens.next().and_then(|token| token.parse::<usize>().ok());
        let named = |flag: &str, text: Option<&String>| match text {
            Some(text) => format!("{flag} {text}"),
            None => flag.to_owned(),
        };
        let nth = |texts| index.and_then(|i| <[String]>::get(texts, i));
        Some(match member {
            "query" => named("QUERY", self.query.as_ref()),
            "filters" => named("--filter", nth(&self.filters)),
            "sort" => named("--sort", self.sort.as_ref()),
            "refinements" => named("--refine", nth(&self.refine)),
            "collection_id" | "parent_id" => named("--in", self.within.as_ref()),
            "include_descendants" => "--descendants".to_owned(),
            "limit" => "--page-size".to_owned(),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_told_in_the_words_of_the_command_line() {
        let typed = Typed {
            query: Some("oak".to_owned()),
            filters: vec!["price:lt:10".to_owned(), "stock:gte:many".to_owned()],
            sort: Some("newest".to_owned()),
            refine: vec!["kind".to_owned()],
            ..Typed::default()
        };
        for (param, expected) in [
            (
                InvalidParam::body("/filters/1/value", "R"),
                "--filter stock:gte:many: R (/filters/1/value)",
            ),
            (
                InvalidParam::body("/filters/0/value/7", "R"),
                "--filter price:lt:10: R (/filters/0/value/7)",
            ),
            (
                InvalidParam::body("/filters", "R"),
                "--filter: R (/filters)",
            ),
            (
                InvalidParam::body("/filters/2/id", "R"),
                "--filter: R (/filters/2/id)",
            ),
            (InvalidParam::body("/query", "R"), "QUERY oak: R (/query)"),
            (InvalidParam::body("/sort", "R"), "--sort newest: R (/sort)"),
            (
                InvalidParam::body("/refinements/0", "R"),
                "--refine kind: R (/refinements/0)",
            ),
            (
                InvalidParam::body("/collection_id", "R"),
                "--in: R (/collection_id)",
            ),
            (InvalidParam::body("/limit", "R"), "--page-size: R (/limit)"),
            (InvalidParam::body("/other", "R"), "/other: R"),
            (InvalidParam::body("", "R"), "R"),
            (InvalidParam::query("limit", "R"), "--page-size: R (limit)"),
            (InvalidParam::query("cursor", "R"), "cursor: R"),
            (
                InvalidParam::header("Accept-Language", "R"),
                "--lang: R (Accept-Language)",
            ),
            (InvalidParam::path("id", "R"), "the identifier: R (id)"),
        ] {
            assert_eq!(param_line(&param, &typed), expected);
        }
        let action = Typed {
            action: true,
            ..Typed::default()
        };
        for (param, expected) in [
            (InvalidParam::body("/limit", "R"), "--input: R (/limit)"),
            (InvalidParam::body("", "R"), "--input: R"),
            (InvalidParam::path("shop", "R"), "--param shop: R"),
            (InvalidParam::query("limit", "R"), "--param limit: R"),
        ] {
            assert_eq!(param_line(&param, &action), expected);
        }
    }
}
