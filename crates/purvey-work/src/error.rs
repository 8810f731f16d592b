//! The one error of this crate.

use crate::{clock::Timestamp, code::Code};
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, time::Duration};

/// Why an operation did not come about, and so what its caller can do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request was judged and refused: the code says what to do.
    #[error("{}: {}", .0.code.text(), .0.detail)]
    Refused(Box<Refusal>),
    /// The store cannot be reached or is overloaded now. Nothing was changed, unless the connection was lost in the very commit or
    /// no answer came at all: so a call that must not be done twice is made again only with its key.
    #[error("the run store cannot be used now: {detail}")]
    Unavailable {
        /// What it said, for the log.
        detail: String,
    },
    /// Another attempt holds the run: whoever gets this has lost its lease and must stop working on it.
    #[error("the lease on this run has passed to another attempt")]
    LeaseLost,
    /// The store holds what it never should, or its files fail; for the operator.
    #[error("the run store failed: {detail}")]
    Store {
        /// What went wrong, for the log; never for a caller.
        detail: String,
    },
}

/// A refusal in the words of a problem (Work §2).
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The stable code.
    pub code: Code,
    /// What happened here and what to do about it.
    pub detail: Cow<'static, str>,
    /// Each broken rule, for `request.invalid`.
    pub errors: Vec<Fault>,
    /// When the same request may succeed, if waiting helps.
    pub retry_after: Option<Duration>,
    /// For limits: what is used, allowed, and when it resets.
    pub limit_detail: Option<LimitDetail>,
}

/// Where a fault lies and what the rule asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The part of the request.
    pub place: Place,
    /// What it must be.
    pub reason: Cow<'static, str>,
}

/// A part of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A JSON Pointer into the body.
    Body(String),
    /// A query parameter.
    Query(&'static str),
    /// A header field.
    Header(&'static str),
}

/// A limit as it stands (Work §11).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitDetail {
    /// Which limit.
    pub code: Code,
    /// Used so far, in cents, rounded up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_cents: Option<i64>,
    /// Allowed, in cents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_cents: Option<i64>,
    /// When it clears by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<Timestamp>,
    /// How often in a row a provider has limited the same step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consecutive: Option<u32>,
}

impl LimitDetail {
    /// A limit that counts no money and resets at no time that is known.
    pub(crate) const fn of(code: Code) -> Self {
        Self {
            code,
            used_cents: None,
            limit_cents: None,
            resets_at: None,
            consecutive: None,
        }
    }
}

impl Refusal {
    /// A refusal with the code's own words.
    #[must_use]
    pub fn new(code: Code) -> Self {
        Self {
            code,
            detail: code.detail().into(),
            errors: Vec::new(),
            retry_after: None,
            limit_detail: None,
        }
    }

    /// A refusal that says what happened in this case.
    #[must_use]
    pub fn because(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            detail: detail.into(),
            ..Self::new(code)
        }
    }

    /// `request.invalid` with these faults.
    #[must_use]
    pub fn invalid(errors: Vec<Fault>) -> Self {
        Self {
            errors,
            ..Self::new(Code::RequestInvalid)
        }
    }
}

impl Fault {
    /// At a JSON Pointer of the body.
    pub fn body(pointer: impl Into<String>, reason: impl Into<Cow<'static, str>>) -> Self {
        Self {
            place: Place::Body(pointer.into()),
            reason: reason.into(),
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

impl From<Code> for Error {
    fn from(code: Code) -> Self {
        Refusal::new(code).into()
    }
}
