//! Leases: how a run that holds a slot gets a worker, keeps it, and gets another when that one is gone.

use super::{
    CLAIMABLE, CRASHES, LEASE,
    event::{self, Happened},
    live::{Lease, Live},
    work::charge,
};
use crate::{
    clock::{Cx, Timestamp},
    error::Error,
    id::RunId,
    model::{Definition, RunStatus, StepKind, StepState},
    sql::{Param, ROWS, Row, Session, values},
};
use serde_json::Value;

/// A run that a worker has taken up, with everything it needs to go on.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) lease: Lease,
    /// When the lease runs out unless it is renewed.
    pub(crate) until: Timestamp,
    /// The agent as it was at admission.
    pub(crate) definition: Definition,
    pub(crate) input: Value,
    /// When its time is over.
    pub(crate) deadline: Timestamp,
    /// Whether it answers a turn of a thread, in which something may have been said before.
    pub(crate) answers_turn: bool,
    /// The steps so far in their order; the last may be unfinished, and is done again under the same number.
    pub(crate) steps: Vec<KeptStep>,
}

/// A step that an earlier attempt began.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeptStep {
    pub(crate) seq: u32,
    pub(crate) kind: StepKind,
    pub(crate) name: Option<String>,
    pub(crate) state: StepState,
    pub(crate) request: Option<Value>,
    /// There when the step is done.
    pub(crate) result: Option<Value>,
    /// How often in a row the provider has limited it.
    pub(crate) limited: u32,
}

/// What a worker is told when it renews a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Renewal {
    /// The run must be stopped, and finished as cancelled.
    pub(crate) cancel: bool,
}

const COLUMNS: &str = "r.id, r.workspace_id, r.definition, r.input, r.attempt, r.deadline_at, r.lease_owner, r.status,
    r.turn_id";

/// Takes up to `most` runs that hold a slot and that nobody works on, for the worker process `node`: those of the workspaces with the
/// fewest runs being worked on first.
///
/// # Errors
/// Those of the store.
pub(crate) fn claim(
    session: &mut dyn Session,
    cx: Cx<'_>,
    node: &str,
    most: usize,
) -> Result<Vec<Claim>, Error> {
    let mut claims = Vec::new();
    for (workspace, share) in shares(session, cx, most)? {
        let rows = session.query(
            &format!(
                "SELECT {COLUMNS} FROM runs r
                 WHERE r.workspace_id = $1 AND r.status IN ('running', 'paused_limit_exceeded') AND r.due_at <= $2
                    AND r.deadline_at > $2 AND r.cancel_requested = 0 AND (r.lease_owner IS NULL OR r.crashes < $3)
                 ORDER BY r.due_at, r.id LIMIT $4 /*pg:FOR UPDATE SKIP LOCKED*/"
            ),
            &[
                Param::Text(&workspace),
                Param::Int(cx.now.millis()),
                Param::Int(CRASHES - 1),
                Param::Int(share),
            ],
        )?;
        lease(session, cx, node, &rows)?;
        for row in &rows {
            claims.push(take(session, cx, node, row)?);
        }
    }
    let crashed: Vec<RunId> = claims
        .iter()
        .filter(|(_, crashed)| *crashed)
        .map(|(claim, _)| claim.lease.run)
        .collect();
    charge(session, &crashed)?;
    Ok(claims.into_iter().map(|(claim, _)| claim).collect())
}

/// How many runs of which workspaces to take: one after the other to the one with the fewest being worked on.
fn shares(session: &mut dyn Session, cx: Cx<'_>, most: usize) -> Result<Vec<(String, i64)>, Error> {
    // The list of workspaces with slots taken is a walk over the index, one seek for each of them.
    let rows = session.query(
        "WITH RECURSIVE w (id) AS (
            SELECT MIN(workspace_id) FROM runs WHERE status IN ('running', 'paused_limit_exceeded')
            UNION ALL
            SELECT (SELECT MIN(workspace_id) FROM runs
                    WHERE status IN ('running', 'paused_limit_exceeded') AND workspace_id > w.id)
            FROM w WHERE w.id IS NOT NULL)
         SELECT w.id, (SELECT COUNT(*) FROM runs WHERE status IN ('running', 'paused_limit_exceeded') AND workspace_id = w.id
                    AND due_at > $1),
                (SELECT COUNT(*) FROM (SELECT 1 FROM runs WHERE status IN ('running', 'paused_limit_exceeded')
                    AND workspace_id = w.id AND due_at <= $1 LIMIT $2) AS due)
         FROM w WHERE w.id IS NOT NULL",
        &[
            Param::Int(cx.now.millis()),
            Param::Int(i64::try_from(most).unwrap_or(i64::MAX)),
        ],
    )?;
    let mut waiting = std::collections::BinaryHeap::new();
    for row in &rows {
        let due = row.int(2)?;
        if due > 0 {
            // The heap gives the greatest, so what is least is turned round; ties go by id.
            let least = std::cmp::Reverse((row.int(1)?, row.text(0)?));
            waiting.push((least, due));
        }
    }
    let mut shares = std::collections::BTreeMap::<&str, i64>::new();
    for _ in 0..most {
        let Some((std::cmp::Reverse((busy, workspace)), due)) = waiting.pop() else {
            break;
        };
        *shares.entry(workspace).or_default() += 1;
        if due > 1 {
            waiting.push((std::cmp::Reverse((busy + 1, workspace)), due - 1));
        }
    }
    Ok(shares
        .into_iter()
        .map(|(workspace, share)| (workspace.to_owned(), share))
        .collect())
}

/// Makes the rows of runs a worker process's.
fn lease(session: &mut dyn Session, cx: Cx<'_>, node: &str, rows: &[Row]) -> Result<(), Error> {
    let mut runs = Vec::with_capacity(rows.len());
    for row in rows {
        let crashed = row.opt_text(6)?.is_some();
        runs.push([Param::Text(row.text(0)?), Param::Int(crashed.into())]);
    }
    for runs in runs.chunks(ROWS) {
        let mut params = vec![Param::Text(node), Param::Int(cx.now.after(LEASE).millis())];
        let these = values(["", "BIGINT"], runs, &mut params);
        session.execute(
            &format!(
                "UPDATE runs SET status = 'running', attempt = attempt + 1, crashes = crashes + n.column2, lease_owner = $1, due_at = $2,
                    error_code = NULL, error_detail = NULL, limit_detail = NULL FROM {these} AS n WHERE runs.id = n.column1"
            ),
            &params,
        )?;
    }
    Ok(())
}

/// What is known of a run that was leased, and whether its last worker was lost.
fn take(
    session: &mut dyn Session,
    cx: Cx<'_>,
    node: &str,
    row: &Row,
) -> Result<(Claim, bool), Error> {
    let run: RunId = row.parsed(0)?;
    let attempt = u32::try_from(row.int(4)?).unwrap_or(u32::MAX - 1) + 1;
    let crashed = row.opt_text(6)?.is_some();
    let status: RunStatus = row.parsed(7)?;
    let until = cx.now.after(LEASE);
    if status == RunStatus::Paused {
        let running = Happened::Status(RunStatus::Running, None);
        event::record(session, cx, run, &[running])?;
    }
    let steps = if attempt == 1 {
        Vec::new()
    } else {
        kept(session, run)?
    };
    let missing = || Error::Store {
        detail: format!("{run} lacks its definition or input"),
    };
    let claim = Claim {
        lease: Lease {
            run,
            workspace: row.parsed(1)?,
            attempt,
            node: node.into(),
        },
        until,
        definition: row.json(2)?.ok_or_else(missing)?,
        input: row.json(3)?.ok_or_else(missing)?,
        deadline: Timestamp::from_millis(row.int(5)?),
        answers_turn: row.opt_text(8)?.is_some(),
        steps,
    };
    Ok((claim, crashed))
}

fn kept(session: &mut dyn Session, run: RunId) -> Result<Vec<KeptStep>, Error> {
    session
        .query(
            "SELECT seq, kind, name, state, request, result, limited FROM steps WHERE run_id = $1 ORDER BY seq",
            &[Param::Text(&run.to_string())],
        )?
        .iter()
        .map(|row| {
            Ok(KeptStep {
                seq: u32::try_from(row.int(0)?).unwrap_or(u32::MAX),
                kind: row.parsed(1)?,
                name: row.opt_text(2)?.map(Into::into),
                state: row.parsed(3)?,
                request: row.json(4)?,
                result: row.json(5)?,
                limited: u32::try_from(row.int(6)?).unwrap_or(u32::MAX),
            })
        })
        .collect()
}

/// Makes a lease hold for as long again.
///
/// # Errors
/// [`Error::LeaseLost`] when the run is no longer the worker's: it must stop at once.
pub(crate) fn renew(
    session: &mut dyn Session,
    cx: Cx<'_>,
    lease: &Lease,
) -> Result<Renewal, Error> {
    let cancel = session
        .row(
            "UPDATE runs SET due_at = $4 WHERE id = $1 AND attempt = $2 AND lease_owner = $3 AND finished_at IS NULL
             RETURNING cancel_requested",
            &[
                Param::Text(&lease.run.to_string()),
                Param::Int(lease.attempt.into()),
                Param::Text(&lease.node),
                Param::Int(cx.now.after(LEASE).millis()),
            ],
        )?
        .ok_or(Error::LeaseLost)?
        .int(0)?
        != 0;
    Ok(Renewal { cancel })
}

/// Which runs of a worker process must be stopped because a caller asked.
///
/// # Errors
/// Those of the store.
pub(crate) fn to_cancel(session: &mut dyn Session, node: &str) -> Result<Vec<RunId>, Error> {
    session
        .query(
            // The statuses lead to an index of what holds slots: history is not looked at.
            "SELECT id FROM runs WHERE status IN ('running', 'paused_limit_exceeded') AND cancel_requested = 1 AND lease_owner = $1",
            &[Param::Text(node)],
        )?
        .iter()
        .map(|row| row.parsed(0))
        .collect()
}

/// Gives a lease back without an end, when a worker shuts down: another takes the run up at once, and no crash is counted.
///
/// # Errors
/// [`Error::LeaseLost`] when the run is no longer the worker's.
pub(crate) fn release(session: &mut dyn Session, cx: Cx<'_>, lease: &Lease) -> Result<(), Error> {
    Live::leased(session, lease)?;
    give_back(session, cx, lease.run)
}

/// Gives back what a worker process holds without knowing it, because the answer to its claim was lost: all but the runs that it works on.
///
/// # Errors
/// Those of the store.
pub(crate) fn disown(
    session: &mut dyn Session,
    cx: Cx<'_>,
    node: &str,
    works_on: &[RunId],
) -> Result<(), Error> {
    let rows = session.query(
        "SELECT id FROM runs WHERE status IN ('running', 'paused_limit_exceeded') AND lease_owner = $1
         ORDER BY id /*pg:FOR UPDATE*/",
        &[Param::Text(node)],
    )?;
    for row in &rows {
        let run = row.parsed(0)?;
        if !works_on.contains(&run) {
            give_back(session, cx, run)?;
        }
    }
    Ok(())
}

fn give_back(session: &mut dyn Session, cx: Cx<'_>, run: RunId) -> Result<(), Error> {
    charge(session, &[run])?;
    session.execute(
        "UPDATE runs SET lease_owner = NULL, due_at = $2 WHERE id = $1",
        &[Param::Text(&run.to_string()), Param::Int(cx.now.millis())],
    )?;
    session.notify(CLAIMABLE)
}

/// Ends every lease: for the start of a server that is alone on its store, whose leases can only be of processes that are gone.
///
/// # Errors
/// Those of the store.
pub(crate) fn expire_leases(session: &mut dyn Session, cx: Cx<'_>) -> Result<u64, Error> {
    session.execute(
        "UPDATE runs SET due_at = $1 WHERE status IN ('running', 'paused_limit_exceeded') AND lease_owner IS NOT NULL AND due_at > $1",
        &[Param::Int(cx.now.millis())],
    )
}
