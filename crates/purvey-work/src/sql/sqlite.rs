//! The embedded store: one writer that commits what has gathered together, and a few readers.

use super::{
    Backend, Hub, Param, Row, Session, Value,
    job::{Job, Work, alike},
    schema,
};
use crate::error::Error;
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use parking_lot::{Condvar, Mutex};
use rusqlite::{Connection, ErrorCode, OpenFlags, Statement, types::ValueRef};
use std::{
    fs::{File, OpenOptions, TryLockError},
    path::{Path, PathBuf},
    sync::Arc,
    thread::JoinHandle,
    time::Duration,
};

/// Most jobs in one transaction: what waits behind it waits for all of them.
const GROUP: usize = 256;
/// Most jobs that wait; more are refused.
const WAITING: usize = 16_384;
/// Pages of the log that are moved to the database at once, 32 MiB: the more, the more of them are the same page again.
const CHECKPOINT: i64 = 8_192;
/// Most readers at once.
const READERS: usize = super::READS;

pub(super) struct Sqlite {
    writer: Arc<Mutex<Connection>>,
    /// None once the store is closing.
    jobs: Option<Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
    /// None in memory, where there is nothing to read but through the writer.
    readers: Option<Readers>,
    hub: Hub,
    _lock: Option<File>,
}

impl Sqlite {
    pub(super) fn open(path: &Path, hub: Hub) -> Result<Self, Error> {
        let lock = lock(path)?;
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "full")?;
        let readers = Readers {
            path: path.to_owned(),
            state: Mutex::default(),
            free: Condvar::new(),
        };
        Self::start(connection, Some(readers), hub, Some(lock))
    }

    pub(super) fn in_memory(hub: Hub) -> Result<Self, Error> {
        Self::start(Connection::open_in_memory()?, None, hub, None)
    }

    fn start(
        connection: Connection,
        readers: Option<Readers>,
        hub: Hub,
        lock: Option<File>,
    ) -> Result<Self, Error> {
        connection.pragma_update(None, "foreign_keys", true)?;
        keep_plans(&connection)?;
        connection.pragma_update(None, "cache_size", -65_536)?;
        // What a savepoint may have to undo would go to a file otherwise.
        connection.pragma_update(None, "temp_store", "memory")?;
        connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        connection.set_prepared_statement_cache_capacity(512);
        let writer = Arc::new(Mutex::new(connection));
        single(
            &writer.lock(),
            &mut |session| schema::migrate(session),
            &hub,
        )?;
        let (jobs, waiting) = bounded(WAITING);
        let thread = std::thread::Builder::new()
            .name("purvey-store".into())
            .spawn({
                let (writer, hub) = (writer.clone(), hub.clone());
                move || serve(&waiting, &writer, &hub)
            })
            .map_err(|error| store_error("its thread cannot be started", error))?;
        Ok(Self {
            writer,
            jobs: Some(jobs),
            thread: Some(thread),
            readers,
            hub,
            _lock: lock,
        })
    }
}

/// Lets no plan depend on a bound value: statements would be compiled again at each run for that.
fn keep_plans(connection: &Connection) -> Result<(), Error> {
    connection.set_db_config(
        rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG,
        true,
    )?;
    Ok(())
}

fn store_error(what: &str, error: impl std::fmt::Display) -> Error {
    Error::Store {
        detail: format!("{what}: {error}"),
    }
}

/// Two processes on one file would each count slots for itself.
fn lock(path: &Path) -> Result<File, Error> {
    let beside = path.with_extension("lock");
    let failed = |error| store_error(&format!("{} cannot be locked", beside.display()), error);
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&beside)
        .map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::Store {
            detail: format!(
                "{} is in use by another process; stop that one, or let several share a PostgreSQL database (--database)",
                path.display()
            ),
        }),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // It ends once it has answered what waits; a panic in it has been reported.
            let _ = thread.join();
        }
    }
}

impl Backend for Sqlite {
    fn submit(&self, _lane: Option<&str>, job: Box<dyn Job>) {
        let Some(jobs) = &self.jobs else { return };
        if let Err(TrySendError::Full(job)) = jobs.try_send(job) {
            job.answer(Err(Error::Unavailable {
                detail: format!("{WAITING} transactions wait already"),
            }));
        }
    }

    fn write(&self, work: Work<'_>) -> Result<(), Error> {
        single(&self.writer.lock(), work, &self.hub)
    }

    fn read(&self, work: Work<'_>) -> Result<(), Error> {
        match &self.readers {
            None => look(&self.writer.lock(), work),
            Some(readers) => {
                let connection = readers.take()?;
                let outcome = look(&connection, work);
                readers.give_back(connection);
                outcome
            }
        }
    }
}

/// Connections for reading, opened as they are needed.
struct Readers {
    path: PathBuf,
    state: Mutex<ReaderState>,
    free: Condvar,
}

#[derive(Default)]
struct ReaderState {
    idle: Vec<Connection>,
    open: usize,
}

impl Readers {
    fn take(&self) -> Result<Connection, Error> {
        let mut state = self.state.lock();
        loop {
            if let Some(connection) = state.idle.pop() {
                return Ok(connection);
            }
            if state.open < READERS {
                let connection =
                    Connection::open_with_flags(&self.path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
                connection.busy_timeout(Duration::from_secs(10))?;
                keep_plans(&connection)?;
                connection.set_prepared_statement_cache_capacity(256);
                state.open += 1;
                return Ok(connection);
            }
            self.free.wait(&mut state);
        }
    }

    fn give_back(&self, connection: Connection) {
        self.state.lock().idle.push(connection);
        self.free.notify_one();
    }
}

/// The writer's thread.
fn serve(waiting: &Receiver<Box<dyn Job>>, writer: &Mutex<Connection>, hub: &Hub) {
    while let Ok(first) = waiting.recv() {
        let connection = writer.lock();
        let mut group = vec![first];
        group.extend(waiting.try_iter().take(GROUP - 1));
        let fates = together(&connection, &mut group, hub);
        drop(connection);
        for (job, fate) in group.into_iter().zip(fates) {
            job.answer(fate);
        }
    }
}

/// Commits a group as one transaction, each job in a savepoint of its own; the fate of each.
fn together(
    connection: &Connection,
    group: &mut [Box<dyn Job>],
    hub: &Hub,
) -> Vec<Result<(), Error>> {
    if let [job] = group {
        return vec![single(connection, &mut |session| job.run(session), hub)];
    }
    let mut fates = Vec::with_capacity(group.len());
    let mut topics = Vec::new();
    let committed = (|| {
        run(connection, "BEGIN IMMEDIATE")?;
        for job in group.iter_mut() {
            run(connection, "SAVEPOINT job")?;
            let mut session = Transaction::new(connection);
            let outcome = job.run(&mut session);
            let fate = session.finish(outcome);
            if connection.is_autocommit() {
                // A full disk or a failing one has ended the transaction, with everybody in it.
                return Err(fate.err().unwrap_or_else(|| Error::Store {
                    detail: "a transaction ended by itself".into(),
                }));
            }
            match &fate {
                Ok(()) => topics.append(&mut session.topics),
                Err(_) => run(connection, "ROLLBACK TO job")?,
            }
            run(connection, "RELEASE job")?;
            fates.push(fate);
        }
        run(connection, "COMMIT")
    })();
    match committed {
        Ok(()) => {
            topics.iter().for_each(|topic| hub.publish(topic));
            fates
        }
        Err(error) => {
            undo(connection);
            let mut fates = fates.into_iter();
            // What was refused by itself stays refused for its own reason.
            let fate = |_| match fates.next() {
                Some(Err(own)) => Err(own),
                _ => Err(alike(&error)),
            };
            (0..group.len()).map(fate).collect()
        }
    }
}

/// Runs one piece of work in a transaction of its own.
fn single(connection: &Connection, work: Work<'_>, hub: &Hub) -> Result<(), Error> {
    run(connection, "BEGIN IMMEDIATE")?;
    let mut session = Transaction::new(connection);
    let outcome = work(&mut session);
    let outcome = session
        .finish(outcome)
        .and_then(|()| run(connection, "COMMIT"));
    match outcome {
        Ok(()) => session.topics.iter().for_each(|topic| hub.publish(topic)),
        Err(_) => undo(connection),
    }
    outcome
}

/// Runs one piece of work that only reads.
fn look(connection: &Connection, work: Work<'_>) -> Result<(), Error> {
    run(connection, "BEGIN")?;
    let mut session = Transaction::new(connection);
    let outcome = work(&mut session);
    let outcome = session.finish(outcome);
    undo(connection);
    outcome
}

fn run(connection: &Connection, sql: &str) -> Result<(), Error> {
    connection.prepare_cached(sql)?.raw_execute()?;
    Ok(())
}

fn undo(connection: &Connection) {
    if !connection.is_autocommit()
        && let Err(error) = run(connection, "ROLLBACK")
    {
        tracing::error!(%error, "a transaction could not be rolled back");
    }
}

struct Transaction<'a> {
    connection: &'a Connection,
    topics: Vec<String>,
    failed: bool,
}

impl<'a> Transaction<'a> {
    fn new(connection: &'a Connection) -> Self {
        Self {
            connection,
            topics: Vec::new(),
            failed: false,
        }
    }

    /// A failed statement fails its transaction even if whoever ran it went on.
    fn finish(&self, outcome: Result<(), Error>) -> Result<(), Error> {
        outcome?;
        if self.failed {
            return Err(Error::Store {
                detail: "a statement of the transaction failed".into(),
            });
        }
        Ok(())
    }

    fn noted<T>(&mut self, result: Result<T, Error>) -> Result<T, Error> {
        self.failed |= result.is_err();
        result
    }
}

impl Session for Transaction<'_> {
    fn execute(&mut self, sql: &str, params: &[Param<'_>]) -> Result<u64, Error> {
        let result = execute(self.connection, sql, params);
        self.noted(result)
    }

    fn query(&mut self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Error> {
        let result = query(self.connection, sql, params);
        self.noted(result)
    }

    fn notify(&mut self, topic: &str) -> Result<(), Error> {
        if !self.topics.iter().any(|known| known == topic) {
            self.topics.push(topic.to_owned());
        }
        Ok(())
    }
}

fn execute(connection: &Connection, sql: &str, params: &[Param<'_>]) -> Result<u64, Error> {
    let mut statement = connection.prepare_cached(&spelled(sql))?;
    bind(&mut statement, params)?;
    Ok(statement.raw_execute()? as u64)
}

fn query(connection: &Connection, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Error> {
    let mut statement = connection.prepare_cached(&spelled(sql))?;
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
        let detail = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::DiskFull) => {
                Self::Unavailable { detail }
            }
            _ => Self::Store { detail },
        }
    }
}
