//! The record store: what was acknowledged, durably, in SQLite (`DATA/records.db`).
//!
//! Every committed change carries a **seq**; `head` is the newest. A deletion leaves a tombstone (a row without a body) until a
//! published generation covers it. The store knows no rendering and no generations beyond their numbers.

mod read;
mod tree;
mod write;
mod writer;

pub(crate) use read::References;
pub use read::{Head, Read, Row, RowRef};
pub use tree::Tree;
pub use write::{Put, Write};
pub(crate) use write::{check_collections, hold};
pub use writer::Writer;

use crate::error::Error;
use crate::fs::Durability;
use purvey_odp::identity::ResourceType;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Format of the database; a newer one is refused.
pub const FORMAT: u32 = 1;
/// Name of the database in the data directory.
pub const FILE: &str = "records.db";
/// Seconds after which a writer that found the store busy should try again.
const RETRY_AFTER_SECONDS: u64 = 2;
/// How long opening waits for another process that opens at the same moment.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

/// One connection to the record store of a data directory.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
    /// The manifest that a store begins with.
    first: Vec<u8>,
}

impl Store {
    /// Opens the store in `dir`, creating it (with `manifest` as its first change) when it is missing.
    /// A write waits `busy_timeout` for another process's write.
    ///
    /// # Errors
    /// A newer format, a file that is no store, or SQLite's own failures.
    pub fn open(
        dir: &Path,
        busy_timeout: Duration,
        durability: &Durability,
        manifest: &[u8],
    ) -> Result<Self, Error> {
        let mut store = Self::open_uncreated(dir, busy_timeout, durability, manifest)?;
        if store.format()?.is_none() {
            store.connection.busy_timeout(OPEN_TIMEOUT)?;
            store.write()?.commit()?;
            // SQLite makes the contents durable, not the name of a new database.
            durability.sync_dir(dir)?;
            store.connection.busy_timeout(busy_timeout)?;
        }
        Ok(store)
    }

    /// As [`Store::open`], but a missing store is created by the first write that is committed: without one there is none, whatever
    /// file is left. Only [`Store::write`] may be called before.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_uncreated(
        dir: &Path,
        busy_timeout: Duration,
        durability: &Durability,
        manifest: &[u8],
    ) -> Result<Self, Error> {
        let path = dir.join(FILE);
        let connection = Connection::open(&path)?;
        connection.busy_timeout(OPEN_TIMEOUT)?;
        // The page size only takes effect before the first page is written.
        connection.pragma_update(None, "page_size", 16_384)?;
        connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "cache_size", -16_384)?;
        connection.set_prepared_statement_cache_capacity(32);
        let store = Self {
            connection,
            path,
            first: manifest.to_vec(),
        };
        store.format()?;
        store.settle(dir, durability)?;
        store.connection.busy_timeout(busy_timeout)?;
        Ok(store)
    }

    /// Opens the store of `dir` when there is one, for reading only.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_existing(dir: &Path) -> Result<Option<Self>, Error> {
        let path = dir.join(FILE);
        if !path.exists() {
            return Ok(None);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&path, flags)?;
        connection.busy_timeout(OPEN_TIMEOUT)?;
        let store = Self {
            connection,
            path,
            first: Vec::new(),
        };
        Ok(store.format()?.map(|_| store))
    }

    /// Makes durable what is there to be read. SQLite takes over commits that a killed process had written and not yet synced;
    /// a generation built upon them would outlive them at a power failure.
    fn settle(&self, dir: &Path, durability: &Durability) -> Result<(), Error> {
        for path in [self.log_path(), self.path.clone()] {
            match File::open(&path) {
                Ok(file) => durability.sync_file(&file, &path)?,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(Error::io(&path)(error)),
            }
        }
        durability.sync_dir(dir)
    }

    fn log_path(&self) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push("-wal");
        path.into()
    }

    fn format(&self) -> Result<Option<u32>, Error> {
        if !has_meta(&self.connection)? {
            return Ok(None);
        }
        let found: u32 = read::meta(&self.connection, "format")?;
        if found > FORMAT {
            return Err(Error::Format {
                path: self.path.clone(),
                found,
                supported: FORMAT,
            });
        }
        Ok(Some(found))
    }

    /// A consistent view of everything committed so far.
    ///
    /// # Errors
    /// SQLite's own failures.
    pub fn read(&mut self) -> Result<Read<'_>, Error> {
        Read::begin(&mut self.connection)
    }

    /// The only write transaction there is, over all processes; dropped without [`Write::commit`] it leaves no trace.
    ///
    /// # Errors
    /// [`Error::Busy`] while somebody else writes.
    pub fn write(&mut self) -> Result<Write<'_>, Error> {
        Write::begin(&mut self.connection, &self.first)
    }

    /// Lets this connection keep `bytes` of pages in memory; for imports.
    ///
    /// # Errors
    /// SQLite's own failures.
    pub fn set_cache(&self, bytes: u32) -> Result<(), Error> {
        let kib = i64::from(bytes / 1024);
        Ok(self
            .connection
            .pragma_update(None, "cache_size", -kib.max(64))?)
    }

    /// Moves the log into the database and truncates it, as far as readers allow.
    ///
    /// # Errors
    /// SQLite's own failures.
    pub fn checkpoint(&self) -> Result<(), Error> {
        Ok(self
            .connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?)
    }

    /// Structural faults that SQLite finds in the database, at most `limit`; none: it is whole.
    ///
    /// # Errors
    /// SQLite's own failures.
    pub fn integrity_faults(&self, limit: u32) -> Result<Vec<String>, Error> {
        let mut statement = self
            .connection
            .prepare(&format!("PRAGMA integrity_check({limit})"))?;
        let lines = statement
            .query_map([], |row| row.get::<_, String>(0))?
            .collect::<Result<Vec<_>, _>>()?;
        Ok(lines.into_iter().filter(|line| line != "ok").collect())
    }

    /// Bytes of the database and its log on disk.
    pub fn disk_bytes(&self) -> u64 {
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |m| m.len());
        size(&self.path) + size(&self.log_path())
    }
}

/// Rows are keyed by id without a rowid: a list in id order is one sequential scan, and a record one look-up.
const SCHEMA: &str = "
CREATE TABLE meta(key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
CREATE TABLE offerings(id TEXT PRIMARY KEY, seq INTEGER NOT NULL, body BLOB) WITHOUT ROWID;
CREATE TABLE collections(id TEXT PRIMARY KEY, seq INTEGER NOT NULL, body BLOB) WITHOUT ROWID;
CREATE INDEX offerings_seq ON offerings(seq);
CREATE INDEX collections_seq ON collections(seq);
CREATE INDEX offerings_dead ON offerings(seq) WHERE body IS NULL;
CREATE INDEX collections_dead ON collections(seq) WHERE body IS NULL;
";

/// Makes a store in an empty database. Another process may have done so while this one waited for the lock.
fn create(connection: &Connection, manifest: &[u8]) -> Result<(), Error> {
    if has_meta(connection)? {
        return Ok(());
    }
    connection.execute_batch(SCHEMA)?;
    let mut meta = connection.prepare("INSERT INTO meta(key, value) VALUES (?1, ?2)")?;
    meta.execute(("format", FORMAT))?;
    meta.execute(("seq", 1))?;
    meta.execute(("epoch", 1))?;
    meta.execute(("purged", 0))?;
    meta.execute(("manifest", manifest))?;
    meta.execute(("manifest_seq", 1))?;
    Ok(())
}

fn has_meta(connection: &Connection) -> Result<bool, Error> {
    Ok(connection
        .prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'meta'")?
        .exists([])?)
}

/// The table of a resource type; index names are derived from it.
pub(crate) fn table(kind: ResourceType) -> &'static str {
    match kind {
        ResourceType::Collection => "collections",
        ResourceType::Offering => "offerings",
    }
}

/// Names what SQLite's lock answers mean here.
pub(crate) fn busy(error: rusqlite::Error) -> Error {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Busy {
            retry_after_seconds: RETRY_AFTER_SECONDS,
        },
        _ => Error::Store(error),
    }
}
