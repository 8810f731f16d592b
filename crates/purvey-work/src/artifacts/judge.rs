//! What an upload is judged by before a byte of it is read (Work §7).

use super::{
    LEASE,
    records::{self, COLUMNS, unusable},
};
use crate::{
    access::{Action, Principal},
    clock::{Cx, Timestamp},
    code::Code,
    error::{Error, Fault, LimitDetail, Place, Refusal},
    id::{ArtifactId, OrganizationId, WorkspaceId},
    idempotency::{HEADER, Key},
    identity::workspaces,
    model::{Artifact, ArtifactStatus},
    sql::{Param, ROWS, Session, values},
};
use serde_json::json;
use std::time::Duration;

/// Characters of a filename and of a description, at most.
const FILENAME: usize = 255;
const DESCRIPTION: usize = 2_000;
/// The time over which the rate of uploads is counted.
const WINDOW: Duration = Duration::from_secs(60);

/// What bounds uploads.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UploadLimits {
    /// Largest artifact, in bytes. Default 5 GiB.
    pub bytes: u64,
    /// Bytes that an organization's artifacts may take, those still uploading too. Default 100 GiB.
    pub organization_bytes: u64,
    /// Uploads that an organization may have under way at once. Default 64.
    pub at_once: u32,
    /// Uploads that an organization may begin in a minute. Default 6,000.
    pub per_minute: u32,
    /// Bytes a second below which an upload counts as stalled, over [`Self::patience`]. Default 1,024.
    pub least_rate: u64,
    /// How long an upload may be slower than that, or silent. Default 30 s.
    pub patience: Duration,
}

impl Default for UploadLimits {
    fn default() -> Self {
        Self {
            bytes: 5 << 30,
            organization_bytes: 100 << 30,
            at_once: 64,
            per_minute: 6_000,
            least_rate: 1_024,
            patience: Duration::from_secs(30),
        }
    }
}

/// An upload as its head declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadHead {
    filename: String,
    description: Option<String>,
    size: u64,
    sha256: String,
    key: String,
}

impl UploadHead {
    /// From the values of the header fields, as they were sent.
    ///
    /// # Errors
    /// `idempotency.key_missing`, or `request.invalid` with every fault: a key that is not 1 to 255 visible ASCII characters, a size that
    /// is no whole number, a checksum that is not 64 lower-case hexadecimal digits, a filename or description that is not
    /// percent-encoded UTF-8 of 1 to 255 (0 to 2,000) characters without control characters.
    pub fn parse(
        key: Option<&str>,
        size: Option<&str>,
        sha256: Option<&str>,
        filename: Option<&str>,
        description: Option<&str>,
    ) -> Result<Self, Error> {
        let mut faults = Vec::new();
        let mut fault = |name, reason: &'static str| {
            faults.push(Fault {
                place: Place::Header(name),
                reason: reason.into(),
            });
        };
        let size = size.and_then(whole_number);
        if size.is_none() {
            fault("X-Upload-Size", "Must be the number of bytes, in digits.");
        }
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let sha256 = sha256.filter(|text| text.len() == 64 && text.bytes().all(hex));
        if sha256.is_none() {
            fault(
                "X-Content-SHA256",
                "Must be the SHA-256 of the bytes as 64 lower-case hexadecimal digits.",
            );
        }
        let filename = filename.and_then(decoded).filter(|name| is_filename(name));
        if filename.is_none() {
            fault(
                "X-Filename",
                "Must be 1 to 255 characters without control characters, percent-encoded UTF-8.",
            );
        }
        let description = match description.map(decoded) {
            None => None,
            Some(Some(text)) if text.chars().count() <= DESCRIPTION && is_plain(&text, "\n\t") => {
                Some(text)
            }
            Some(_) => {
                fault(
                    "X-Description",
                    "Must be at most 2,000 characters without control characters, percent-encoded UTF-8.",
                );
                None
            }
        };
        if let Some(Err(bad)) = key.map(|key| Key::new(key, "", &serde_json::Value::Null)) {
            faults.push(bad);
        }
        match (size, sha256, filename) {
            (Some(size), Some(sha256), Some(filename)) if faults.is_empty() => Ok(Self {
                filename,
                description: description.filter(|text| !text.is_empty()),
                size,
                sha256: sha256.into(),
                key: key
                    .ok_or_else(|| Refusal {
                        errors: vec![Fault {
                            place: Place::Header(HEADER),
                            reason: "Must be there.".into(),
                        }],
                        ..Refusal::new(Code::KeyMissing)
                    })?
                    .into(),
            }),
            _ => Err(Refusal::invalid(faults).into()),
        }
    }

    /// Declared bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    fn key(&self, workspace: WorkspaceId) -> Result<Key, Error> {
        let body = json!({
            "filename": self.filename, "description": self.description, "size": self.size, "sha256": self.sha256,
        });
        Key::new(&self.key, &format!("upload {workspace}"), &body)
            .map_err(|fault| Refusal::invalid(vec![fault]).into())
    }
}

fn whole_number(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let size = text.parse().ok().filter(|_| digits)?;
    i64::try_from(size).is_ok().then_some(size)
}

/// Strictly: what looks like an escape is one, and what comes out is UTF-8.
fn decoded(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let is_hex = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
    let mut escapes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%');
    if !escapes.all(|(at, _)| is_hex(at + 1) && is_hex(at + 2)) {
        return None;
    }
    let decoded = percent_encoding::percent_decode_str(text).decode_utf8();
    decoded.ok().map(Into::into)
}

fn is_plain(text: &str, allowed: &str) -> bool {
    !text
        .chars()
        .any(|character| character.is_control() && !allowed.contains(character))
}

/// Whether an artifact may be called this.
pub(crate) fn is_filename(name: &str) -> bool {
    (1..=FILENAME).contains(&name.chars().count()) && is_plain(name, "")
}

/// How an upload is judged.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// The same upload is ready since before.
    Replay(Artifact),
    /// Its bytes may come.
    Receive(Artifact),
}

/// Judges an upload and makes its row, in the order of Work §3: 404, 403, replay and its conflicts, then rate, capacity and quota. What is
/// refused leaves nothing behind and does not consume the key.
///
/// # Errors
/// The refusals of Work §7, and those of the store.
pub(crate) fn judge(
    session: &mut dyn Session,
    cx: Cx<'_>,
    limits: &UploadLimits,
    caller: &Principal,
    workspace: &str,
    head: &UploadHead,
) -> Result<Verdict, Error> {
    let (workspace, _) = workspaces::allowed(session, caller, workspace, Action::ArtifactWrite)?;
    let user = caller.actor()?.user.to_string();
    let key = head.key(workspace.id)?;
    let id = ArtifactId::new(cx.now, cx.chance);
    if head.size > limits.bytes {
        return Err(Code::RequestTooLarge.into());
    }
    // Of two that race with one key one writes it, and the other then sees what it names.
    let is_new = session.execute(
        "INSERT INTO keys (workspace_id, principal, kind, key, fingerprint, target_id, created_at)
         VALUES ($1, $2, 'upload', $3, $4, $5, $6) ON CONFLICT DO NOTHING",
        &[
            Param::Text(&workspace.id.to_string()),
            Param::Text(&user),
            Param::Text(&key.text),
            Param::Bytes(&key.fingerprint),
            Param::Text(&id.to_string()),
            Param::Int(cx.now.millis()),
        ],
    )?;
    if is_new == 0 {
        return before(session, cx, workspace.id, &user, &key);
    }
    reserve(session, cx, limits, workspace.organization_id, head.size)?;
    let artifact = Artifact {
        id,
        workspace_id: workspace.id,
        filename: head.filename.clone(),
        description: head.description.clone(),
        size: head.size,
        sha256: head.sha256.clone(),
        status: ArtifactStatus::Uploading,
        created_at: cx.now,
    };
    session.execute(
        "INSERT INTO artifacts (id, organization_id, workspace_id, filename, description, size, sha256, status, created_by, lease_until,
            kept, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, 'uploading', $8, $9, 1, $10)",
        &[
            Param::Text(&id.to_string()),
            Param::Text(&workspace.organization_id.to_string()),
            Param::Text(&workspace.id.to_string()),
            Param::Text(&artifact.filename),
            artifact.description.as_deref().into(),
            Param::Int(signed(head.size)),
            Param::Text(&artifact.sha256),
            Param::Text(&user),
            Param::Int(cx.now.after(LEASE).millis()),
            Param::Int(cx.now.millis()),
        ],
    )?;
    Ok(Verdict::Receive(artifact))
}

/// Judges what a key named before.
fn before(
    session: &mut dyn Session,
    cx: Cx<'_>,
    workspace: WorkspaceId,
    user: &str,
    key: &Key,
) -> Result<Verdict, Error> {
    let row = session.row(
        "SELECT fingerprint, target_id FROM keys WHERE workspace_id = $1 AND principal = $2 AND kind = 'upload' AND key = $3",
        &[
            Param::Text(&workspace.to_string()),
            Param::Text(user),
            Param::Text(&key.text),
        ],
    )?;
    let row = row.ok_or(Code::ServerUnavailable)?;
    if row.bytes(0)? != key.fingerprint {
        return Err(Code::MetadataMismatch.into());
    }
    let row = session.row(
        &format!("SELECT {COLUMNS} FROM artifacts WHERE id = $1"),
        &[Param::Text(row.text(1)?)],
    )?;
    let row = row.ok_or_else(|| Error::Store {
        detail: "a key names no artifact".into(),
    })?;
    let artifact = records::read(&row)?;
    match artifact.status {
        ArtifactStatus::Ready => Ok(Verdict::Replay(artifact)),
        // Its receiver is gone, only nobody has written that down yet.
        ArtifactStatus::Uploading if row.opt_time(10)?.is_none_or(|until| until <= cx.now) => {
            Err(unusable(ArtifactStatus::Failed).into())
        }
        other => Err(unusable(other).into()),
    }
}

/// Takes room for an upload, exactly: the organization's row is held from here to the end of the transaction.
fn reserve(
    session: &mut dyn Session,
    cx: Cx<'_>,
    limits: &UploadLimits,
    organization: OrganizationId,
    size: u64,
) -> Result<(), Error> {
    let (bytes, uploads) = hold(session, organization)?;
    if limits.per_minute > 0 {
        // The one that must have left the window before another may begin.
        let row = session.row(
            "SELECT created_at FROM artifacts WHERE organization_id = $1 ORDER BY created_at DESC LIMIT 1 OFFSET $2",
            &[
                Param::Text(&organization.to_string()),
                Param::Int(i64::from(limits.per_minute) - 1),
            ],
        )?;
        if let Some(row) = row {
            let leaves: Timestamp = row.time(0)?.after(WINDOW);
            if leaves > cx.now {
                return Err(Refusal {
                    retry_after: Some(leaves.since(cx.now)),
                    limit_detail: Some(LimitDetail::of(Code::RateLimited)),
                    ..Refusal::because(
                        Code::RateLimited,
                        "The organization has begun as many uploads as it may in a minute; wait as long as Retry-After says.",
                    )
                }
                .into());
            }
        }
    }
    if uploads >= i64::from(limits.at_once) {
        return Err(Refusal {
            retry_after: Some(Duration::from_secs(5)),
            limit_detail: Some(LimitDetail::of(Code::UploadCapacity)),
            ..Refusal::new(Code::UploadCapacity)
        }
        .into());
    }
    take_room(session, limits, organization, bytes, size)
}

/// Takes room for what a run has made.
pub(super) fn room(
    session: &mut dyn Session,
    limits: &UploadLimits,
    organization: OrganizationId,
    size: u64,
) -> Result<(), Error> {
    let (bytes, _) = hold(session, organization)?;
    take_room(session, limits, organization, bytes, size)
}

/// What an organization's artifacts take: its row is held from here to the end of the transaction.
fn hold(session: &mut dyn Session, organization: OrganizationId) -> Result<(i64, i64), Error> {
    let organization = organization.to_string();
    session.execute(
        "INSERT INTO storage (organization_id, bytes, uploads) VALUES ($1, 0, 0) ON CONFLICT DO NOTHING",
        &[Param::Text(&organization)],
    )?;
    let row = session.row(
        "SELECT bytes, uploads FROM storage WHERE organization_id = $1 /*pg:FOR UPDATE*/",
        &[Param::Text(&organization)],
    )?;
    let row = row.ok_or(Code::ServerUnavailable)?;
    Ok((row.int(0)?, row.int(1)?))
}

fn take_room(
    session: &mut dyn Session,
    limits: &UploadLimits,
    organization: OrganizationId,
    bytes: i64,
    size: u64,
) -> Result<(), Error> {
    let room = signed(limits.organization_bytes).saturating_sub(bytes);
    if signed(size) > room {
        return Err(Refusal {
            limit_detail: Some(LimitDetail::of(Code::StorageQuota)),
            ..Refusal::because(
                Code::StorageQuota,
                format!(
                    "The upload has {size} bytes and the organization has room for {}; delete artifacts, or ask the operator for more.",
                    room.max(0)
                ),
            )
        }
        .into());
    }
    session.execute(
        "UPDATE storage SET bytes = bytes + $2, uploads = uploads + 1 WHERE organization_id = $1",
        &[
            Param::Text(&organization.to_string()),
            Param::Int(signed(size)),
        ],
    )?;
    Ok(())
}

/// Gives back the room of `size` bytes, and the places of so many uploads.
pub(super) fn release(
    session: &mut dyn Session,
    organization: OrganizationId,
    size: u64,
    uploads: i64,
) -> Result<(), Error> {
    session.execute(
        "UPDATE storage SET bytes = bytes - $2, uploads = uploads - $3 WHERE organization_id = $1",
        &[
            Param::Text(&organization.to_string()),
            Param::Int(signed(size)),
            Param::Int(uploads),
        ],
    )?;
    Ok(())
}

pub(super) fn signed(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

/// Judges the artifacts that a run shall read: of the same workspace, else absent; ready, else a conflict.
///
/// # Errors
/// `resource.not_found`, `artifact.upload_active`, `artifact.upload_failed`, `artifact.deleted`; those of the store.
pub(crate) fn check_inputs(
    session: &mut dyn Session,
    workspace: WorkspaceId,
    artifacts: &[ArtifactId],
) -> Result<(), Error> {
    let texts: Vec<_> = artifacts.iter().map(ToString::to_string).collect();
    let rows: Vec<_> = texts.iter().map(|text| [Param::Text(text)]).collect();
    let mut found = Vec::with_capacity(artifacts.len());
    for rows in rows.chunks(ROWS) {
        let mut params = Vec::new();
        let wanted = values([""], rows, &mut params);
        let rows = session.query(
            &format!("SELECT id, workspace_id, status FROM artifacts WHERE id IN {wanted}"),
            &params,
        )?;
        for row in &rows {
            found.push((
                row.parsed::<ArtifactId>(0)?,
                row.parsed::<WorkspaceId>(1)?,
                row.text(2)?.to_owned(),
            ));
        }
    }
    let here = |id: &ArtifactId| {
        found
            .iter()
            .find(|(known, of, _)| known == id && *of == workspace)
    };
    if let Some(absent) = artifacts.iter().find(|id| here(id).is_none()) {
        return Err(Refusal::because(
            Code::NotFound,
            format!("There is no artifact {absent} in the agent's workspace."),
        )
        .into());
    }
    for (id, _, status) in &found {
        let status = status.parse().unwrap_or(ArtifactStatus::Failed);
        if status != ArtifactStatus::Ready {
            let refusal = unusable(status);
            return Err(Refusal {
                detail: format!("{id}: {}", refusal.detail).into(),
                ..refusal
            }
            .into());
        }
    }
    Ok(())
}
