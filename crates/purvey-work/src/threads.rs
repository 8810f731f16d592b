//! Threads: turns in order, one active run each (Work §10).
//!
//! A turn is made by the admission of its run ([`runs::admit`]); here is everything else about threads. A run that ends
//! `dequeue.thread_paused` leaves its turn waiting; resuming admits a fresh run for each such turn.

#[cfg(test)]
mod tests;

use crate::{
    access::{Action, Principal},
    agents,
    body::Members,
    clock::Cx,
    code::Code,
    error::{Error, Fault, Refusal},
    id::{AgentId, RunId, ThreadId, TurnId, UserId, WorkspaceId},
    idempotency::Key,
    identity::{named, role, workspaces},
    model::{Role, Thread, ThreadState, Turn},
    paging::{Listing, PageRequest},
    runs::{self, By, Start, Target},
    sql::{Param, Row, Session},
};
use serde_json::Value;

const THREAD: &str =
    "t.id, t.workspace_id, t.agent_id, t.state, t.created_by, t.created_at, w.organization_id";
const TURN: &str = "id, thread_id, requester, input, state, run_id, created_at";

/// A thread that exists for the caller, and the caller's role in its workspace.
fn find(
    session: &mut dyn Session,
    caller: &Principal,
    id: &str,
) -> Result<(Thread, Option<Role>), Error> {
    let id: ThreadId = named(id)?;
    let row = session.row(
        &format!("SELECT {THREAD} FROM threads t JOIN workspaces w ON w.id = t.workspace_id WHERE t.id = $1"),
        &[Param::Text(&id.to_string())],
    )?;
    let row = row.ok_or(Code::NotFound)?;
    if !caller.sees(row.parsed(6)?) {
        return Err(Code::NotFound.into());
    }
    let thread = thread(&row)?;
    let role = match caller {
        Principal::Operator => None,
        Principal::User(actor) => role(session, thread.workspace_id, actor.user)?,
    };
    Ok((thread, role))
}

/// The workspace of a thread that exists for the caller.
pub(crate) fn workspace_of(
    session: &mut dyn Session,
    caller: &Principal,
    id: &str,
) -> Result<WorkspaceId, Error> {
    Ok(find(session, caller, id)?.0.workspace_id)
}

/// Opens a thread with an agent of the workspace.
pub(crate) fn open(
    session: &mut dyn Session,
    cx: Cx<'_>,
    caller: &Principal,
    workspace: &str,
    body: &Value,
) -> Result<Thread, Error> {
    let mut members = Members::of(body);
    let agent = members.parsed::<AgentId>("agent_id", "an agent's id");
    members.end()?;
    let agent = agent.ok_or(Code::NotFound)?;
    let (workspace, _) = workspaces::allowed(session, caller, workspace, Action::ThreadOpen)?;
    let actor = caller.actor()?;
    agent_of(session, caller, workspace.id, agent)?;
    let thread = Thread {
        id: ThreadId::new(cx.now, cx.chance),
        workspace_id: workspace.id,
        agent_id: agent,
        state: ThreadState::Open,
        created_by: actor.user,
        created_at: cx.now,
    };
    session.execute(
        "INSERT INTO threads (id, workspace_id, agent_id, state, next_seq, created_by, created_at) VALUES ($1, $2, $3, 'open', 1, $4, $5)",
        &[
            Param::Text(&thread.id.to_string()),
            Param::Text(&workspace.id.to_string()),
            Param::Text(&agent.to_string()),
            Param::Text(&actor.user.to_string()),
            Param::Int(cx.now.millis()),
        ],
    )?;
    Ok(thread)
}

/// Holds that a body's `agent_id` names an agent of the workspace that the caller may see.
pub(crate) fn agent_of(
    session: &mut dyn Session,
    caller: &Principal,
    workspace: WorkspaceId,
    agent: AgentId,
) -> Result<(), Error> {
    let absent = || {
        Error::from(Refusal::invalid(vec![Fault::body(
            "/agent_id",
            "There is no such agent in the workspace.",
        )]))
    };
    let found = match agents::find(session, caller, &agent.to_string()) {
        Err(Error::Refused(refusal)) if refusal.code == Code::NotFound => return Err(absent()),
        found => found?,
    };
    if found.agent.workspace_id != workspace {
        return Err(absent());
    }
    found.visible(caller)
}

/// A thread.
pub(crate) fn get(
    session: &mut dyn Session,
    caller: &Principal,
    id: &str,
) -> Result<Thread, Error> {
    let (thread, role) = find(session, caller, id)?;
    caller.may(Action::ThreadRead, role, false)?;
    Ok(thread)
}

/// The threads of a workspace.
pub(crate) fn list(
    session: &mut dyn Session,
    caller: &Principal,
    workspace: &str,
    page: &PageRequest,
) -> Result<Listing<Thread>, Error> {
    let before = page.before::<ThreadId>()?;
    let (workspace, _) = workspaces::allowed(session, caller, workspace, Action::ThreadRead)?;
    let rows = session.query(
        &format!(
            "SELECT {THREAD} FROM threads t JOIN workspaces w ON w.id = t.workspace_id WHERE t.workspace_id = $1 AND t.id < $2
             ORDER BY t.id DESC LIMIT $3"
        ),
        &[
            Param::Text(&workspace.id.to_string()),
            Param::Text(&before),
            Param::Int(page.rows()),
        ],
    )?;
    let items = rows.iter().map(thread).collect::<Result<_, _>>()?;
    Ok(page.listing(items, |thread: &Thread| thread.id))
}

/// The turns of a thread, the last first; in their order even where two were sent in the same millisecond.
pub(crate) fn turns(
    session: &mut dyn Session,
    caller: &Principal,
    id: &str,
    page: &PageRequest,
) -> Result<Listing<Turn>, Error> {
    let before = page.before::<TurnId>()?;
    let thread = get(session, caller, id)?;
    let rows = session.query(
        &format!(
            "SELECT {TURN} FROM turns WHERE thread_id = $1
                AND seq < COALESCE((SELECT seq FROM turns WHERE id = $2 AND thread_id = $1), 9223372036854775807)
             ORDER BY seq DESC LIMIT $3"
        ),
        &[
            Param::Text(&thread.id.to_string()),
            Param::Text(&before),
            Param::Int(page.rows()),
        ],
    )?;
    let items = rows.iter().map(turn).collect::<Result<_, _>>()?;
    Ok(page.listing(items, |turn: &Turn| turn.id))
}

/// The start that sends a request to a thread, its shape judged; [`runs::admit`] judges the rest.
pub(crate) fn request(
    caller: &Principal,
    id: &str,
    key: Option<&str>,
    body: &Value,
) -> Result<Start, Error> {
    let mut members = Members::of(body);
    let input = members.value("input").cloned().unwrap_or_default();
    let key = key.map(|key| Key::new(key, id, body)).transpose();
    let key = key.unwrap_or_else(|fault| {
        members.note(Err(fault));
        None
    });
    members.end()?;
    let thread = named(id)?;
    Ok(Start {
        by: By::User(caller.actor()?.clone()),
        target: Target::Thread(thread),
        input,
        artifacts: Vec::new(),
        key,
    })
}

/// Lets a thread's turns wait. What runs goes on; a run that gets its slot meanwhile ends and leaves its turn waiting.
pub(crate) fn pause(
    session: &mut dyn Session,
    caller: &Principal,
    id: &str,
) -> Result<Thread, Error> {
    change(session, caller, id, ThreadState::Paused)
}

/// Ends a thread: no turns any more, and those that wait without a run have failed.
pub(crate) fn close(
    session: &mut dyn Session,
    caller: &Principal,
    id: &str,
) -> Result<Thread, Error> {
    let thread = change(session, caller, id, ThreadState::Closed)?;
    for turn in left_over(session, thread.id)? {
        fail(session, turn.id)?;
    }
    Ok(thread)
}

/// Goes on with a paused thread: each turn that was left waiting gets a fresh run, in order.
///
/// # Errors
/// What refuses a run for now (a paused agent, a limit, a full queue) refuses this as a whole, and the thread stays paused. A turn whose
/// requester may no longer send it, or whose agent no longer takes it, has failed instead.
pub(crate) fn resume(
    session: &mut dyn Session,
    cx: Cx<'_>,
    caller: &Principal,
    id: &str,
) -> Result<Thread, Error> {
    let thread = change(session, caller, id, ThreadState::Open)?;
    let mut admitted = false;
    for turn in left_over(session, thread.id)? {
        let start = Start {
            by: By::Requester(turn.requester),
            target: Target::Turn(thread.id, turn.id),
            input: turn.input,
            artifacts: Vec::new(),
            key: None,
        };
        match runs::admit(session, cx, &[start])?.pop() {
            Some(Ok(_)) => admitted = true,
            Some(Err(Error::Refused(refusal))) if is_final(refusal.code) => fail(session, turn.id)?,
            Some(Err(error)) => return Err(error),
            None => {}
        }
    }
    if admitted {
        in_turn(session, thread.id)?;
        runs::promote_waiting(session, cx, thread.workspace_id)?;
    }
    Ok(thread)
}

/// Whether a refusal will still stand when the thread is resumed again.
const fn is_final(code: Code) -> bool {
    matches!(
        code,
        Code::NotFound
            | Code::PermissionScope
            | Code::PermissionRole
            | Code::PermissionVisibility
            | Code::RequestInvalid
    )
}

/// Moves a thread to another state, holding its workspace; a state that it has already is no change.
fn change(
    session: &mut dyn Session,
    caller: &Principal,
    id: &str,
    state: ThreadState,
) -> Result<Thread, Error> {
    let (found, _) = find(session, caller, id)?;
    session.query(
        "SELECT id FROM workspaces WHERE id = $1 /*pg:FOR UPDATE*/",
        &[Param::Text(&found.workspace_id.to_string())],
    )?;
    let (mut thread, role) = find(session, caller, id)?;
    let own = matches!(caller, Principal::User(actor) if actor.user == thread.created_by);
    caller.may(Action::ThreadChange, role, own)?;
    if thread.state == ThreadState::Closed && state != ThreadState::Closed {
        return Err(Refusal::because(
            Code::StateConflict,
            "The thread is closed; open another one.",
        )
        .into());
    }
    session.execute(
        "UPDATE threads SET state = $2 WHERE id = $1",
        &[
            Param::Text(&thread.id.to_string()),
            Param::Text(state.text()),
        ],
    )?;
    thread.state = state;
    Ok(thread)
}

/// The turns that wait and have no run that would answer them, in order.
fn left_over(session: &mut dyn Session, thread: ThreadId) -> Result<Vec<Turn>, Error> {
    let rows = session.query(
        &format!(
            "SELECT {TURN} FROM turns WHERE thread_id = $1 AND state = 'waiting' AND NOT EXISTS (
                SELECT 1 FROM runs WHERE runs.id = turns.run_id AND finished_at IS NULL) ORDER BY seq"
        ),
        &[Param::Text(&thread.to_string())],
    )?;
    rows.iter().map(turn).collect()
}

fn fail(session: &mut dyn Session, turn: TurnId) -> Result<(), Error> {
    session.execute(
        "UPDATE turns SET state = 'failed' WHERE id = $1 AND state = 'waiting'",
        &[Param::Text(&turn.to_string())],
    )?;
    Ok(())
}

/// Lets the thread's pending runs take the places that they have in the queue in the order of their turns. A turn that was left over may be
/// older than one whose run waited all the while.
fn in_turn(session: &mut dyn Session, thread: ThreadId) -> Result<(), Error> {
    let id = thread.to_string();
    let rows = session.query(
        "SELECT r.id, r.position FROM turns t JOIN runs r ON r.id = t.run_id
         WHERE t.thread_id = $1 AND r.status = 'pending' ORDER BY t.seq",
        &[Param::Text(&id)],
    )?;
    let mut places = rows
        .iter()
        .map(|row| row.int(1))
        .collect::<Result<Vec<_>, _>>()?;
    places.sort_unstable();
    let busy = session.row(
        "SELECT id FROM runs WHERE thread_id = $1 AND status IN ('running', 'paused_limit_exceeded') LIMIT 1",
        &[Param::Text(&id)],
    )?;
    for (index, (row, place)) in rows.iter().zip(places).enumerate() {
        let run: RunId = row.parsed(0)?;
        let blocked = index > 0 || busy.is_some();
        session.execute(
            "UPDATE runs SET position = $2, blocked = $3 WHERE id = $1",
            &[
                Param::Text(&run.to_string()),
                Param::Int(place),
                blocked.into(),
            ],
        )?;
    }
    Ok(())
}

fn thread(row: &Row) -> Result<Thread, Error> {
    Ok(Thread {
        id: row.parsed(0)?,
        workspace_id: row.parsed(1)?,
        agent_id: row.parsed(2)?,
        state: row.parsed(3)?,
        created_by: row.parsed::<UserId>(4)?,
        created_at: row.time(5)?,
    })
}

fn turn(row: &Row) -> Result<Turn, Error> {
    let input = row.json(3)?.ok_or_else(|| Error::Store {
        detail: "a turn has no input".into(),
    })?;
    Ok(Turn {
        id: row.parsed(0)?,
        thread_id: row.parsed(1)?,
        requester: row.parsed(2)?,
        input,
        state: row.parsed(4)?,
        run_id: row.opt_parsed(5)?,
        created_at: row.time(6)?,
    })
}
