//! One transaction at a time over either store: the few words of SQL that both dialects share.
//!
//! Statements are written once: parameters are `$1`, `$2`, …, and what only PostgreSQL understands stands in `/*pg: … */`, a comment to
//! SQLite. Numbers are `BIGINT`, truth is 0 or 1, times are milliseconds, structured values are JSON text.

mod schema;
mod sqlite;

use crate::error::Error;
use std::{path::Path, sync::Arc};

/// A parameter of a statement.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Param<'a> {
    Null,
    Int(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// One row of an answer, by position of the columns asked for.
#[derive(Clone, Debug)]
pub(crate) struct Row(Vec<Value>);

/// A transaction. What it wrote is durable when, and only when, the call that was given it returns `Ok`.
pub(crate) trait Session {
    /// Runs a statement; how many rows it changed.
    fn execute(&mut self, sql: &str, params: &[Param<'_>]) -> Result<u64, Error>;

    /// Runs a statement and takes its rows.
    fn query(&mut self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Error>;

    /// Tells whoever waits for news of `topic` (a run's id, or a topic of `notice`) once this is durable.
    fn notify(&mut self, topic: &str) -> Result<(), Error>;

    /// The only row, if there is one.
    fn row(&mut self, sql: &str, params: &[Param<'_>]) -> Result<Option<Row>, Error> {
        Ok(self.query(sql, params)?.into_iter().next())
    }
}

/// Where everything of the run platform is kept. Clones share one store.
#[derive(Clone)]
pub struct Store(Arc<dyn Backend>);

type Job<'a> = &'a mut dyn FnMut(&mut dyn Session) -> Result<(), Error>;

trait Backend: Send + Sync {
    /// Runs `job` in a transaction that may write; it may be run again from the start when the store asks for it.
    fn write(&self, job: Job<'_>) -> Result<(), Error>;

    /// Runs `job` over one state of the store.
    fn read(&self, job: Job<'_>) -> Result<(), Error>;
}

impl Store {
    /// Opens or makes the embedded store in a file.
    ///
    /// # Errors
    /// [`Error::Store`] when the file cannot be used, or was written by a newer Purvey.
    pub fn sqlite(path: &Path) -> Result<Self, Error> {
        Ok(Self(Arc::new(sqlite::Sqlite::open(path)?)))
    }

    /// Runs `job` in one transaction and waits; a failure leaves nothing of it behind. It may be run more than once.
    pub(crate) fn write_now<T>(
        &self,
        mut job: impl FnMut(&mut dyn Session) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut answer = None;
        self.0.write(&mut |session| {
            answer = Some(job(session)?);
            Ok(())
        })?;
        answer.ok_or_else(|| Error::Store {
            detail: "a transaction ended without an answer".into(),
        })
    }

    /// Runs `job` over one state of the store and waits.
    pub(crate) fn read_now<T>(
        &self,
        mut job: impl FnMut(&mut dyn Session) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut answer = None;
        self.0.read(&mut |session| {
            answer = Some(job(session)?);
            Ok(())
        })?;
        answer.ok_or_else(|| Error::Store {
            detail: "a transaction ended without an answer".into(),
        })
    }

    /// [`Self::write_now`] for callers that must not block.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        job: impl FnMut(&mut dyn Session) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let store = self.clone();
        join(tokio::task::spawn_blocking(move || store.write_now(job)).await)
    }

    /// [`Self::read_now`] for callers that must not block.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        job: impl FnMut(&mut dyn Session) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let store = self.clone();
        join(tokio::task::spawn_blocking(move || store.read_now(job)).await)
    }
}

fn join<T>(joined: Result<Result<T, Error>, tokio::task::JoinError>) -> Result<T, Error> {
    joined.unwrap_or_else(|error| {
        Err(Error::Store {
            detail: error.to_string(),
        })
    })
}

impl Row {
    pub(crate) fn new(values: Vec<Value>) -> Self {
        Self(values)
    }

    pub(crate) fn int(&self, column: usize) -> Result<i64, Error> {
        self.opt_int(column)?.ok_or_else(|| unexpected(column))
    }

    pub(crate) fn opt_int(&self, column: usize) -> Result<Option<i64>, Error> {
        match self.0.get(column) {
            Some(Value::Int(value)) => Ok(Some(*value)),
            Some(Value::Null) => Ok(None),
            _ => Err(unexpected(column)),
        }
    }

    pub(crate) fn text(&self, column: usize) -> Result<&str, Error> {
        self.opt_text(column)?.ok_or_else(|| unexpected(column))
    }

    pub(crate) fn opt_text(&self, column: usize) -> Result<Option<&str>, Error> {
        match self.0.get(column) {
            Some(Value::Text(value)) => Ok(Some(value)),
            Some(Value::Null) => Ok(None),
            _ => Err(unexpected(column)),
        }
    }

    pub(crate) fn bytes(&self, column: usize) -> Result<&[u8], Error> {
        match self.0.get(column) {
            Some(Value::Bytes(value)) => Ok(value),
            _ => Err(unexpected(column)),
        }
    }

    /// A column that holds JSON or an identifier, read as `T`.
    pub(crate) fn parsed<T: std::str::FromStr>(&self, column: usize) -> Result<T, Error> {
        self.text(column)?.parse().map_err(|_| unexpected(column))
    }

    /// A column that holds JSON, if it is not null.
    pub(crate) fn json<T: serde::de::DeserializeOwned>(
        &self,
        column: usize,
    ) -> Result<Option<T>, Error> {
        self.opt_text(column)?
            .map(|text| serde_json::from_str(text).map_err(|_| unexpected(column)))
            .transpose()
    }
}

fn unexpected(column: usize) -> Error {
    Error::Store {
        detail: format!("column {column} of a row does not hold what it should"),
    }
}
