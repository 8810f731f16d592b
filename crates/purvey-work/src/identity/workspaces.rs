//! Workspaces and their members.

use super::{
    NAME, named,
    organizations::{CENTS, missing, read_user},
    role,
};
use crate::{
    access::{Action, Principal},
    body::Members,
    clock::{Cx, Timestamp},
    code::Code,
    error::{Error, Refusal},
    id::{OrganizationId, UserId, WorkspaceId},
    model::{Member, Role, UserState, Workspace},
    paging::{Listing, PageRequest},
    sql::{Param, Row, Session},
};
use serde_json::Value;
use std::ops::RangeInclusive;

/// Runs at once in a new workspace.
const CONCURRENCY: u32 = 10;
/// Runs that wait in a new workspace, at most.
const QUEUE: u32 = 1_000;
const CONCURRENCY_LIMITS: RangeInclusive<i64> = 1..=10_000;
const QUEUE_LIMITS: RangeInclusive<i64> = 0..=1_000_000;

const COLUMNS: &str = "id, organization_id, name, owner_id, concurrency_limit, queue_limit, daily_cost_cents, running, queued, created_at";

/// A workspace that exists for the caller, and the caller's role in it.
pub(crate) fn find(
    session: &mut dyn Session,
    caller: &Principal,
    id: &str,
) -> Result<(Workspace, Option<Role>), Error> {
    let id: WorkspaceId = named(id)?;
    let row = session.row(
        &format!("SELECT {COLUMNS} FROM workspaces WHERE id = $1"),
        &[Param::Text(&id.to_string())],
    )?;
    let workspace = row.as_ref().map(read).transpose()?;
    let seen = workspace.filter(|workspace| caller.sees(workspace.organization_id));
    let workspace = seen.ok_or(Code::NotFound)?;
    let role = match caller {
        Principal::Operator => None,
        Principal::User(actor) => role(session, id, actor.user)?,
    };
    Ok((workspace, role))
}

/// The same, judged.
pub(crate) fn allowed(
    session: &mut dyn Session,
    caller: &Principal,
    id: &str,
    action: Action,
) -> Result<(Workspace, Option<Role>), Error> {
    let (workspace, role) = find(session, caller, id)?;
    caller.may(action, role, false)?;
    Ok((workspace, role))
}

/// Makes a workspace; its owner is its first member. Users make their own, the operator anybody's.
pub(crate) fn create(
    session: &mut dyn Session,
    cx: Cx<'_>,
    caller: &Principal,
    body: &Value,
) -> Result<Workspace, Error> {
    let mut members = Members::of(body);
    let organization = members.parsed::<OrganizationId>("organization_id", "an organization's id");
    let name = members.text("name", NAME);
    let owner = members.parsed::<UserId>("owner_id", "a user's id");
    members.end()?;
    let (Some(organization_id), Some(owner_id)) = (organization, owner) else {
        return Err(Code::NotFound.into());
    };
    if !caller.sees(organization_id) {
        return Err(Code::NotFound.into());
    }
    caller.may(Action::WorkspaceCreate, None, false)?;
    let there = session.row(
        "SELECT id FROM organizations WHERE id = $1",
        &[Param::Text(&organization_id.to_string())],
    )?;
    if there.is_none() {
        return Err(missing(
            "/organization_id",
            "There is no such organization.",
        ));
    }
    let owner = read_user(session, owner_id)?
        .filter(|user| user.organization_id == organization_id && user.state != UserState::Deleted)
        .ok_or_else(|| missing("/owner_id", "There is no such user in the organization."))?;
    if let Principal::User(actor) = caller
        && actor.user != owner.id
    {
        return Err(Refusal::because(
            Code::PermissionRole,
            "Users create workspaces of their own; the operator creates anybody's.",
        )
        .into());
    }
    let workspace = Workspace {
        id: WorkspaceId::new(cx.now, cx.chance),
        organization_id,
        name: name.unwrap_or_default(),
        owner_id,
        concurrency_limit: CONCURRENCY,
        queue_limit: QUEUE,
        daily_cost_cents: None,
        running: 0,
        queued: 0,
        created_at: cx.now,
    };
    let id = workspace.id.to_string();
    session.execute(
        "INSERT INTO workspaces (id, organization_id, name, owner_id, concurrency_limit, queue_limit, running, queued, next_position,
            created_at) VALUES ($1, $2, $3, $4, $5, $6, 0, 0, 0, $7)",
        &[
            Param::Text(&id),
            Param::Text(&organization_id.to_string()),
            Param::Text(&workspace.name),
            Param::Text(&owner_id.to_string()),
            Param::Int(CONCURRENCY.into()),
            Param::Int(QUEUE.into()),
            Param::Int(cx.now.millis()),
        ],
    )?;
    set_role(session, cx, workspace.id, owner_id, Role::Owner)?;
    Ok(workspace)
}

/// The workspaces that the caller is a member of; for the operator all.
pub(crate) fn list(
    session: &mut dyn Session,
    caller: &Principal,
    page: &PageRequest,
) -> Result<Listing<Workspace>, Error> {
    let before = page.before::<WorkspaceId>()?;
    let rows = match caller {
        Principal::Operator => session.query(
            &format!("SELECT {COLUMNS} FROM workspaces WHERE id < $1 ORDER BY id DESC LIMIT $2"),
            &[Param::Text(&before), Param::Int(page.rows())],
        )?,
        Principal::User(actor) => {
            caller.may(Action::WorkspaceRead, Some(Role::Viewer), false)?;
            session.query(
                &format!(
                    "SELECT {COLUMNS} FROM workspaces WHERE id IN (SELECT workspace_id FROM members WHERE user_id = $1) AND id < $2
                     ORDER BY id DESC LIMIT $3"
                ),
                &[
                    Param::Text(&actor.user.to_string()),
                    Param::Text(&before),
                    Param::Int(page.rows()),
                ],
            )?
        }
    };
    let items = rows.iter().map(read).collect::<Result<_, _>>()?;
    Ok(page.listing(items, |workspace: &Workspace| workspace.id))
}

/// Changes limits: concurrency and queue for admins, the budget for owners. The caller of this gives free slots to who waits.
pub(crate) fn update(
    session: &mut dyn Session,
    caller: &Principal,
    id: &str,
    body: &Value,
) -> Result<Workspace, Error> {
    let mut members = Members::of(body);
    let concurrency = members.opt_number("concurrency_limit", CONCURRENCY_LIMITS);
    let queue = members.opt_number("queue_limit", QUEUE_LIMITS);
    let budget = members.opt_limit("daily_cost_cents", CENTS);
    members.end()?;
    // Held before it is read, so that two changes at once do not undo each other.
    session.row(
        "SELECT id FROM workspaces WHERE id = $1 /*pg:FOR UPDATE*/",
        &[Param::Text(id)],
    )?;
    let (workspace, role) = find(session, caller, id)?;
    if concurrency.is_some() || queue.is_some() || budget.is_none() {
        caller.may(Action::WorkspaceLimits, role, false)?;
    }
    if budget.is_some() {
        caller.may(Action::WorkspaceBudget, role, false)?;
    }
    let budget = budget.unwrap_or(workspace.daily_cost_cents);
    session.execute(
        "UPDATE workspaces SET concurrency_limit = $2, queue_limit = $3, daily_cost_cents = $4 WHERE id = $1",
        &[
            Param::Text(&workspace.id.to_string()),
            Param::Int(concurrency.unwrap_or(workspace.concurrency_limit.into())),
            Param::Int(queue.unwrap_or(workspace.queue_limit.into())),
            budget.map_or(Param::Null, Param::Int),
        ],
    )?;
    Ok(find(session, caller, id)?.0)
}

/// The members of a workspace, by user.
pub(crate) fn members(
    session: &mut dyn Session,
    caller: &Principal,
    id: &str,
) -> Result<Listing<Member>, Error> {
    let (workspace, _) = allowed(session, caller, id, Action::WorkspaceRead)?;
    let rows = session.query(
        "SELECT user_id, role FROM members WHERE workspace_id = $1 ORDER BY user_id",
        &[Param::Text(&workspace.id.to_string())],
    )?;
    let member = |row: &Row| {
        Ok::<_, Error>(Member {
            user_id: row.parsed(0)?,
            role: row.parsed(1)?,
        })
    };
    Ok(Listing {
        items: rows.iter().map(member).collect::<Result<_, _>>()?,
        next_cursor: None,
    })
}

/// Adds a member or changes a member's role.
pub(crate) fn put_member(
    session: &mut dyn Session,
    cx: Cx<'_>,
    caller: &Principal,
    id: &str,
    user: &str,
    body: &Value,
) -> Result<Member, Error> {
    let mut members = Members::of(body);
    let wanted = members.parsed::<Role>("role", "viewer, member, admin or owner");
    members.end()?;
    let wanted = wanted.ok_or(Code::NotFound)?;
    let (workspace, mine) = find(session, caller, id)?;
    let user = read_user(session, named(user)?)?;
    let same = user.filter(|user| {
        user.organization_id == workspace.organization_id && user.state != UserState::Deleted
    });
    let user = same.ok_or(Code::NotFound)?;
    let present = role(session, workspace.id, user.id)?;
    manage(caller, mine, [present, Some(wanted)])?;
    if user.id == workspace.owner_id && wanted != Role::Owner {
        return Err(owner_stays());
    }
    set_role(session, cx, workspace.id, user.id, wanted)?;
    Ok(Member {
        user_id: user.id,
        role: wanted,
    })
}

/// Removes a member.
pub(crate) fn remove_member(
    session: &mut dyn Session,
    caller: &Principal,
    id: &str,
    user: &str,
) -> Result<(), Error> {
    let (workspace, mine) = find(session, caller, id)?;
    let user: UserId = named(user)?;
    let present = role(session, workspace.id, user)?.ok_or(Code::NotFound)?;
    manage(caller, mine, [Some(present), None])?;
    if user == workspace.owner_id {
        return Err(owner_stays());
    }
    session.execute(
        "DELETE FROM members WHERE workspace_id = $1 AND user_id = $2",
        &[
            Param::Text(&workspace.id.to_string()),
            Param::Text(&user.to_string()),
        ],
    )?;
    Ok(())
}

/// Admins manage members; only owners make or unmake owners.
fn manage(caller: &Principal, mine: Option<Role>, roles: [Option<Role>; 2]) -> Result<(), Error> {
    caller.may(Action::MembersWrite, mine, false)?;
    let concerns_owner = roles.contains(&Some(Role::Owner));
    if concerns_owner && mine != Some(Role::Owner) && *caller != Principal::Operator {
        return Err(
            Refusal::because(Code::PermissionRole, "Only owners make or unmake owners.").into(),
        );
    }
    Ok(())
}

fn owner_stays() -> Error {
    Refusal::because(
        Code::StateConflict,
        "The workspace's owner stays a member with the role owner.",
    )
    .into()
}

fn set_role(
    session: &mut dyn Session,
    cx: Cx<'_>,
    workspace: WorkspaceId,
    user: UserId,
    role: Role,
) -> Result<(), Error> {
    session.execute(
        "INSERT INTO members (workspace_id, user_id, role, created_at) VALUES ($1, $2, $3, $4)
         ON CONFLICT (workspace_id, user_id) DO UPDATE SET role = excluded.role",
        &[
            Param::Text(&workspace.to_string()),
            Param::Text(&user.to_string()),
            Param::Text(role.text()),
            Param::Int(cx.now.millis()),
        ],
    )?;
    Ok(())
}

fn read(row: &Row) -> Result<Workspace, Error> {
    let count = |column: usize| Ok::<_, Error>(u32::try_from(row.int(column)?).unwrap_or(0));
    Ok(Workspace {
        id: row.parsed(0)?,
        organization_id: row.parsed(1)?,
        name: row.text(2)?.to_owned(),
        owner_id: row.parsed(3)?,
        concurrency_limit: count(4)?,
        queue_limit: count(5)?,
        daily_cost_cents: row.opt_int(6)?,
        running: count(7)?,
        queued: count(8)?,
        created_at: Timestamp::from_millis(row.int(9)?),
    })
}
