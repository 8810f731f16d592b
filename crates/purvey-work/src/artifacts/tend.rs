//! How attempts end, and what is left of those that ended badly.

use super::{LEASE, judge::release};
use crate::{
    clock::{Cx, Timestamp},
    error::Error,
    id::{ArtifactId, OrganizationId},
    sql::{Param, Row, Session},
};
use std::collections::BTreeMap;

/// Most artifacts looked at in one transaction.
const MOST: u32 = 256;

/// An attempt is over: somebody else has written down that it failed.
#[derive(Debug)]
pub(crate) struct Lost;

/// What may be left of an artifact.
pub(crate) struct Left {
    pub(crate) id: ArtifactId,
    /// What the store of objects calls the upload of its parts.
    pub(crate) upload: Option<String>,
}

impl Left {
    /// From a row of `id, upload`.
    pub(super) fn read(row: &Row) -> Result<Self, Error> {
        Ok(Self {
            id: row.parsed(0)?,
            upload: row.opt_text(1)?.map(str::to_owned),
        })
    }
}

/// Writes down what the store of objects calls the upload of an attempt's parts, before there are any.
pub(crate) fn named(session: &mut dyn Session, id: ArtifactId, upload: &str) -> Result<(), Error> {
    session.execute(
        "UPDATE artifacts SET upload = $2 WHERE id = $1",
        &[Param::Text(&id.to_string()), Param::Text(upload)],
    )?;
    Ok(())
}

/// Gives a sign of an attempt's receiver. One that comes too late revives nothing: its caller may have been told by now that it failed.
pub(crate) fn renewed(
    session: &mut dyn Session,
    cx: Cx<'_>,
    id: ArtifactId,
) -> Result<Result<(), Lost>, Error> {
    let rows = session.execute(
        "UPDATE artifacts SET lease_until = $2 WHERE id = $1 AND status = 'uploading' AND lease_until > $3",
        &[
            Param::Text(&id.to_string()),
            Param::Int(cx.now.after(LEASE).millis()),
            Param::Int(cx.now.millis()),
        ],
    )?;
    Ok(if rows == 1 { Ok(()) } else { Err(Lost) })
}

/// Makes an artifact ready, whose bytes are durable, unless its lease has lapsed.
pub(crate) fn ready(
    session: &mut dyn Session,
    cx: Cx<'_>,
    id: ArtifactId,
) -> Result<Result<(), Lost>, Error> {
    let row = session.row(
        "UPDATE artifacts SET status = 'ready', upload = NULL, lease_until = NULL, ended_at = $2
         WHERE id = $1 AND status = 'uploading' AND lease_until > $2 RETURNING organization_id",
        &[Param::Text(&id.to_string()), Param::Int(cx.now.millis())],
    )?;
    match row {
        None => Ok(Err(Lost)),
        Some(row) => {
            release(session, row.parsed(0)?, 0, 1)?;
            Ok(Ok(()))
        }
    }
}

/// Writes down that an attempt failed and gives its room back; `kept` says whether bytes may be left of it. Nothing if it has ended before.
pub(crate) fn failed(
    session: &mut dyn Session,
    cx: Cx<'_>,
    id: ArtifactId,
    why: &str,
    kept: bool,
) -> Result<(), Error> {
    let row = session.row(
        "UPDATE artifacts SET status = 'failed', failure = $2, lease_until = NULL, kept = $3, ended_at = $4
         WHERE id = $1 AND status = 'uploading' RETURNING organization_id, size",
        &[
            Param::Text(&id.to_string()),
            Param::Text(why),
            Param::Int(kept.into()),
            Param::Int(cx.now.millis()),
        ],
    )?;
    match row {
        None => Ok(()),
        Some(row) => release(session, row.parsed(0)?, size(row.int(1)?), 1),
    }
}

fn size(kept: i64) -> u64 {
    u64::try_from(kept).unwrap_or(0)
}

/// Writes down as failed whatever nobody receives any more; with `all`, whatever is there at all, since its receivers ended with the process
/// before. Whether there is more to do.
pub(crate) fn abandoned(session: &mut dyn Session, cx: Cx<'_>, all: bool) -> Result<bool, Error> {
    let until = if all { i64::MAX } else { cx.now.millis() };
    // Artifacts are held before storage, as everywhere; one that is held ends at this moment.
    let rows = session.query(
        &format!(
            "SELECT id, organization_id, size FROM artifacts WHERE status = 'uploading' AND lease_until <= $1
             ORDER BY lease_until LIMIT {MOST} /*pg:FOR UPDATE SKIP LOCKED*/"
        ),
        &[Param::Int(until)],
    )?;
    let mut freed = BTreeMap::<OrganizationId, (u64, i64)>::new();
    for row in &rows {
        session.execute(
            "UPDATE artifacts SET status = 'failed', failure = 'abandoned', lease_until = NULL, ended_at = $2 WHERE id = $1",
            &[Param::Text(row.text(0)?), Param::Int(cx.now.millis())],
        )?;
        let (bytes, uploads) = freed.entry(row.parsed(1)?).or_default();
        *bytes += size(row.int(2)?);
        *uploads += 1;
    }
    for (organization, (bytes, uploads)) in freed {
        release(session, organization, bytes, uploads)?;
    }
    Ok(rows.len() == MOST as usize)
}

/// Artifacts of which bytes may be left that nobody may use. A receiver that was given up gets the time of a lease to notice.
pub(crate) fn collectable(session: &mut dyn Session, cx: Cx<'_>) -> Result<Vec<Left>, Error> {
    let since: Timestamp = cx.now.before(LEASE);
    let rows = session.query(
        &format!(
            "SELECT id, upload FROM artifacts WHERE kept = 1 AND status IN ('failed', 'deleted') AND ended_at <= $1
             ORDER BY ended_at LIMIT {MOST}"
        ),
        &[Param::Int(since.millis())],
    )?;
    rows.iter().map(Left::read).collect()
}

/// Writes down that nothing is left of an artifact.
pub(crate) fn collected(session: &mut dyn Session, id: ArtifactId) -> Result<(), Error> {
    session.execute(
        "UPDATE artifacts SET kept = 0 WHERE id = $1 AND status IN ('failed', 'deleted')",
        &[Param::Text(&id.to_string())],
    )?;
    Ok(())
}
