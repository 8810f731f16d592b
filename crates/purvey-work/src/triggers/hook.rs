//! Webhooks: a request with a trigger's token starts a run.

use super::{record, started};
use crate::{
    clock::Cx,
    code::Code,
    error::Error,
    id::{AgentId, TriggerId, WorkspaceId},
    idempotency::Key,
    identity::{named, tokens},
    model::FiringOutcome,
    runs::{self, Admission, By, Start, Target},
    sql::{Param, Session},
};
use serde_json::Value;

/// A webhook whose token was presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hook {
    pub(crate) trigger: TriggerId,
    /// Where its runs count.
    pub(crate) workspace: WorkspaceId,
}

/// Whose token this is. The token is judged before the identifier, so that neither tells of the other.
///
/// # Errors
/// `auth.invalid`; `auth.revoked` when the trigger was deleted; `resource.not_found` when the token is another trigger's.
pub(crate) fn authenticate(
    session: &mut dyn Session,
    id: &str,
    secret: &str,
) -> Result<Hook, Error> {
    let row = session.row(
        "SELECT id, workspace_id, deleted_at FROM triggers WHERE hash = $1",
        &[Param::Bytes(&tokens::hash(secret))],
    )?;
    let row = row.ok_or(Code::AuthInvalid)?;
    if row.opt_int(2)?.is_some() {
        return Err(Code::AuthRevoked.into());
    }
    let hook = Hook {
        trigger: row.parsed(0)?,
        workspace: row.parsed(1)?,
    };
    match named::<TriggerId>(id)? == hook.trigger {
        true => Ok(hook),
        false => Err(Code::NotFound.into()),
    }
}

/// Starts a run with a received body as `event` of the trigger's input, and keeps what came of it; a refusal too, so it is inside the answer.
///
/// # Errors
/// Those of the store, and `request.invalid` for a key that is none.
pub(crate) fn deliver(
    session: &mut dyn Session,
    cx: Cx<'_>,
    hook: Hook,
    key: Option<&str>,
    event: &Value,
) -> Result<Result<Admission, Error>, Error> {
    let row = session.row(
        "SELECT agent_id, input FROM triggers WHERE id = $1 AND deleted_at IS NULL",
        &[Param::Text(&hook.trigger.to_string())],
    )?;
    let row = row.ok_or(Code::AuthRevoked)?;
    let agent: AgentId = row.parsed(0)?;
    let mut input: Value = row.json(1)?.unwrap_or_default();
    if let Some(members) = input.as_object_mut() {
        members.insert("event".into(), event.clone());
    }
    // What the trigger adds may change between two deliveries of one event.
    let key = key.map(|key| Key::new(key, &hook.trigger.to_string(), event));
    let key = key
        .transpose()
        .map_err(|fault| Error::from(crate::Refusal::invalid(vec![fault])))?;
    let start = Start {
        by: By::Trigger(hook.trigger),
        target: Target::Agent(agent),
        input,
        artifacts: Vec::new(),
        key,
    };
    let admitted = runs::admit(session, cx, &[start])?.pop();
    match &admitted {
        Some(Ok(admission)) if !admission.replayed => {
            record(session, cx, hook.trigger, &started(admission.run.id))?;
        }
        Some(Err(Error::Refused(refusal))) => {
            let outcome = FiringOutcome::Refused { code: refusal.code };
            record(session, cx, hook.trigger, &outcome)?;
        }
        _ => {}
    }
    Ok(admitted.unwrap_or_else(|| Err(Code::ServerError.into())))
}
