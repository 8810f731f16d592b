//! What a start is judged by: the things that it names, as they are now.

use crate::{
    error::Error,
    id::{AgentId, OrganizationId, ThreadId, TriggerId, UserId, WorkspaceId},
    model::{Definition, Role, ThreadState, UserState, Visibility},
    sql::{Param, Session},
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

pub(super) fn agent(
    session: &mut dyn Session,
    agent: AgentId,
) -> Result<Option<AgentFacts>, Error> {
    let row = session.row(
        "SELECT organization_id, workspace_id, owner_id, definition, visibility, shared_with, paused FROM agents
         WHERE id = $1 AND deleted_at IS NULL",
        &[Param::Text(&agent.to_string())],
    )?;
    row.map(|row| {
        let missing = || Error::Store {
            detail: format!("{agent} lacks its definition"),
        };
        Ok(AgentFacts {
            id: agent,
            organization: row.parsed(0)?,
            workspace: row.parsed(1)?,
            owner: row.parsed(2)?,
            definition: row.json(3)?.ok_or_else(missing)?,
            definition_text: row.text(3)?.into(),
            visibility: row.parsed(4)?,
            shared_with: row.json(5)?.unwrap_or_default(),
            paused: row.int(6)? != 0,
        })
    })
    .transpose()
}

pub(super) fn user(
    session: &mut dyn Session,
    workspace: WorkspaceId,
    user: UserId,
) -> Result<Option<UserFacts>, Error> {
    let row = session.row(
        "SELECT u.state, m.role FROM users u LEFT JOIN members m ON m.user_id = u.id AND m.workspace_id = $2 WHERE u.id = $1",
        &[
            Param::Text(&user.to_string()),
            Param::Text(&workspace.to_string()),
        ],
    )?;
    row.map(|row| {
        Ok(UserFacts {
            id: user,
            state: row.parsed(0)?,
            role: row.opt_text(1)?.map(|_| row.parsed(1)).transpose()?,
        })
    })
    .transpose()
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
