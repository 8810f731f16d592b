//! One connection and the transactions on it.

use super::super::{Param, Row, Session, Value, job::Work, tls::Address};
use crate::error::Error;
use bytes::BytesMut;
use postgres::{
    Client, Statement,
    error::SqlState,
    types::{IsNull, ToSql, Type},
};
use std::{collections::HashMap, error::Error as StdError};

/// Most statements that a connection keeps prepared.
const STATEMENTS: usize = 512;
/// Bounds of every transaction, so that one that hangs does not hold others for ever; a node that was cut off in the middle of one loses its
/// locks sooner than its leases.
const SETTINGS: &str = "SET statement_timeout = '30s'; SET lock_timeout = '10s'; \
    SET idle_in_transaction_session_timeout = '10s'; SET client_min_messages = 'warning'";
/// Held while the tables are made: nodes may start together.
const MIGRATION_LOCK: &str = "SELECT pg_advisory_xact_lock(8230472349082)";

/// What a transaction may do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Read,
    Write,
    Migrate,
}

/// Why nothing of a transaction may be answered yet.
pub(super) enum Trouble {
    /// It was rolled back and may succeed when run again.
    Again(String),
    /// It was rolled back because others held what it needs for too long already.
    Busy(String),
    /// The connection was lost before the commit: nothing was done.
    Lost(String),
    /// The connection was lost in the commit: whether it was done is not known.
    Ambiguous(String),
}

pub(super) struct Connection {
    client: Client,
    statements: HashMap<String, Statement>,
}

type Fates = Vec<Result<(), Error>>;

impl Connection {
    pub(super) fn open(address: &Address) -> Result<Self, String> {
        let mut client = address
            .config
            .connect(address.tls.clone())
            .map_err(|error| said(&error))?;
        client
            .batch_execute(SETTINGS)
            .map_err(|error| said(&error))?;
        Ok(Self {
            client,
            statements: HashMap::new(),
        })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// The schema that unqualified names are made in.
    pub(super) fn schema(&mut self) -> Result<String, Error> {
        let row = self.client.query_one("SELECT current_schema()::text", &[]);
        row.and_then(|row| row.try_get::<_, Option<String>>(0))
            .map(Option::unwrap_or_default)
            .map_err(|error| Error::Unavailable {
                detail: said(&error),
            })
    }

    /// Tells other nodes; outside any transaction, so that no commit waits for the lock that notifying takes.
    pub(super) fn notify(&mut self, channel: &str, payload: &str) -> Result<(), String> {
        self.client
            .execute("SELECT pg_notify($1, $2)", &[&channel, &payload])
            .map(drop)
            .map_err(|error| said(&error))
    }

    pub(super) fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// Runs all of `works` in one transaction; their fates and what they notified.
    pub(super) fn attempt(
        &mut self,
        mode: Mode,
        lane: Option<&str>,
        works: &mut [Work<'_>],
    ) -> Result<(Fates, Vec<String>), Trouble> {
        self.command(match mode {
            Mode::Read => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            Mode::Write | Mode::Migrate => "BEGIN",
        })?;
        if mode == Mode::Migrate {
            self.command(MIGRATION_LOCK)?;
        }
        let alone = works.len() == 1;
        if let Some(workspace) = lane.filter(|_| !alone) {
            self.hold(workspace)?;
        }
        let mut fates: Fates = Vec::with_capacity(works.len());
        let mut topics = Vec::new();
        for (index, work) in works.iter_mut().enumerate() {
            if !alone {
                let next = "RELEASE SAVEPOINT job; SAVEPOINT job";
                self.command(if index == 0 { "SAVEPOINT job" } else { next })?;
            }
            let mut session = Transaction {
                connection: self,
                topics: Vec::new(),
                failure: None,
            };
            let outcome = work(&mut session);
            let Transaction {
                topics: mut told,
                failure,
                ..
            } = session;
            let fate = match failure {
                None => outcome,
                Some(Failure::Trouble(trouble)) => {
                    self.undo(&trouble);
                    return Err(trouble);
                }
                // A failed statement fails its job even if whoever ran it went on.
                Some(Failure::Failed(error)) => Err(error),
            };
            if fate.is_ok() {
                topics.append(&mut told);
            } else if !alone {
                self.command("ROLLBACK TO SAVEPOINT job")?;
            }
            fates.push(fate);
        }
        if fates.iter().all(Result::is_err) {
            self.command("ROLLBACK")?;
        } else if let Err(error) = self.client.batch_execute("COMMIT") {
            return Err(match self.judge(&error) {
                // Refused while committing, with a reason that says that nothing was kept.
                Failure::Trouble(Trouble::Again(detail)) => Trouble::Again(detail),
                _ => Trouble::Ambiguous(said(&error)),
            });
        }
        topics.sort_unstable();
        topics.dedup();
        Ok((fates, topics))
    }

    /// Locks a workspace before jobs that share a transaction: one that locks only a run, followed by one that locks the workspace, would
    /// turn the order of locks around.
    fn hold(&mut self, workspace: &str) -> Result<(), Trouble> {
        let lock = "SELECT id FROM workspaces WHERE id = $1 FOR UPDATE";
        let held = self
            .prepared(lock)
            .and_then(|statement| self.client.execute(&statement, &[&workspace]));
        held.map(drop).map_err(|error| {
            let trouble = match self.judge(&error) {
                Failure::Trouble(trouble) => trouble,
                Failure::Failed(_) => Trouble::Busy(said(&error)),
            };
            self.undo(&trouble);
            trouble
        })
    }

    /// One of the words around a transaction; none of them has committed anything when it fails.
    fn command(&mut self, sql: &str) -> Result<(), Trouble> {
        self.client
            .batch_execute(sql)
            .map_err(|error| match self.judge(&error) {
                Failure::Trouble(trouble) => {
                    self.undo(&trouble);
                    trouble
                }
                Failure::Failed(_) => Trouble::Lost(said(&error)),
            })
    }

    fn undo(&mut self, trouble: &Trouble) {
        // A connection that cannot even roll back is given up at its next use.
        if matches!(trouble, Trouble::Again(_) | Trouble::Busy(_)) {
            let _ = self.client.batch_execute("ROLLBACK");
        }
    }

    fn judge(&self, error: &postgres::Error) -> Failure {
        let detail = said(error);
        let Some(code) = error.code() else {
            return if self.client.is_closed() || error.is_closed() || is_io(error) {
                Failure::Trouble(Trouble::Lost(detail))
            } else {
                Failure::Failed(Error::Store { detail })
            };
        };
        let class = code.code().get(..2).unwrap_or_default();
        if *code == SqlState::T_R_SERIALIZATION_FAILURE || *code == SqlState::T_R_DEADLOCK_DETECTED
        {
            Failure::Trouble(Trouble::Again(detail))
        } else if matches!(class, "08" | "57" | "53") && *code != SqlState::QUERY_CANCELED
            || *code == SqlState::READ_ONLY_SQL_TRANSACTION
            || *code == SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
            || detail.contains("cached plan must not change result type")
        {
            Failure::Trouble(Trouble::Lost(detail))
        } else if *code == SqlState::LOCK_NOT_AVAILABLE || *code == SqlState::QUERY_CANCELED {
            Failure::Failed(Error::Unavailable { detail })
        } else {
            Failure::Failed(Error::Store { detail })
        }
    }

    fn prepared(&mut self, sql: &str) -> Result<Statement, postgres::Error> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        if self.statements.len() >= STATEMENTS {
            self.statements.clear();
        }
        let statement = self.client.prepare(&spelled(sql))?;
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

/// `/*pg: … */` becomes real.
fn spelled(sql: &str) -> String {
    let mut spelled = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some((before, after)) = rest.split_once("/*pg:") {
        let (own, after) = after.split_once("*/").unwrap_or((after, ""));
        spelled.push_str(before);
        spelled.push_str(own);
        rest = after;
    }
    spelled + rest
}

fn is_io(error: &postgres::Error) -> bool {
    matches!(error.source(), Some(cause) if cause.is::<std::io::Error>())
}

/// An error with its cause, in one line.
fn said(error: &postgres::Error) -> String {
    match error.as_db_error() {
        Some(error) => format!("{} ({})", error.message(), error.code().code()),
        None => match error.source() {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        },
    }
}

/// Why a statement failed, as far as its transaction is concerned.
enum Failure {
    Trouble(Trouble),
    Failed(Error),
}

struct Transaction<'a> {
    connection: &'a mut Connection,
    topics: Vec<String>,
    failure: Option<Failure>,
}

impl Transaction<'_> {
    /// Notes what failed; what the job gets of it is only a reason to stop.
    fn noted<T>(&mut self, result: Result<T, postgres::Error>) -> Result<T, Error> {
        result.map_err(|error| {
            if self.failure.is_none() {
                self.failure = Some(self.connection.judge(&error));
            }
            Error::Unavailable {
                detail: said(&error),
            }
        })
    }
}

impl Session for Transaction<'_> {
    fn execute(&mut self, sql: &str, params: &[Param<'_>]) -> Result<u64, Error> {
        let done = self.connection.prepared(sql).and_then(|statement| {
            let params: Vec<&(dyn ToSql + Sync)> = params.iter().map(|param| param as _).collect();
            self.connection.client.execute(&statement, &params)
        });
        self.noted(done)
    }

    fn query(&mut self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Error> {
        let rows = self.connection.prepared(sql).and_then(|statement| {
            let params: Vec<&(dyn ToSql + Sync)> = params.iter().map(|param| param as _).collect();
            self.connection.client.query(&statement, &params)
        });
        self.noted(rows)?.iter().map(row).collect()
    }

    fn notify(&mut self, topic: &str) -> Result<(), Error> {
        self.topics.push(topic.to_owned());
        Ok(())
    }
}

impl ToSql for Param<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match (self, ty) {
            (Self::Null, _) => Ok(IsNull::Yes),
            (Self::Int(value), &Type::INT4) => i32::try_from(*value)?.to_sql(ty, out),
            (Self::Int(value), &Type::INT8) => value.to_sql(ty, out),
            (Self::Text(value), &Type::TEXT | &Type::VARCHAR) => value.to_sql(ty, out),
            (Self::Bytes(value), &Type::BYTEA) => value.to_sql(ty, out),
            (param, ty) => Err(format!("{param:?} does not fit a parameter of type {ty}").into()),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    postgres::types::to_sql_checked!();
}

fn row(row: &postgres::Row) -> Result<Row, Error> {
    let value = |(index, column): (usize, &postgres::Column)| {
        let value = match *column.type_() {
            Type::INT8 => row
                .try_get::<_, Option<i64>>(index)
                .map(|v| v.map(Value::Int)),
            Type::INT4 => row
                .try_get::<_, Option<i32>>(index)
                .map(|v| v.map(|v| Value::Int(v.into()))),
            Type::BOOL => row
                .try_get::<_, Option<bool>>(index)
                .map(|v| v.map(|v| Value::Int(v.into()))),
            Type::TEXT | Type::VARCHAR | Type::NAME => row
                .try_get::<_, Option<String>>(index)
                .map(|v| v.map(Value::Text)),
            Type::BYTEA => row
                .try_get::<_, Option<Vec<u8>>>(index)
                .map(|v| v.map(Value::Bytes)),
            _ => {
                return Err(Error::Store {
                    detail: format!("column {index} has the type {}; cast it", column.type_()),
                });
            }
        };
        value
            .map(|value| value.unwrap_or(Value::Null))
            .map_err(|error| Error::Store {
                detail: said(&error),
            })
    };
    let columns = row.columns().iter().enumerate();
    Ok(Row::new(columns.map(value).collect::<Result<_, _>>()?))
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_only_postgresql_understands_becomes_real() {
        assert_eq!(
            super::spelled("SELECT a FROM t WHERE b = $1 /*pg:FOR UPDATE*/ LIMIT 1/*pg: SKIP*/"),
            "SELECT a FROM t WHERE b = $1 FOR UPDATE LIMIT 1 SKIP"
        );
    }
}
