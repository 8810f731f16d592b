//! A start, whichever way in it comes, and what is answered to it.

use crate::{
    access::Actor,
    id::{AgentId, ArtifactId, ThreadId, TriggerId, TurnId, UserId},
    idempotency::Key,
    model::{Run, Turn},
};
use serde_json::Value;

/// A start of a run. Its shape was judged before (422).
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) by: By,
    pub(crate) target: Target,
    pub(crate) input: Value,
    pub(crate) artifacts: Vec<ArtifactId>,
    pub(crate) key: Option<Key>,
}

/// The principal of a start, whose key it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// A user, by a token of theirs.
    User(Actor),
    /// A trigger, which acts for its creator.
    Trigger(TriggerId),
    /// Who sent a turn that waits.
    Requester(UserId),
}

/// What a start starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// An agent.
    Agent(AgentId),
    /// A new turn of a thread.
    Thread(ThreadId),
    /// A turn that waits: its thread has been resumed. The start's principal and input are the turn's.
    Turn(ThreadId, TurnId),
}

/// A start that was accepted, now or before.
#[derive(Clone, Debug)]
pub(crate) struct Admission {
    /// The run as it is now.
    pub(crate) run: Run,
    /// Whether the key had named this start before.
    pub(crate) replayed: bool,
    /// The turn that the run answers.
    pub(crate) turn: Option<Turn>,
}

impl By {
    /// The principal as keys are kept by.
    pub(super) fn text(&self) -> String {
        match self {
            Self::User(actor) => actor.user.to_string(),
            Self::Requester(user) => user.to_string(),
            Self::Trigger(trigger) => trigger.to_string(),
        }
    }
}
