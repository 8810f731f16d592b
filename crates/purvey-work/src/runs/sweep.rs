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

/// Most runs of each kind ended in one transaction.
const MOST: usize = 256;
/// How long a key is kept after its run was pruned.
const KEY_LIFE: Duration = Duration::from_secs(24 * 3_600);

/// Runs that may have to be ended, and their workspaces: past their time limit, to be cancelled, or crashed too often. Each kind has an
/// index of its own, in which there is little else.
fn overdue(session: &mut dyn Session, cx: Cx<'_>) -> Result<Vec<(RunId, WorkspaceId)>, Error> {
    let mut found = Vec::new();
    for which in [
        "status IN ('running', 'paused_limit_exceeded') AND deadline_at <= $1 ORDER BY deadline_at",
        "cancel_requested = 1 AND finished_at IS NULL AND due_at <= $1 ORDER BY id",
        "crashes > 3 AND finished_at IS NULL AND due_at <= $1 ORDER BY id",
    ] {
        let rows = session.query(
            &format!("SELECT id, workspace_id FROM runs WHERE {which} LIMIT {MOST}"),
            &[Param::Int(cx.now.millis())],
        )?;
        for row in &rows {
            found.push((row.parsed(0)?, row.parsed(1)?));
        }
    }
    Ok(found)
}

/// The workspaces that [`sweep`] has something to do in.
///
/// # Errors
/// Those of the store.
pub(crate) fn to_sweep(session: &mut dyn Session, cx: Cx<'_>) -> Result<Vec<WorkspaceId>, Error> {
    let mut workspaces: Vec<WorkspaceId> = overdue(session, cx)?
        .into_iter()
        .map(|(_, workspace)| workspace)
        .collect();
    let with_room = session.query(
        "SELECT id FROM workspaces w WHERE queued > 0 AND running < concurrency_limit AND EXISTS (
            SELECT 1 FROM runs r WHERE r.workspace_id = w.id AND r.status = 'pending' AND r.blocked = 0)",
        &[],
    )?;
    for row in &with_room {
        workspaces.push(row.parsed(0)?);
    }
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
    let mut ended = 0;
    for (run, _) in overdue(session, cx)?
        .into_iter()
        .filter(|(_, of)| *of == workspace)
    {
        // It may have ended, or have been claimed, since it was found.
        let Some(live) = Live::hold(session, run)? else {
            continue;
        };
        if let Some(outcome) = why(&live, cx) {
            end(session, cx, &mut slots, &live, &outcome)?;
            ended += 1;
        }
    }
    promote(session, cx, &mut slots)?;
    slots.save(session)?;
    Ok(ended >= MOST || (slots.has_room() && someone_waits(session, &slots)?))
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
