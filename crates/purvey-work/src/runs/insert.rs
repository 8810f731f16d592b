//! The rows of runs that have just been admitted, many at a time.

use super::{
    facts::AgentFacts,
    json,
    start::{Admission, Start, Target},
};
use crate::{
    clock::{Cx, Timestamp},
    code::Code,
    error::Error,
    id::{RunId, ThreadId, TriggerId, TurnId, UserId},
    model::{Run, RunStatus, Turn, TurnState, VerificationStatus, WaitingFor, WaitingReason},
    sql::{Param, Session, parts, values},
};
use std::{collections::BTreeMap, fmt::Write as _, rc::Rc};

/// Where an admitted run stands.
pub(super) struct Place {
    pub(super) agent: Rc<AgentFacts>,
    /// Who the run acts for.
    pub(super) user: UserId,
    pub(super) trigger: Option<TriggerId>,
    pub(super) thread: Option<ThreadId>,
    /// In the queue; none for a run that holds a slot.
    pub(super) position: Option<i64>,
    /// Whether it waits for the turn before it.
    pub(super) blocked: bool,
    /// Runs of the workspace that wait, this one among them.
    pub(super) ahead: i64,
}

/// A run that is admitted and not yet written.
pub(super) struct Admitted {
    pub(super) run: Run,
    turn: Option<Turn>,
    place: Place,
    /// Key, principal and fingerprint.
    key: Option<(String, String, [u8; 32])>,
    input: String,
    artifacts: String,
}

impl Admitted {
    /// Makes the run, and the turn that it answers if that is new.
    pub(super) fn new(
        session: &mut dyn Session,
        cx: Cx<'_>,
        start: &Start,
        place: Place,
    ) -> Result<Self, Error> {
        let id = RunId::new(cx.now, cx.chance);
        let turn = match start.target {
            Target::Agent(_) => None,
            Target::Thread(thread) => Some(new_turn(session, cx, start, thread, id, place.user)?),
            Target::Turn(_, turn) => {
                session.execute(
                    "UPDATE turns SET run_id = $2 WHERE id = $1",
                    &[Param::Text(&turn.to_string()), Param::Text(&id.to_string())],
                )?;
                super::read::turn(session, turn)?
            }
        };
        let waits = place.position.is_some();
        let run = Run {
            id,
            workspace_id: place.agent.workspace,
            agent_id: place.agent.id,
            status: if waits {
                RunStatus::Pending
            } else {
                RunStatus::Running
            },
            queued_since: waits.then_some(cx.now),
            waiting_for: waits.then(|| WaitingFor {
                reason: if place.blocked {
                    WaitingReason::Thread
                } else {
                    WaitingReason::Concurrency
                },
                position: u64::try_from(place.ahead).unwrap_or(1),
            }),
            started_at: (!waits).then_some(cx.now),
            finished_at: None,
            input: start.input.clone(),
            output: None,
            error_code: None,
            error_detail: None,
            limit_detail: None,
            verification_status: match place.agent.definition.output_schema {
                Some(_) => VerificationStatus::Pending,
                None => VerificationStatus::NotRequired,
            },
            verification_errors: Vec::new(),
            cost_cents: 0,
            attempt: 0,
            trigger_id: place.trigger,
            turn_id: turn.as_ref().map(|turn| turn.id),
            started_by: place.user,
            artifacts: start.artifacts.clone(),
            produced: Vec::new(),
            created_at: cx.now,
        };
        let key = start.key.as_ref();
        Ok(Self {
            input: start.input.to_string(),
            artifacts: json(&start.artifacts)?,
            key: key.map(|key| (key.text.clone(), start.by.text(), key.fingerprint)),
            run,
            turn,
            place,
        })
    }

    pub(super) fn into_answer(self) -> Admission {
        Admission {
            run: self.run,
            replayed: false,
            turn: self.turn,
        }
    }
}

fn new_turn(
    session: &mut dyn Session,
    cx: Cx<'_>,
    start: &Start,
    thread: ThreadId,
    run: RunId,
    requester: UserId,
) -> Result<Turn, Error> {
    let turn = Turn {
        id: TurnId::new(cx.now, cx.chance),
        thread_id: thread,
        requester,
        input: start.input.clone(),
        state: TurnState::Waiting,
        run_id: Some(run),
        created_at: cx.now,
    };
    let thread = thread.to_string();
    let seq = session
        .row(
            "UPDATE threads SET next_seq = next_seq + 1 WHERE id = $1 RETURNING next_seq - 1",
            &[Param::Text(&thread)],
        )?
        .map_or(Ok(0), |row| row.int(0))?;
    session.execute(
        "INSERT INTO turns (id, thread_id, seq, requester, input, state, run_id, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        &[
            Param::Text(&turn.id.to_string()),
            Param::Text(&thread),
            Param::Int(seq),
            Param::Text(&requester.to_string()),
            Param::Text(&turn.input.to_string()),
            Param::Text(turn.state.text()),
            Param::Text(&run.to_string()),
            Param::Int(cx.now.millis()),
        ],
    )?;
    Ok(turn)
}

/// Writes runs that are admitted, their keys and first events.
pub(super) fn all(
    session: &mut dyn Session,
    cx: Cx<'_>,
    admitted: &[Admitted],
) -> Result<(), Error> {
    let now = Param::Int(cx.now.millis());
    let texts: Vec<Texts> = admitted.iter().map(Texts::new).collect();
    let mut runs = Vec::with_capacity(admitted.len() * RUN_COLUMNS);
    let mut keys = Vec::new();
    let mut events = Vec::with_capacity(admitted.len() * 3);
    let mut unfinished = BTreeMap::<&str, i64>::new();
    for (new, texts) in admitted.iter().zip(&texts) {
        new.columns(texts, &mut runs);
        if let Some((key, principal, fingerprint)) = &new.key {
            keys.extend([
                Param::Text(&texts.workspace),
                Param::Text(principal),
                Param::Text("start"),
                Param::Text(key),
                Param::Bytes(fingerprint),
                Param::Text(&texts.run),
                now,
            ]);
        }
        events.extend([
            Param::Text(&texts.run),
            Param::Int(1),
            Param::Text("status"),
            Param::Text(match new.run.status {
                RunStatus::Pending => r#"{"status":"pending"}"#,
                _ => r#"{"status":"running"}"#,
            }),
            now,
        ]);
        *unfinished.entry(&texts.agent).or_default() += 1;
    }
    rows(
        session,
        "runs (id, organization_id, workspace_id, agent_id, definition, time_limit_seconds, status, queued_since, position, blocked,
            started_at, input, verification_status, cost_micros, attempt, crashes, due_at, deadline_at, cancel_requested, key,
            trigger_id, thread_id, turn_id, started_by, artifacts, created_at)",
        RUN_COLUMNS,
        &runs,
    )?;
    rows(
        session,
        "keys (workspace_id, principal, kind, key, fingerprint, target_id, created_at)",
        7,
        &keys,
    )?;
    rows(session, "events (run_id, seq, kind, data, at)", 5, &events)?;
    let unfinished: Vec<_> = unfinished
        .into_iter()
        .map(|(agent, count)| [Param::Text(agent), Param::Int(count)])
        .collect();
    for more in parts(&unfinished) {
        let mut params = Vec::new();
        let added = values(["", "BIGINT"], more, &mut params);
        let there = session.execute(
            &format!(
                "UPDATE agents SET unfinished = unfinished + more.column2 FROM {added} AS more
                 WHERE agents.id = more.column1 AND deleted_at IS NULL"
            ),
            &params,
        )?;
        // They were read before their workspaces were held, and may have been deleted until then.
        if there < more.len() as u64 {
            return Err(Code::NotFound.into());
        }
    }
    Ok(())
}

const RUN_COLUMNS: usize = 26;

/// The identifiers of a run as they are kept.
struct Texts {
    run: String,
    organization: String,
    workspace: String,
    agent: String,
    user: String,
    trigger: Option<String>,
    thread: Option<String>,
    turn: Option<String>,
}

impl Texts {
    fn new(new: &Admitted) -> Self {
        let Run {
            id,
            workspace_id,
            agent_id,
            trigger_id,
            turn_id,
            started_by,
            ..
        } = &new.run;
        Self {
            run: id.to_string(),
            organization: new.place.agent.organization.to_string(),
            workspace: workspace_id.to_string(),
            agent: agent_id.to_string(),
            user: started_by.to_string(),
            trigger: trigger_id.map(|id| id.to_string()),
            thread: new.place.thread.map(|id| id.to_string()),
            turn: turn_id.map(|id| id.to_string()),
        }
    }
}

impl Admitted {
    fn columns<'a>(&'a self, texts: &'a Texts, row: &mut Vec<Param<'a>>) {
        let opt = |text: &'a Option<String>| super::text(text.as_deref());
        let time =
            |time: Option<Timestamp>| time.map_or(Param::Null, |time| Param::Int(time.millis()));
        let definition = &self.place.agent.definition;
        let limit = i64::from(definition.time_limit_seconds);
        let deadline = self
            .run
            .started_at
            .map(|started| started.millis() + limit * 1_000);
        row.extend([
            Param::Text(&texts.run),
            Param::Text(&texts.organization),
            Param::Text(&texts.workspace),
            Param::Text(&texts.agent),
            Param::Text(&self.place.agent.definition_text),
            Param::Int(limit),
            Param::Text(self.run.status.text()),
            time(self.run.queued_since),
            self.place.position.map_or(Param::Null, Param::Int),
            Param::Int(self.place.blocked.into()),
            time(self.run.started_at),
            Param::Text(&self.input),
            Param::Text(self.run.verification_status.text()),
            Param::Int(0),
            Param::Int(0),
            Param::Int(0),
            time(self.run.started_at),
            deadline.map_or(Param::Null, Param::Int),
            Param::Int(0),
            super::text(self.key.as_ref().map(|(key, ..)| key.as_str())),
            opt(&texts.trigger),
            opt(&texts.thread),
            opt(&texts.turn),
            Param::Text(&texts.user),
            Param::Text(&self.artifacts),
            Param::Int(self.run.created_at.millis()),
        ]);
    }
}

/// Inserts rows of `width` columns each, in as few statements as a handful of spellings allow.
fn rows(
    session: &mut dyn Session,
    into: &str,
    width: usize,
    params: &[Param<'_>],
) -> Result<(), Error> {
    let mut rest = params;
    for count in [32, 8, 1] {
        let size = count * width;
        if rest.len() < size {
            continue;
        }
        let mut sql = format!("INSERT INTO {into} VALUES ");
        for row in 0..count {
            sql.push_str(if row == 0 { "(" } else { ", (" });
            for column in 0..width {
                let comma = if column == 0 { "" } else { ", " };
                let _ = write!(sql, "{comma}${}", row * width + column + 1);
            }
            sql.push(')');
        }
        while let Some((these, others)) = rest.split_at_checked(size) {
            session.execute(&sql, these)?;
            rest = others;
        }
    }
    Ok(())
}
