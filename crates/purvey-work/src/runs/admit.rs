//! Admission (Work §3): every start, from every way in, is judged here, in one order and one transaction.

use super::{
    CLAIMABLE,
    facts::{self, AgentFacts, ThreadFacts, TriggerFacts, UserFacts},
    insert::{self, Admitted},
    promote::{promote, someone_waits},
    read,
    slots::Slots,
    start::{Admission, By, Start, Target},
};
use crate::{
    access::{Action, Principal},
    artifacts,
    budget::{self, Budget},
    clock::{Cx, Timestamp},
    code::Code,
    contract,
    error::{Error, LimitDetail, Refusal},
    id::{AgentId, RunId, ThreadId, TriggerId, UserId, WorkspaceId},
    idempotency::{self, Named},
    model::ThreadState,
    sql::{Param, Session},
};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    rc::Rc,
    time::Duration,
};

/// Judges starts in their order, as if each came alone, and admits those that may be: each either holds a slot at once or waits in its
/// workspace's queue. The answers are in the order of the starts.
///
/// # Errors
/// Each start has its own; the whole fails with the store, and with `resource.not_found` when an agent is deleted at this moment.
pub(crate) fn admit(
    session: &mut dyn Session,
    cx: Cx<'_>,
    starts: &[Start],
) -> Result<Vec<Result<Admission, Error>>, Error> {
    let mut batch = Batch::default();
    let aims = batch.aims(session, starts)?;
    batch.open(session, cx, starts, &aims)?;
    let mut verdicts = Vec::with_capacity(starts.len());
    for (start, aim) in starts.iter().zip(aims) {
        let verdict = match aim {
            None => Err(Code::NotFound.into()),
            Some(aim) => batch.judge(session, cx, start, &aim),
        };
        // What the store refuses ends the whole batch; what a start is refused is its own.
        match verdict {
            Err(error @ (Error::Store { .. } | Error::Unavailable { .. })) => return Err(error),
            verdict => verdicts.push(verdict),
        }
    }
    insert::all(session, cx, &batch.admitted)?;
    Slots::save_all(
        session,
        batch.desks.values_mut().map(|desk| &mut desk.slots),
    )?;
    if batch
        .admitted
        .iter()
        .any(|new| new.run.started_at.is_some())
    {
        session.notify(CLAIMABLE)?;
    }
    let mut admitted = batch.admitted.into_iter();
    verdicts
        .into_iter()
        .map(|verdict| match verdict {
            Ok(Verdict::Admitted) => admitted.next().map_or_else(
                || {
                    Err(Error::Store {
                        detail: "an admission is lost".into(),
                    })
                },
                |new| Ok(Ok(new.into_answer())),
            ),
            Ok(Verdict::Replay(run)) => replay(session, run),
            Err(error) => Ok(Err(error)),
        })
        .collect()
}

fn replay(session: &mut dyn Session, run: RunId) -> Result<Result<Admission, Error>, Error> {
    let Some(run) = read::run(session, run)? else {
        return Ok(Err(Refusal::because(
            Code::StateConflict,
            "The run that this key started is no longer kept; a new start needs a new key.",
        )
        .into()));
    };
    let turn = match run.turn_id {
        Some(turn) => read::turn(session, turn)?,
        None => None,
    };
    Ok(Ok(Admission {
        run,
        replayed: true,
        turn,
    }))
}

enum Verdict {
    Admitted,
    Replay(RunId),
}

/// What a start aims at, as far as it is there.
struct Aim {
    agent: Rc<AgentFacts>,
    thread: Option<ThreadId>,
    trigger: Option<(TriggerId, TriggerFacts)>,
    user: UserId,
}

/// A workspace's side of a batch.
struct Desk {
    slots: Slots,
    /// Whether a run waits for a slot: then none may go before it.
    waits: bool,
    /// The limit of spending that is met.
    limit: Option<LimitDetail>,
    /// How long to wait for a place in the queue, once it has been asked for.
    wait: Option<Duration>,
}

/// Everything that is known while a batch is judged; each fact is read once.
#[derive(Default)]
struct Batch {
    agents: HashMap<AgentId, Rc<AgentFacts>>,
    users: HashMap<(WorkspaceId, UserId), UserFacts>,
    threads: HashMap<ThreadId, ThreadFacts>,
    named: HashMap<(WorkspaceId, String, String), Named>,
    desks: BTreeMap<WorkspaceId, Desk>,
    admitted: Vec<Admitted>,
}

impl Batch {
    /// Finds what starts aim at; nothing when any of it is absent, or lies in another organization.
    fn aims(
        &mut self,
        session: &mut dyn Session,
        starts: &[Start],
    ) -> Result<Vec<Option<Aim>>, Error> {
        let mut targets = Vec::with_capacity(starts.len());
        for start in starts {
            targets.push(match start.target {
                Target::Agent(agent) => Some((agent, None)),
                Target::Thread(thread) | Target::Turn(thread, _) => {
                    facts::thread(session, thread)?.map(|facts| (facts.agent, Some(thread)))
                }
            });
        }
        let agents: BTreeSet<_> = targets.iter().flatten().map(|(agent, _)| *agent).collect();
        let agents: Vec<_> = agents.into_iter().collect();
        let agents = facts::agents(session, &agents)?.into_iter();
        self.agents = agents.map(|agent| (agent.id, Rc::new(agent))).collect();
        starts
            .iter()
            .zip(targets)
            .map(|(start, target)| match target {
                None => Ok(None),
                Some((agent, thread)) => self.aim(session, start, agent, thread),
            })
            .collect()
    }

    fn aim(
        &self,
        session: &mut dyn Session,
        start: &Start,
        agent: AgentId,
        thread: Option<ThreadId>,
    ) -> Result<Option<Aim>, Error> {
        let Some(agent) = self.agents.get(&agent) else {
            return Ok(None);
        };
        let (user, trigger) = match &start.by {
            By::User(actor) => {
                let caller = Principal::User(actor.clone());
                if !caller.sees(agent.organization) {
                    return Ok(None);
                }
                (actor.user, None)
            }
            By::Requester(user) => (*user, None),
            By::Trigger(id) => match facts::trigger(session, *id)? {
                None => return Ok(None),
                Some(trigger) => (trigger.creator, Some((*id, trigger))),
            },
        };
        Ok(Some(Aim {
            agent: Rc::clone(agent),
            thread,
            trigger,
            user,
        }))
    }

    /// Holds the workspaces that are aimed at, in the order of their identifiers, and finds who starts and what the keys named before.
    fn open(
        &mut self,
        session: &mut dyn Session,
        cx: Cx<'_>,
        starts: &[Start],
        aims: &[Option<Aim>],
    ) -> Result<(), Error> {
        let mut workspaces = BTreeSet::new();
        let mut users = BTreeSet::new();
        let mut keys = Vec::new();
        for (start, aim) in starts.iter().zip(aims) {
            if let Some(aim) = aim {
                let workspace = aim.agent.workspace;
                workspaces.insert(workspace);
                users.insert((workspace, aim.user));
                keys.extend(start.key.iter().map(|key| (workspace, key.text.as_str())));
            }
        }
        let workspaces: Vec<_> = workspaces.into_iter().collect();
        for mut slots in Slots::hold_all(session, &workspaces)? {
            promote(session, cx, &mut slots)?;
            let waits = slots.has_room() && someone_waits(session, &slots)?;
            let desk = Desk {
                waits,
                slots,
                limit: None,
                wait: None,
            };
            self.desks.insert(desk.slots.workspace, desk);
        }
        for budget in Budget::load_all(session, cx.now.day(), &workspaces)? {
            if let Some(desk) = self.desks.get_mut(&budget.workspace) {
                desk.limit = budget.met(cx.now);
            }
        }
        let users: Vec<_> = users.into_iter().collect();
        let users = facts::users(session, &users)?.into_iter();
        self.users = users
            .map(|(workspace, user)| ((workspace, user.id), user))
            .collect();
        self.named = idempotency::named(session, &keys)?;
        Ok(())
    }

    fn judge(
        &mut self,
        session: &mut dyn Session,
        cx: Cx<'_>,
        start: &Start,
        aim: &Aim,
    ) -> Result<Verdict, Error> {
        let agent = &aim.agent;
        let workspace = agent.workspace;
        self.permit(start, aim)?;

        let desk = self.desks.get_mut(&workspace).ok_or_else(|| Error::Store {
            detail: format!("{workspace} of a start is not held"),
        })?;
        let named = start.key.as_ref().map(|key| {
            (
                (workspace, start.by.text(), key.text.clone()),
                key.fingerprint,
            )
        });
        if let Some((key, fingerprint)) = &named
            && let Some(before) = self.named.get(key)
        {
            if before.fingerprint != fingerprint {
                return Err(Code::KeyReused.into());
            }
            let run = before.target.parse().map_err(|_| Error::Store {
                detail: "a key names no run".into(),
            })?;
            return Ok(Verdict::Replay(run));
        }

        if let Some(schema) = &agent.definition.input_schema {
            contract::check_input(schema, &start.input)?;
        }

        if !start.artifacts.is_empty() {
            artifacts::check_inputs(session, workspace, &start.artifacts)?;
        }

        let thread = match aim.thread {
            None => None,
            Some(id) => {
                let known = match self.threads.get(&id) {
                    Some(known) => *known,
                    None => facts::thread(session, id)?.ok_or(Code::NotFound)?,
                };
                self.threads.insert(id, known);
                Some((id, known))
            }
        };
        let trigger = aim.trigger.map(|(_, trigger)| trigger);
        in_order(agent, thread.map(|(_, thread)| thread.state), trigger)?;

        if let Some(limit) = &desk.limit {
            return Err(budget::refusal(limit).into());
        }

        let blocked = thread.is_some_and(|(_, thread)| thread.busy);
        let slots = &mut desk.slots;
        let starts_now = !blocked && !desk.waits && slots.has_room();
        if !starts_now && slots.queued >= slots.queue_limit {
            let wait = match desk.wait {
                Some(known) => known,
                None => *desk.wait.insert(place_frees(session, cx, slots)?),
            };
            return Err(Refusal {
                retry_after: Some(wait),
                limit_detail: Some(LimitDetail::of(Code::QueueFull)),
                ..Refusal::new(Code::QueueFull)
            }
            .into());
        }

        let position = if starts_now {
            slots.running += 1;
            None
        } else {
            desk.waits |= !blocked;
            slots.queued += 1;
            slots.next_position += 1;
            Some(slots.next_position - 1)
        };
        if let Some((id, thread)) = thread {
            self.threads.insert(
                id,
                ThreadFacts {
                    busy: true,
                    ..thread
                },
            );
        }
        let admitted = Admitted::new(
            session,
            cx,
            start,
            insert::Place {
                agent: Rc::clone(agent),
                user: aim.user,
                trigger: aim.trigger.map(|(id, _)| id),
                thread: aim.thread,
                position,
                blocked,
                ahead: slots.queued,
            },
        )?;
        if let Some((key, fingerprint)) = named {
            let named = Named {
                fingerprint: fingerprint.to_vec(),
                target: admitted.run.id.to_string(),
            };
            self.named.insert(key, named);
        }
        self.admitted.push(admitted);
        Ok(Verdict::Admitted)
    }

    /// 403: scope, state and role, visibility.
    fn permit(&self, start: &Start, aim: &Aim) -> Result<(), Error> {
        let user = self.users.get(&(aim.agent.workspace, aim.user));
        let user = user.ok_or(Code::PermissionRole)?;
        let action = match start.target {
            Target::Agent(_) => Action::RunStart,
            Target::Thread(_) | Target::Turn(..) => Action::TurnSend,
        };
        if let By::User(actor) = &start.by {
            // The state is as it is now, whatever it was when the token was looked at.
            let mut actor = actor.clone();
            actor.state = user.state;
            Principal::User(actor).may(action, user.role, false)?;
        } else {
            action.permits(user.state, user.role, false)?;
        }
        if !aim.agent.is_visible_to(user) {
            return Err(Code::PermissionVisibility.into());
        }
        Ok(())
    }
}

/// 409: the state that things must be in for a start.
fn in_order(
    agent: &AgentFacts,
    thread: Option<ThreadState>,
    trigger: Option<TriggerFacts>,
) -> Result<(), Error> {
    let conflict = |detail: &'static str| Err(Refusal::because(Code::StateConflict, detail).into());
    if agent.paused {
        return conflict("The agent is paused; it takes starts again once it is resumed.");
    }
    match thread {
        Some(ThreadState::Paused) => {
            return conflict("The thread is paused; it takes turns again once it is resumed.");
        }
        Some(ThreadState::Closed) => {
            return conflict("The thread is closed; open another one.");
        }
        Some(ThreadState::Open) | None => {}
    }
    if trigger.is_some_and(|trigger| !trigger.enabled) {
        return conflict("The trigger is turned off; it fires again once it is enabled.");
    }
    Ok(())
}

/// How long until a place in a full queue can be expected: what the workspace took for each of its last runs; without any, as long again as
/// its oldest run has taken so far. Between a second and an hour.
fn place_frees(session: &mut dyn Session, cx: Cx<'_>, slots: &Slots) -> Result<Duration, Error> {
    let workspace = slots.workspace.to_string();
    let rows = session.query(
        "SELECT finished_at FROM runs WHERE workspace_id = $1 AND finished_at IS NOT NULL ORDER BY finished_at DESC LIMIT 16",
        &[Param::Text(&workspace)],
    )?;
    let since = |millis| cx.now.since(Timestamp::from_millis(millis));
    let estimate = match rows.last() {
        Some(oldest) => {
            let ended = u32::try_from(rows.len()).unwrap_or(1);
            since(oldest.int(0)?) / ended.max(1)
        }
        None => {
            let oldest = session.row(
                "SELECT MIN(started_at) FROM runs WHERE workspace_id = $1 AND status IN ('running', 'paused_limit_exceeded')",
                &[Param::Text(&workspace)],
            )?;
            let oldest = oldest.map_or(Ok(None), |row| row.opt_int(0))?;
            oldest.map_or(Duration::from_secs(1), since)
        }
    };
    Ok(estimate.clamp(Duration::from_secs(1), Duration::from_secs(3_600)))
}
