//! Schedules at their time: each firing starts one run, whichever node comes first, and however often it has to try.

use super::{hold, record, schedule::Schedule, started};
use crate::{
    clock::{Chance, Clock, Cx, Timestamp},
    code::Code,
    error::Error,
    id::{AgentId, TriggerId, WorkspaceId},
    idempotency::Key,
    model::FiringOutcome,
    runs::{self, By, Start, Target},
    sql::{Param, Session, Store},
};
use serde_json::Value;
use std::{sync::Arc, time::Duration};

/// Most schedules looked at at once.
const MOST: i64 = 64;
/// When a firing is tried again that was refused without saying when.
const AGAIN: Duration = Duration::from_secs(60);
const SOONEST: Duration = Duration::from_secs(1);
const LATEST: Duration = Duration::from_secs(15 * 60);

/// The schedules that have a firing to make.
pub(crate) fn due(
    session: &mut dyn Session,
    now: Timestamp,
) -> Result<Vec<(TriggerId, WorkspaceId)>, Error> {
    let rows = session.query(
        "SELECT id, workspace_id FROM triggers WHERE due_at <= $1 ORDER BY due_at LIMIT $2",
        &[Param::Int(now.millis()), Param::Int(MOST)],
    )?;
    rows.iter()
        .map(|row| Ok((row.parsed(0)?, row.parsed(1)?)))
        .collect()
}

/// Makes a schedule's firing, if it is still to be made. Of several that were missed the last is made, and no other.
///
/// What is refused is tried again until the next firing.
pub(crate) fn fire(
    session: &mut dyn Session,
    cx: Cx<'_>,
    trigger: TriggerId,
    workspace: WorkspaceId,
) -> Result<Option<FiringOutcome>, Error> {
    // Another node may be at it: it holds the workspace until it has moved the time on.
    hold(session, workspace)?;
    let id = trigger.to_string();
    let row = session.row(
        "SELECT agent_id, input, cron, time_zone, fire_at FROM triggers WHERE id = $1 AND enabled = 1 AND due_at <= $2",
        &[Param::Text(&id), Param::Int(cx.now.millis())],
    )?;
    let Some(row) = row else { return Ok(None) };
    let agent: AgentId = row.parsed(0)?;
    let input: Value = row.json(1)?.unwrap_or_default();
    let Ok(schedule) = Schedule::read(row.text(2)?, row.text(3)?) else {
        // Its zone has left the time zone database since.
        let outcome = FiringOutcome::Refused {
            code: Code::RequestInvalid,
        };
        record(session, cx, trigger, &outcome)?;
        move_on(session, &id, None, None)?;
        return Ok(Some(outcome));
    };
    let firing = schedule.latest(row.time(4)?, cx.now);
    let next = schedule.after(firing);
    let start = Start {
        by: By::Trigger(trigger),
        target: Target::Agent(agent),
        input,
        artifacts: Vec::new(),
        key: Key::new(&firing.to_string(), &id, &Value::Null).ok(),
    };
    let outcome = match runs::admit(session, cx, &[start])?.pop() {
        Some(Ok(admission)) => {
            move_on(session, &id, next, next)?;
            started(admission.run.id)
        }
        Some(Err(Error::Refused(refusal))) => {
            let wait = refusal.retry_after.unwrap_or(AGAIN);
            let again = cx.now.after(wait.clamp(SOONEST, LATEST));
            // At its time the next firing takes this one's place.
            let due = next.map_or(again, |next| next.min(again));
            move_on(session, &id, Some(firing), Some(due))?;
            FiringOutcome::Refused { code: refusal.code }
        }
        Some(Err(error)) => return Err(error),
        None => return Ok(None),
    };
    record(session, cx, trigger, &outcome)?;
    Ok(Some(outcome))
}

fn move_on(
    session: &mut dyn Session,
    trigger: &str,
    fire_at: Option<Timestamp>,
    due_at: Option<Timestamp>,
) -> Result<(), Error> {
    session.execute(
        "UPDATE triggers SET fire_at = $2, due_at = $3 WHERE id = $1",
        &[
            Param::Text(trigger),
            fire_at.map(Timestamp::millis).into(),
            due_at.map(Timestamp::millis).into(),
        ],
    )?;
    Ok(())
}

/// Makes all firings that are due; how many. For each node, each second.
pub(crate) async fn fire_due(
    store: &Store,
    clock: &Arc<dyn Clock>,
    chance: &Arc<dyn Chance>,
) -> Result<usize, Error> {
    let now = clock.now();
    let found = store.read(move |session| due(session, now)).await?;
    let mut fired = 0;
    for (trigger, workspace) in found {
        let (clock, chance) = (Arc::clone(clock), Arc::clone(chance));
        let outcome = store
            .write_in(&workspace.to_string(), move |session| {
                let cx = Cx {
                    now: clock.now(),
                    chance: &*chance,
                };
                fire(session, cx, trigger, workspace)
            })
            .await;
        match outcome {
            Ok(outcome) => fired += usize::from(outcome.is_some()),
            // The others have their time too; this one is due again at the next look.
            Err(error) => tracing::error!(%trigger, %error, "a schedule could not be fired"),
        }
    }
    Ok(fired)
}
