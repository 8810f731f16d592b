//! What watchers of a run are told: a row for each change of status or step, numbered within the run from 1.

use super::json;
use crate::{
    clock::Cx,
    code::Code,
    error::{Error, LimitDetail},
    id::RunId,
    model::{Run, RunStatus, Step, StepState, VerificationStatus},
    sql::{Param, Session},
};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

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

/// Keeps events in their order and wakes who watches the run.
pub(super) fn record(
    session: &mut dyn Session,
    cx: Cx<'_>,
    run: RunId,
    happened: &[Happened<'_>],
) -> Result<(), Error> {
    let run = run.to_string();
    let kept = happened
        .iter()
        .map(Happened::kept)
        .collect::<Result<Vec<_>, _>>()?;
    let mut sql = String::from(
        "INSERT INTO events (run_id, seq, kind, data, at)
         SELECT $1, last.seq + new.column1, new.column2, new.column3, CAST($2 AS BIGINT)
         FROM (SELECT COALESCE(MAX(seq), 0) AS seq FROM events WHERE run_id = $1) AS last, (VALUES ",
    );
    let mut params = vec![Param::Text(&run), Param::Int(cx.now.millis())];
    for (index, (kind, data)) in kept.iter().enumerate() {
        let (comma, kind_at, data_at) = (
            if index == 0 { "" } else { ", " },
            params.len() + 1,
            params.len() + 2,
        );
        let _ = write!(sql, "{comma}({}, ${kind_at}, ${data_at})", index + 1);
        params.extend([Param::Text(kind), Param::Text(data)]);
    }
    sql.push_str(") AS new");
    session.execute(&sql, &params)?;
    session.notify(&run)
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
