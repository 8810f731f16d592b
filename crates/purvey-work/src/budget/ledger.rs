//! Reservations and settlement. Rows of the ledger are locked in the order workspace, owner, platform, after the run's.

use super::{Budget, Used};
use crate::{
    clock::{Cx, Day},
    error::{Error, LimitDetail},
    id::RunId,
    sql::{Param, Row, Session},
};
use std::collections::BTreeMap;

const PLATFORM: &str = "platform";

/// What is spent and reserved on a day.
pub(super) fn used(session: &mut dyn Session, day: Day, budget: &Budget) -> Result<Used, Error> {
    let (workspace, owner) = (budget.workspace.to_string(), budget.owner.to_string());
    let rows = session.query(
        "SELECT scope, settled + reserved FROM ledger WHERE day = $1 AND scope IN ($2, $3, $4)",
        &[
            Param::Int(day.number()),
            Param::Text(&workspace),
            Param::Text(&owner),
            Param::Text(PLATFORM),
        ],
    )?;
    let mut used = Used::default();
    for row in rows {
        let scope = row.text(0)?;
        let place = if scope == PLATFORM {
            &mut used.platform
        } else if scope == workspace {
            &mut used.workspace
        } else {
            &mut used.owner
        };
        *place = row.int(1)?;
    }
    Ok(used)
}

/// Reserves the most that a call can cost, if no limit is met; the limit otherwise. A call reserved before by the same attempt stays so.
///
/// # Errors
/// Those of the store.
pub(crate) fn reserve(
    session: &mut dyn Session,
    cx: Cx<'_>,
    budget: &Budget,
    call: (RunId, u32, u32, u32),
    most_micros: i64,
) -> Result<Option<LimitDetail>, Error> {
    let day = cx.now.day();
    let (run, seq, number, attempt) = call;
    let (workspace, owner) = (budget.workspace.to_string(), budget.owner.to_string());
    if most_micros == 0 {
        // Nothing to hold back, so nothing to write; a limit that is met still stands in the way.
        let used = used(session, day, budget)?;
        return Ok(budget.judge(used, cx.now));
    }
    let made = session.execute(
        "INSERT INTO reservations (run_id, seq, call, attempt, day, workspace_id, owner_id, micros)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (run_id, seq, call) DO NOTHING",
        &[
            Param::Text(&run.to_string()),
            Param::Int(seq.into()),
            Param::Int(number.into()),
            Param::Int(attempt.into()),
            Param::Int(day.number()),
            Param::Text(&workspace),
            Param::Text(&owner),
            Param::Int(most_micros),
        ],
    )?;
    if made == 0 {
        return Ok(None);
    }
    let scopes = [workspace.as_str(), owner.as_str(), PLATFORM];
    let mut before = [0; 3];
    for (scope, before) in scopes.iter().zip(&mut before) {
        *before = add(session, day, scope, 0, most_micros)? - most_micros;
    }
    let [workspace, owner, platform] = before;
    let used = Used {
        workspace,
        owner,
        platform,
    };
    let Some(limit) = budget.judge(used, cx.now) else {
        return Ok(None);
    };
    for scope in scopes {
        add(session, day, scope, 0, -most_micros)?;
    }
    session.execute(
        "DELETE FROM reservations WHERE run_id = $1 AND seq = $2 AND call = $3",
        &[
            Param::Text(&run.to_string()),
            Param::Int(seq.into()),
            Param::Int(number.into()),
        ],
    )?;
    Ok(Some(limit))
}

/// Settles a call: what it cost takes the place of what was reserved. Answers the cost that was charged, none if the call was settled before.
///
/// # Errors
/// Those of the store.
pub(crate) fn settle(
    session: &mut dyn Session,
    run: RunId,
    seq: u32,
    call: u32,
    micros: i64,
) -> Result<Option<i64>, Error> {
    let taken = session.query(
        "DELETE FROM reservations WHERE run_id = $1 AND seq = $2 AND call = $3
         RETURNING seq, day, workspace_id, owner_id, micros",
        &[
            Param::Text(&run.to_string()),
            Param::Int(seq.into()),
            Param::Int(call.into()),
        ],
    )?;
    if taken.is_empty() {
        return Ok(None);
    }
    post(session, &taken, Some(micros))?;
    Ok(Some(micros))
}

/// Charges what is still reserved for calls of these runs, as their outcome will never be known; what each step was charged.
///
/// # Errors
/// Those of the store.
pub(crate) fn charge(
    session: &mut dyn Session,
    runs: &[RunId],
) -> Result<Vec<(RunId, u32, i64)>, Error> {
    let mut taken = Vec::new();
    let mut charged = Vec::new();
    for run in runs {
        let rows = session.query(
            "DELETE FROM reservations WHERE run_id = $1 RETURNING seq, day, workspace_id, owner_id, micros",
            &[Param::Text(&run.to_string())],
        )?;
        for row in rows {
            let seq = u32::try_from(row.int(0)?).unwrap_or(u32::MAX);
            charged.push((*run, seq, row.int(4)?));
            taken.push(row);
        }
    }
    post(session, &taken, None)?;
    Ok(charged)
}

/// Turns reservations into spending of `micros` each, or of all that was reserved.
fn post(session: &mut dyn Session, taken: &[Row], micros: Option<i64>) -> Result<(), Error> {
    // Sorted by kind of scope first: every transaction takes the rows in the same order.
    let mut sums = BTreeMap::<(u8, &str, i64), (i64, i64)>::new();
    for row in taken {
        let reserved = row.int(4)?;
        for (kind, scope) in [(0, row.text(2)?), (1, row.text(3)?), (2, PLATFORM)] {
            let sum = sums.entry((kind, scope, row.int(1)?)).or_default();
            sum.0 += micros.unwrap_or(reserved);
            sum.1 -= reserved;
        }
    }
    for ((_, scope, day), (settled, reserved)) in sums {
        add(session, Day::from_number(day), scope, settled, reserved)?;
    }
    Ok(())
}

/// Adds to a row of the ledger; what it holds in all then.
fn add(
    session: &mut dyn Session,
    day: Day,
    scope: &str,
    settled: i64,
    reserved: i64,
) -> Result<i64, Error> {
    session
        .row(
            "INSERT INTO ledger (day, scope, settled, reserved) VALUES ($1, $2, $3, $4)
             ON CONFLICT (day, scope) DO UPDATE
             SET settled = ledger.settled + excluded.settled, reserved = ledger.reserved + excluded.reserved
             RETURNING settled + reserved",
            &[
                Param::Int(day.number()),
                Param::Text(scope),
                Param::Int(settled),
                Param::Int(reserved),
            ],
        )?
        .map_or(Ok(0), |row| row.int(0))
}
