//! Reservations and settlement. Rows of the ledger are locked in the order workspace, owner, platform, after the run's.

use super::{Budget, Used};
use crate::{
    clock::{Cx, Day},
    error::{Error, LimitDetail},
    id::{RunId, WorkspaceId},
    sql::{Param, Row, Session},
};
use std::{collections::BTreeMap, fmt::Write as _};

/// Most rows of one statement.
const ROWS: usize = 32;

pub(super) const PLATFORM: &str = "platform";

/// Reserves the most that a call can cost, if no limit is met; the limit otherwise. A call reserved before by the same attempt stays so.
///
/// # Errors
/// Those of the store.
pub(crate) fn reserve(
    session: &mut dyn Session,
    cx: Cx<'_>,
    workspace: WorkspaceId,
    call: (RunId, u32, u32, u32),
    most_micros: i64,
) -> Result<Option<LimitDetail>, Error> {
    let day = cx.now.day();
    let (run, seq, number, attempt) = call;
    let budget = Budget::load(session, day, workspace)?;
    if most_micros == 0 {
        // Nothing to hold back, so nothing to write; a limit that is met still stands in the way.
        return Ok(budget.met(cx.now));
    }
    let (workspace, owner) = (budget.workspace.to_string(), budget.owner.to_string());
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
    let sums = |micros| scopes.map(|scope| (day, scope, (0, micros)));
    // What others have used may have changed since it was read; from here on the rows are held.
    let [workspace, owner, platform] = add(session, &sums(most_micros))?[..] else {
        return Err(lost());
    };
    let used = Used {
        workspace: workspace - most_micros,
        owner: owner - most_micros,
        platform: platform - most_micros,
    };
    let Some(limit) = budget.judge(used, cx.now) else {
        return Ok(None);
    };
    add(session, &sums(-most_micros))?;
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
    let sums = sums.into_iter();
    let sums: Vec<Sum<'_>> = sums
        .map(|((_, scope, day), sum)| (Day::from_number(day), scope, sum))
        .collect();
    for sums in sums.chunks(ROWS) {
        add(session, sums)?;
    }
    Ok(())
}

/// A day, a scope, and what is added there to what is settled and reserved.
type Sum<'a> = (Day, &'a str, (i64, i64));

/// Adds to rows of the ledger, which are taken in the order given; what each holds in all then.
fn add(session: &mut dyn Session, sums: &[Sum<'_>]) -> Result<Vec<i64>, Error> {
    if sums.is_empty() {
        return Ok(Vec::new());
    }
    let mut sql = String::from("INSERT INTO ledger (day, scope, settled, reserved) VALUES ");
    let mut params = Vec::with_capacity(sums.len() * 4);
    for (day, scope, (settled, reserved)) in sums {
        let at = params.len();
        let comma = if at == 0 { "" } else { ", " };
        let _ = write!(
            sql,
            "{comma}(${}, ${}, ${}, ${})",
            at + 1,
            at + 2,
            at + 3,
            at + 4
        );
        params.extend([
            Param::Int(day.number()),
            Param::Text(scope),
            Param::Int(*settled),
            Param::Int(*reserved),
        ]);
    }
    sql.push_str(
        " ON CONFLICT (day, scope) DO UPDATE
         SET settled = ledger.settled + excluded.settled, reserved = ledger.reserved + excluded.reserved
         RETURNING scope, day, settled + reserved",
    );
    let rows = session.query(&sql, &params)?;
    // The rows of an answer come in no order that is promised.
    sums.iter()
        .map(|(day, scope, _)| {
            for row in &rows {
                if row.text(0)? == *scope && row.int(1)? == day.number() {
                    return row.int(2);
                }
            }
            Err(lost())
        })
        .collect()
}

fn lost() -> Error {
    Error::Store {
        detail: "a row of the ledger is lost".into(),
    }
}
