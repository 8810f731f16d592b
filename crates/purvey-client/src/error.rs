//! Why a call did not come about.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{path::PathBuf, time::Duration};

/// Why a call failed, and so what its caller can do (Work §2, §8).
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server answered with a failure that no further attempt helps, or none fits the deadline.
    #[error("{0}")]
    Problem(Box<Problem>),
    /// There was no answer.
    #[error("{endpoint}: {detail}{}", if *.ambiguous { "; the request may have been carried out" } else { "" })]
    Connection {
        /// Method and path.
        endpoint: String,
        /// What happened, without secrets.
        detail: String,
        /// Whether the server may have done what was asked.
        ambiguous: bool,
        /// Attempts made.
        attempts: u32,
    },
    /// The answer is not what this client can read.
    #[error("{endpoint}: the answer cannot be read: {detail}")]
    Answer {
        /// Method and path.
        endpoint: String,
        /// What is wrong with it.
        detail: String,
    },
    /// The origin, token or key cannot be used.
    #[error("{0}")]
    Usage(String),
    /// A file on this side cannot be used.
    #[error("{}: {detail}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// The time that the caller gave is over; what was started goes on.
    #[error("not finished after {} s; it goes on at the server", .0.as_secs())]
    Waited(Duration),
}

/// A failure in the server's words.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// HTTP status.
    pub status: u16,
    /// Stable dotted code; by the status (`http.502`) when the answer is no problem document.
    pub code: String,
    /// Few words.
    pub title: String,
    /// What happened and what to do.
    pub detail: String,
    /// Names the request in the server's log.
    pub request_id: Option<String>,
    /// Each broken rule.
    pub errors: Vec<Fault>,
    /// The limit that was met.
    pub limit_detail: Option<Value>,
    /// How long to wait, when waiting helps.
    pub retry_after: Option<Duration>,
    /// Method and path.
    pub endpoint: String,
    /// Attempts made.
    pub attempts: u32,
}

/// One broken rule of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// `body`, `query` or `header`.
    pub r#in: String,
    /// JSON Pointer into the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// Name of the parameter or field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it must be.
    pub reason: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} {})", self.detail, self.status, self.code)?;
        for fault in &self.errors {
            let place = fault.pointer.as_deref().or(fault.name.as_deref());
            write!(
                f,
                "\n  {} {}: {}",
                fault.r#in,
                place.unwrap_or(""),
                fault.reason
            )?;
        }
        Ok(())
    }
}
