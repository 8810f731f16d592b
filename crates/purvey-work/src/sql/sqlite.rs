//! The embedded store.

use super::{Backend, Job, Param, Row, Session, Value, schema};
use crate::error::Error;
use parking_lot::Mutex;
use rusqlite::{Connection, Statement, types::ValueRef};
use std::path::Path;

pub(super) struct Sqlite {
    writer: Mutex<Connection>,
}

impl Sqlite {
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "full")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.busy_timeout(std::time::Duration::from_secs(10))?;
        connection.set_prepared_statement_cache_capacity(256);
        let sqlite = Self {
            writer: Mutex::new(connection),
        };
        sqlite.write(&mut |session| schema::migrate(session))?;
        Ok(sqlite)
    }
}

impl Backend for Sqlite {
    fn write(&self, job: Job<'_>) -> Result<(), Error> {
        let mut connection = self.writer.lock();
        let transaction =
            connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        job(&mut Transaction(&transaction))?;
        transaction.commit()?;
        Ok(())
    }

    fn read(&self, job: Job<'_>) -> Result<(), Error> {
        let mut connection = self.writer.lock();
        let transaction = connection.transaction()?;
        job(&mut Transaction(&transaction))
    }
}

struct Transaction<'a>(&'a Connection);

impl Session for Transaction<'_> {
    fn execute(&mut self, sql: &str, params: &[Param<'_>]) -> Result<u64, Error> {
        let mut statement = self.0.prepare_cached(&spelled(sql))?;
        bind(&mut statement, params)?;
        Ok(statement.raw_execute()? as u64)
    }

    fn query(&mut self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Error> {
        let mut statement = self.0.prepare_cached(&spelled(sql))?;
        bind(&mut statement, params)?;
        let columns = statement.column_count();
        let mut rows = statement.raw_query();
        let mut answer = Vec::new();
        while let Some(row) = rows.next()? {
            let value = |column| {
                Ok(match row.get_ref(column)? {
                    ValueRef::Null => Value::Null,
                    ValueRef::Integer(value) => Value::Int(value),
                    ValueRef::Text(value) => Value::Text(String::from_utf8_lossy(value).into()),
                    ValueRef::Blob(value) => Value::Bytes(value.to_vec()),
                    ValueRef::Real(_) => {
                        return Err(Error::Store {
                            detail: "a column holds a floating-point number".into(),
                        });
                    }
                })
            };
            answer.push(Row::new(
                (0..columns).map(value).collect::<Result<_, Error>>()?,
            ));
        }
        Ok(answer)
    }

    fn notify(&mut self, _topic: &str) -> Result<(), Error> {
        Ok(())
    }
}

/// SQLite numbers `?1`; a `$1` would be a name.
fn spelled(sql: &str) -> String {
    sql.replace('$', "?")
}

fn bind(statement: &mut Statement<'_>, params: &[Param<'_>]) -> Result<(), Error> {
    for (index, param) in params.iter().enumerate() {
        let at = index + 1;
        match param {
            Param::Null => statement.raw_bind_parameter(at, rusqlite::types::Null)?,
            Param::Int(value) => statement.raw_bind_parameter(at, value)?,
            Param::Text(value) => statement.raw_bind_parameter(at, value)?,
            Param::Bytes(value) => statement.raw_bind_parameter(at, value)?,
        }
    }
    Ok(())
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store {
            detail: error.to_string(),
        }
    }
}
