//! Documents and problems: what holds for each of them.

use super::probe::{Ask, Exhausted, Probe, Reply};
use super::{Rule, rules};
use http::StatusCode;
use purvey_odp::decode::{Bounds, DecodeError, decode};
use purvey_odp::media;
use purvey_odp::offering::Representation;
use purvey_odp::problem::{Code, In, InvalidParam, Problem};
use purvey_odp::report::Invalid;
use purvey_odp::version;
use serde_json::{Value, json};

/// How a request that cannot be answered has to be refused.
pub(super) struct Refusal<'a> {
    /// The rule that says so.
    pub(super) rule: &'static Rule,
    /// The statuses that do; the first is the right one.
    pub(super) statuses: &'a [u16],
    /// What is wrong with the request: a parameter, or a member of the body by its pointer or one below it.
    pub(super) param: Option<(In, &'a str)>,
}

impl<'a> Refusal<'a> {
    pub(super) fn new(rule: &'static Rule, statuses: &'a [u16]) -> Self {
        Self {
            rule,
            statuses,
            param: None,
        }
    }
}

impl Probe<'_> {
    /// The document in a successful response: of the right media type, within `bounds`, of version 1.0. With another version
    /// it is read on as if it were of this one, so that each fault is told once.
    pub(super) fn document(&mut self, reply: &Reply, bounds: Bounds) -> Option<Value> {
        let media_type = reply.media_type();
        self.hold(
            &rules::DOCUMENT_MEDIA_TYPE,
            reply,
            media_type == media::ODP,
            || format!("The media type is {media_type}."),
        );
        let fits = !reply.too_large && reply.body.len() <= bounds.bytes;
        self.hold(&rules::DOCUMENT_SIZE, reply, fits, || {
            format!("The body has more than {} bytes.", bounds.bytes)
        });
        if !reply.whole || !fits {
            return None;
        }
        let decoded = decode(&reply.body, bounds);
        let deep = matches!(decoded, Err(DecodeError::TooDeep { .. }));
        self.hold(&rules::DOCUMENT_DEPTH, reply, !deep, || {
            format!("The document is nested deeper than {}.", bounds.depth)
        });
        let fault = decoded.as_ref().err().filter(|_| !deep);
        let fault = fault.map(ToString::to_string);
        self.hold(&rules::DOCUMENT_JSON, reply, fault.is_none(), || {
            fault.unwrap_or_default()
        });
        let mut value = decoded.ok()?;
        let version = value.get(version::MEMBER).cloned();
        let current = version == Some(json!("1.0"));
        self.hold_at(
            &rules::DOCUMENT_VERSION,
            &reply.request,
            "/odp_version",
            current,
            || match version {
                Some(version) => format!("odp_version is {version}."),
                None => "odp_version is missing.".to_owned(),
            },
        );
        if let (false, Value::Object(map)) = (current, &mut value) {
            map.insert(version::MEMBER.to_owned(), json!("1.0"));
        }
        Some(value)
    }

    /// Notes every rule that a document breaks, or a page of them. Gives whether there was none.
    pub(super) fn valid(
        &mut self,
        reply: &Reply,
        representation: Option<Representation>,
        invalid: Option<&Invalid>,
    ) -> bool {
        let terse = representation == Some(Representation::Terse);
        if terse {
            self.outcome.exercise(&rules::TERSE_ACTIONS);
        }
        self.outcome.exercise(&rules::DOCUMENT_VALID);
        for violation in invalid.into_iter().flat_map(Invalid::violations) {
            let rule = match terse && is_actions(&violation.pointer) {
                true => &rules::TERSE_ACTIONS,
                false => &rules::DOCUMENT_VALID,
            };
            let pointer = &violation.pointer;
            self.outcome
                .find(rule, &reply.request, pointer, &violation.reason);
        }
        invalid.is_none()
    }

    /// Sends a request that has to be refused. Gives whether it was.
    pub(super) async fn refused(
        &mut self,
        ask: Ask,
        refusal: Refusal<'_>,
    ) -> Result<bool, Exhausted> {
        let Some(reply) = self.ask(ask).await? else {
            return Ok(false);
        };
        let status = reply.status.as_u16();
        let kept = self.hold(
            refusal.rule,
            &reply,
            refusal.statuses.contains(&status),
            || {
                let wanted = refusal.statuses.first().copied().unwrap_or_default();
                format!("The status is {}, not {wanted}.", reply.status)
            },
        );
        if status >= 400 {
            self.problem(&reply, refusal.param);
        }
        Ok(kept)
    }

    /// Judges the problem in a failure.
    pub(super) fn problem(&mut self, reply: &Reply, param: Option<(In, &str)>) {
        let media_type = reply.media_type();
        let right = media_type == media::PROBLEM;
        self.hold(&rules::PROBLEM_MEDIA_TYPE, reply, right, || {
            format!("The media type is {media_type}.")
        });
        if !right || !reply.whole {
            return;
        }
        let fits = reply.body.len() <= Bounds::PROBLEM.bytes;
        self.hold(&rules::PROBLEM_SIZE, reply, fits, || {
            format!("The problem has {} bytes.", reply.body.len())
        });
        let read = decode(&reply.body, Bounds::PROBLEM)
            .map_err(|error| Invalid::one("", error.to_string()))
            .and_then(|value| Problem::validate(value, reply.status.as_u16()));
        self.outcome.exercise(&rules::PROBLEM_VALID);
        let problem = match read {
            Ok(problem) => problem,
            Err(invalid) => {
                for violation in invalid.violations() {
                    let pointer = &violation.pointer;
                    let (rule, seen) = (&rules::PROBLEM_VALID, &violation.reason);
                    self.outcome.find(rule, &reply.request, pointer, seen);
                }
                return;
            }
        };
        self.code(reply, &problem);
        if *problem.code() == Code::InvalidRequest {
            self.params(reply, &problem, param);
        }
    }

    fn code(&mut self, reply: &Reply, problem: &Problem) {
        let Some(code) = code_of(reply.status) else {
            return;
        };
        let found = problem.code().as_str();
        self.hold_at(
            &rules::PROBLEM_CODE,
            &reply.request,
            "/code",
            found == code,
            || format!("The code of a {} is {found}, not {code}.", reply.status),
        );
    }

    fn params(&mut self, reply: &Reply, problem: &Problem, param: Option<(In, &str)>) {
        let Some((location, name)) = param else {
            return;
        };
        let params = problem.invalid_params();
        let named = params.iter().any(|param| {
            let rest = param.name().strip_prefix(name);
            param.location() == location
                && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        self.hold_at(
            &rules::PROBLEM_PARAMS,
            &reply.request,
            "/invalid_params",
            named,
            || {
                let names: Vec<_> = params.iter().map(InvalidParam::name).collect();
                format!("Wrong is {name:?}; named is {names:?}.")
            },
        );
    }
}

/// Whether a pointer leads to the member `actions` of a resource, alone or on a page.
fn is_actions(pointer: &str) -> bool {
    let of_item = pointer
        .strip_prefix("/items/")
        .and_then(|rest| rest.split_once('/'));
    pointer == "/actions" || of_item.is_some_and(|(_, rest)| rest == "actions")
}

/// The code that goes with a status, when the protocol has one.
fn code_of(status: StatusCode) -> Option<&'static str> {
    Some(match status.as_u16() {
        400 => "INVALID_REQUEST",
        401 => "NOT_AUTHENTICATED",
        403 => "NOT_AUTHORIZED",
        404 => "NOT_FOUND",
        406 => "NOT_ACCEPTABLE",
        410 => "CONTINUATION_EXPIRED",
        413 => "REQUEST_TOO_LARGE",
        415 => "UNSUPPORTED_MEDIA_TYPE",
        429 => "RATE_LIMITED",
        503 => "SERVICE_UNAVAILABLE",
        _ => return None,
    })
}
