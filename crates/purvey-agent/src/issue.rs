//! What went wrong beside usable data (ODP §6): never a reason to give up the rest, and never on the wire.

use crate::error::Error;
use purvey_odp::normalise::Dropped;
use std::fmt;

/// One thing that could not be used, where it stood, and why. What is not concerned by it stays usable.
#[derive(Clone, Debug)]
pub struct Issue {
    /// Which kind of thing is affected.
    pub scope: Scope,
    /// JSON Pointer into the document as it was received; empty for the whole of it.
    pub pointer: String,
    /// Why, for programs.
    pub code: IssueCode,
    /// Why, for people. May quote the Service: data, not instructions, and to be escaped before it is shown.
    pub message: String,
    /// The failed operation behind it, when there was one.
    pub cause: Option<Error>,
}

/// What an [`Issue`] affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scope {
    /// A member of the document.
    Member,
    /// The attributes of an Offering.
    Attributes,
    /// One Action of an Offering.
    Action,
    /// A source of Filter Definitions, or one of them.
    Filters,
    /// A source of Sort Definitions, or one of them.
    Sorts,
    /// An edge between Collections.
    Hierarchy,
}

/// Why something could not be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IssueCode {
    /// It says something that this version of the protocol does not know (ODP §9), or is malformed where that hurts only itself.
    Unsupported,
    /// A document that it needs could not be fetched; [`Issue::cause`] says why.
    Unavailable,
    /// A document that it needs is malformed.
    Invalid,
    /// A document that it needs, or all of them together, pass a limit of the protocol (ODP §7).
    ResponseLimitExceeded,
    /// Evaluating it would take more work than the Agent is willing to do.
    TooCostly,
    /// The attributes break a rule of their schema.
    Mismatch,
    /// The OpenAPI document has no operation of this id, or none is named.
    OperationMissing,
    /// The OpenAPI document has several operations of this id.
    OperationAmbiguous,
    /// Two sources publish the identifier: neither is used.
    Conflict,
    /// The effective catalog cannot hold the source.
    Overflow,
    /// A Sort Definition names a filter that is not effective.
    SortReference,
    /// An edge to a parent is a cycle, leads to itself or nowhere, or lies too deep.
    BrokenEdge,
}

impl IssueCode {
    /// The stable name of the code.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unsupported => "UNSUPPORTED",
            Self::Unavailable => "UNAVAILABLE",
            Self::Invalid => "INVALID",
            Self::ResponseLimitExceeded => "RESPONSE_LIMIT_EXCEEDED",
            Self::TooCostly => "TOO_COSTLY",
            Self::Mismatch => "MISMATCH",
            Self::OperationMissing => "OPERATION_MISSING",
            Self::OperationAmbiguous => "OPERATION_AMBIGUOUS",
            Self::Conflict => "CONFLICT",
            Self::Overflow => "OVERFLOW",
            Self::SortReference => "SORT_REFERENCE",
            Self::BrokenEdge => "BROKEN_EDGE",
        }
    }
}

impl fmt::Display for IssueCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Issue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.pointer.is_empty() {
            "document"
        } else {
            &self.pointer
        };
        write!(f, "{place}: {} ({})", self.message, self.code)
    }
}

/// What normalisation dropped, as an issue.
impl From<Dropped> for Issue {
    fn from(dropped: Dropped) -> Self {
        let scope = match dropped.pointer.split('/').find(|token| {
            matches!(
                *token,
                "actions" | "attributes" | "schema" | "filters" | "sorts"
            )
        }) {
            Some("actions") => Scope::Action,
            Some("attributes" | "schema") => Scope::Attributes,
            Some("filters") => Scope::Filters,
            Some("sorts") => Scope::Sorts,
            _ => Scope::Member,
        };
        Self {
            scope,
            pointer: dropped.pointer,
            code: IssueCode::Unsupported,
            message: dropped.reason,
            cause: None,
        }
    }
}

/// Why a supporting document cannot be used, before it is known what that affects.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) code: IssueCode,
    pub(crate) message: String,
    pub(crate) cause: Option<Error>,
}

impl Fault {
    pub(crate) fn new(code: IssueCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            cause: None,
        }
    }

    pub(crate) fn at(self, scope: Scope, pointer: impl Into<String>) -> Issue {
        Issue {
            scope,
            pointer: pointer.into(),
            code: self.code,
            message: self.message,
            cause: self.cause,
        }
    }
}
