//! Runs: started, read, watched, cancelled.

use super::Platform;
use crate::{
    access::{Action, Principal},
    agents,
    body::Members,
    code::Code,
    error::{Error, Fault, Place, Refusal},
    id::{AgentId, ArtifactId, OrganizationId, RunId, UserId, WorkspaceId},
    idempotency::Key,
    identity::{named, role, workspaces},
    model::{Role, Run, RunStatus, Step},
    paging::{Listing, PageRequest},
    runs::{self, Admission, By, EventData, Filter, Start, Target},
    sql::{Hub, Param, Session, Watch},
};
use serde::Serialize;
use serde_json::Value;
use std::{collections::HashSet, sync::Arc, time::Duration};

/// Artifacts that one run may read, at most.
const ARTIFACTS: usize = 100;
/// Agents whose workspaces are remembered, at most.
const HOMES: usize = 65_536;
/// Events taken at once.
const EVENTS: usize = 100;
/// Runs forgotten in one transaction.
const PRUNED: u32 = 256;
/// Steps of a run that are shown, at most.
const STEPS: usize = 1_000;

/// A start that was accepted, now or before.
#[derive(Clone, Debug, PartialEq)]
pub struct Started {
    /// The run as it is now.
    pub run: Run,
    /// Whether its key had named this start before.
    pub replayed: bool,
}

/// Which runs of a workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Only with this status.
    pub status: Option<RunStatus>,
    /// Only of this agent.
    pub agent: Option<AgentId>,
}

/// Something that happened to a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Watched {
    /// Its number within the run: where a watcher goes on after it.
    pub id: u32,
    /// `status`, `step` or `output`.
    pub kind: &'static str,
    /// The run or the step as it was then.
    pub data: Value,
}

impl RunFilter {
    /// From the query parameters `status` and `agent_id`.
    ///
    /// # Errors
    /// `request.invalid` for what is no status or no agent's id.
    pub fn parse(status: Option<&str>, agent: Option<&str>) -> Result<Self, Error> {
        let mut faults = Vec::new();
        let mut fault = |name, reason: &'static str| {
            faults.push(Fault {
                place: Place::Query(name),
                reason: reason.into(),
            });
        };
        let status = status.map(str::parse::<RunStatus>).transpose().unwrap_or_else(|()| {
            fault(
                "status",
                "Must be pending, running, paused_limit_exceeded, succeeded, failed or cancelled.",
            );
            None
        });
        let agent = agent
            .map(str::parse::<AgentId>)
            .transpose()
            .unwrap_or_else(|_| {
                fault("agent_id", "Must be an agent's id.");
                None
            });
        match faults.is_empty() {
            true => Ok(Self { status, agent }),
            false => Err(Refusal::invalid(faults).into()),
        }
    }
}

/// A key as a caller sends it, for a request to `target`.
///
/// # Errors
/// `request.invalid` that names the header.
pub(super) fn key(text: Option<&str>, target: &str, body: &Value) -> Result<Option<Key>, Error> {
    text.map(|text| Key::new(text, target, body))
        .transpose()
        .map_err(|fault| Refusal::invalid(vec![fault]).into())
}

impl Platform {
    /// `POST /v1/agents/{id}/runs`.
    ///
    /// # Errors
    /// Any refusal of Work §2–4; failures of the store.
    pub async fn start_run(
        &self,
        caller: Principal,
        agent: String,
        body: Value,
        idempotency_key: Option<String>,
    ) -> Result<Started, Error> {
        let mut members = Members::of(&body);
        let input = members.value("input").cloned();
        let artifacts = members.opt_list::<ArtifactId>("artifacts", ARTIFACTS, "an artifact's id");
        members.end()?;
        let target = format!("agent {agent}");
        let key = key(idempotency_key.as_deref(), &target, &body)?;
        let Principal::User(actor) = &caller else {
            // The operator sees every agent and starts none.
            self.read(move |session, _| {
                agents::find(session, &Principal::Operator, &agent).map(|_| ())
            })
            .await?;
            return Err(caller.actor().err().unwrap_or(Code::PermissionRole.into()));
        };
        let id: AgentId = named(&agent)?;
        let start = Start {
            by: By::User(actor.clone()),
            target: Target::Agent(id),
            input: input.unwrap_or_default(),
            artifacts: artifacts.unwrap_or_default(),
            key,
        };
        let admission = self.admit(self.home(id).await?, start).await?;
        Ok(Started {
            run: admission.run,
            replayed: admission.replayed,
        })
    }

    /// The workspace of an agent, deleted or not.
    async fn home(&self, agent: AgentId) -> Result<WorkspaceId, Error> {
        if let Some(home) = self.0.homes.lock().get(&agent) {
            return Ok(*home);
        }
        let home = self
            .read(move |session, _| agents::workspace_of(session, agent))
            .await?
            .ok_or(Code::NotFound)?;
        let mut homes = self.0.homes.lock();
        if homes.len() >= HOMES {
            homes.clear();
        }
        homes.insert(agent, home);
        Ok(home)
    }

    /// Judges a start, together with others of its workspace that come at this moment.
    pub(super) async fn admit(
        &self,
        workspace: WorkspaceId,
        start: Start,
    ) -> Result<Admission, Error> {
        self.0.starts.ask(&workspace.to_string(), start).await
    }

    /// `GET /v1/runs/{id}`; with a wait, as soon as the run has ended, or at the latest after it.
    ///
    /// # Errors
    /// Any refusal of Work §2; failures of the store.
    pub async fn run(&self, caller: Principal, id: String, wait: Duration) -> Result<Run, Error> {
        // Before the first look, so that nothing is missed between it and the wait.
        let mut news = (!wait.is_zero()).then(|| self.hub().watch(&id));
        let end = tokio::time::Instant::now() + wait;
        loop {
            let (caller, wanted) = (caller.clone(), id.clone());
            let run = self
                .read(move |session, _| find(session, &caller, &wanted, Action::RunRead))
                .await?;
            let Some(news) = news.as_mut().filter(|_| !run.status.is_terminal()) else {
                return Ok(run);
            };
            if tokio::time::timeout_at(end, news.changed()).await.is_err() {
                return Ok(run);
            }
        }
    }

    /// `GET /v1/workspaces/{ws}/runs`: those of agents that the caller may see.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub async fn runs(
        &self,
        caller: Principal,
        workspace: String,
        filter: RunFilter,
        page: PageRequest,
    ) -> Result<Listing<Run>, Error> {
        self.read(move |session, _| {
            let (workspace, role) =
                workspaces::allowed(session, &caller, &workspace, Action::RunRead)?;
            let hidden = hidden(session, &caller, workspace.id, role)?;
            let filter = Filter {
                status: filter.status,
                agent: filter.agent,
            };
            let mut part = page.clone();
            let mut items = Vec::new();
            loop {
                let listing = runs::list(session, workspace.id, filter, &part)?;
                let visible = |run: &Run| !hidden.contains(&run.agent_id);
                items.extend(listing.items.into_iter().filter(visible));
                match listing.next_cursor {
                    Some(cursor) if items.len() <= page.limit() => part = part.after(cursor),
                    _ => return Ok(page.listing(items, |run: &Run| run.id)),
                }
            }
        })
        .await
    }

    /// `GET /v1/runs/{id}/steps`.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub async fn steps(&self, caller: Principal, id: String) -> Result<Listing<Step>, Error> {
        self.read(move |session, _| {
            let run = find(session, &caller, &id, Action::RunRead)?;
            Ok(Listing {
                items: runs::steps(session, run.id, 0, STEPS)?,
                next_cursor: None,
            })
        })
        .await
    }

    /// `POST /v1/runs/{id}/cancel`.
    ///
    /// # Errors
    /// As [`Self::run`]; `state.conflict` when it has succeeded or failed.
    pub async fn cancel_run(&self, caller: Principal, id: String) -> Result<Run, Error> {
        let run: RunId = named(&id)?;
        let lane = self
            .read(move |session, _| runs::workspace_of(session, run))
            .await?
            .ok_or(Code::NotFound)?;
        let inner = Arc::clone(&self.0);
        self.0
            .store
            .write_in(&lane.to_string(), move |session| {
                let run = find(session, &caller, &id, Action::RunCancel)?;
                runs::cancel(session, inner.cx(), run.id)
            })
            .await
    }

    /// What happened to a run after event `after`; and whether nothing more will.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub async fn events(
        &self,
        caller: Principal,
        id: String,
        after: u32,
    ) -> Result<(Vec<Watched>, bool), Error> {
        self.read(move |session, _| {
            let run = find(session, &caller, &id, Action::RunRead)?;
            let events = runs::events(session, &run, after, EVENTS)?;
            let ended = run.status.is_terminal() && events.len() < EVENTS;
            let events = events.into_iter().map(|event| {
                let (kind, data) = match event.what {
                    EventData::Status(run) => ("status", json(&*run)?),
                    EventData::Step(step) => ("step", json(&*step)?),
                    EventData::Output(run) => ("output", json(&*run)?),
                };
                Ok(Watched {
                    id: event.seq,
                    kind,
                    data,
                })
            });
            Ok((events.collect::<Result<_, Error>>()?, ended))
        })
        .await
    }

    /// Forgets runs that ended longer ago than `kept`, with their steps and events; how many. Keys outlive their runs by a day.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn prune(&self, kept: Duration) -> Result<usize, Error> {
        let inner = Arc::clone(&self.0);
        let pruned = tokio::task::spawn_blocking(move || {
            let mut pruned = 0;
            loop {
                // A transaction of its own each: nobody's start waits for the whole.
                let more = inner.store.write_now(|session| {
                    let cx = inner.cx();
                    runs::prune(session, cx, cx.now.before(kept), PRUNED)
                })?;
                pruned += more;
                if more < PRUNED as usize {
                    return Ok(pruned);
                }
            }
        });
        pruned.await.unwrap_or_else(|error| {
            Err(Error::Store {
                detail: error.to_string(),
            })
        })
    }

    /// Begins to wait for news of a run; from now on none is missed.
    #[must_use]
    pub fn watch(&self, run: &str) -> Watch {
        self.hub().watch(run)
    }

    fn hub(&self) -> &Hub {
        self.0.store.hub()
    }
}

/// A run that exists for the caller, judged.
fn find(
    session: &mut dyn Session,
    caller: &Principal,
    id: &str,
    action: Action,
) -> Result<Run, Error> {
    let id: RunId = named(id)?;
    let row = session.row(
        "SELECT organization_id, workspace_id, started_by, agent_id FROM runs WHERE id = $1",
        &[Param::Text(&id.to_string())],
    )?;
    let row = row.ok_or(Code::NotFound)?;
    if !caller.sees(row.parsed::<OrganizationId>(0)?) {
        return Err(Code::NotFound.into());
    }
    if let Principal::User(actor) = caller {
        let workspace: WorkspaceId = row.parsed(1)?;
        let role = role(session, workspace, actor.user)?;
        let own = row.parsed::<UserId>(2)? == actor.user;
        caller.may(action, role, own)?;
        let agent: AgentId = row.parsed(3)?;
        if !own && hidden(session, caller, workspace, role)?.contains(&agent) {
            return Err(Code::PermissionVisibility.into());
        }
    }
    runs::run(session, id)?.ok_or_else(|| Code::NotFound.into())
}

/// The agents of a workspace that are not visible to the caller.
fn hidden(
    session: &mut dyn Session,
    caller: &Principal,
    workspace: WorkspaceId,
    role: Option<Role>,
) -> Result<HashSet<AgentId>, Error> {
    let Principal::User(actor) = caller else {
        return Ok(HashSet::new());
    };
    if role.is_some_and(|role| role >= Role::Admin) {
        return Ok(HashSet::new());
    }
    let rows = session.query(
        "SELECT id, shared_with FROM agents WHERE workspace_id = $1 AND visibility = 'private' AND owner_id <> $2",
        &[
            Param::Text(&workspace.to_string()),
            Param::Text(&actor.user.to_string()),
        ],
    )?;
    let mut hidden = HashSet::new();
    for row in rows {
        let shared: Vec<UserId> = row.json(1)?.unwrap_or_default();
        if !shared.contains(&actor.user) {
            hidden.insert(row.parsed(0)?);
        }
    }
    Ok(hidden)
}

fn json<T: Serialize>(value: &T) -> Result<Value, Error> {
    serde_json::to_value(value).map_err(|error| Error::Store {
        detail: error.to_string(),
    })
}
