//! Artifacts that runs read and make: those that it makes become ready in the transaction that ends the run.

use super::{
    LEASE, UploadLimits,
    judge::{release, room, signed},
    records::{self, COLUMNS, unusable},
};
use crate::{
    clock::Cx,
    code::Code,
    error::{Error, Refusal},
    id::{ArtifactId, OrganizationId, RunId},
    model::{Artifact, ArtifactStatus},
    sql::{Param, Session},
};
use std::collections::BTreeMap;

/// What a run may read, in its order: each as it is now, or why it cannot be read any more.
pub(crate) fn inputs(
    session: &mut dyn Session,
    run: RunId,
) -> Result<Vec<Result<Artifact, Refusal>>, Error> {
    let row = session.row(
        "SELECT artifacts FROM runs WHERE id = $1",
        &[Param::Text(&run.to_string())],
    )?;
    let ids: Option<Vec<ArtifactId>> = row.map(|row| row.json(0)).transpose()?.flatten();
    let mut inputs = Vec::new();
    for id in ids.unwrap_or_default() {
        let row = session.row(
            &format!("SELECT {COLUMNS} FROM artifacts WHERE id = $1"),
            &[Param::Text(&id.to_string())],
        )?;
        let artifact = row.map(|row| records::read(&row)).transpose()?;
        inputs.push(match artifact {
            Some(artifact) if artifact.status == ArtifactStatus::Ready => Ok(artifact),
            other => {
                let status = other.map_or(ArtifactStatus::Deleted, |artifact| artifact.status);
                let refusal = unusable(status);
                Err(Refusal {
                    detail: format!("{id}: {}", refusal.detail).into(),
                    ..refusal
                })
            }
        });
    }
    Ok(inputs)
}

/// A file that a run leaves.
#[derive(Clone, Debug)]
pub(crate) struct NewFile {
    pub(crate) filename: String,
    pub(crate) size: u64,
    pub(crate) sha256: String,
}

/// Makes the row of a file that a run leaves, and takes its room. Neither the rate nor the number of uploads bounds it.
///
/// # Errors
/// `request.too_large`, `artifact.storage_quota`; those of the store.
pub(crate) fn place(
    session: &mut dyn Session,
    cx: Cx<'_>,
    limits: &UploadLimits,
    run: RunId,
    file: &NewFile,
) -> Result<Artifact, Error> {
    if file.size > limits.bytes {
        return Err(Refusal::because(
            Code::RequestTooLarge,
            format!(
                "The run left a file of {} bytes, and an artifact has at most {}.",
                file.size, limits.bytes
            ),
        )
        .into());
    }
    let row = session.row(
        "SELECT organization_id, workspace_id, started_by FROM runs WHERE id = $1",
        &[Param::Text(&run.to_string())],
    )?;
    let row = row.ok_or(Error::LeaseLost)?;
    let organization: OrganizationId = row.parsed(0)?;
    room(session, limits, organization, file.size)?;
    let artifact = Artifact {
        id: ArtifactId::new(cx.now, cx.chance),
        workspace_id: row.parsed(1)?,
        filename: file.filename.clone(),
        description: None,
        size: file.size,
        sha256: file.sha256.clone(),
        status: ArtifactStatus::Uploading,
        created_at: cx.now,
    };
    session.execute(
        "INSERT INTO artifacts (id, organization_id, workspace_id, filename, size, sha256, status, created_by, lease_until, kept, run_id,
            created_at) VALUES ($1, $2, $3, $4, $5, $6, 'uploading', $7, $8, 1, $9, $10)",
        &[
            Param::Text(&artifact.id.to_string()),
            Param::Text(&organization.to_string()),
            Param::Text(&artifact.workspace_id.to_string()),
            Param::Text(&artifact.filename),
            Param::Int(signed(file.size)),
            Param::Text(&artifact.sha256),
            Param::Text(row.text(2)?),
            Param::Int(cx.now.after(LEASE).millis()),
            Param::Text(&run.to_string()),
            Param::Int(cx.now.millis()),
        ],
    )?;
    Ok(artifact)
}

/// Gives a sign that what a run has left so far is still wanted.
pub(crate) fn renew_of(session: &mut dyn Session, cx: Cx<'_>, run: RunId) -> Result<(), Error> {
    session.execute(
        "UPDATE artifacts SET lease_until = $2 WHERE run_id = $1 AND status = 'uploading' AND lease_until > $3",
        &[
            Param::Text(&run.to_string()),
            Param::Int(cx.now.after(LEASE).millis()),
            Param::Int(cx.now.millis()),
        ],
    )?;
    Ok(())
}

/// Writes down as failed what an earlier attempt at a run had left.
pub(crate) fn forsake(session: &mut dyn Session, cx: Cx<'_>, run: RunId) -> Result<(), Error> {
    let rows = session.query(
        "UPDATE artifacts SET status = 'failed', failure = 'abandoned', lease_until = NULL, ended_at = $2
         WHERE run_id = $1 AND status = 'uploading' RETURNING organization_id, size",
        &[
            Param::Text(&run.to_string()),
            Param::Int(cx.now.millis()),
        ],
    )?;
    let mut freed = BTreeMap::<OrganizationId, (u64, i64)>::new();
    for row in &rows {
        let (bytes, uploads) = freed.entry(row.parsed(0)?).or_default();
        *bytes += u64::try_from(row.int(1)?).unwrap_or(0);
        *uploads += 1;
    }
    for (organization, (bytes, uploads)) in freed {
        release(session, organization, bytes, uploads)?;
    }
    Ok(())
}

/// Makes ready what a run has left, and has the run say so.
///
/// # Errors
/// [`Error::Store`] when one of them has failed meanwhile; those of the store.
pub(crate) fn made(
    session: &mut dyn Session,
    cx: Cx<'_>,
    run: RunId,
    produced: &[ArtifactId],
) -> Result<(), Error> {
    for id in produced {
        let row = session.row(
            "UPDATE artifacts SET status = 'ready', upload = NULL, lease_until = NULL, ended_at = $2
             WHERE id = $1 AND status = 'uploading' AND lease_until > $2 RETURNING organization_id",
            &[
                Param::Text(&id.to_string()),
                Param::Int(cx.now.millis()),
            ],
        )?;
        let row = row.ok_or_else(|| Error::Store {
            detail: format!("{id}, which {run} has made, was given up meanwhile"),
        })?;
        release(session, row.parsed(0)?, 0, 1)?;
    }
    if produced.is_empty() {
        return Ok(());
    }
    let ids = serde_json::to_string(produced).map_err(|error| Error::Store {
        detail: error.to_string(),
    })?;
    session.execute(
        "UPDATE runs SET produced = $2 WHERE id = $1",
        &[Param::Text(&run.to_string()), Param::Text(&ids)],
    )?;
    Ok(())
}
