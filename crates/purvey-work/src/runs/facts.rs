//! What a start is judged by: the things that it names, as they are now.

use crate::{
    error::Error,
    id::{AgentId, OrganizationId, ThreadId, TriggerId, UserId, WorkspaceId},
    model::{Definition, Role, ThreadState, UserState, Visibility},
    sql::{Param, ROWS, Session, values},
};

/// An agent as a start sees it.
pub(super) struct AgentFacts {
    pub(super) id: AgentId,
    pub(super) organization: OrganizationId,
    pub(super) workspace: WorkspaceId,
    pub(super) owner: UserId,
    pub(super) definition: Definition,
    /// The same as it is kept.
    pub(super) definition_text: String,
    pub(super) visibility: Visibility,
    pub(super) shared_with: Vec<UserId>,
    pub(super) paused: bool,
}

/// A user as a workspace sees them.
#[derive(Clone, Copy)]
pub(super) struct UserFacts {
    pub(super) id: UserId,
    pub(super) state: UserState,
    /// None for who is no member.
    pub(super) role: Option<Role>,
}

/// A thread as a turn sees it.
#[derive(Clone, Copy)]
pub(super) struct ThreadFacts {
    pub(super) agent: AgentId,
    pub(super) state: ThreadState,
    /// Whether a run of an earlier turn has not ended.
    pub(super) busy: bool,
}

/// A trigger as a firing sees it.
#[derive(Clone, Copy)]
pub(super) struct TriggerFacts {
    pub(super) creator: UserId,
    pub(super) enabled: bool,
}

/// Those of these agents that are there.
pub(super) fn agents(
    session: &mut dyn Session,
    agents: &[AgentId],
) -> Result<Vec<AgentFacts>, Error> {
    let texts: Vec<String> = agents.iter().map(ToString::to_string).collect();
    let rows: Vec<_> = texts.iter().map(|text| [Param::Text(text)]).collect();
    let mut found = Vec::with_capacity(agents.len());
    for rows in rows.chunks(ROWS) {
        let mut params = Vec::new();
        let wanted = values([""], rows, &mut params);
        let rows = session.query(
            &format!(
                "SELECT organization_id, workspace_id, owner_id, definition, visibility, shared_with, paused, id FROM agents
                 WHERE id IN {wanted} AND deleted_at IS NULL"
            ),
            &params,
        )?;
        for row in rows {
            let missing = || Error::Store {
                detail: "an agent lacks its definition".into(),
            };
            found.push(AgentFacts {
                id: row.parsed(7)?,
                organization: row.parsed(0)?,
                workspace: row.parsed(1)?,
                owner: row.parsed(2)?,
                definition: row.json(3)?.ok_or_else(missing)?,
                definition_text: row.text(3)?.into(),
                visibility: row.parsed(4)?,
                shared_with: row.json(5)?.unwrap_or_default(),
                paused: row.int(6)? != 0,
            });
        }
    }
    Ok(found)
}

/// Those of these users that are there, each as a workspace sees them.
pub(super) fn users(
    session: &mut dyn Session,
    users: &[(WorkspaceId, UserId)],
) -> Result<Vec<(WorkspaceId, UserFacts)>, Error> {
    let texts: Vec<_> = users
        .iter()
        .map(|(workspace, user)| (workspace.to_string(), user.to_string()))
        .collect();
    let rows: Vec<_> = texts
        .iter()
        .map(|(workspace, user)| [Param::Text(workspace), Param::Text(user)])
        .collect();
    let mut found = Vec::with_capacity(users.len());
    for rows in rows.chunks(ROWS) {
        let mut params = Vec::new();
        let wanted = values(["", ""], rows, &mut params);
        let rows = session.query(
            &format!(
                "SELECT w.column1, u.id, u.state, m.role FROM {wanted} AS w JOIN users u ON u.id = w.column2
                 LEFT JOIN members m ON m.user_id = w.column2 AND m.workspace_id = w.column1"
            ),
            &params,
        )?;
        for row in rows {
            let facts = UserFacts {
                id: row.parsed(1)?,
                state: row.parsed(2)?,
                role: row.opt_parsed(3)?,
            };
            found.push((row.parsed(0)?, facts));
        }
    }
    Ok(found)
}

pub(super) fn thread(
    session: &mut dyn Session,
    thread: ThreadId,
) -> Result<Option<ThreadFacts>, Error> {
    let row = session.row(
        "SELECT agent_id, state, CAST(CASE WHEN EXISTS (
            SELECT 1 FROM runs WHERE thread_id = $1 AND finished_at IS NULL) THEN 1 ELSE 0 END AS BIGINT)
         FROM threads WHERE id = $1",
        &[Param::Text(&thread.to_string())],
    )?;
    row.map(|row| {
        Ok(ThreadFacts {
            agent: row.parsed(0)?,
            state: row.parsed(1)?,
            busy: row.int(2)? != 0,
        })
    })
    .transpose()
}

pub(super) fn trigger(
    session: &mut dyn Session,
    trigger: TriggerId,
) -> Result<Option<TriggerFacts>, Error> {
    let row = session.row(
        "SELECT created_by, enabled FROM triggers WHERE id = $1",
        &[Param::Text(&trigger.to_string())],
    )?;
    row.map(|row| {
        Ok(TriggerFacts {
            creator: row.parsed(0)?,
            enabled: row.int(1)? != 0,
        })
    })
    .transpose()
}

impl AgentFacts {
    /// Whether a user may see the agent.
    pub(super) fn is_visible_to(&self, user: &UserFacts) -> bool {
        self.owner == user.id
            || self.shared_with.contains(&user.id)
            || user.role >= Some(Role::Admin)
            || match self.visibility {
                Visibility::Private => false,
                Visibility::Workspace => user.role.is_some(),
                Visibility::Organization => true,
            }
    }
}
