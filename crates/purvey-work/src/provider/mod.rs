//! Model providers: one call goes out, a reply or a classified failure comes back (Work §4, §5).
//!
//! A provider decides nothing about runs: whether a call may be made, what it costs, and what a failure means for the run is the
//! engine's. No error holds a key or what was sent.

mod anthropic;
mod command;
mod echo;
mod guard;
mod http;
mod key;
mod openai;
mod registry;
mod reset;
mod sse;

pub use anthropic::Anthropic;
pub use command::Command;
pub use echo::Echo;
pub use http::{Endpoint, Timeouts};
pub use key::ApiKey;
pub use openai::{OpenAi, OutputLimitField};
pub use registry::{Priced, Prices, Providers};
pub use reset::{LONGEST_WAIT, reset_signal};

use crate::id::ArtifactId;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{path::PathBuf, time::Duration};

/// Most bytes of what a run's provider gives as its output.
pub const OUTPUT_BYTES: usize = 1_048_576;
/// Tokens that a provider may put before tools on its own account.
const TOOLS_PREAMBLE: u64 = 1_024;

/// Something that answers requests: a model behind HTTP, a program, or `echo`.
pub trait Provider: Send + Sync {
    /// Makes one call. Dropping the future gives the call up: connections are closed, processes killed.
    fn call<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Reply, CallError>>;

    /// How many files it may leave, if it works on files.
    fn files(&self) -> Option<FileLimits> {
        None
    }

    /// Most tokens that the request can count as. A token stands for at least one byte, so the bytes of the request bound it.
    fn most_input_tokens(&self, request: &Request) -> u64 {
        let bytes = serde_json::to_string(request).map_or(usize::MAX, |text| text.len());
        let preamble = match request.tools.is_empty() {
            true => 0,
            false => TOOLS_PREAMBLE,
        };
        u64::try_from(bytes)
            .unwrap_or(u64::MAX)
            .saturating_add(preamble)
    }
}

/// What a provider is asked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Request {
    /// The provider's name of a model; empty for providers without models.
    pub model: String,
    /// What the model is told before anything else.
    pub instructions: String,
    /// The conversation so far; begins with the run's input.
    pub messages: Vec<Message>,
    /// What the model may ask for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    /// Most tokens of the reply.
    pub max_output_tokens: u32,
    /// Where its files are, for a provider that works on files.
    #[serde(skip)]
    pub place: Option<Place>,
}

/// What a provider may leave in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLimits {
    /// Most files.
    pub most: usize,
    /// Most bytes of all of them.
    pub bytes: u64,
}

/// A directory for one call: `in/` holds what is given, what is in `out/` when the call succeeds is taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// It is gone after the call.
    pub directory: PathBuf,
    /// The run's artifacts.
    pub given: Vec<Given>,
}

/// An artifact that a provider is given as a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Given {
    /// Its identifier.
    pub id: ArtifactId,
    /// What its uploader calls it.
    pub filename: String,
    /// What its uploader says of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Bytes.
    pub size: u64,
    /// Their SHA-256 in lower-case hexadecimal.
    pub sha256: String,
    /// The file, relative to the directory.
    pub path: String,
}

/// One contribution to the conversation.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum Message {
    /// The run's input, or an earlier one of its thread.
    User {
        /// Text, or another JSON value.
        content: Value,
    },
    /// An earlier reply.
    Assistant {
        /// Its text, perhaps empty.
        content: Value,
        /// What it asked for.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
    },
    /// What came of a tool call.
    Tool {
        /// Which one.
        id: String,
        /// The result.
        content: Value,
    },
}

/// A tool as a model sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub description: &'static str,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
}

/// A model's wish to use a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's name for this use.
    pub id: String,
    /// The tool's name, as the model wrote it.
    pub name: String,
    /// Its arguments; the text itself when the model wrote no JSON.
    pub arguments: Value,
}

/// What a provider answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// What it made.
    pub content: Content,
    /// What it wants to use before it goes on; none when it is done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// What it says it took; nothing when it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Whether the reply was cut at `max_output_tokens`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// What a provider made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    /// Text of a model.
    Text(String),
    /// A JSON value as it is.
    Json(Value),
}

/// Tokens of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the request, those read from or written to a cache included.
    pub input_tokens: u64,
    /// Tokens of the reply.
    pub output_tokens: u64,
}

/// Why a call brought no reply. The details name statuses and identifiers, never keys, requests or replies.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The provider limits requests (429): the run pauses (Work §5).
    #[error("{detail}")]
    Limited {
        /// How long the provider asks to wait, unbounded; nothing when it does not say.
        wait: Option<Duration>,
        /// What it said.
        detail: String,
    },
    /// The provider refuses this request: another attempt would end alike.
    #[error("{detail}")]
    Rejected {
        /// What it said.
        detail: String,
    },
    /// The provider failed or was not reached.
    #[error("{detail}")]
    Failed {
        /// What happened.
        detail: String,
        /// Whether another attempt may help.
        retry: Retry,
        /// Whether the call may have been made and so has to be charged as if it was.
        charged: bool,
    },
}

/// Whether another attempt at a failed call may help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// No.
    Never,
    /// After a wait of the caller's choice.
    Backoff,
    /// After this wait.
    After(Duration),
}

impl CallError {
    fn rejected(detail: impl Into<String>) -> Self {
        Self::Rejected {
            detail: detail.into(),
        }
    }

    /// A failure after which it is not known what the provider did.
    fn lost(detail: impl Into<String>) -> Self {
        Self::Failed {
            detail: detail.into(),
            retry: Retry::Backoff,
            charged: true,
        }
    }
}
