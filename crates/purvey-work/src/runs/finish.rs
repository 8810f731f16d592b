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
    end(session, cx, &mut slots, &live, outcome, None)?;
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

/// Ends a run whose row and workspace the caller holds, after what else has happened to it; the caller promotes and saves.
pub(super) fn end(
    session: &mut dyn Session,
    cx: Cx<'_>,
    slots: &mut Slots,
    live: &Live,
    outcome: &Outcome,
    before: Option<Happened<'_>>,
) -> Result<(), Error> {
    let status = outcome.status();
    let id = live.id.to_string();
    if live.attempt > 0 {
        charge(session, &[live.id])?;
    }
    let mut output = None;
    let mut errors = None;
    let mut verification = live.verification;
    let (code, detail, limit) = match outcome {
        Outcome::Succeeded {
            output: made,
            verified,
        } => {
            output = Some(made.to_string());
            verification = if *verified {
                VerificationStatus::Verified
            } else {
                VerificationStatus::NotRequired
            };
            (None, None, None)
        }
        Outcome::Broken {
            output: made,
            errors: broken,
        } => {
            output = Some(made.to_string());
            errors = Some(json(broken)?);
            verification = VerificationStatus::Failed;
            let code = Code::VerificationFailed;
            (Some(code), Some(code.detail()), None)
        }
        Outcome::Failed {
            code,
            detail,
            limit,
        } => (Some(*code), Some(detail.as_str()), limit.as_ref()),
        Outcome::Cancelled => (None, None, None),
    };
    let limit = limit.map(json).transpose()?;
    session.execute(
        "UPDATE runs SET status = $2, finished_at = $3, output = $4, error_code = $5, error_detail = $6, limit_detail = $7,
            verification_status = $8, verification_errors = $9, lease_owner = NULL, due_at = NULL, blocked = 0
         WHERE id = $1",
        &[
            Param::Text(&id),
            Param::Text(status.text()),
            Param::Int(cx.now.millis()),
            text(output.as_deref()),
            text(code.map(Code::text)),
            text(detail),
            text(limit.as_deref()),
            Param::Text(verification.text()),
            text(errors.as_deref()),
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
    answer_turn(session, live, status, code)?;
    let made = output.map(|_| Happened::Output);
    let ended = Happened::Status(status, None);
    let happened: Vec<_> = before.into_iter().chain(made).chain([ended]).collect();
    event::record(session, cx, live.id, &happened)
}

/// Tells the run's turn what became of it, and lets the next turn of the thread go on.
fn answer_turn(
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
