//! The end of a run, whoever brings it about: one place where a slot is given back.

use super::{
    event::{self, Happened},
    json,
    live::{Lease, Live},
    promote::promote,
    slots::Slots,
    text,
    work::charge,
};
use crate::{
    clock::Cx,
    code::Code,
    error::{Error, LimitDetail},
    model::{RunStatus, TurnState, VerificationError, VerificationStatus},
    sql::{Param, Session},
};
use serde_json::Value;

/// What a worker made of a run; its output was held to the contract before.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// Done; `verified` tells whether there was a contract, which the output fits.
    Succeeded { output: Value, verified: bool },
    /// The output breaks the contract, in at least one place.
    Broken {
        output: Value,
        errors: Vec<VerificationError>,
    },
    /// It cannot go on.
    Failed {
        code: Code,
        /// What happened, without anyone's secrets.
        detail: String,
        /// The limit that was met, if one was.
        limit: Option<LimitDetail>,
    },
    /// It was stopped because a caller asked.
    Cancelled,
}

/// Ends a run that a worker has leased, gives its slot back and lets the next begin.
///
/// # Errors
/// [`Error::LeaseLost`] when the run is no longer the worker's.
pub(crate) fn finish(
    session: &mut dyn Session,
    cx: Cx<'_>,
    lease: &Lease,
    outcome: &Outcome,
) -> Result<RunStatus, Error> {
    let mut slots = Slots::of(session, lease.workspace)?;
    let live = Live::leased(session, lease)?;
    end(session, cx, &mut slots, &live, outcome)?;
    promote(session, cx, &mut slots)?;
    slots.save(session)?;
    Ok(outcome.status())
}

/// Holds the workspace of a run that may end in this transaction, for workers that write something before: workspaces are held first.
///
/// # Errors
/// Those of the store.
pub(crate) fn hold_workspace(session: &mut dyn Session, lease: &Lease) -> Result<(), Error> {
    Slots::of(session, lease.workspace).map(|_| ())
}

impl Outcome {
    /// A failure in the code's own words.
    pub(super) fn failed(code: Code, limit: Option<LimitDetail>) -> Self {
        Self::Failed {
            code,
            detail: code.detail().into(),
            limit,
        }
    }

    const fn status(&self) -> RunStatus {
        match self {
            Self::Succeeded { .. } => RunStatus::Succeeded,
            Self::Broken { .. } | Self::Failed { .. } => RunStatus::Failed,
            Self::Cancelled => RunStatus::Cancelled,
        }
    }
}

/// Ends a run whose row and workspace the caller holds; the caller promotes and saves.
pub(super) fn end(
    session: &mut dyn Session,
    cx: Cx<'_>,
    slots: &mut Slots,
    live: &Live,
    outcome: &Outcome,
) -> Result<(), Error> {
    let id = live.id.to_string();
    if live.attempt > 0 {
        charge(session, &[live.id])?;
    }
    let ended = Ended::of(outcome, live.verification)?;
    session.execute(
        "UPDATE runs SET status = $2, finished_at = $3, output = $4, error_code = $5, error_detail = $6, limit_detail = $7,
            verification_status = $8, verification_errors = $9, lease_owner = NULL, due_at = NULL, blocked = 0
         WHERE id = $1",
        &[
            Param::Text(&id),
            Param::Text(ended.status.text()),
            Param::Int(cx.now.millis()),
            text(ended.output.as_deref()),
            text(ended.code.map(Code::text)),
            text(ended.detail),
            text(ended.limit.as_deref()),
            Param::Text(ended.verification.text()),
            text(ended.errors.as_deref()),
        ],
    )?;
    if live.status.holds_slot() {
        slots.running -= 1;
    } else {
        slots.queued -= 1;
    }
    session.execute(
        "UPDATE agents SET unfinished = unfinished - 1 WHERE id = $1",
        &[Param::Text(&live.agent.to_string())],
    )?;
    answer_turn(session, live, ended.status, ended.code)?;
    event::record(session, cx, live.id, &ended.happened())
}

/// How a run that has ended is kept.
pub(super) struct Ended<'a> {
    pub(super) status: RunStatus,
    pub(super) output: Option<String>,
    pub(super) code: Option<Code>,
    pub(super) detail: Option<&'a str>,
    pub(super) limit: Option<String>,
    pub(super) verification: VerificationStatus,
    pub(super) errors: Option<String>,
}

impl<'a> Ended<'a> {
    /// By how it ended, and by whether its output was to be held to a contract.
    pub(super) fn of(outcome: &'a Outcome, before: VerificationStatus) -> Result<Self, Error> {
        let plain = Self {
            status: outcome.status(),
            output: None,
            code: None,
            detail: None,
            limit: None,
            verification: before,
            errors: None,
        };
        Ok(match outcome {
            Outcome::Succeeded { output, verified } => Self {
                output: Some(output.to_string()),
                verification: match verified {
                    true => VerificationStatus::Verified,
                    false => VerificationStatus::NotRequired,
                },
                ..plain
            },
            Outcome::Broken { output, errors } => Self {
                output: Some(output.to_string()),
                errors: Some(json(errors)?),
                verification: VerificationStatus::Failed,
                code: Some(Code::VerificationFailed),
                detail: Some(Code::VerificationFailed.detail()),
                ..plain
            },
            Outcome::Failed {
                code,
                detail,
                limit,
            } => Self {
                code: Some(*code),
                detail: Some(detail),
                limit: limit.as_ref().map(json).transpose()?,
                ..plain
            },
            Outcome::Cancelled => plain,
        })
    }

    /// What watchers are told.
    pub(super) fn happened(&self) -> Vec<Happened<'static>> {
        let output = self.output.is_some().then_some(Happened::Output);
        let ended = Happened::Status(self.status, None);
        output.into_iter().chain([ended]).collect()
    }
}

/// Tells the run's turn what became of it, and lets the next turn of the thread go on.
pub(super) fn answer_turn(
    session: &mut dyn Session,
    live: &Live,
    status: RunStatus,
    code: Option<Code>,
) -> Result<(), Error> {
    let (Some(thread), Some(turn)) = (live.thread, live.turn) else {
        return Ok(());
    };
    let state = match (status, code) {
        (RunStatus::Succeeded, _) => TurnState::Answered,
        // Its request waits for the thread to resume.
        (_, Some(Code::DequeueThreadPaused)) => TurnState::Waiting,
        _ => TurnState::Failed,
    };
    session.execute(
        "UPDATE turns SET state = $2 WHERE id = $1 AND state = 'waiting'",
        &[Param::Text(&turn.to_string()), Param::Text(state.text())],
    )?;
    if !live.blocked {
        session.execute(
            "UPDATE runs SET blocked = 0 WHERE id = (
                SELECT id FROM runs WHERE thread_id = $1 AND finished_at IS NULL AND blocked = 1 ORDER BY position LIMIT 1)",
            &[Param::Text(&thread.to_string())],
        )?;
    }
    Ok(())
}
