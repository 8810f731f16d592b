//! Runs and steps as callers read them.

use super::event;
use crate::{
    budget::cents,
    clock::Timestamp,
    error::Error,
    id::{AgentId, RunId, TurnId, WorkspaceId},
    model::{Run, RunStatus, Step, Turn, WaitingFor, WaitingReason},
    paging::{Listing, PageRequest},
    sql::{Param, Row, Session},
};
use std::fmt::Write as _;

const RUN: &str = "id, workspace_id, agent_id, status, queued_since, started_at, finished_at, input, output, error_code, error_detail,
    limit_detail, verification_status, verification_errors, cost_micros, attempt, trigger_id, turn_id, started_by, artifacts, created_at,
    position, blocked, thread_id, produced";

/// Which runs of a workspace to list.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Filter {
    pub(crate) status: Option<RunStatus>,
    pub(crate) agent: Option<AgentId>,
}

/// A run as it is now; who may see it is judged by its workspace and organization.
///
/// # Errors
/// Those of the store.
pub(crate) fn run(session: &mut dyn Session, id: RunId) -> Result<Option<Run>, Error> {
    let row = session.row(
        &format!("SELECT {RUN} FROM runs WHERE id = $1"),
        &[Param::Text(&id.to_string())],
    )?;
    let Some(row) = row else { return Ok(None) };
    let mut runs = [Waiting::read(&row)?];
    place(session, &mut runs)?;
    let [Waiting { run, .. }] = runs;
    Ok(Some(run))
}

/// Runs of a workspace, newest first.
///
/// # Errors
/// `request.invalid` for a cursor that is not a run's identifier.
pub(crate) fn list(
    session: &mut dyn Session,
    workspace: WorkspaceId,
    filter: Filter,
    page: &PageRequest,
) -> Result<Listing<Run>, Error> {
    let workspace = workspace.to_string();
    let before = page.before::<RunId>()?;
    let agent = filter.agent.map(|agent| agent.to_string());
    let mut sql = format!("SELECT {RUN} FROM runs WHERE workspace_id = $1 AND id < $2");
    let mut params = vec![Param::Text(&workspace), Param::Text(&before)];
    let filters = [
        ("agent_id", agent.as_deref()),
        ("status", filter.status.map(RunStatus::text)),
    ];
    for (column, wanted) in filters {
        if let Some(wanted) = wanted {
            params.push(Param::Text(wanted));
            let _ = write!(sql, " AND {column} = ${}", params.len());
        }
    }
    params.push(Param::Int(page.rows()));
    let _ = write!(sql, " ORDER BY id DESC LIMIT ${}", params.len());
    let mut runs = session
        .query(&sql, &params)?
        .iter()
        .map(Waiting::read)
        .collect::<Result<Vec<_>, _>>()?;
    place(session, &mut runs)?;
    Ok(page.listing(
        runs.into_iter().map(|waiting| waiting.run).collect(),
        |run: &Run| run.id,
    ))
}

/// The steps of a run in their order, at most `most` after step `after`.
///
/// # Errors
/// Those of the store.
pub(crate) fn steps(
    session: &mut dyn Session,
    run: RunId,
    after: u32,
    most: usize,
) -> Result<Vec<Step>, Error> {
    session
        .query(
            "SELECT seq, attempt, kind, name, state, input_tokens, output_tokens, cost_micros, result, started_at, finished_at
             FROM steps WHERE run_id = $1 AND seq > $2 ORDER BY seq LIMIT $3",
            &[
                Param::Text(&run.to_string()),
                Param::Int(after.into()),
                Param::Int(i64::try_from(most).unwrap_or(i64::MAX)),
            ],
        )?
        .iter()
        .map(step)
        .collect()
}

/// A turn of a thread.
///
/// # Errors
/// Those of the store.
pub(crate) fn turn(session: &mut dyn Session, id: TurnId) -> Result<Option<Turn>, Error> {
    let row = session.row(
        "SELECT id, thread_id, requester, input, state, run_id, created_at FROM turns WHERE id = $1",
        &[Param::Text(&id.to_string())],
    )?;
    row.map(|row| {
        let missing = || Error::Store {
            detail: format!("{id} lacks its input"),
        };
        Ok(Turn {
            id: row.parsed(0)?,
            thread_id: row.parsed(1)?,
            requester: row.parsed(2)?,
            input: row.json(3)?.ok_or_else(missing)?,
            state: row.parsed(4)?,
            run_id: row.opt_text(5)?.map(|_| row.parsed(5)).transpose()?,
            created_at: Timestamp::from_millis(row.int(6)?),
        })
    })
    .transpose()
}

fn step(row: &Row) -> Result<Step, Error> {
    Ok(Step {
        seq: number(row, 0)?,
        attempt: number(row, 1)?,
        kind: row.parsed(2)?,
        name: row.opt_text(3)?.map(Into::into),
        state: row.parsed(4)?,
        input_tokens: u64::try_from(row.int(5)?).unwrap_or(0),
        output_tokens: u64::try_from(row.int(6)?).unwrap_or(0),
        cost_cents: cents(row.int(7)?),
        result: row.json(8)?,
        started_at: Timestamp::from_millis(row.int(9)?),
        finished_at: row.opt_int(10)?.map(Timestamp::from_millis),
    })
}

/// A run and where it stands in its queue.
struct Waiting {
    run: Run,
    position: i64,
    blocked: bool,
    thread: Option<String>,
}

impl Waiting {
    fn read(row: &Row) -> Result<Self, Error> {
        let time = |column| Ok::<_, Error>(row.opt_int(column)?.map(Timestamp::from_millis));
        let missing = || Error::Store {
            detail: "a run lacks its input or artifacts".into(),
        };
        let run = Run {
            id: row.parsed(0)?,
            workspace_id: row.parsed(1)?,
            agent_id: row.parsed(2)?,
            status: row.parsed(3)?,
            queued_since: time(4)?,
            waiting_for: None,
            started_at: time(5)?,
            finished_at: time(6)?,
            input: row.json(7)?.ok_or_else(missing)?,
            output: row.json(8)?,
            error_code: row.opt_text(9)?.and_then(crate::code::Code::from_text),
            error_detail: row.opt_text(10)?.map(Into::into),
            limit_detail: row.json(11)?,
            verification_status: row.parsed(12)?,
            verification_errors: row.json(13)?.unwrap_or_default(),
            cost_cents: cents(row.int(14)?),
            attempt: number(row, 15)?,
            trigger_id: row.opt_text(16)?.map(|_| row.parsed(16)).transpose()?,
            turn_id: row.opt_text(17)?.map(|_| row.parsed(17)).transpose()?,
            started_by: row.parsed(18)?,
            artifacts: row.json(19)?.ok_or_else(missing)?,
            produced: row.json(24)?.unwrap_or_default(),
            created_at: Timestamp::from_millis(row.int(20)?),
        };
        Ok(Self {
            run,
            position: row.opt_int(21)?.unwrap_or(0),
            blocked: row.int(22)? != 0,
            thread: row.opt_text(23)?.map(Into::into),
        })
    }
}

/// Finds how many go before each run that waits. What lies between two runs of the list is counted once.
fn place(session: &mut dyn Session, runs: &mut [Waiting]) -> Result<(), Error> {
    let mut queued: Vec<&mut Waiting> = Vec::new();
    for waiting in runs {
        if waiting.run.status != RunStatus::Pending {
            continue;
        }
        match &waiting.thread {
            Some(thread) if waiting.blocked => {
                let before = session.row(
                    "SELECT COUNT(*) FROM runs WHERE thread_id = $1 AND finished_at IS NULL AND (blocked = 0 OR position < $2)",
                    &[Param::Text(thread), Param::Int(waiting.position)],
                )?;
                waiting.run.waiting_for = Some(WaitingFor {
                    reason: WaitingReason::Thread,
                    position: rank(before.map_or(Ok(0), |row| row.int(0))?),
                });
            }
            _ => queued.push(waiting),
        }
    }
    queued.sort_unstable_by_key(|waiting| waiting.position);
    let (mut from, mut before) = (i64::MIN, 0);
    for waiting in queued {
        let counted = session.row(
            "SELECT COUNT(*) FROM runs WHERE workspace_id = $1 AND status = 'pending' AND blocked = 0
                AND position >= $2 AND position < $3",
            &[
                Param::Text(&waiting.run.workspace_id.to_string()),
                Param::Int(from),
                Param::Int(waiting.position),
            ],
        )?;
        before += counted.map_or(Ok(0), |row| row.int(0))?;
        from = waiting.position;
        waiting.run.waiting_for = Some(WaitingFor {
            reason: WaitingReason::Concurrency,
            position: rank(before),
        });
    }
    Ok(())
}

fn rank(before: i64) -> u64 {
    u64::try_from(before).unwrap_or(0) + 1
}

fn number(row: &Row, column: usize) -> Result<u32, Error> {
    Ok(u32::try_from(row.int(column)?).unwrap_or(u32::MAX))
}

/// Something that happened to a run, as its watchers are told.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    /// Its number within the run, from 1: where a watcher goes on after it.
    pub(crate) seq: u32,
    pub(crate) what: EventData,
}

/// The run or the step that changed, as it was then.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum EventData {
    /// A change of status.
    Status(Box<Run>),
    /// A change of a step.
    Step(Box<Step>),
    /// The output is there.
    Output(Box<Run>),
}

/// What happened to a run after event `after`, at most `most`. Cost and attempt are those of now.
///
/// # Errors
/// Those of the store.
pub(crate) fn events(
    session: &mut dyn Session,
    run: &Run,
    after: u32,
    most: usize,
) -> Result<Vec<Event>, Error> {
    let rows = session.query(
        "SELECT e.seq, e.kind, e.data FROM events e WHERE e.run_id = $1 AND e.seq > $2 ORDER BY e.seq LIMIT $3",
        &[
            Param::Text(&run.id.to_string()),
            Param::Int(after.into()),
            Param::Int(i64::try_from(most).unwrap_or(i64::MAX)),
        ],
    )?;
    let broken = || Error::Store {
        detail: format!("an event of {} does not hold what it should", run.id),
    };
    let mut events = Vec::with_capacity(rows.len());
    for row in rows {
        let what = match row.text(1)? {
            "status" => EventData::Status(Box::new(
                row.json::<event::StatusChange>(2)?
                    .ok_or_else(broken)?
                    .apply(run.clone()),
            )),
            "step" => {
                let change: event::StepChange = row.json(2)?.ok_or_else(broken)?;
                let before = change.seq.saturating_sub(1);
                let step = steps(session, run.id, before, 1)?
                    .pop()
                    .ok_or_else(broken)?;
                EventData::Step(Box::new(change.apply(step)))
            }
            _ => EventData::Output(Box::new(run.clone())),
        };
        let seq = number(&row, 0)?;
        events.push(Event { seq, what });
    }
    Ok(events)
}
