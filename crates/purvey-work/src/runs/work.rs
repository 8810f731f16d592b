//! What a worker writes while it holds a run: steps, calls and their cost, pauses.

use super::{
    CLAIMABLE, LIMITED, LONGEST_WAIT,
    event::{self, Happened},
    finish::{Outcome, end},
    json,
    live::{Lease, Live},
    promote::promote,
    slots::Slots,
    text,
};
use crate::{
    budget,
    clock::{Cx, Timestamp},
    code::Code,
    error::{Error, LimitDetail},
    id::RunId,
    model::{RunStatus, StepKind, StepState},
    sql::{Param, Session},
};
use serde_json::Value;
use std::collections::HashMap;

/// What came of asking for leave to make a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Begun {
    /// Its cost is reserved: make it, then settle it.
    Go,
    /// A limit is met: the run must end `failed` with its code.
    Refused(LimitDetail),
}

/// A call of a provider within a step; retries within the step are calls of their own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallOf {
    pub(crate) seq: u32,
    /// Its number within the step and attempt, from 1.
    pub(crate) call: u32,
}

/// What is kept of a step, for the attempts that go on from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepDone<'a> {
    pub(crate) seq: u32,
    /// What was asked, where the next attempt needs it.
    pub(crate) request: Option<&'a Value>,
    pub(crate) result: &'a Value,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
}

/// What came of a provider's limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Paused {
    /// The run waits, and can be claimed from then on.
    Until(Timestamp),
    /// It was the fifth in a row, or the wait would reach the time limit: the run has failed.
    Failed,
}

/// Begins a step, or goes on with one that an earlier attempt began. Asked again after an answer that got lost, it does nothing.
///
/// # Errors
/// [`Error::LeaseLost`]; [`Error::Store`] when the step is done already.
pub(crate) fn begin_step(
    session: &mut dyn Session,
    cx: Cx<'_>,
    lease: &Lease,
    seq: u32,
    kind: StepKind,
    name: Option<&str>,
) -> Result<(), Error> {
    Live::leased(session, lease)?;
    started(session, cx, lease, seq, kind, name)
}

/// A step of a run that is held begins.
pub(super) fn started(
    session: &mut dyn Session,
    cx: Cx<'_>,
    lease: &Lease,
    seq: u32,
    kind: StepKind,
    name: Option<&str>,
) -> Result<(), Error> {
    let begun = session.execute(
        "INSERT INTO steps (run_id, seq, attempt, kind, name, state, input_tokens, output_tokens, cost_micros, limited, started_at)
         VALUES ($1, $2, $3, $4, $5, 'started', 0, 0, 0, 0, $6)
         ON CONFLICT (run_id, seq) DO UPDATE SET attempt = excluded.attempt, state = 'started'
         WHERE steps.state <> 'done' AND (steps.state <> 'started' OR steps.attempt <> excluded.attempt)",
        &[
            Param::Text(&lease.run.to_string()),
            Param::Int(seq.into()),
            Param::Int(lease.attempt.into()),
            Param::Text(kind.text()),
            text(name),
            Param::Int(cx.now.millis()),
        ],
    )?;
    if begun == 0 {
        return match is_at(session, lease, seq, StepState::Started)? {
            true => Ok(()),
            false => Err(Error::Store {
                detail: format!("step {seq} of {} is done already", lease.run),
            }),
        };
    }
    let started = Happened::Step(seq, StepState::Started);
    event::record(session, cx, lease.run, &[started])
}

/// Reserves the most that a call can cost (micro-cents), unless a limit is met. Asked again after an answer that got lost, it reserves once.
///
/// # Errors
/// [`Error::LeaseLost`] when the run is no longer the worker's.
pub(crate) fn begin_call(
    session: &mut dyn Session,
    cx: Cx<'_>,
    lease: &Lease,
    call: CallOf,
    most_micros: i64,
) -> Result<Begun, Error> {
    Live::leased(session, lease)?;
    reserve(session, cx, lease, call, most_micros)
}

pub(super) fn reserve(
    session: &mut dyn Session,
    cx: Cx<'_>,
    lease: &Lease,
    call: CallOf,
    most_micros: i64,
) -> Result<Begun, Error> {
    let call = budget::Call {
        workspace: lease.workspace,
        run: lease.run,
        seq: call.seq,
        number: call.call,
        attempt: lease.attempt,
        micros: most_micros,
    };
    let limit = budget::reserve(session, cx, &[call])?.pop().flatten();
    Ok(limit.map_or(Begun::Go, Begun::Refused))
}

/// Puts what a call cost (micro-cents) in the place of what was reserved for it. A call that is settled already costs nothing again.
///
/// # Errors
/// [`Error::LeaseLost`] when the run is no longer the worker's: then its reservation was charged.
pub(crate) fn settle_call(
    session: &mut dyn Session,
    lease: &Lease,
    call: CallOf,
    micros: i64,
) -> Result<(), Error> {
    Live::leased(session, lease)?;
    settle(session, lease, call, micros)
}

pub(super) fn settle(
    session: &mut dyn Session,
    lease: &Lease,
    call: CallOf,
    micros: i64,
) -> Result<(), Error> {
    if let Some(micros) = budget::settle(session, lease.run, call.seq, call.call, micros)? {
        cost(session, lease.run, call.seq, micros)?;
    }
    Ok(())
}

/// Keeps the result of a step: it is never done again. Asked again after an answer that got lost, it does nothing.
///
/// # Errors
/// [`Error::LeaseLost`]; [`Error::Store`] when the step was not begun.
pub(crate) fn checkpoint(
    session: &mut dyn Session,
    cx: Cx<'_>,
    lease: &Lease,
    step: &StepDone<'_>,
) -> Result<(), Error> {
    Live::leased(session, lease)?;
    if done(session, cx, lease, step)? {
        let done = Happened::Step(step.seq, StepState::Done);
        event::record(session, cx, lease.run, &[done])?;
    }
    Ok(())
}

/// Settles a call and keeps the result of its step, as [`settle_call`] and [`checkpoint`] do.
///
/// # Errors
/// Those of both.
pub(crate) fn keep(
    session: &mut dyn Session,
    cx: Cx<'_>,
    lease: &Lease,
    (call, micros): (CallOf, i64),
    step: &StepDone<'_>,
) -> Result<(), Error> {
    settle_call(session, lease, call, micros)?;
    checkpoint(session, cx, lease, step)
}

/// Keeps the result of a step of a run that is held; whether it was not kept before.
pub(super) fn done(
    session: &mut dyn Session,
    cx: Cx<'_>,
    lease: &Lease,
    step: &StepDone<'_>,
) -> Result<bool, Error> {
    let count = |tokens: u64| Param::Int(i64::try_from(tokens).unwrap_or(i64::MAX));
    let request = step.request.map(Value::to_string);
    let kept = session.execute(
        "UPDATE steps SET state = 'done', request = $4, result = $5, input_tokens = $6, output_tokens = $7, finished_at = $8
         WHERE run_id = $1 AND seq = $2 AND attempt = $3 AND state <> 'done'",
        &[
            Param::Text(&lease.run.to_string()),
            Param::Int(step.seq.into()),
            Param::Int(lease.attempt.into()),
            text(request.as_deref()),
            Param::Text(&step.result.to_string()),
            count(step.input_tokens),
            count(step.output_tokens),
            Param::Int(cx.now.millis()),
        ],
    )?;
    if kept == 0 {
        return match is_at(session, lease, step.seq, StepState::Done)? {
            true => Ok(false),
            false => Err(Error::Store {
                detail: format!(
                    "step {} of {} is done before it was begun",
                    step.seq, lease.run
                ),
            }),
        };
    }
    Ok(true)
}

/// Whether this attempt has brought a step to this state.
fn is_at(
    session: &mut dyn Session,
    lease: &Lease,
    seq: u32,
    state: StepState,
) -> Result<bool, Error> {
    let row = session.row(
        "SELECT seq FROM steps WHERE run_id = $1 AND seq = $2 AND attempt = $3 AND state = $4",
        &[
            Param::Text(&lease.run.to_string()),
            Param::Int(seq.into()),
            Param::Int(lease.attempt.into()),
            Param::Text(state.text()),
        ],
    )?;
    Ok(row.is_some())
}

/// Pauses a run because its provider limits it: it keeps its slot, and goes on by itself with this step at `resets_at`, or fifteen minutes
/// from now if that is sooner. The lease ends.
///
/// # Errors
/// [`Error::LeaseLost`]; [`Error::Store`] when the step was not begun.
pub(crate) fn pause(
    session: &mut dyn Session,
    cx: Cx<'_>,
    lease: &Lease,
    seq: u32,
    resets_at: Timestamp,
) -> Result<Paused, Error> {
    // The run may end here, so its workspace is held first.
    let mut slots = Slots::of(session, lease.workspace)?;
    let live = Live::leased(session, lease)?;
    charge(session, &[lease.run])?;
    let run = lease.run.to_string();
    let limited = session
        .row(
            "UPDATE steps SET state = 'paused', limited = limited + 1 WHERE run_id = $1 AND seq = $2 AND state <> 'done'
             RETURNING limited",
            &[Param::Text(&run), Param::Int(seq.into())],
        )?
        .ok_or_else(|| Error::Store {
            detail: format!("step {seq} of {} is paused before it was begun", lease.run),
        })?
        .int(0)?;
    let paused = Happened::Step(seq, StepState::Paused);
    event::record(session, cx, lease.run, &[paused])?;
    let until = resets_at.max(cx.now).min(cx.now.after(LONGEST_WAIT));
    let limit = LimitDetail {
        resets_at: Some(until),
        consecutive: u32::try_from(limited).ok(),
        ..LimitDetail::of(Code::ProviderRateLimited)
    };
    if limited >= LIMITED || live.deadline_at.is_some_and(|deadline| until >= deadline) {
        let outcome = Outcome::failed(Code::ProviderRateLimited, Some(limit));
        end(session, cx, &mut slots, &live, &outcome)?;
        promote(session, cx, &mut slots)?;
        slots.save(session)?;
        return Ok(Paused::Failed);
    }
    session.execute(
        "UPDATE runs SET status = 'paused_limit_exceeded', lease_owner = NULL, due_at = $2, error_code = $3, error_detail = $4,
            limit_detail = $5 WHERE id = $1",
        &[
            Param::Text(&run),
            Param::Int(until.millis()),
            Param::Text(Code::ProviderRateLimited.text()),
            Param::Text(Code::ProviderRateLimited.detail()),
            Param::Text(&json(&limit)?),
        ],
    )?;
    let paused = Happened::Status(RunStatus::Paused, Some(&limit));
    event::record(session, cx, lease.run, &[paused])?;
    session.notify(CLAIMABLE)?;
    Ok(Paused::Until(until))
}

/// Charges these runs for calls whose outcome will never be known.
pub(super) fn charge(session: &mut dyn Session, runs: &[RunId]) -> Result<(), Error> {
    for (run, seq, micros) in budget::charge(session, runs, &HashMap::new())? {
        cost(session, run, seq, micros)?;
    }
    Ok(())
}

/// Adds to what a step and its run have cost.
pub(super) fn cost(
    session: &mut dyn Session,
    run: RunId,
    seq: u32,
    micros: i64,
) -> Result<(), Error> {
    let run = run.to_string();
    session.execute(
        "UPDATE steps SET cost_micros = cost_micros + $3 WHERE run_id = $1 AND seq = $2",
        &[
            Param::Text(&run),
            Param::Int(seq.into()),
            Param::Int(micros),
        ],
    )?;
    session.execute(
        "UPDATE runs SET cost_micros = cost_micros + $2 WHERE id = $1",
        &[Param::Text(&run), Param::Int(micros)],
    )?;
    Ok(())
}
