//! A consistent read of the store.

use super::{Tree, table};
use crate::error::Error;
use purvey_odp::identity::ResourceType;
use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension, Transaction};
use serde::Deserialize;

/// Where the store stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Number of the newest change.
    pub seq: u64,
    /// Changes whenever every document must be rendered again.
    pub epoch: u64,
    /// Every tombstone up to this change may be gone: an index older than it cannot be brought up to date, only rebuilt.
    pub purged: u64,
    /// The change that brought the manifest.
    pub manifest_seq: u64,
}

/// One record as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its last change.
    pub seq: u64,
    /// The record as JSON; `None`: it was deleted.
    pub body: Option<Vec<u8>>,
}

/// One record while rows are walked.
#[derive(Clone, Copy, Debug)]
pub struct RowRef<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its last change.
    pub seq: u64,
    /// The record as JSON; `None`: it was deleted.
    pub body: Option<&'a [u8]>,
}

/// A read transaction: everything in it is of one moment.
#[derive(Debug)]
pub struct Read<'a> {
    tx: Transaction<'a>,
}

impl<'a> Read<'a> {
    pub(super) fn begin(connection: &'a mut Connection) -> Result<Self, Error> {
        let tx = connection.transaction()?;
        // The snapshot is taken by the first read.
        meta::<u64>(&tx, "seq")?;
        Ok(Self { tx })
    }

    /// Where the store stands.
    ///
    /// # Errors
    /// SQLite's own failures.
    pub fn head(&self) -> Result<Head, Error> {
        head(&self.tx)
    }

    /// The manifest as stored.
    ///
    /// # Errors
    /// SQLite's own failures.
    pub fn manifest(&self) -> Result<Vec<u8>, Error> {
        meta(&self.tx, "manifest")
    }

    /// One record; also a tombstone.
    ///
    /// # Errors
    /// SQLite's own failures.
    pub fn record(&self, kind: ResourceType, id: &str) -> Result<Option<Row>, Error> {
        record(&self.tx, kind, id)
    }

    /// How many rows changed after `since`.
    ///
    /// # Errors
    /// SQLite's own failures.
    pub fn changed(&self, kind: ResourceType, since: u64) -> Result<u64, Error> {
        let table = table(kind);
        let sql = format!("SELECT count(*) FROM {table} INDEXED BY {table}_seq WHERE seq > ?1");
        Ok(self.tx.query_row(&sql, [since], |row| row.get(0))?)
    }

    /// Every live record, in id order (bytes).
    ///
    /// # Errors
    /// SQLite's own failures, and the first error of `each`.
    pub fn live(
        &self,
        kind: ResourceType,
        each: impl FnMut(RowRef<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let sql = format!(
            "SELECT id, seq, body FROM {} WHERE body IS NOT NULL AND +seq > ?1 ORDER BY id",
            table(kind)
        );
        self.walk(&sql, 0, each)
    }

    /// Every row changed after `since`, tombstones too, in id order (bytes).
    ///
    /// # Errors
    /// SQLite's own failures, and the first error of `each`.
    pub fn changes(
        &self,
        kind: ResourceType,
        since: u64,
        each: impl FnMut(RowRef<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let table = table(kind);
        let changed = self.changed(kind, since)?;
        if changed == 0 {
            return Ok(());
        }
        // Few changes: by the index, then sorted. Many (an import): one scan in key order instead of a sort of everything.
        let sql = if changed > 20_000 {
            format!("SELECT id, seq, body FROM {table} WHERE +seq > ?1 ORDER BY id")
        } else {
            format!(
                "SELECT id, seq, body FROM {table} INDEXED BY {table}_seq WHERE seq > ?1 ORDER BY id"
            )
        };
        self.walk(&sql, since, each)
    }

    /// Whether there are tombstones up to change `covered`.
    ///
    /// # Errors
    /// SQLite's own failures.
    pub fn has_tombstones(&self, covered: u64) -> Result<bool, Error> {
        for table in ["offerings", "collections"] {
            let sql = format!(
                "SELECT 1 FROM {table} INDEXED BY {table}_dead WHERE body IS NULL AND seq <= ?1 LIMIT 1"
            );
            if self.tx.prepare_cached(&sql)?.exists([covered])? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The Collection hierarchy.
    ///
    /// # Errors
    /// SQLite's own failures.
    pub fn tree(&self) -> Result<Tree, Error> {
        tree(&self.tx)
    }

    fn walk(
        &self,
        sql: &str,
        since: u64,
        each: impl FnMut(RowRef<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        walk(&self.tx, sql, since, each)
    }
}

pub(super) fn walk(
    connection: &Connection,
    sql: &str,
    since: u64,
    mut each: impl FnMut(RowRef<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([since])?;
    while let Some(row) = rows.next()? {
        each(RowRef {
            id: row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?,
            seq: row.get(1)?,
            body: row
                .get_ref(2)?
                .as_blob_or_null()
                .map_err(rusqlite::Error::from)?,
        })?;
    }
    Ok(())
}

pub(super) fn meta<T: FromSql>(connection: &Connection, key: &str) -> Result<T, Error> {
    Ok(connection
        .prepare_cached("SELECT value FROM meta WHERE key = ?1")?
        .query_row([key], |row| row.get(0))?)
}

pub(super) fn head(connection: &Connection) -> Result<Head, Error> {
    Ok(Head {
        seq: meta(connection, "seq")?,
        epoch: meta(connection, "epoch")?,
        purged: meta(connection, "purged")?,
        manifest_seq: meta(connection, "manifest_seq")?,
    })
}

pub(super) fn record(
    connection: &Connection,
    kind: ResourceType,
    id: &str,
) -> Result<Option<Row>, Error> {
    let sql = format!("SELECT seq, body FROM {} WHERE id = ?1", table(kind));
    Ok(connection
        .prepare_cached(&sql)?
        .query_row([id], |row| {
            Ok(Row {
                seq: row.get(0)?,
                body: row.get(1)?,
            })
        })
        .optional()?)
}

pub(super) fn tree(connection: &Connection) -> Result<Tree, Error> {
    let mut tree = Tree::default();
    let sql = "SELECT id, seq, body FROM collections WHERE body IS NOT NULL AND +seq > ?1";
    walk(connection, sql, 0, |row| {
        if let Some(body) = row.body {
            tree.insert(row.id, References::read(row.id, body)?.parent_ids);
        }
        Ok(())
    })?;
    Ok(tree)
}

/// What a stored record points at.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct References {
    /// An Offering's Collections.
    #[serde(default)]
    pub(crate) collection_ids: Vec<String>,
    /// A Collection's parents.
    #[serde(default)]
    pub(crate) parent_ids: Vec<String>,
}

impl References {
    /// Reads them from a stored record.
    pub(crate) fn read(id: &str, body: &[u8]) -> Result<Self, Error> {
        serde_json::from_slice(body).map_err(|e| Error::Corrupt {
            path: super::FILE.into(),
            detail: format!("record {id}: {e}"),
        })
    }
}
