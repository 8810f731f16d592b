//! What is known of artifacts: reading, listing, deleting.

use crate::{
    access::{Action, Principal},
    artifacts::{judge::release, tend::Left},
    clock::Cx,
    code::Code,
    error::{Error, Refusal},
    id::{ArtifactId, OrganizationId},
    identity::{named, role, workspaces},
    model::{Artifact, ArtifactStatus, Role},
    paging::{Listing, PageRequest},
    sql::{Param, Row, Session},
};
use std::time::Duration;

pub(super) const COLUMNS: &str = "id, workspace_id, filename, description, size, sha256, status, created_at, organization_id, created_by, lease_until";

/// An artifact that exists for the caller, and what it is judged by.
struct Found {
    artifact: Artifact,
    organization: OrganizationId,
    own: bool,
    role: Option<Role>,
}

pub(super) fn read(row: &Row) -> Result<Artifact, Error> {
    let broken = || Error::Store {
        detail: "the size of an artifact is negative".into(),
    };
    let status: String = row.parsed(6)?;
    Ok(Artifact {
        id: row.parsed(0)?,
        workspace_id: row.parsed(1)?,
        filename: row.text(2)?.into(),
        description: row.opt_text(3)?.map(str::to_owned),
        size: u64::try_from(row.int(4)?).map_err(|_| broken())?,
        sha256: row.text(5)?.into(),
        status: status.parse().map_err(|()| Error::Store {
            detail: format!("{status:?} is no status of an artifact"),
        })?,
        created_at: row.time(7)?,
    })
}

fn find(
    session: &mut dyn Session,
    caller: &Principal,
    id: &str,
    lock: bool,
) -> Result<Found, Error> {
    let id: ArtifactId = named(id)?;
    let lock = if lock { "/*pg:FOR UPDATE*/" } else { "" };
    let row = session.row(
        &format!("SELECT {COLUMNS} FROM artifacts WHERE id = $1 {lock}"),
        &[Param::Text(&id.to_string())],
    )?;
    let row = row.ok_or(Code::NotFound)?;
    let organization = row.parsed(8)?;
    if !caller.sees(organization) {
        return Err(Code::NotFound.into());
    }
    let artifact = read(&row)?;
    let (own, role) = match caller {
        Principal::Operator => (false, None),
        Principal::User(actor) => (
            row.text(9)? == actor.user.to_string(),
            role(session, artifact.workspace_id, actor.user)?,
        ),
    };
    Ok(Found {
        artifact,
        organization,
        own,
        role,
    })
}

/// `GET /v1/artifacts/{id}`.
pub(crate) fn get(
    session: &mut dyn Session,
    caller: &Principal,
    id: &str,
) -> Result<Artifact, Error> {
    let found = find(session, caller, id, false)?;
    caller.may(Action::ArtifactRead, found.role, false)?;
    Ok(found.artifact)
}

/// The same, if its bytes can be had.
pub(crate) fn find_content(
    session: &mut dyn Session,
    caller: &Principal,
    id: &str,
) -> Result<Artifact, Error> {
    let artifact = get(session, caller, id)?;
    match artifact.status {
        ArtifactStatus::Ready => Ok(artifact),
        other => Err(unusable(other).into()),
    }
}

/// Why an artifact that is not ready cannot be used.
pub(super) fn unusable(status: ArtifactStatus) -> Refusal {
    match status {
        ArtifactStatus::Uploading => Refusal {
            retry_after: Some(Duration::from_secs(2)),
            ..Refusal::new(Code::UploadActive)
        },
        ArtifactStatus::Failed => Refusal::new(Code::UploadFailed),
        ArtifactStatus::Deleted | ArtifactStatus::Ready => Refusal::new(Code::ArtifactDeleted),
    }
}

/// `GET /v1/workspaces/{ws}/artifacts`, of one status if it is given.
pub(crate) fn list(
    session: &mut dyn Session,
    caller: &Principal,
    workspace: &str,
    status: Option<ArtifactStatus>,
    page: &PageRequest,
) -> Result<Listing<Artifact>, Error> {
    let before = page.before::<ArtifactId>()?;
    let (workspace, _) = workspaces::allowed(session, caller, workspace, Action::ArtifactRead)?;
    let workspace = workspace.id.to_string();
    let mut params = vec![
        Param::Text(&workspace),
        Param::Text(&before),
        Param::Int(page.rows()),
    ];
    let mut which = "";
    if let Some(status) = status {
        which = "AND status = $4";
        params.push(Param::Text(status.text()));
    }
    let rows = session.query(
        &format!(
            "SELECT {COLUMNS} FROM artifacts WHERE workspace_id = $1 AND id < $2 {which} ORDER BY id DESC LIMIT $3"
        ),
        &params,
    )?;
    let artifacts = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(page.listing(artifacts, |artifact| artifact.id))
}

/// `DELETE /v1/artifacts/{id}`: its room is free at once, its record stays. Whether there may be bytes to be thrown away.
pub(crate) fn delete(
    session: &mut dyn Session,
    cx: Cx<'_>,
    caller: &Principal,
    id: &str,
) -> Result<Option<Left>, Error> {
    let found = find(session, caller, id, true)?;
    caller.may(Action::ArtifactDelete, found.role, found.own)?;
    let artifact = found.artifact;
    match artifact.status {
        ArtifactStatus::Uploading => return Err(unusable(ArtifactStatus::Uploading).into()),
        ArtifactStatus::Deleted => return Ok(None),
        // It took no room any more.
        ArtifactStatus::Failed => {}
        ArtifactStatus::Ready => release(session, found.organization, artifact.size, 0)?,
    }
    let row = session.row(
        "UPDATE artifacts SET status = 'deleted', ended_at = $2 WHERE id = $1 RETURNING id, upload",
        &[
            Param::Text(&artifact.id.to_string()),
            Param::Int(cx.now.millis()),
        ],
    )?;
    row.as_ref().map(Left::read).transpose()
}
