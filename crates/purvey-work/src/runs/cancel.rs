//! Cancelling, at any point of a run's life.

use super::{
    finish::{Outcome, end},
    live::Live,
    promote::promote,
    read,
    slots::Slots,
};
use crate::{
    clock::Cx,
    code::Code,
    error::{Error, Refusal},
    id::{RunId, WorkspaceId},
    model::{Run, RunStatus},
    sql::{Param, Session},
};

/// The workspace of a run, whoever asks.
///
/// # Errors
/// Those of the store.
pub(crate) fn workspace_of(
    session: &mut dyn Session,
    run: RunId,
) -> Result<Option<WorkspaceId>, Error> {
    session
        .row(
            "SELECT workspace_id FROM runs WHERE id = $1",
            &[Param::Text(&run.to_string())],
        )?
        .map(|row| row.parsed(0))
        .transpose()
}

/// Cancels a run: at once when nobody works on it, else as soon as its worker looks, or its lease runs out. Asked again it does nothing
/// more.
///
/// # Errors
/// `resource.not_found`; `state.conflict` when the run has succeeded or failed.
pub(crate) fn cancel(session: &mut dyn Session, cx: Cx<'_>, run: RunId) -> Result<Run, Error> {
    let id = run.to_string();
    let workspace = workspace_of(session, run)?.ok_or(Code::NotFound)?;
    let mut slots = Slots::of(session, workspace)?;
    if let Some(live) = Live::hold(session, run)? {
        if live.is_leased(cx) {
            session.execute(
                "UPDATE runs SET cancel_requested = 1 WHERE id = $1",
                &[Param::Text(&id)],
            )?;
            session.notify(&id)?;
        } else {
            end(session, cx, &mut slots, &live, &Outcome::Cancelled)?;
            promote(session, cx, &mut slots)?;
            slots.save(session)?;
        }
    }
    let run = read::run(session, run)?.ok_or(Code::NotFound)?;
    match run.status {
        RunStatus::Succeeded | RunStatus::Failed => Err(Refusal::because(
            Code::StateConflict,
            format!("The run has {} already.", run.status.text()),
        )
        .into()),
        _ => Ok(run),
    }
}
