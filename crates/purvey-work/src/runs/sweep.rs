//! What happens to runs that nobody touches: time limits, lost workers, free slots that nobody gave on, and what is too old to be kept.

use super::{
    CLAIMABLE, CRASHES, LEASE,
    finish::{Outcome, end},
    live::Live,
    promote::{promote, someone_waits},
    slots::Slots,
};
use crate::{
    clock::{Cx, Timestamp},
    code::Code,
    error::Error,
    id::{RunId, WorkspaceId},
    sql::{Param, Session},
};
use std::time::Duration;

/// Most runs ended in one transaction.
const MOST: i64 = 256;
/// How long a key is kept after its run was pruned.
const KEY_LIFE: Duration = Duration::from_secs(24 * 3_600);

/// The runs of a workspace, or of all, that must be ended: past their time limit, cancelled, or crashed too often, and with no worker that
/// would do it. A worker that has not stopped a lease's length after the time limit never will.
const OVERDUE: &str = "status IN ('running', 'paused_limit_exceeded') AND (
        (deadline_at <= $1 AND (lease_owner IS NULL OR due_at <= $1 OR deadline_at <= $2))
        OR (cancel_requested = 1 AND (lease_owner IS NULL OR due_at <= $1))
        OR (crashes >= $3 AND lease_owner IS NOT NULL AND due_at <= $1))";

/// The workspaces that [`sweep`] has something to do in.
///
/// # Errors
/// Those of the store.
pub(crate) fn to_sweep(session: &mut dyn Session, cx: Cx<'_>) -> Result<Vec<WorkspaceId>, Error> {
    let mut rows = session.query(
        &format!("SELECT DISTINCT workspace_id FROM runs WHERE {OVERDUE}"),
        &overdue(cx),
    )?;
    rows.extend(session.query(
        "SELECT id FROM workspaces w WHERE queued > 0 AND running < concurrency_limit AND EXISTS (
            SELECT 1 FROM runs r WHERE r.workspace_id = w.id AND r.status = 'pending' AND r.blocked = 0)",
        &[],
    )?);
    let mut workspaces = rows
        .iter()
        .map(|row| row.parsed(0))
        .collect::<Result<Vec<WorkspaceId>, _>>()?;
    workspaces.sort_unstable();
    workspaces.dedup();
    Ok(workspaces)
}

/// Ends what must be ended in a workspace and gives free slots on; whether there is more to do, since one transaction does not do everything.
///
/// # Errors
/// Those of the store.
pub(crate) fn sweep(
    session: &mut dyn Session,
    cx: Cx<'_>,
    workspace: WorkspaceId,
) -> Result<bool, Error> {
    let Some(mut slots) = Slots::hold(session, workspace)? else {
        return Ok(false);
    };
    let id = workspace.to_string();
    let mut params = overdue(cx).to_vec();
    params.extend([Param::Text(&id), Param::Int(MOST)]);
    let found = session.query(
        &format!("SELECT id FROM runs WHERE {OVERDUE} AND workspace_id = $4 ORDER BY id LIMIT $5"),
        &params,
    )?;
    for row in &found {
        let run: RunId = row.parsed(0)?;
        // It may have been claimed since it was found: then it is that worker's again.
        let Some(live) = Live::hold(session, run)? else {
            continue;
        };
        if let Some(outcome) = why(&live, cx) {
            end(session, cx, &mut slots, &live, &outcome)?;
        }
    }
    promote(session, cx, &mut slots)?;
    slots.save(session)?;
    let ended = i64::try_from(found.len()).unwrap_or(MOST);
    Ok(ended == MOST || (slots.has_room() && someone_waits(session, &slots)?))
}

/// How a run must end, if it must.
fn why(live: &Live, cx: Cx<'_>) -> Option<Outcome> {
    let leased = live.is_leased(cx);
    let past = |at: Option<Timestamp>| at.is_some_and(|at| at <= cx.now);
    if live.cancel_requested && !leased {
        return Some(Outcome::Cancelled);
    }
    let over = past(live.deadline_at)
        && (!leased || past(live.deadline_at.map(|deadline| deadline.after(LEASE))));
    if over {
        return Some(Outcome::failed(Code::RunTimeLimit, None));
    }
    let lost = live.node.is_some() && !leased && live.crashes >= CRASHES - 1;
    lost.then(|| Outcome::failed(Code::RunCrashed, None))
}

fn overdue(cx: Cx<'_>) -> [Param<'static>; 3] {
    let lease = i64::try_from(LEASE.as_millis()).unwrap_or(0);
    [
        Param::Int(cx.now.millis()),
        Param::Int(cx.now.millis() - lease),
        Param::Int(CRASHES - 1),
    ]
}

/// Forgets up to `most` runs that ended before `older_than`, with their steps and events; how many. A key outlives its run by a day at least.
///
/// # Errors
/// Those of the store.
pub(crate) fn prune(
    session: &mut dyn Session,
    cx: Cx<'_>,
    older_than: Timestamp,
    most: u32,
) -> Result<usize, Error> {
    let day_ago = cx.now.millis() - i64::try_from(KEY_LIFE.as_millis()).unwrap_or(0);
    session.execute(
        "DELETE FROM keys WHERE released_at <= $1",
        &[Param::Int(day_ago)],
    )?;
    let rows = session.query(
        "SELECT id, workspace_id, COALESCE(trigger_id, started_by), key FROM runs WHERE finished_at < $1
         ORDER BY finished_at LIMIT $2 /*pg:FOR UPDATE SKIP LOCKED*/",
        &[Param::Int(older_than.millis()), Param::Int(most.into())],
    )?;
    for row in &rows {
        let run = Param::Text(row.text(0)?);
        if let Some(key) = row.opt_text(3)? {
            session.execute(
                "UPDATE keys SET released_at = $5
                 WHERE workspace_id = $1 AND principal = $2 AND kind = 'start' AND key = $3 AND target_id = $4",
                &[
                    Param::Text(row.text(1)?),
                    Param::Text(row.text(2)?),
                    Param::Text(key),
                    run,
                    Param::Int(cx.now.millis()),
                ],
            )?;
        }
        for table in [
            "DELETE FROM steps WHERE run_id = $1",
            "DELETE FROM events WHERE run_id = $1",
            "DELETE FROM runs WHERE id = $1",
        ] {
            session.execute(table, &[run])?;
        }
    }
    Ok(rows.len())
}

/// Gives free slots of a workspace on, after its limit was raised: in the transaction that raises it.
///
/// # Errors
/// Those of the store.
pub(crate) fn promote_waiting(
    session: &mut dyn Session,
    cx: Cx<'_>,
    workspace: WorkspaceId,
) -> Result<(), Error> {
    let mut slots = Slots::of(session, workspace)?;
    promote(session, cx, &mut slots)?;
    slots.save(session)?;
    session.notify(CLAIMABLE)
}
