//! Agents: what runs run (Work §1, §11).

use crate::{
    access::{Action, Principal},
    body::Members,
    clock::{Cx, Timestamp},
    code::Code,
    contract,
    error::{Error, Fault, Refusal},
    id::{AgentId, OrganizationId, UserId, WorkspaceId},
    identity::{named, role, workspaces},
    model::{Agent, Definition, Role, ToolName, Visibility},
    paging::{Listing, PageRequest},
    sql::{Param, Row, Session},
};
use serde_json::Value;
use std::collections::BTreeSet;

/// Seconds from a run's first start to its end.
const TIME_LIMITS: std::ops::RangeInclusive<i64> = 1..=86_400;
const USUAL_TIME_LIMIT: u32 = 3_600;
/// Characters of instructions, at most.
const INSTRUCTIONS: usize = 100_000;
/// Users that one agent is shared with, at most.
const SHARES: usize = 1_000;
/// The topic that tells who lists published agents that they may have changed.
pub(crate) const AGENTS: &str = "agents";

const COLUMNS: &str = "id, organization_id, workspace_id, owner_id, definition, visibility, shared_with, paused, published, created_at,
    updated_at";

/// An agent that exists for the caller, its tenant, and the caller's role in its workspace.
pub(crate) struct Found {
    pub(crate) agent: Agent,
    pub(crate) organization: OrganizationId,
    pub(crate) role: Option<Role>,
}

impl Found {
    /// Whether the caller made it.
    pub(crate) fn is_own(&self, caller: &Principal) -> bool {
        matches!(caller, Principal::User(actor) if actor.user == self.agent.owner_id)
    }

    /// Lets those through who may see it.
    ///
    /// # Errors
    /// `permission.visibility`.
    pub(crate) fn visible(&self, caller: &Principal) -> Result<(), Error> {
        match is_visible(&self.agent, caller, self.role) {
            true => Ok(()),
            false => Err(Code::PermissionVisibility.into()),
        }
    }
}

fn is_visible(agent: &Agent, caller: &Principal, role: Option<Role>) -> bool {
    let Principal::User(actor) = caller else {
        return true;
    };
    let shared = agent.owner_id == actor.user || agent.shared_with.contains(&actor.user);
    shared
        || role.is_some_and(|role| role >= Role::Admin)
        || match agent.visibility {
            Visibility::Private => false,
            Visibility::Workspace => role.is_some(),
            Visibility::Organization => true,
        }
}

/// An agent that exists for the caller.
///
/// # Errors
/// `resource.not_found`.
pub(crate) fn find(
    session: &mut dyn Session,
    caller: &Principal,
    id: &str,
) -> Result<Found, Error> {
    let id: AgentId = named(id)?;
    let row = session.row(
        &format!("SELECT {COLUMNS} FROM agents WHERE id = $1 AND deleted_at IS NULL"),
        &[Param::Text(&id.to_string())],
    )?;
    let row = row.ok_or(Code::NotFound)?;
    let organization = row.parsed(1)?;
    if !caller.sees(organization) {
        return Err(Code::NotFound.into());
    }
    let agent = read(&row)?;
    let role = match caller {
        Principal::Operator => None,
        Principal::User(actor) => role(session, agent.workspace_id, actor.user)?,
    };
    Ok(Found {
        agent,
        organization,
        role,
    })
}

/// An agent that the caller may read. Those of another workspace of the organization need no role there, only to be visible.
pub(crate) fn get(session: &mut dyn Session, caller: &Principal, id: &str) -> Result<Agent, Error> {
    let found = find(session, caller, id)?;
    caller.may(
        Action::AgentRead,
        Some(found.role.unwrap_or(Role::Viewer)),
        false,
    )?;
    found.visible(caller)?;
    Ok(found.agent)
}

/// Makes an agent. `providers` are those that the server knows.
pub(crate) fn create(
    session: &mut dyn Session,
    cx: Cx<'_>,
    caller: &Principal,
    workspace: &str,
    body: &Value,
    providers: &BTreeSet<String>,
) -> Result<Agent, Error> {
    let mut members = Members::of(body);
    let changes = Changes::read(&mut members, true);
    members.note(changes.known_provider(providers));
    members.end()?;
    let (workspace, role) = workspaces::find(session, caller, workspace)?;
    caller.may(Action::AgentCreate, role, false)?;
    let owner_id = caller.actor()?.user;
    let mut agent = Agent {
        id: AgentId::new(cx.now, cx.chance),
        workspace_id: workspace.id,
        owner_id,
        definition: Definition {
            name: String::new(),
            instructions: String::new(),
            provider: String::new(),
            model: String::new(),
            input_schema: None,
            output_schema: None,
            tools: Vec::new(),
            time_limit_seconds: USUAL_TIME_LIMIT,
        },
        visibility: Visibility::Workspace,
        shared_with: Vec::new(),
        paused: false,
        published: false,
        created_at: cx.now,
        updated_at: cx.now,
    };
    changes.apply(&mut agent);
    check_shares(session, &agent, workspace.organization_id)?;
    session.execute(
        "INSERT INTO agents (id, organization_id, workspace_id, owner_id, definition, visibility, shared_with, paused, published,
            revision, unfinished, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 1, 0, $10, $10)",
        &[
            Param::Text(&agent.id.to_string()),
            Param::Text(&workspace.organization_id.to_string()),
            Param::Text(&agent.workspace_id.to_string()),
            Param::Text(&owner_id.to_string()),
            Param::Text(&json(&agent.definition)?),
            Param::Text(agent.visibility.text()),
            Param::Text(&json(&agent.shared_with)?),
            Param::Int(agent.paused.into()),
            Param::Int(agent.published.into()),
            Param::Int(cx.now.millis()),
        ],
    )?;
    session.notify(AGENTS)?;
    Ok(agent)
}

/// Changes an agent; runs that were admitted keep the definition that they took.
pub(crate) fn update(
    session: &mut dyn Session,
    cx: Cx<'_>,
    caller: &Principal,
    id: &str,
    body: &Value,
    providers: &BTreeSet<String>,
) -> Result<Agent, Error> {
    // What does not even have the form of a change is refused before anything is looked up (Work §3).
    let mut members = Members::of(body);
    let changes = Changes::read(&mut members, false);
    members.end()?;
    let found = find(session, caller, id)?;
    let own = found.is_own(caller);
    caller.may(Action::AgentChange, found.role, own)?;
    found.visible(caller)?;
    changes
        .known_provider(providers)
        .map_err(|fault| Refusal::invalid(vec![fault]))?;
    let mut agent = found.agent;
    changes.apply(&mut agent);
    agent.updated_at = cx.now;
    check_shares(session, &agent, found.organization)?;
    session.execute(
        "UPDATE agents SET definition = $2, visibility = $3, shared_with = $4, paused = $5, published = $6, revision = revision + 1,
            updated_at = $7 WHERE id = $1",
        &[
            Param::Text(&agent.id.to_string()),
            Param::Text(&json(&agent.definition)?),
            Param::Text(agent.visibility.text()),
            Param::Text(&json(&agent.shared_with)?),
            Param::Int(agent.paused.into()),
            Param::Int(agent.published.into()),
            Param::Int(cx.now.millis()),
        ],
    )?;
    session.notify(AGENTS)?;
    Ok(agent)
}

/// Deletes an agent without unfinished runs.
pub(crate) fn delete(
    session: &mut dyn Session,
    cx: Cx<'_>,
    caller: &Principal,
    id: &str,
) -> Result<(), Error> {
    let found = find(session, caller, id)?;
    caller.may(Action::AgentChange, found.role, found.is_own(caller))?;
    found.visible(caller)?;
    let deleted = session.execute(
        "UPDATE agents SET deleted_at = $2 WHERE id = $1 AND unfinished = 0 AND deleted_at IS NULL",
        &[
            Param::Text(&found.agent.id.to_string()),
            Param::Int(cx.now.millis()),
        ],
    )?;
    if deleted == 0 {
        return Err(Refusal::because(
            Code::StateConflict,
            "The agent has unfinished runs; cancel them or let them end, then delete it.",
        )
        .into());
    }
    session.notify(AGENTS)
}

/// The agents of a workspace that the caller may see.
pub(crate) fn list(
    session: &mut dyn Session,
    caller: &Principal,
    workspace: &str,
    page: &PageRequest,
) -> Result<Listing<Agent>, Error> {
    let mut before = page.before::<AgentId>()?;
    let (workspace, role) = workspaces::allowed(session, caller, workspace, Action::AgentRead)?;
    let id = workspace.id.to_string();
    let wanted = usize::try_from(page.rows()).unwrap_or(usize::MAX);
    let mut items = Vec::new();
    // Those that are not visible are left out, so a page may take several looks.
    while items.len() < wanted {
        let rows = session.query(
            &format!(
                "SELECT {COLUMNS} FROM agents WHERE workspace_id = $1 AND id < $2 AND deleted_at IS NULL ORDER BY id DESC LIMIT $3"
            ),
            &[
                Param::Text(&id),
                Param::Text(&before),
                Param::Int(page.rows()),
            ],
        )?;
        let Some(last) = rows.last() else {
            break;
        };
        last.text(0)?.clone_into(&mut before);
        for row in &rows {
            let agent = read(row)?;
            if items.len() < wanted && is_visible(&agent, caller, role) {
                items.push(agent);
            }
        }
        if rows.len() < wanted {
            break;
        }
    }
    Ok(page.listing(items, |agent: &Agent| agent.id))
}

/// What is an Offering of the catalog now.
const OFFERED: &str = "published = 1 AND paused = 0 AND deleted_at IS NULL";

/// Every agent that is an Offering of the catalog now: published and not paused.
pub(crate) fn published(session: &mut dyn Session) -> Result<Vec<Agent>, Error> {
    let rows = session.query(
        &format!("SELECT {COLUMNS} FROM agents WHERE {OFFERED} ORDER BY id"),
        &[],
    )?;
    rows.iter().map(read).collect()
}

/// Every agent that is an Offering of the catalog now, with the number of the change that it is at.
pub(crate) fn published_revisions(session: &mut dyn Session) -> Result<Vec<(AgentId, i64)>, Error> {
    let rows = session.query(
        &format!("SELECT id, revision FROM agents WHERE {OFFERED} ORDER BY id"),
        &[],
    )?;
    rows.iter()
        .map(|row| Ok((row.parsed(0)?, row.int(1)?)))
        .collect()
}

/// What a body says of an agent; what it does not name stays.
struct Changes {
    name: Option<String>,
    instructions: Option<String>,
    provider: Option<String>,
    model: Option<String>,
    /// Absent, taken away, or given.
    input_schema: Option<Option<Value>>,
    output_schema: Option<Option<Value>>,
    time_limit_seconds: Option<u32>,
    tools: Option<Vec<ToolName>>,
    visibility: Option<Visibility>,
    shared_with: Option<Vec<UserId>>,
    paused: Option<bool>,
    published: Option<bool>,
}

impl Changes {
    /// Judges what needs nothing but the body. A new agent has to be told what it is called, does and calls.
    fn read(members: &mut Members<'_>, is_new: bool) -> Self {
        let mut text = |name, bounds| match is_new {
            true => members.text(name, bounds),
            false => members.opt_text(name, bounds),
        };
        Self {
            name: text("name", 1..=200),
            instructions: text("instructions", 0..=INSTRUCTIONS),
            provider: text("provider", 1..=200),
            model: text("model", 0..=200),
            input_schema: schema(members, "input_schema"),
            output_schema: schema(members, "output_schema"),
            time_limit_seconds: members
                .opt_number("time_limit_seconds", TIME_LIMITS)
                .and_then(|limit| u32::try_from(limit).ok()),
            tools: members.opt_list(
                "tools",
                ToolName::ALL.len(),
                "odp_search, odp_get or odp_invoke",
            ),
            visibility: members.opt_parsed("visibility", "private, workspace or organization"),
            shared_with: members.opt_list("shared_with", SHARES, "a user's id"),
            paused: members.opt_bool("paused"),
            published: members.opt_bool("published"),
        }
    }

    /// Judges the provider by those that the server knows.
    fn known_provider(&self, providers: &BTreeSet<String>) -> Result<(), Fault> {
        match &self.provider {
            Some(provider) if !providers.contains(provider) => {
                let known: Vec<&str> = providers.iter().map(String::as_str).collect();
                Err(Fault::body(
                    "/provider",
                    format!(
                        "{provider:?} is no provider of this server; it has {}.",
                        known.join(", ")
                    ),
                ))
            }
            _ => Ok(()),
        }
    }

    fn apply(self, agent: &mut Agent) {
        let definition = &mut agent.definition;
        set(&mut definition.name, self.name);
        set(&mut definition.instructions, self.instructions);
        set(&mut definition.provider, self.provider);
        set(&mut definition.model, self.model);
        set(&mut definition.input_schema, self.input_schema);
        set(&mut definition.output_schema, self.output_schema);
        set(&mut definition.time_limit_seconds, self.time_limit_seconds);
        set(&mut definition.tools, self.tools);
        set(&mut agent.visibility, self.visibility);
        set(&mut agent.shared_with, self.shared_with);
        set(&mut agent.paused, self.paused);
        set(&mut agent.published, self.published);
    }
}

fn set<T>(slot: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *slot = value;
    }
}

/// A schema of a body, checked; `null` takes it away.
#[expect(clippy::option_option, reason = "absent, taken away, given")]
fn schema(members: &mut Members<'_>, name: &'static str) -> Option<Option<Value>> {
    let value = members.any(name)?;
    if value.is_null() {
        return Some(None);
    }
    members.note(contract::check_schema(value, &format!("/{name}")));
    Some(Some(value.clone()))
}

/// Shares name users of the organization.
fn check_shares(
    session: &mut dyn Session,
    agent: &Agent,
    organization: OrganizationId,
) -> Result<(), Error> {
    let mut faults = Vec::new();
    for (index, user) in agent.shared_with.iter().enumerate() {
        let there = session.row(
            "SELECT id FROM users WHERE id = $1 AND organization_id = $2 AND state <> 'deleted'",
            &[
                Param::Text(&user.to_string()),
                Param::Text(&organization.to_string()),
            ],
        )?;
        if there.is_none() {
            faults.push(Fault::body(
                format!("/shared_with/{index}"),
                "There is no such user in the organization.",
            ));
        }
    }
    match faults.is_empty() {
        true => Ok(()),
        false => Err(Refusal::invalid(faults).into()),
    }
}

fn json<T: serde::Serialize>(value: &T) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::Store {
        detail: error.to_string(),
    })
}

fn read(row: &Row) -> Result<Agent, Error> {
    let definition = row.json(4)?.ok_or_else(|| Error::Store {
        detail: "an agent has no definition".into(),
    })?;
    Ok(Agent {
        id: row.parsed(0)?,
        workspace_id: row.parsed(2)?,
        owner_id: row.parsed(3)?,
        definition,
        visibility: row.parsed(5)?,
        shared_with: row.json(6)?.unwrap_or_default(),
        paused: row.int(7)? != 0,
        published: row.int(8)? != 0,
        created_at: Timestamp::from_millis(row.int(9)?),
        updated_at: Timestamp::from_millis(row.int(10)?),
    })
}

/// The workspace of an agent, whoever asks.
pub(crate) fn workspace_of(
    session: &mut dyn Session,
    id: AgentId,
) -> Result<Option<WorkspaceId>, Error> {
    session
        .row(
            "SELECT workspace_id FROM agents WHERE id = $1",
            &[Param::Text(&id.to_string())],
        )?
        .map(|row| row.parsed(0))
        .transpose()
}
