//! A run that has not ended, with its row held, and the lease of whoever works on it.

use crate::{
    clock::{Cx, Timestamp},
    error::Error,
    id::{AgentId, RunId, ThreadId, TurnId, WorkspaceId},
    model::{RunStatus, VerificationStatus},
    sql::{Param, ROWS, Row, Session, values},
};

/// A worker's hold on a run: what it writes counts only while this is the run's newest attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) run: RunId,
    pub(crate) workspace: WorkspaceId,
    /// Which taking-up of the run this is, from 1.
    pub(crate) attempt: u32,
    /// The process that holds it; a new one for each start of a process.
    pub(crate) node: String,
}

/// The facts of a run that has not ended.
pub(super) struct Live {
    pub(super) id: RunId,
    pub(super) agent: AgentId,
    pub(super) thread: Option<ThreadId>,
    pub(super) turn: Option<TurnId>,
    pub(super) status: RunStatus,
    pub(super) blocked: bool,
    pub(super) attempt: i64,
    pub(super) crashes: i64,
    pub(super) node: Option<String>,
    pub(super) due_at: Option<Timestamp>,
    pub(super) deadline_at: Option<Timestamp>,
    pub(super) cancel_requested: bool,
    pub(super) verification: VerificationStatus,
}

const COLUMNS: &str =
    "id, agent_id, thread_id, turn_id, status, blocked, attempt, crashes, lease_owner, due_at,
    deadline_at, cancel_requested, verification_status";

impl Live {
    /// Holds the row of a run, if the run has not ended. Its workspace must be held already when the run may end.
    pub(super) fn hold(session: &mut dyn Session, run: RunId) -> Result<Option<Self>, Error> {
        Ok(Self::hold_all(session, &[run])?.pop())
    }

    /// Holds the rows of those of these runs that have not ended, in the order of their identifiers.
    pub(super) fn hold_all(session: &mut dyn Session, runs: &[RunId]) -> Result<Vec<Self>, Error> {
        let texts: Vec<String> = runs.iter().map(ToString::to_string).collect();
        let rows: Vec<_> = texts.iter().map(|text| [Param::Text(text)]).collect();
        let mut held = Vec::with_capacity(runs.len());
        for rows in rows.chunks(ROWS) {
            let mut params = Vec::new();
            let wanted = values([""], rows, &mut params);
            let rows = session.query(
                &format!(
                    "SELECT {COLUMNS} FROM runs WHERE id IN {wanted} AND finished_at IS NULL ORDER BY id /*pg:FOR UPDATE*/"
                ),
                &params,
            )?;
            for row in rows {
                held.push(Self::read(&row)?);
            }
        }
        Ok(held)
    }

    /// Holds the row of the run that a worker has leased.
    ///
    /// # Errors
    /// [`Error::LeaseLost`] when the run has ended, or passed to another attempt.
    pub(super) fn leased(session: &mut dyn Session, lease: &Lease) -> Result<Self, Error> {
        Self::hold(session, lease.run)?
            .filter(|live| live.is_held_by(lease))
            .ok_or(Error::LeaseLost)
    }

    /// Whether it is this worker's.
    pub(super) fn is_held_by(&self, lease: &Lease) -> bool {
        self.id == lease.run
            && self.attempt == i64::from(lease.attempt)
            && self.node.as_deref() == Some(lease.node.as_str())
    }

    /// Whether a worker holds a lease on it that has not run out.
    pub(super) fn is_leased(&self, cx: Cx<'_>) -> bool {
        self.node.is_some() && self.due_at.is_some_and(|due| due > cx.now)
    }

    fn read(row: &Row) -> Result<Self, Error> {
        let optional =
            |column: usize| Ok::<_, Error>(row.opt_int(column)?.map(Timestamp::from_millis));
        Ok(Self {
            id: row.parsed(0)?,
            agent: row.parsed(1)?,
            thread: row.opt_text(2)?.map(|_| row.parsed(2)).transpose()?,
            turn: row.opt_text(3)?.map(|_| row.parsed(3)).transpose()?,
            status: row.parsed(4)?,
            blocked: row.int(5)? != 0,
            attempt: row.int(6)?,
            crashes: row.int(7)?,
            node: row.opt_text(8)?.map(Into::into),
            due_at: optional(9)?,
            deadline_at: optional(10)?,
            cancel_requested: row.int(11)? != 0,
            verification: row.parsed(12)?,
        })
    }
}
