//! What watchers of a run are told: a row for each change of status or step, numbered within the run from 1.

use super::json;
use crate::{
    clock::Cx,
    code::Code,
    error::{Error, LimitDetail},
    id::RunId,
    model::{RunStatus, StepState},
    sql::{Param, Session},
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
    pub(super) error_code: Option<Code>,
    pub(super) limit_detail: Option<LimitDetail>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct StepChange {
    pub(super) seq: u32,
    pub(super) state: StepState,
}

/// Keeps an event and wakes who watches the run.
pub(super) fn record(
    session: &mut dyn Session,
    cx: Cx<'_>,
    run: RunId,
    happened: &Happened<'_>,
) -> Result<(), Error> {
    let (kind, data) = match *happened {
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
    };
    let run = run.to_string();
    session.execute(
        "INSERT INTO events (run_id, seq, kind, data, at)
         SELECT $1, COALESCE(MAX(seq), 0) + 1, $2, $3, CAST($4 AS BIGINT) FROM events WHERE run_id = $1",
        &[
            Param::Text(&run),
            Param::Text(kind),
            Param::Text(&data),
            Param::Int(cx.now.millis()),
        ],
    )?;
    session.notify(&run)
}
