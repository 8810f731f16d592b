//! Tenants and their users: the operator's business.

use super::{NAME, named};
use crate::{
    access::{Action, Principal},
    body::Members,
    clock::{Cx, Timestamp},
    code::Code,
    error::{Error, Fault, Refusal},
    id::{OrganizationId, UserId},
    model::{Limits, Organization, User, UserState},
    sql::{Param, Row, Session},
};
use serde_json::Value;

/// Most cents of any limit.
pub(super) const CENTS: std::ops::RangeInclusive<i64> = 0..=1_000_000_000_000;

const USER: &str = "id, organization_id, display_name, state, approved, invited_by, created_at";

/// Makes an organization.
pub(crate) fn create_organization(
    session: &mut dyn Session,
    cx: Cx<'_>,
    caller: &Principal,
    body: &Value,
) -> Result<Organization, Error> {
    let mut members = Members::of(body);
    let name = members.text("name", NAME);
    members.end()?;
    caller.operator()?;
    let organization = Organization {
        id: OrganizationId::new(cx.now, cx.chance),
        name: name.unwrap_or_default(),
        created_at: cx.now,
    };
    session.execute(
        "INSERT INTO organizations (id, name, created_at) VALUES ($1, $2, $3)",
        &[
            Param::Text(&organization.id.to_string()),
            Param::Text(&organization.name),
            Param::Int(cx.now.millis()),
        ],
    )?;
    Ok(organization)
}

/// Judges a write of the catalog, which belongs to the operator and to the organization that was there first.
pub(crate) fn may_write_catalog(
    session: &mut dyn Session,
    caller: &Principal,
) -> Result<(), Error> {
    caller.may(Action::CatalogWrite, None, false)?;
    let Principal::User(actor) = caller else {
        return Ok(());
    };
    let first = session.row(
        "SELECT id FROM organizations ORDER BY created_at, id LIMIT 1",
        &[],
    )?;
    let owner: Option<OrganizationId> = first.map(|row| row.parsed(0)).transpose()?;
    if owner == Some(actor.organization) {
        return Ok(());
    }
    Err(Refusal::because(
        Code::PermissionRole,
        "The catalog belongs to another organization; its users and the operator write it.",
    )
    .into())
}

/// Makes a user.
pub(crate) fn create_user(
    session: &mut dyn Session,
    cx: Cx<'_>,
    caller: &Principal,
    body: &Value,
) -> Result<User, Error> {
    let mut members = Members::of(body);
    let organization = members.parsed::<OrganizationId>("organization_id", "an organization's id");
    let display_name = members.text("display_name", NAME);
    let invited_by = members.opt_parsed::<UserId>("invited_by", "a user's id");
    members.end()?;
    caller.operator()?;
    let Some(organization_id) = organization else {
        return Err(Code::NotFound.into());
    };
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
    if let Some(inviter) = invited_by
        && read_user(session, inviter)?.is_none_or(|user| user.organization_id != organization_id)
    {
        return Err(missing(
            "/invited_by",
            "There is no such user in the organization.",
        ));
    }
    let user = User {
        id: UserId::new(cx.now, cx.chance),
        organization_id,
        display_name: display_name.unwrap_or_default(),
        state: UserState::Active,
        approved: false,
        invited_by,
        created_at: cx.now,
    };
    let inviter = invited_by.map(|inviter| inviter.to_string());
    session.execute(
        "INSERT INTO users (id, organization_id, display_name, state, approved, invited_by, created_at)
         VALUES ($1, $2, $3, 'active', 0, $4, $5)",
        &[
            Param::Text(&user.id.to_string()),
            Param::Text(&organization_id.to_string()),
            Param::Text(&user.display_name),
            inviter.as_deref().map_or(Param::Null, Param::Text),
            Param::Int(cx.now.millis()),
        ],
    )?;
    Ok(user)
}

/// Changes a user's state or approves the account. What is deleted stays deleted.
pub(crate) fn update_user(
    session: &mut dyn Session,
    caller: &Principal,
    id: &str,
    body: &Value,
) -> Result<User, Error> {
    let mut members = Members::of(body);
    let state = members.opt_parsed::<UserState>("state", "active, deactivated, locked or deleted");
    let approved = members.opt_bool("approved");
    members.end()?;
    let user = read_user(session, named(id)?)?.filter(|user| caller.sees(user.organization_id));
    let mut user = user.ok_or(Code::NotFound)?;
    caller.operator()?;
    if user.state == UserState::Deleted && state.is_some_and(|state| state != UserState::Deleted) {
        return Err(Refusal::because(
            Code::StateConflict,
            "A deleted user does not come back; create another.",
        )
        .into());
    }
    user.state = state.unwrap_or(user.state);
    user.approved = approved.unwrap_or(user.approved);
    session.execute(
        "UPDATE users SET state = $2, approved = $3 WHERE id = $1",
        &[
            Param::Text(&user.id.to_string()),
            Param::Text(user.state.text()),
            Param::Int(user.approved.into()),
        ],
    )?;
    Ok(user)
}

/// A user.
pub(crate) fn read_user(session: &mut dyn Session, id: UserId) -> Result<Option<User>, Error> {
    session
        .row(
            &format!("SELECT {USER} FROM users WHERE id = $1"),
            &[Param::Text(&id.to_string())],
        )?
        .map(|row| user(&row))
        .transpose()
}

/// The platform's limits.
pub(crate) fn read_limits(session: &mut dyn Session, caller: &Principal) -> Result<Limits, Error> {
    caller.operator()?;
    let row = session.row(
        "SELECT platform_daily_cents, allowance_daily_cents, budget_stop FROM limits WHERE id = 1",
        &[],
    )?;
    let row = row.ok_or_else(|| Error::Store {
        detail: "the platform's limits are gone".into(),
    })?;
    Ok(Limits {
        platform_daily_cents: row.opt_int(0)?,
        allowance_daily_cents: row.opt_int(1)?,
        budget_stop: row.int(2)? != 0,
    })
}

/// Changes the platform's limits; what is not named stays.
pub(crate) fn update_limits(
    session: &mut dyn Session,
    caller: &Principal,
    body: &Value,
) -> Result<Limits, Error> {
    let mut members = Members::of(body);
    let platform = members.opt_limit("platform_daily_cents", CENTS);
    let allowance = members.opt_limit("allowance_daily_cents", CENTS);
    let stop = members.opt_bool("budget_stop");
    members.end()?;
    let mut limits = read_limits(session, caller)?;
    limits.platform_daily_cents = platform.unwrap_or(limits.platform_daily_cents);
    limits.allowance_daily_cents = allowance.unwrap_or(limits.allowance_daily_cents);
    limits.budget_stop = stop.unwrap_or(limits.budget_stop);
    let limit = |cents: Option<i64>| cents.map_or(Param::Null, Param::Int);
    session.execute(
        "UPDATE limits SET platform_daily_cents = $1, allowance_daily_cents = $2, budget_stop = $3 WHERE id = 1",
        &[
            limit(limits.platform_daily_cents),
            limit(limits.allowance_daily_cents),
            Param::Int(limits.budget_stop.into()),
        ],
    )?;
    Ok(limits)
}

/// The body names what is not there.
pub(super) fn missing(pointer: &str, reason: &'static str) -> Error {
    Refusal::invalid(vec![Fault::body(pointer, reason)]).into()
}

fn user(row: &Row) -> Result<User, Error> {
    Ok(User {
        id: row.parsed(0)?,
        organization_id: row.parsed(1)?,
        display_name: row.text(2)?.to_owned(),
        state: row.parsed(3)?,
        approved: row.int(4)? != 0,
        invited_by: row.opt_text(5)?.map(|_| row.parsed(5)).transpose()?,
        created_at: Timestamp::from_millis(row.int(6)?),
    })
}
