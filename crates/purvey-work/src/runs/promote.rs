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
    sql::{Param, ROWS, Row, Session, values},
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
    let mut left = MOST;
    while left > 0 && slots.has_room() && slots.queued > 0 {
        let room = usize::try_from(slots.limit - slots.running).unwrap_or(left);
        let heads = heads(session, slots, room.min(left))?;
        if heads.is_empty() {
            break;
        }
        if limit.is_none() && heads.iter().any(|(_, facts)| facts.judge().is_none()) {
            limit = Some(budget::met(session, cx, slots.workspace)?);
        }
        let met = limit.clone().flatten();
        let outcome = |facts: &Facts| match (facts.judge(), &met) {
            (Some(code), _) => Some(Outcome::failed(code, None)),
            (None, Some(limit)) => Some(Outcome::failed(limit.code, Some(limit.clone()))),
            (None, None) => None,
        };
        let mut begin = Vec::new();
        let mut ends = None;
        for (run, facts) in &heads {
            left -= 1;
            ends = outcome(facts).map(|outcome| (*run, outcome));
            if ends.is_some() {
                break;
            }
            begin.push(*run);
        }
        start(session, cx, slots, &begin)?;
        // Its end may let another turn of its thread go on, which comes before what is further behind.
        if let Some((run, outcome)) = ends {
            let live = Live::hold(session, run)?.ok_or_else(|| Error::Store {
                detail: format!("{run} has ended and waits"),
            })?;
            end(session, cx, slots, &live, &outcome)?;
        }
    }
    Ok(())
}

fn start(
    session: &mut dyn Session,
    cx: Cx<'_>,
    slots: &mut Slots,
    runs: &[RunId],
) -> Result<(), Error> {
    if runs.is_empty() {
        return Ok(());
    }
    let texts: Vec<String> = runs.iter().map(ToString::to_string).collect();
    let rows: Vec<_> = texts.iter().map(|text| [Param::Text(text)]).collect();
    for rows in rows.chunks(ROWS) {
        let mut params = vec![Param::Int(cx.now.millis())];
        let these = values([""], rows, &mut params);
        session.execute(
            &format!(
                "UPDATE runs SET status = 'running', started_at = $1, due_at = $1, deadline_at = $1 + time_limit_seconds * 1000
                 WHERE id IN {these}"
            ),
            &params,
        )?;
    }
    let count = i64::try_from(runs.len()).unwrap_or(0);
    slots.queued -= count;
    slots.running += count;
    let running = Happened::Status(RunStatus::Running, None);
    let happened: Vec<_> = runs.iter().map(|run| (*run, &running)).collect();
    event::record_all(session, cx, &happened)?;
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

/// The runs that are next in a workspace's queue, at most `most`.
fn heads(
    session: &mut dyn Session,
    slots: &Slots,
    most: usize,
) -> Result<Vec<(RunId, Facts)>, Error> {
    let rows = session.query(
        "SELECT r.id, a.paused, u.state, m.role, r.turn_id, r.trigger_id, t.enabled, h.state
         FROM runs r JOIN agents a ON a.id = r.agent_id JOIN users u ON u.id = r.started_by
         LEFT JOIN members m ON m.workspace_id = r.workspace_id AND m.user_id = r.started_by
         LEFT JOIN triggers t ON t.id = r.trigger_id LEFT JOIN threads h ON h.id = r.thread_id
         WHERE r.workspace_id = $1 AND r.status = 'pending' AND r.blocked = 0 ORDER BY r.position LIMIT $2",
        &[
            Param::Text(&slots.workspace.to_string()),
            Param::Int(i64::try_from(most).unwrap_or(i64::MAX)),
        ],
    )?;
    let facts = |row: &Row| {
        let facts = Facts {
            agent_paused: row.int(1)? != 0,
            user: row.parsed(2)?,
            role: row.opt_parsed(3)?,
            is_turn: row.opt_text(4)?.is_some(),
            // A deleted trigger no longer fires.
            trigger_enabled: row
                .opt_text(5)?
                .map(|_| Ok::<_, Error>(row.opt_int(6)?.unwrap_or(0) != 0))
                .transpose()?,
            thread: row.opt_parsed(7)?,
        };
        Ok((row.parsed(0)?, facts))
    };
    rows.iter().map(facts).collect()
}
