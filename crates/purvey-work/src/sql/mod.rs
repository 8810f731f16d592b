//! One transaction at a time over either store: the few words of SQL that both dialects share.
//!
//! Statements are written once: parameters are `$1`, `$2`, …, and what only PostgreSQL understands stands in `/*pg: … */`, a comment to
//! SQLite. Numbers are `BIGINT` (a sum is cast), truth is 0 or 1, times are milliseconds, structured values are JSON text. A statement
//! that fails fails its whole transaction, on both stores: what may be there already is written with `ON CONFLICT DO NOTHING`.

mod gate;
mod hub;
mod job;
mod postgres;
mod row;
mod schema;
mod sqlite;
#[cfg(test)]
mod tests;
mod tls;
mod values;

pub(crate) use gate::Gate;
pub use hub::{Hub, Watch};
pub(crate) use row::{Row, Value};
pub(crate) use values::{ROWS, parts, values};

use crate::error::Error;
use job::{Job, Typed, Work};
use std::{path::Path, sync::Arc, time::Duration};
use tokio::{sync::Semaphore, time::timeout};

/// A parameter of a statement.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Param<'a> {
    Null,
    Int(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl<'a> From<Option<&'a str>> for Param<'a> {
    fn from(text: Option<&'a str>) -> Self {
        text.map_or(Self::Null, Self::Text)
    }
}

impl From<Option<i64>> for Param<'_> {
    fn from(number: Option<i64>) -> Self {
        number.map_or(Self::Null, Self::Int)
    }
}

impl From<bool> for Param<'_> {
    fn from(truth: bool) -> Self {
        Self::Int(i64::from(truth))
    }
}

/// A transaction. What it wrote is durable when, and only when, the call that was given it returns `Ok`.
pub(crate) trait Session {
    /// Runs a statement; how many rows it changed.
    fn execute(&mut self, sql: &str, params: &[Param<'_>]) -> Result<u64, Error>;

    /// Runs a statement and takes its rows.
    fn query(&mut self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Error>;

    /// Tells whoever waits for news of `topic`, an identifier or another word without spaces, once this is durable.
    fn notify(&mut self, topic: &str) -> Result<(), Error>;

    /// The only row, if there is one.
    fn row(&mut self, sql: &str, params: &[Param<'_>]) -> Result<Option<Row>, Error> {
        Ok(self.query(sql, params)?.into_iter().next())
    }
}

/// Where everything of the run platform is kept. Clones share one store.
#[derive(Clone)]
pub struct Store {
    backend: Arc<dyn Backend>,
    hub: Hub,
    one_writer: bool,
    /// As many reads as there are connections for them: more would only hold threads.
    reads: Arc<Semaphore>,
}

/// Reads at once.
const READS: usize = 4;
/// How long an answer is waited for. A store that is down says so sooner; one that says nothing at all is given up.
const ANSWER: Duration = Duration::from_secs(30);

trait Backend: Send + Sync {
    /// Takes a job that may write. Jobs of one lane, for example a workspace, may share a transaction; each still succeeds or fails by itself.
    fn submit(&self, lane: Option<&str>, job: Box<dyn Job>);

    /// Runs `work` in a transaction of its own that may write; it may be run again from the start when the store asks for it.
    fn write(&self, work: Work<'_>) -> Result<(), Error>;

    /// Runs `work` over one state of the store.
    fn read(&self, work: Work<'_>) -> Result<(), Error>;
}

impl Store {
    /// Opens or makes the embedded store in a file; beside it stands a `.lock` file.
    ///
    /// # Errors
    /// [`Error::Store`] when the file cannot be used, is in use by another process, or was written by a newer Purvey.
    pub fn sqlite(path: &Path) -> Result<Self, Error> {
        let hub = Hub::local();
        let backend = Arc::new(sqlite::Sqlite::open(path, hub.clone())?);
        Ok(Self::over(backend, hub, true))
    }

    /// An embedded store in memory, gone with its last clone: for tests and simulations.
    ///
    /// # Errors
    /// [`Error::Store`] when there is no memory for it.
    pub fn in_memory() -> Result<Self, Error> {
        let hub = Hub::local();
        let backend = Arc::new(sqlite::Sqlite::in_memory(hub.clone())?);
        Ok(Self::over(backend, hub, true))
    }

    /// Opens the store in a PostgreSQL database (`postgres://…`), which several nodes may share. Blocks while it connects.
    ///
    /// `sslmode` means what it means to `libpq`: `disable`, `prefer` (the default; encrypted if the server can, unverified), `require`
    /// (encrypted, unverified), `verify-full` (the server's certificate is verified, against `sslrootcert` or else the platform's roots).
    ///
    /// # Errors
    /// [`Error::Store`] when the address is no such address or a newer Purvey has written it, [`Error::Unavailable`] when the server
    /// cannot be reached within ten seconds.
    pub fn postgres(url: &str) -> Result<Self, Error> {
        let hub = Hub::shared();
        // On a thread of its own: the client cannot be used on one that serves a runtime.
        let opened = std::thread::scope(|scope| {
            let open = scope.spawn(|| postgres::Postgres::open(url, hub.clone()));
            open.join().unwrap_or_else(|_| Err(job::ended()))
        });
        let backend = Arc::new(opened?);
        Ok(Self::over(backend, hub, false))
    }

    fn over(backend: Arc<dyn Backend>, hub: Hub, one_writer: bool) -> Self {
        Self {
            backend,
            hub,
            one_writer,
            reads: Arc::new(Semaphore::new(READS)),
        }
    }

    /// Where to wait for news.
    #[must_use]
    pub fn hub(&self) -> &Hub {
        &self.hub
    }

    /// Whether one transaction at a time is all that it does, whatever it concerns.
    fn has_one_writer(&self) -> bool {
        self.one_writer
    }

    /// Runs `job` in one transaction and waits; a failure leaves nothing of it behind. It may be run more than once.
    pub(crate) fn write_now<T>(
        &self,
        job: impl FnMut(&mut dyn Session) -> Result<T, Error>,
    ) -> Result<T, Error> {
        answered(job, |work| self.backend.write(work))
    }

    /// Runs `job` over one state of the store and waits.
    pub(crate) fn read_now<T>(
        &self,
        job: impl FnMut(&mut dyn Session) -> Result<T, Error>,
    ) -> Result<T, Error> {
        answered(job, |work| self.backend.read(work))
    }

    /// Runs `job` in one transaction; a failure leaves nothing of it behind. It may be run more than once.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        job: impl FnMut(&mut dyn Session) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.submit(None, job).await
    }

    /// [`Self::write`] of a job that concerns the workspace `lane`: such jobs may share a transaction, which begins by locking the workspace.
    pub(crate) async fn write_in<T: Send + 'static>(
        &self,
        lane: &str,
        job: impl FnMut(&mut dyn Session) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.submit(Some(lane), job).await
    }

    async fn submit<T: Send + 'static>(
        &self,
        lane: Option<&str>,
        job: impl FnMut(&mut dyn Session) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (job, answer) = Typed::new(job);
        self.backend.submit(lane, Box::new(job));
        match timeout(ANSWER, answer).await {
            Ok(answer) => answer.unwrap_or_else(|_| Err(job::ended())),
            Err(_) => Err(silent()),
        }
    }

    /// [`Self::read_now`] for callers that must not block.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        job: impl FnMut(&mut dyn Session) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let store = self.clone();
        let read = async {
            // It is never closed. A read that is given up keeps its place until it ends.
            let permit = self.reads.clone().acquire_owned().await;
            let read = move || {
                let _permit = permit;
                store.read_now(job)
            };
            tokio::task::spawn_blocking(read).await
        };
        let Ok(joined) = timeout(ANSWER, read).await else {
            return Err(silent());
        };
        joined.unwrap_or_else(|error| {
            Err(Error::Store {
                detail: error.to_string(),
            })
        })
    }
}

fn silent() -> Error {
    Error::Unavailable {
        detail: format!("it did not answer within {} seconds", ANSWER.as_secs()),
    }
}

fn answered<T>(
    mut job: impl FnMut(&mut dyn Session) -> Result<T, Error>,
    run: impl FnOnce(Work<'_>) -> Result<(), Error>,
) -> Result<T, Error> {
    let mut answer = None;
    run(&mut |session| {
        answer = Some(job(session)?);
        Ok(())
    })?;
    answer.ok_or_else(job::ended)
}
