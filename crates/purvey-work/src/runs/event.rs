//! What watchers of a run are told: a row for each change of status or step, numbered within the run from 1.

use super::json;
use crate::{
    clock::Cx,
    code::Code,
    error::{Error, LimitDetail},
    id::RunId,
    model::{Run, RunStatus, Step, StepState, VerificationStatus},
    sql::{Param, Session, parts, values},
};
use serde::{Deserialize, Serialize};

/// What happened to a run. Only what changed is kept; the run or step itself is read when the event is.
pub(super) enum Happened<'a> {
    /// Where the run stands now, and why it is paused if it is.
    Status(RunStatus, Option<&'a LimitDetail>),
    /// A step began, stopped or was done.
    Step(u32, StepState),
    /// The run's output is there.
    Output,
}

#[derive(Serialize, Deserialize)]
pub(super) struct StatusChange {
    pub(super) status: RunStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error_code: Option<Code>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) limit_detail: Option<LimitDetail>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct StepChange {
    pub(super) seq: u32,
    pub(super) state: StepState,
}

impl Happened<'_> {
    /// The kind and the data that are kept.
    fn kept(&self) -> Result<(&'static str, String), Error> {
        Ok(match *self {
            Happened::Status(status, limit) => {
                let limit_detail = limit.cloned();
                let error_code = limit.map(|limit| limit.code);
                let change = StatusChange {
                    status,
                    error_code,
                    limit_detail,
                };
                ("status", json(&change)?)
            }
            Happened::Step(seq, state) => ("step", json(&StepChange { seq, state })?),
            Happened::Output => ("output", "{}".into()),
        })
    }
}

/// Keeps what happened to a run, in its order, and wakes who watches it.
pub(super) fn record(
    session: &mut dyn Session,
    cx: Cx<'_>,
    run: RunId,
    happened: &[Happened<'_>],
) -> Result<(), Error> {
    let happened: Vec<_> = happened.iter().map(|happened| (run, happened)).collect();
    record_all(session, cx, &happened)
}

/// [`record`] for several runs; what belongs to one run follows each other.
pub(super) fn record_all(
    session: &mut dyn Session,
    cx: Cx<'_>,
    happened: &[(RunId, &Happened<'_>)],
) -> Result<(), Error> {
    let mut kept = Vec::with_capacity(happened.len());
    for (run, happened) in happened {
        let (kind, data) = happened.kept()?;
        kept.push((run.to_string(), kind, data));
    }
    for part in parts(&kept) {
        let mut rows = Vec::with_capacity(part.len());
        let mut number = 0;
        for (index, (run, kind, data)) in part.iter().enumerate() {
            let before = index.checked_sub(1).and_then(|before| part.get(before));
            let goes_on = before.is_some_and(|(before, ..)| before == run);
            number = if goes_on { number + 1 } else { 1 };
            rows.push([
                Param::Text(run),
                Param::Int(number),
                Param::Text(kind),
                Param::Text(data),
            ]);
        }
        let mut params = vec![Param::Int(cx.now.millis())];
        let new = values(["", "BIGINT", "", ""], &rows, &mut params);
        session.execute(
            &format!(
                "INSERT INTO events (run_id, seq, kind, data, at)
                 SELECT n.column1, n.column2 + COALESCE((SELECT MAX(seq) FROM events WHERE run_id = n.column1), 0), n.column3, n.column4,
                    CAST($1 AS BIGINT)
                 FROM {new} AS n"
            ),
            &params,
        )?;
    }
    kept.dedup_by(|a, b| a.0 == b.0);
    kept.iter().try_for_each(|(run, ..)| session.notify(run))
}

impl StatusChange {
    /// A run as it was when it came to this status.
    pub(super) fn apply(self, run: Run) -> Run {
        if self.status.is_terminal() {
            return run;
        }
        let pending = self.status == RunStatus::Pending;
        Run {
            status: self.status,
            waiting_for: run.waiting_for.filter(|_| pending),
            started_at: run.started_at.filter(|_| !pending),
            finished_at: None,
            output: None,
            error_detail: self.error_code.map(|code| code.detail().into()),
            error_code: self.error_code,
            limit_detail: self.limit_detail,
            verification_status: match run.verification_status {
                VerificationStatus::NotRequired => VerificationStatus::NotRequired,
                _ => VerificationStatus::Pending,
            },
            verification_errors: Vec::new(),
            ..run
        }
    }
}

impl StepChange {
    /// A step as it was when it came to this state.
    pub(super) fn apply(self, step: Step) -> Step {
        if self.state == StepState::Done {
            return step;
        }
        Step {
            state: self.state,
            result: None,
            finished_at: None,
            ..step
        }
    }
}
