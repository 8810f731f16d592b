//! Triggers: what starts runs without a person present, for its creator (Work §10).

mod fire;
mod hook;
mod schedule;
#[cfg(test)]
mod tests;

pub(crate) use fire::fire_due;
#[cfg(test)]
use fire::{due, fire};
pub(crate) use hook::{authenticate, deliver};

use crate::{
    access::{Action, Principal},
    body::Members,
    clock::{Cx, Timestamp},
    code::Code,
    error::{Error, Fault},
    id::{AgentId, RunId, TriggerId, WorkspaceId},
    identity::{named, role, tokens, workspaces},
    model::{FiringOutcome, Role, Trigger, TriggerKind},
    paging::{Listing, PageRequest},
    sql::{Param, Row, Session},
    threads::agent_of,
};
use schedule::{Schedule, USUAL_ZONE};
use serde::Serialize;
use serde_json::{Map, Value};

const COLUMNS: &str = "g.id, g.workspace_id, g.agent_id, g.kind, g.input, g.cron, g.time_zone, g.enabled, g.created_by, g.due_at,
    g.last_fired_at, g.last_outcome, g.created_at";

/// Characters of a cron expression or the name of a zone, at most.
const WORDS: std::ops::RangeInclusive<usize> = 1..=200;

/// A trigger as it is answered when it is made.
#[derive(Clone, Serialize)]
pub struct NewTrigger {
    /// The secret of a webhook, which nobody can show again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The trigger.
    #[serde(flatten)]
    pub trigger: Trigger,
}

impl std::fmt::Debug for NewTrigger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewTrigger")
            .field("trigger", &self.trigger)
            .finish_non_exhaustive()
    }
}

/// A body that makes a trigger, its shape judged.
struct Draft {
    kind: TriggerKind,
    agent: AgentId,
    input: Value,
    /// A schedule's expression and zone.
    clock: Option<(String, String, Timestamp)>,
}

impl Draft {
    fn parse(cx: Cx<'_>, body: &Value) -> Result<Self, Error> {
        let mut members = Members::of(body);
        let kind = members.parsed::<TriggerKind>("kind", "schedule or webhook");
        let agent = members.parsed::<AgentId>("agent_id", "an agent's id");
        let input = members.any("input").cloned();
        let cron = members.opt_text("cron", WORDS);
        let zone = members.opt_text("time_zone", WORDS);
        let zone_named = members.any("time_zone").is_some();
        let mut clock = None;
        match kind {
            Some(TriggerKind::Schedule) => {
                if members.any("input").is_none() {
                    members.fault("/input".into(), "Must be there.".into());
                }
                if members.any("cron").is_none() {
                    members.fault("/cron".into(), "Must be there for a schedule.".into());
                } else if let Some(cron) = cron {
                    let zone = zone.unwrap_or_else(|| USUAL_ZONE.into());
                    match Schedule::read(&cron, &zone) {
                        Ok(schedule) => match schedule.after(cx.now) {
                            Some(first) => clock = Some((cron, zone, first)),
                            None => members.note(Err(Fault::body(
                                "/cron",
                                "Never fires; there must be a day that it names.",
                            ))),
                        },
                        Err(faults) => faults
                            .into_iter()
                            .for_each(|fault| members.note(Err(fault))),
                    }
                }
            }
            Some(TriggerKind::Webhook) => {
                for (name, there) in [("/cron", cron.is_some()), ("/time_zone", zone_named)] {
                    if there {
                        members.fault(name.into(), "Is only for a schedule.".into());
                    }
                }
                if input.as_ref().is_some_and(|input| !input.is_object()) {
                    members.fault(
                        "/input".into(),
                        "Must be an object: the event is added to it.".into(),
                    );
                }
            }
            None => {}
        }
        members.end()?;
        match (kind, agent) {
            (Some(kind), Some(agent)) => Ok(Self {
                kind,
                agent,
                input: input.unwrap_or_else(|| Value::Object(Map::new())),
                clock,
            }),
            _ => Err(Code::RequestInvalid.into()),
        }
    }
}

/// Makes a trigger that acts for the caller.
pub(crate) fn create(
    session: &mut dyn Session,
    cx: Cx<'_>,
    caller: &Principal,
    workspace: &str,
    body: &Value,
) -> Result<NewTrigger, Error> {
    let draft = Draft::parse(cx, body)?;
    let (workspace, _) = workspaces::allowed(session, caller, workspace, Action::TriggerWrite)?;
    let actor = caller.actor()?;
    agent_of(session, caller, workspace.id, draft.agent)?;
    let (cron, zone, first) = match draft.clock {
        Some((cron, zone, first)) => (Some(cron), Some(zone), Some(first)),
        None => (None, None, None),
    };
    let secret = (draft.kind == TriggerKind::Webhook).then(|| tokens::secret(cx));
    let trigger = Trigger {
        id: TriggerId::new(cx.now, cx.chance),
        workspace_id: workspace.id,
        agent_id: draft.agent,
        kind: draft.kind,
        input: draft.input,
        cron,
        time_zone: zone,
        enabled: true,
        created_by: actor.user,
        next_fire_at: first,
        last_fired_at: None,
        last_outcome: None,
        created_at: cx.now,
    };
    let first = Param::from(first.map(Timestamp::millis));
    session.execute(
        "INSERT INTO triggers (id, workspace_id, agent_id, kind, input, cron, time_zone, enabled, created_by, hash, fire_at, due_at,
            created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, 1, $8, $9, $10, $11, $12)",
        &[
            Param::Text(&trigger.id.to_string()),
            Param::Text(&workspace.id.to_string()),
            Param::Text(&trigger.agent_id.to_string()),
            Param::Text(trigger.kind.text()),
            Param::Text(&trigger.input.to_string()),
            trigger.cron.as_deref().into(),
            trigger.time_zone.as_deref().into(),
            Param::Text(&actor.user.to_string()),
            secret.as_ref().map_or(Param::Null, |(_, hash)| Param::Bytes(hash)),
            first,
            first,
            Param::Int(cx.now.millis()),
        ],
    )?;
    Ok(NewTrigger {
        token: secret.map(|(secret, _)| secret),
        trigger,
    })
}

/// A trigger that exists for the caller, and the caller's role in its workspace.
fn find(
    session: &mut dyn Session,
    caller: &Principal,
    id: &str,
) -> Result<(Trigger, Option<Role>), Error> {
    let id: TriggerId = named(id)?;
    let row = session.row(
        &format!(
            "SELECT {COLUMNS}, w.organization_id FROM triggers g JOIN workspaces w ON w.id = g.workspace_id
             WHERE g.id = $1 AND g.deleted_at IS NULL"
        ),
        &[Param::Text(&id.to_string())],
    )?;
    let row = row.ok_or(Code::NotFound)?;
    if !caller.sees(row.parsed(13)?) {
        return Err(Code::NotFound.into());
    }
    let trigger = read(&row)?;
    let role = match caller {
        Principal::Operator => None,
        Principal::User(actor) => role(session, trigger.workspace_id, actor.user)?,
    };
    Ok((trigger, role))
}

/// A trigger.
pub(crate) fn get(
    session: &mut dyn Session,
    caller: &Principal,
    id: &str,
) -> Result<Trigger, Error> {
    let (trigger, role) = find(session, caller, id)?;
    caller.may(Action::TriggerRead, role, false)?;
    Ok(trigger)
}

/// The triggers of a workspace.
pub(crate) fn list(
    session: &mut dyn Session,
    caller: &Principal,
    workspace: &str,
    page: &PageRequest,
) -> Result<Listing<Trigger>, Error> {
    let before = page.before::<TriggerId>()?;
    let (workspace, _) = workspaces::allowed(session, caller, workspace, Action::TriggerRead)?;
    let rows = session.query(
        &format!(
            "SELECT {COLUMNS} FROM triggers g WHERE g.workspace_id = $1 AND g.id < $2 AND g.deleted_at IS NULL
             ORDER BY g.id DESC LIMIT $3"
        ),
        &[
            Param::Text(&workspace.id.to_string()),
            Param::Text(&before),
            Param::Int(page.rows()),
        ],
    )?;
    let items = rows.iter().map(read).collect::<Result<_, _>>()?;
    Ok(page.listing(items, |trigger: &Trigger| trigger.id))
}

/// Turns a trigger on or off. Firings that a schedule would have had while it was off are not made up for.
pub(crate) fn update(
    session: &mut dyn Session,
    cx: Cx<'_>,
    caller: &Principal,
    id: &str,
    body: &Value,
) -> Result<Trigger, Error> {
    let mut members = Members::of(body);
    if members.any("enabled").is_none() {
        members.fault("/enabled".into(), "Must be there.".into());
    }
    let enabled = members.opt_bool("enabled");
    members.end()?;
    let enabled = enabled.unwrap_or_default();
    let (found, role) = find(session, caller, id)?;
    caller.may(Action::TriggerWrite, role, false)?;
    hold(session, found.workspace_id)?;
    let (mut trigger, _) = find(session, caller, id)?;
    if trigger.enabled != enabled {
        trigger.enabled = enabled;
        trigger.next_fire_at = match (&trigger.cron, &trigger.time_zone) {
            (Some(cron), Some(zone)) if enabled => {
                let schedule = Schedule::read(cron, zone).ok();
                schedule.and_then(|schedule| schedule.after(cx.now))
            }
            _ => None,
        };
        let next = Param::from(trigger.next_fire_at.map(Timestamp::millis));
        session.execute(
            "UPDATE triggers SET enabled = $2, fire_at = $3, due_at = $4 WHERE id = $1",
            &[
                Param::Text(&trigger.id.to_string()),
                enabled.into(),
                next,
                next,
            ],
        )?;
    }
    Ok(trigger)
}

/// Deletes a trigger: its token is revoked, and what it started and still waits is not begun.
pub(crate) fn delete(
    session: &mut dyn Session,
    cx: Cx<'_>,
    caller: &Principal,
    id: &str,
) -> Result<(), Error> {
    let (trigger, role) = find(session, caller, id)?;
    caller.may(Action::TriggerWrite, role, false)?;
    hold(session, trigger.workspace_id)?;
    session.execute(
        "UPDATE triggers SET enabled = 0, fire_at = NULL, due_at = NULL, deleted_at = $2 WHERE id = $1 AND deleted_at IS NULL",
        &[
            Param::Text(&trigger.id.to_string()),
            Param::Int(cx.now.millis()),
        ],
    )?;
    Ok(())
}

/// Locks a workspace's row, before anything else of it.
fn hold(session: &mut dyn Session, workspace: WorkspaceId) -> Result<(), Error> {
    session.query(
        "SELECT id FROM workspaces WHERE id = $1 /*pg:FOR UPDATE*/",
        &[Param::Text(&workspace.to_string())],
    )?;
    Ok(())
}

/// Keeps what came of a firing.
fn record(
    session: &mut dyn Session,
    cx: Cx<'_>,
    trigger: TriggerId,
    outcome: &FiringOutcome,
) -> Result<(), Error> {
    let outcome = serde_json::to_string(outcome).map_err(|error| Error::Store {
        detail: error.to_string(),
    })?;
    session.execute(
        "UPDATE triggers SET last_fired_at = $2, last_outcome = $3 WHERE id = $1",
        &[
            Param::Text(&trigger.to_string()),
            Param::Int(cx.now.millis()),
            Param::Text(&outcome),
        ],
    )?;
    Ok(())
}

const fn started(run_id: RunId) -> FiringOutcome {
    FiringOutcome::Started { run_id }
}

fn read(row: &Row) -> Result<Trigger, Error> {
    let input = row.json(4)?.ok_or_else(|| Error::Store {
        detail: "a trigger has no input".into(),
    })?;
    Ok(Trigger {
        id: row.parsed(0)?,
        workspace_id: row.parsed(1)?,
        agent_id: row.parsed(2)?,
        kind: row.parsed(3)?,
        input,
        cron: row.opt_text(5)?.map(Into::into),
        time_zone: row.opt_text(6)?.map(Into::into),
        enabled: row.truth(7)?,
        created_by: row.parsed(8)?,
        next_fire_at: row.opt_time(9)?,
        last_fired_at: row.opt_time(10)?,
        last_outcome: row.json(11)?,
        created_at: row.time(12)?,
    })
}
