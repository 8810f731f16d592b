//! Reservations and settlement. Rows of the ledger are locked in the order workspace, owner, platform, after the run's.

use super::{Budget, Used};
use crate::{
    clock::{Cx, Day},
    error::{Error, LimitDetail},
    id::{RunId, WorkspaceId},
    sql::{Param, ROWS, Row, Session, parts, values},
};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

pub(super) const PLATFORM: &str = "platform";

/// A call of a provider that is about to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) workspace: WorkspaceId,
    pub(crate) run: RunId,
    pub(crate) seq: u32,
    pub(crate) number: u32,
    pub(crate) attempt: u32,
    /// The most that it can cost.
    pub(crate) micros: i64,
}

/// Reserves the most that each call can cost, one after the other, if no limit is met; the limit otherwise. A call reserved before by the
/// same attempt stays so.
///
/// # Errors
/// Those of the store.
pub(crate) fn reserve(
    session: &mut dyn Session,
    cx: Cx<'_>,
    calls: &[Call],
) -> Result<Vec<Option<LimitDetail>>, Error> {
    let day = cx.now.day();
    let workspaces: BTreeSet<_> = calls.iter().map(|call| call.workspace).collect();
    let workspaces: Vec<_> = workspaces.into_iter().collect();
    let budgets: HashMap<_, _> = Budget::load_all(session, day, &workspaces)?
        .into_iter()
        .map(|budget| (budget.workspace, Scoped::new(budget)))
        .collect();
    let scoped = |call: &Call| budgets.get(&call.workspace).ok_or_else(lost);

    // Nothing to hold back is nothing to write; a limit that is met still stands in the way.
    let paid: Vec<&Call> = calls.iter().filter(|call| call.micros != 0).collect();
    let new = insert(session, day, &paid, &scoped)?;
    let is_new = |call: &Call| new.contains(&(call.run, call.seq, call.number));
    let mut sums = BTreeMap::<(usize, &str), i64>::new();
    for call in paid.iter().filter(|call| is_new(call)) {
        for (kind, scope) in scoped(call)?.scopes().into_iter().enumerate() {
            *sums.entry((kind, scope)).or_default() += call.micros;
        }
    }
    let sums: Vec<Sum<'_>> = sums
        .into_iter()
        .map(|((_, scope), micros)| (day, scope, (0, micros)))
        .collect();
    // What others have used may have changed since it was read; from here on the rows are held.
    let mut used = HashMap::new();
    for ((_, scope, (_, micros)), now) in sums.iter().zip(add(session, &sums)?) {
        used.insert(*scope, now - micros);
    }

    let mut limits = Vec::with_capacity(calls.len());
    for call in calls {
        if call.micros != 0 && !is_new(call) {
            limits.push(None);
            continue;
        }
        let scoped = scoped(call)?;
        let [workspace, owner, platform] = scoped.scopes();
        let at = |scope, read| used.get(scope).copied().unwrap_or(read);
        let read = scoped.budget.used;
        let now = Used {
            workspace: at(workspace, read.workspace),
            owner: at(owner, read.owner),
            platform: at(platform, read.platform),
        };
        let limit = scoped.budget.judge(now, cx.now);
        if call.micros != 0 {
            match limit {
                Some(_) => give_back(session, day, scoped, call)?,
                None => scoped.scopes().into_iter().for_each(|scope| {
                    if let Some(used) = used.get_mut(scope) {
                        *used += call.micros;
                    }
                }),
            }
        }
        limits.push(limit);
    }
    Ok(limits)
}

/// A budget and its scopes as they are kept.
struct Scoped {
    budget: Budget,
    workspace: String,
    owner: String,
}

impl Scoped {
    fn new(budget: Budget) -> Self {
        Self {
            workspace: budget.workspace.to_string(),
            owner: budget.owner.to_string(),
            budget,
        }
    }

    fn scopes(&self) -> [&str; 3] {
        [&self.workspace, &self.owner, PLATFORM]
    }
}

/// Makes reservations; those that were not there before.
fn insert<'a>(
    session: &mut dyn Session,
    day: Day,
    calls: &[&Call],
    scoped: &dyn Fn(&Call) -> Result<&'a Scoped, Error>,
) -> Result<HashSet<(RunId, u32, u32)>, Error> {
    let runs: Vec<String> = calls.iter().map(|call| call.run.to_string()).collect();
    let mut rows = Vec::with_capacity(calls.len());
    for (call, run) in calls.iter().zip(&runs) {
        let scoped = scoped(call)?;
        rows.push([
            Param::Text(run),
            Param::Int(call.seq.into()),
            Param::Int(call.number.into()),
            Param::Int(call.attempt.into()),
            Param::Int(day.number()),
            Param::Text(&scoped.workspace),
            Param::Text(&scoped.owner),
            Param::Int(call.micros),
        ]);
    }
    let mut made = HashSet::new();
    for part in parts(&rows) {
        let mut params = Vec::new();
        let number = "BIGINT";
        let new = values(
            ["", number, number, number, number, "", "", number],
            part,
            &mut params,
        );
        // Without a condition SQLite would take the conflict for one of a join.
        let sql = format!(
            "INSERT INTO reservations (run_id, seq, call, attempt, day, workspace_id, owner_id, micros)
             SELECT * FROM {new} AS n WHERE 1 = 1 ON CONFLICT (run_id, seq, call) DO NOTHING RETURNING run_id, seq, call"
        );
        for row in session.query(&sql, &params)? {
            let number =
                |column| Ok::<_, Error>(u32::try_from(row.int(column)?).unwrap_or(u32::MAX));
            made.insert((row.parsed(0)?, number(1)?, number(2)?));
        }
    }
    Ok(made)
}

/// Takes a reservation back that met a limit.
fn give_back(
    session: &mut dyn Session,
    day: Day,
    scoped: &Scoped,
    call: &Call,
) -> Result<(), Error> {
    add(
        session,
        &scoped.scopes().map(|scope| (day, scope, (0, -call.micros))),
    )?;
    session.execute(
        "DELETE FROM reservations WHERE run_id = $1 AND seq = $2 AND call = $3",
        &[
            Param::Text(&call.run.to_string()),
            Param::Int(call.seq.into()),
            Param::Int(call.number.into()),
        ],
    )?;
    Ok(())
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
    let taken: Vec<_> = taken.into_iter().map(|row| (row, micros)).collect();
    post(session, &taken)?;
    Ok(Some(micros))
}

/// Charges what is still reserved for calls of these runs, as their outcome will never be known, but for `known`: what the call of a run, a
/// step and a number did cost. What each step was charged.
///
/// # Errors
/// Those of the store.
pub(crate) fn charge(
    session: &mut dyn Session,
    runs: &[RunId],
    known: &HashMap<(RunId, u32, u32), i64>,
) -> Result<Vec<(RunId, u32, i64)>, Error> {
    let texts: Vec<String> = runs.iter().map(ToString::to_string).collect();
    let rows: Vec<_> = texts.iter().map(|text| [Param::Text(text)]).collect();
    let mut taken = Vec::new();
    let mut charged = Vec::new();
    for rows in rows.chunks(ROWS) {
        let mut params = Vec::new();
        let of = values([""], rows, &mut params);
        let rows = session.query(
            &format!(
                "DELETE FROM reservations WHERE run_id IN {of}
                 RETURNING seq, day, workspace_id, owner_id, micros, run_id, call"
            ),
            &params,
        )?;
        for row in rows {
            let number =
                |column| Ok::<_, Error>(u32::try_from(row.int(column)?).unwrap_or(u32::MAX));
            let (run, seq) = (row.parsed(5)?, number(0)?);
            let known = known.get(&(run, seq, number(6)?)).copied();
            let micros = known.map_or_else(|| row.int(4), Ok)?;
            charged.push((run, seq, micros));
            taken.push((row, micros));
        }
    }
    post(session, &taken)?;
    Ok(charged)
}

/// Turns reservations into spending of so much each.
fn post(session: &mut dyn Session, taken: &[(Row, i64)]) -> Result<(), Error> {
    // Sorted by kind of scope first: every transaction takes the rows in the same order.
    let mut sums = BTreeMap::<(u8, &str, i64), (i64, i64)>::new();
    for (row, micros) in taken {
        let reserved = row.int(4)?;
        for (kind, scope) in [(0, row.text(2)?), (1, row.text(3)?), (2, PLATFORM)] {
            let sum = sums.entry((kind, scope, row.int(1)?)).or_default();
            sum.0 += micros;
            sum.1 -= reserved;
        }
    }
    let sums = sums.into_iter();
    let sums: Vec<Sum<'_>> = sums
        .map(|((_, scope, day), sum)| (Day::from_number(day), scope, sum))
        .collect();
    add(session, &sums).map(drop)
}

/// A day, a scope, and what is added there to what is settled and reserved.
type Sum<'a> = (Day, &'a str, (i64, i64));

/// Adds to rows of the ledger, which are taken in the order given; what each holds in all then.
fn add(session: &mut dyn Session, sums: &[Sum<'_>]) -> Result<Vec<i64>, Error> {
    let rows: Vec<_> = sums
        .iter()
        .map(|(day, scope, (settled, reserved))| {
            [
                Param::Int(day.number()),
                Param::Text(scope),
                Param::Int(*settled),
                Param::Int(*reserved),
            ]
        })
        .collect();
    let mut answers = Vec::with_capacity(sums.len());
    for part in parts(&rows) {
        let mut params = Vec::new();
        let number = "BIGINT";
        let new = values([number, "", number, number], part, &mut params);
        let sql = format!(
            "INSERT INTO ledger (day, scope, settled, reserved) SELECT * FROM {new} AS n WHERE 1 = 1
             ON CONFLICT (day, scope) DO UPDATE
             SET settled = ledger.settled + excluded.settled, reserved = ledger.reserved + excluded.reserved
             RETURNING scope, day, settled + reserved"
        );
        answers.extend(session.query(&sql, &params)?);
    }
    // The rows of an answer come in no order that is promised.
    sums.iter()
        .map(|(day, scope, _)| {
            for row in &answers {
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
