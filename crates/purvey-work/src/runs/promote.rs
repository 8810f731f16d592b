//! Who gets a free slot: the head of the workspace's queue, judged again (Work §3).

use super::{
    CLAIMABLE,
    event::{self, Happened},
    finish::{Outcome, end},
    live::Live,
    slots::Slots,
};
use crate::{
    budget,
    clock::Cx,
    code::Code,
    error::Error,
    id::RunId,
    model::{Role, RunStatus, ThreadState, UserState},
    sql::{Param, Session},
};

/// Most runs judged in one transaction; what is left over is left to the sweep.
const MOST: usize = 256;

/// Gives free slots to the runs that wait, in their order. Those that may no longer run end `failed` and take no slot. The caller saves.
pub(super) fn promote(
    session: &mut dyn Session,
    cx: Cx<'_>,
    slots: &mut Slots,
) -> Result<(), Error> {
    if !slots.has_room() || slots.queued == 0 {
        return Ok(());
    }
    let mut limit = None;
    for _ in 0..MOST {
        if !slots.has_room() || slots.queued == 0 {
            break;
        }
        let Some((run, facts)) = head(session, slots)? else {
            break;
        };
        let outcome = if let Some(code) = facts.judge() {
            Some(Outcome::failed(code, None))
        } else {
            if limit.is_none() {
                limit = Some(budget::met(session, cx, slots.workspace)?);
            }
            limit
                .clone()
                .flatten()
                .map(|limit| Outcome::failed(limit.code, Some(limit)))
        };
        match outcome {
            None => start(session, cx, slots, run)?,
            Some(outcome) => {
                let live = Live::hold(session, run)?.ok_or_else(|| Error::Store {
                    detail: format!("{run} has ended and waits"),
                })?;
                end(session, cx, slots, &live, &outcome, None)?;
            }
        }
    }
    Ok(())
}

fn start(
    session: &mut dyn Session,
    cx: Cx<'_>,
    slots: &mut Slots,
    run: RunId,
) -> Result<(), Error> {
    session.execute(
        "UPDATE runs SET status = 'running', started_at = $2, due_at = $2, deadline_at = $2 + time_limit_seconds * 1000
         WHERE id = $1",
        &[
            Param::Text(&run.to_string()),
            Param::Int(cx.now.millis()),
        ],
    )?;
    slots.queued -= 1;
    slots.running += 1;
    let running = Happened::Status(RunStatus::Running, None);
    event::record(session, cx, run, &[running])?;
    session.notify(CLAIMABLE)
}

/// Whether a run waits for nothing but a slot.
pub(super) fn someone_waits(session: &mut dyn Session, slots: &Slots) -> Result<bool, Error> {
    Ok(slots.queued > 0
        && session
            .row(
                "SELECT id FROM runs WHERE workspace_id = $1 AND status = 'pending' AND blocked = 0 LIMIT 1",
                &[Param::Text(&slots.workspace.to_string())],
            )?
            .is_some())
}

/// What a queued run's start depended on, as it is now.
#[derive(Clone, Debug)]
struct Facts {
    agent_paused: bool,
    /// The starter's, or the trigger's creator's, or the turn's requester's.
    user: UserState,
    role: Option<Role>,
    is_turn: bool,
    /// None if no trigger started it.
    trigger_enabled: Option<bool>,
    /// None if it answers no turn.
    thread: Option<ThreadState>,
}

impl Facts {
    /// Why the run may no longer begin; in the order of Work §3.
    fn judge(&self) -> Option<Code> {
        let unable = self.user != UserState::Active || self.role == Some(Role::Viewer);
        let checks = [
            (self.agent_paused, Code::DequeueAgentPaused),
            (
                !self.is_turn && self.role.is_none(),
                Code::DequeueActorNotMember,
            ),
            (!self.is_turn && unable, Code::DequeueActorUnavailable),
            (
                self.trigger_enabled == Some(false),
                Code::DequeueTriggerDisabled,
            ),
            (
                self.thread == Some(ThreadState::Closed),
                Code::DequeueThreadClosed,
            ),
            (
                self.thread == Some(ThreadState::Paused),
                Code::DequeueThreadPaused,
            ),
            (
                self.is_turn && (unable || self.role.is_none()),
                Code::DequeueTurnRequesterUnavailable,
            ),
        ];
        checks
            .into_iter()
            .find_map(|(met, code)| met.then_some(code))
    }
}

/// The run that is next in a workspace's queue.
fn head(session: &mut dyn Session, slots: &Slots) -> Result<Option<(RunId, Facts)>, Error> {
    let Some(row) = session.row(
        "SELECT r.id, a.paused, u.state, m.role, r.turn_id, r.trigger_id, t.enabled, h.state
         FROM runs r JOIN agents a ON a.id = r.agent_id JOIN users u ON u.id = r.started_by
         LEFT JOIN members m ON m.workspace_id = r.workspace_id AND m.user_id = r.started_by
         LEFT JOIN triggers t ON t.id = r.trigger_id LEFT JOIN threads h ON h.id = r.thread_id
         WHERE r.workspace_id = $1 AND r.status = 'pending' AND r.blocked = 0 ORDER BY r.position LIMIT 1",
        &[Param::Text(&slots.workspace.to_string())],
    )?
    else {
        return Ok(None);
    };
    let facts = Facts {
        agent_paused: row.int(1)? != 0,
        user: row.parsed(2)?,
        role: row.opt_text(3)?.map(|_| row.parsed(3)).transpose()?,
        is_turn: row.opt_text(4)?.is_some(),
        // A deleted trigger no longer fires.
        trigger_enabled: row
            .opt_text(5)?
            .map(|_| Ok::<_, Error>(row.opt_int(6)?.unwrap_or(0) != 0))
            .transpose()?,
        thread: row.opt_text(7)?.map(|_| row.parsed(7)).transpose()?,
    };
    Ok(Some((row.parsed(0)?, facts)))
}
