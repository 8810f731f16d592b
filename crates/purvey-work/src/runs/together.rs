//! What workers write most, for many runs in one transaction: that a run's step begins, and that a run ends with the result of its step.

use super::{
    event::{self, Happened},
    finish::{self, Ended, Outcome, answer_turn},
    live::{Lease, Live},
    promote::promote,
    slots::Slots,
    text,
    work::{self, Begun, CallOf, StepDone},
};
use crate::{
    artifacts, budget,
    clock::Cx,
    code::Code,
    error::Error,
    id::{ArtifactId, RunId, WorkspaceId},
    model::{StepKind, StepState},
    sql::{Param, Session, parts, values},
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What a worker asks for a run that it has leased.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) lease: Lease,
    pub(crate) call: CallOf,
    pub(crate) what: What,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    /// A step with the provider begins with its first call: [`begin_step`](super::begin_step) and [`begin_call`](super::begin_call).
    Begin {
        /// The model, if it has a name.
        name: Option<String>,
        most_micros: i64,
    },
    /// The call is settled, the step done, the run ended: [`settle_call`](super::settle_call), [`checkpoint`](super::checkpoint) and
    /// [`finish`](super::finish).
    End(Box<Last>),
}

/// The last step of a run.
#[derive(Clone, Debug)]
pub(crate) struct Last {
    pub(crate) micros: i64,
    pub(crate) result: Value,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) outcome: Outcome,
    /// What it made, which becomes ready with this; then it is written alone.
    pub(crate) produced: Vec<ArtifactId>,
}

/// Does all of it, each as if it came alone. What is begun may be refused; what ends is answered [`Begun::Go`].
///
/// # Errors
/// Each has its own. The whole fails with the store, and when anything is not as it is for most: then each is to be asked for alone.
pub(crate) fn together(
    session: &mut dyn Session,
    cx: Cx<'_>,
    writes: &[Write],
) -> Result<Vec<Result<Begun, Error>>, Error> {
    if let [write] = writes {
        return Ok(vec![own(alone(session, cx, write))?]);
    }
    let ids: BTreeSet<RunId> = writes.iter().map(|write| write.lease.run).collect();
    if ids.len() < writes.len() {
        return Err(unusual());
    }
    // In one order everywhere: workspaces, runs, the ledger.
    let ending = writes
        .iter()
        .filter(|write| matches!(write.what, What::End(_)));
    let workspaces: BTreeSet<WorkspaceId> = ending.map(|write| write.lease.workspace).collect();
    let workspaces: Vec<_> = workspaces.into_iter().collect();
    let mut slots: BTreeMap<_, _> = Slots::hold_all(session, &workspaces)?
        .into_iter()
        .map(|slots| (slots.workspace, slots))
        .collect();
    let ids: Vec<_> = ids.into_iter().collect();
    let lives: HashMap<RunId, Live> = Live::hold_all(session, &ids)?
        .into_iter()
        .map(|live| (live.id, live))
        .collect();
    let mut begins = Vec::new();
    let mut ends = Vec::new();
    for write in writes {
        let live = lives.get(&write.lease.run);
        let Some(live) = live.filter(|live| live.is_held_by(&write.lease)) else {
            continue;
        };
        match &write.what {
            What::Begin { name, most_micros } => {
                begins.push((write, name.as_deref(), *most_micros));
            }
            What::End(last) => ends.push((write, live, &**last)),
        }
    }
    // What ends gives back what it had reserved, which may be what a call that begins lacks.
    end(session, cx, &mut slots, &ends)?;
    let mut begun = begin(session, cx, &begins)?;
    let answer = |write: &Write| match lives.get(&write.lease.run) {
        Some(live) if live.is_held_by(&write.lease) => {
            Ok(begun.remove(&write.lease.run).unwrap_or(Begun::Go))
        }
        _ => Err(Error::LeaseLost),
    };
    Ok(writes.iter().map(answer).collect())
}

/// What the store refuses fails the whole.
fn own<T>(answer: Result<T, Error>) -> Result<Result<T, Error>, Error> {
    match answer {
        Err(error) if !matches!(error, Error::LeaseLost) => Err(error),
        answer => Ok(answer),
    }
}

fn unusual() -> Error {
    Error::Store {
        detail: "not what most runs do; each is to be written alone".into(),
    }
}

/// One write in a transaction of its own.
///
/// # Errors
/// [`Error::LeaseLost`]; those of the store.
pub(crate) fn alone(session: &mut dyn Session, cx: Cx<'_>, write: &Write) -> Result<Begun, Error> {
    let Write { lease, call, what } = write;
    match what {
        What::Begin { name, most_micros } => {
            let kind = StepKind::Provider;
            work::begin_step(session, cx, lease, call.seq, kind, name.as_deref())?;
            work::reserve(session, cx, lease, *call, *most_micros)
        }
        What::End(last) => {
            finish::hold_workspace(session, lease)?;
            let step = StepDone {
                seq: call.seq,
                request: None,
                result: &last.result,
                input_tokens: last.input_tokens,
                output_tokens: last.output_tokens,
            };
            work::keep(session, cx, lease, (*call, last.micros), &step)?;
            artifacts::made(session, cx, lease.run, &last.produced)?;
            finish::finish(session, cx, lease, &last.outcome)?;
            Ok(Begun::Go)
        }
    }
}

/// First steps begin.
fn begin(
    session: &mut dyn Session,
    cx: Cx<'_>,
    begins: &[(&Write, Option<&str>, i64)],
) -> Result<HashMap<RunId, Begun>, Error> {
    let runs: Vec<String> = texts(begins.iter().map(|(write, ..)| write.lease.run));
    let rows: Vec<_> = begins
        .iter()
        .zip(&runs)
        .map(|((write, name, _), run)| {
            [
                Param::Text(run),
                Param::Int(write.call.seq.into()),
                Param::Int(write.lease.attempt.into()),
                text(*name),
            ]
        })
        .collect();
    for part in parts(&rows) {
        let mut params = vec![Param::Int(cx.now.millis())];
        let new = values(["", "BIGINT", "BIGINT", ""], part, &mut params);
        let begun = session.execute(
            &format!(
                "INSERT INTO steps (run_id, seq, attempt, kind, name, state, input_tokens, output_tokens, cost_micros, limited, started_at)
                 SELECT n.column1, n.column2, n.column3, 'provider', n.column4, 'started', 0, 0, 0, 0, CAST($1 AS BIGINT)
                 FROM {new} AS n WHERE 1 = 1 ON CONFLICT (run_id, seq) DO NOTHING"
            ),
            &params,
        )?;
        // An earlier attempt began it, or this one is asked again.
        if begun < part.len() as u64 {
            return Err(unusual());
        }
    }
    let happened: Vec<_> = begins
        .iter()
        .map(|(write, ..)| Happened::Step(write.call.seq, StepState::Started))
        .collect();
    let of = begins.iter().map(|(write, ..)| write.lease.run);
    let happened: Vec<_> = of.zip(&happened).collect();
    event::record_all(session, cx, &happened)?;
    let calls: Vec<_> = begins
        .iter()
        .map(|(write, _, micros)| budget::Call {
            workspace: write.lease.workspace,
            run: write.lease.run,
            seq: write.call.seq,
            number: write.call.call,
            attempt: write.lease.attempt,
            micros: *micros,
        })
        .collect();
    let limits = budget::reserve(session, cx, &calls)?;
    let begun = |limit: Option<_>| limit.map_or(Begun::Go, Begun::Refused);
    let runs = calls.iter().map(|call| call.run);
    Ok(runs.zip(limits.into_iter().map(begun)).collect())
}

/// Runs end with their last steps, and the next of their workspaces' queues begin.
fn end(
    session: &mut dyn Session,
    cx: Cx<'_>,
    slots: &mut BTreeMap<WorkspaceId, Slots>,
    ends: &[(&Write, &Live, &Last)],
) -> Result<(), Error> {
    if ends.is_empty() {
        return Ok(());
    }
    let ids: Vec<_> = ends.iter().map(|(write, ..)| write.lease.run).collect();
    let known = |(write, _, last): &(&Write, &Live, &Last)| {
        let CallOf { seq, call } = write.call;
        ((write.lease.run, seq, call), last.micros)
    };
    let known = ends.iter().map(known).collect();
    let mut costs = HashMap::<(RunId, u32), i64>::new();
    for (run, seq, micros) in budget::charge(session, &ids, &known)? {
        *costs.entry((run, seq)).or_default() += micros;
    }
    let cost = |write: &Write| {
        let at = (write.lease.run, write.call.seq);
        costs.get(&at).copied().unwrap_or(0)
    };
    // What an earlier step is still charged is written where it stands.
    let own: BTreeSet<_> = ends
        .iter()
        .map(|(write, ..)| (write.lease.run, write.call.seq))
        .collect();
    for ((run, seq), micros) in &costs {
        if !own.contains(&(*run, *seq)) {
            work::cost(session, *run, *seq, *micros)?;
        }
    }

    let runs = texts(ids.iter().copied());
    let results = texts(ends.iter().map(|(.., last)| &last.result));
    let count = |tokens: u64| Param::Int(i64::try_from(tokens).unwrap_or(i64::MAX));
    let steps: Vec<_> = ends
        .iter()
        .zip(runs.iter().zip(&results))
        .map(|((write, _, last), (run, result))| {
            [
                Param::Text(run),
                Param::Int(write.call.seq.into()),
                Param::Int(write.lease.attempt.into()),
                Param::Text(result),
                count(last.input_tokens),
                count(last.output_tokens),
                Param::Int(cost(write)),
            ]
        })
        .collect();
    for part in parts(&steps) {
        let mut params = vec![Param::Int(cx.now.millis())];
        let number = "BIGINT";
        let new = values(
            ["", number, number, "", number, number, number],
            part,
            &mut params,
        );
        let done = session.execute(
            &format!(
                "UPDATE steps SET state = 'done', request = NULL, result = n.column4, input_tokens = n.column5, output_tokens = n.column6,
                    cost_micros = cost_micros + n.column7, finished_at = $1
                 FROM {new} AS n
                 WHERE run_id = n.column1 AND seq = n.column2 AND attempt = n.column3 AND state <> 'done'"
            ),
            &params,
        )?;
        // It is done already, or was never begun.
        if done < part.len() as u64 {
            return Err(unusual());
        }
    }

    let ended = ends
        .iter()
        .map(|(_, live, last)| Ended::of(&last.outcome, live.verification))
        .collect::<Result<Vec<_>, _>>()?;
    let rows: Vec<_> = ends
        .iter()
        .zip(runs.iter().zip(&ended))
        .map(|((write, ..), (run, ended))| {
            [
                Param::Text(run),
                Param::Text(ended.status.text()),
                text(ended.output.as_deref()),
                text(ended.code.map(Code::text)),
                text(ended.detail),
                text(ended.limit.as_deref()),
                Param::Text(ended.verification.text()),
                text(ended.errors.as_deref()),
                Param::Int(cost(write)),
            ]
        })
        .collect();
    for part in parts(&rows) {
        let mut params = vec![Param::Int(cx.now.millis())];
        let new = values(
            ["", "", "", "", "", "", "", "", "BIGINT"],
            part,
            &mut params,
        );
        let written = session.execute(
            &format!(
                "UPDATE runs SET status = n.column2, finished_at = $1, output = n.column3, error_code = n.column4,
                    error_detail = n.column5, limit_detail = n.column6, verification_status = n.column7,
                    verification_errors = n.column8, cost_micros = cost_micros + n.column9,
                    lease_owner = NULL, due_at = NULL, blocked = 0
                 FROM {new} AS n WHERE runs.id = n.column1 AND finished_at IS NULL"
            ),
            &params,
        )?;
        if written < part.len() as u64 {
            return Err(unusual());
        }
    }

    let mut agents = BTreeMap::<String, i64>::new();
    let mut happened = Vec::new();
    for ((write, live, _), ended) in ends.iter().zip(&ended) {
        let slots = slots.get_mut(&write.lease.workspace).ok_or_else(unusual)?;
        // What a worker has leased holds a slot.
        slots.running -= 1;
        *agents.entry(live.agent.to_string()).or_default() += 1;
        answer_turn(session, live, ended.status, ended.code)?;
        let done = Happened::Step(write.call.seq, StepState::Done);
        let run = live.id;
        happened.extend(
            [done]
                .into_iter()
                .chain(ended.happened())
                .map(|it| (run, it)),
        );
    }
    let agents: Vec<_> = agents
        .iter()
        .map(|(agent, count)| [Param::Text(agent), Param::Int(*count)])
        .collect();
    for part in parts(&agents) {
        let mut params = Vec::new();
        let fewer = values(["", "BIGINT"], part, &mut params);
        session.execute(
            &format!(
                "UPDATE agents SET unfinished = unfinished - n.column2 FROM {fewer} AS n WHERE agents.id = n.column1"
            ),
            &params,
        )?;
    }
    let happened: Vec<_> = happened.iter().map(|(run, it)| (*run, it)).collect();
    event::record_all(session, cx, &happened)?;
    for slots in slots.values_mut() {
        promote(session, cx, slots)?;
    }
    Slots::save_all(session, slots.values_mut())
}

fn texts<T: ToString>(things: impl Iterator<Item = T>) -> Vec<String> {
    things.map(|thing| thing.to_string()).collect()
}
