//! The write transaction: one at a time, over all processes.

use super::read::{self, Head, References, Row, RowRef};
use super::{Tree, busy, table};
use crate::catalog::{Precondition, Written};
use crate::error::Error;
use crate::record::Record;
use purvey_odp::identity::ResourceType;
use purvey_odp::report::{Invalid, Place, Report};
use rusqlite::{Connection, Transaction, TransactionBehavior};

/// A record ready to be stored: validated, with what it points at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    /// Collection or Offering.
    pub kind: ResourceType,
    /// Its id.
    pub id: String,
    /// The record as JSON.
    pub body: Vec<u8>,
    /// An Offering's `collection_ids`, a Collection's `parent_ids`.
    pub references: Vec<String>,
}

impl Put {
    /// The stored form of a validated record.
    pub fn of(record: &Record) -> Self {
        Self {
            kind: record.kind(),
            id: record.id().to_owned(),
            body: record.to_stored_bytes(),
            references: record.collection_ids().map(str::to_owned).collect(),
        }
    }
}

/// The write transaction. What it does becomes visible, and durable, with [`Write::commit`]; dropped, it never happened.
#[derive(Debug)]
pub struct Write<'a> {
    tx: Transaction<'a>,
    head: Head,
    before: Head,
    tree: Option<Tree>,
}

impl<'a> Write<'a> {
    /// Begins it; in a database that is no store yet, a store with the manifest `first` is part of it.
    pub(super) fn begin(connection: &'a mut Connection, first: &[u8]) -> Result<Self, Error> {
        let tx = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(busy)?;
        super::create(&tx, first)?;
        let head = read::head(&tx)?;
        Ok(Self {
            tx,
            before: head.clone(),
            head,
            tree: None,
        })
    }

    /// Where the store stands inside this transaction.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The manifest as stored.
    ///
    /// # Errors
    /// SQLite's own failures.
    pub fn manifest(&self) -> Result<Vec<u8>, Error> {
        read::meta(&self.tx, "manifest")
    }

    /// Takes the next number; every record written until the next call carries it.
    pub fn advance(&mut self) -> u64 {
        self.head.seq += 1;
        self.head.seq
    }

    /// Starts a new epoch: every document is rendered again.
    pub fn renew(&mut self) {
        self.head.epoch += 1;
    }

    /// Goes past generations that were published from a newer state of the store than this one.
    pub fn leap(&mut self, number: u64, epoch: u64) {
        self.head.seq = self.head.seq.max(number) + 1;
        self.head.epoch = self.head.epoch.max(epoch) + 1;
    }

    /// Stores the manifest, at the present number.
    ///
    /// # Errors
    /// SQLite's own failures.
    pub fn set_manifest(&mut self, manifest: &[u8]) -> Result<(), Error> {
        self.head.manifest_seq = self.head.seq;
        self.set_meta("manifest", manifest)
    }

    /// Runs `step`; when it fails, nothing of it remains in the transaction.
    ///
    /// # Errors
    /// Those of `step`.
    pub fn step<T>(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let head = self.head.clone();
        self.tx.execute_batch("SAVEPOINT step")?;
        let result = step(self);
        if result.is_err() {
            self.head = head;
            self.tree = None;
            self.tx.execute_batch("ROLLBACK TO step")?;
        }
        self.tx.execute_batch("RELEASE step")?;
        result
    }

    /// One record; also a tombstone.
    ///
    /// # Errors
    /// SQLite's own failures.
    pub fn record(&self, kind: ResourceType, id: &str) -> Result<Option<Row>, Error> {
        read::record(&self.tx, kind, id)
    }

    /// Writes a record under a number of its own, when `precondition` holds and everything that it points at exists.
    ///
    /// # Errors
    /// [`Error::PreconditionFailed`], or [`Error::Invalid`] for a reference that breaks a rule.
    pub fn put(&mut self, put: &Put, precondition: Precondition) -> Result<Written, Error> {
        let present = self.live_revision(put.kind, &put.id)?;
        hold(precondition, present)?;
        self.check_references(put)?;
        let seq = self.advance();
        self.store(put)?;
        Ok(Written {
            generation: seq,
            revision: seq,
            created: present.is_none(),
            warnings: Vec::new(),
        })
    }

    /// Whether everything that `put` points at exists and, for a Collection, keeps the hierarchy sound (ODP §4).
    ///
    /// # Errors
    /// [`Error::Invalid`] at the references that break a rule.
    pub fn check_references(&mut self, put: &Put) -> Result<(), Error> {
        match put.kind {
            ResourceType::Collection => Ok(self.tree()?.check(&put.id, &put.references)?),
            ResourceType::Offering => {
                let known = |id: &str| {
                    let revision = self.live_revision(ResourceType::Collection, id)?;
                    Ok::<_, Error>(revision.is_some())
                };
                Ok(check_collections(&put.references, known)??)
            }
        }
    }

    /// Writes a record at the present number; nothing is checked.
    ///
    /// # Errors
    /// SQLite's own failures.
    pub fn store(&mut self, put: &Put) -> Result<(), Error> {
        self.set(put.kind, &put.id, Some(&put.body))?;
        self.note(put);
        Ok(())
    }

    fn note(&mut self, put: &Put) {
        if let (ResourceType::Collection, Some(tree)) = (put.kind, &mut self.tree) {
            tree.insert(&put.id, put.references.clone());
        }
    }

    /// Writes a record at the present number, unless it is stored like that already; nothing is checked.
    ///
    /// # Errors
    /// SQLite's own failures.
    pub fn store_changed(&mut self, put: &Put) -> Result<(), Error> {
        let table = table(put.kind);
        let sql = format!(
            "INSERT INTO {table}(id, seq, body) VALUES (?1, ?2, ?3)
             ON CONFLICT(id) DO UPDATE SET seq = excluded.seq, body = excluded.body
             WHERE body IS NOT excluded.body"
        );
        self.tx
            .prepare_cached(&sql)?
            .execute((&put.id, self.head.seq, &put.body))?;
        self.note(put);
        Ok(())
    }

    /// Leaves a tombstone at the present number; nothing is checked.
    ///
    /// # Errors
    /// SQLite's own failures.
    pub fn remove(&mut self, kind: ResourceType, id: &str) -> Result<(), Error> {
        self.set(kind, id, None)?;
        if let (ResourceType::Collection, Some(tree)) = (kind, &mut self.tree) {
            tree.remove(id);
        }
        Ok(())
    }

    /// Takes everything out, without tombstones: only within a new epoch, whose generation is built from nothing.
    ///
    /// # Errors
    /// SQLite's own failures.
    pub fn clear(&mut self) -> Result<(), Error> {
        self.tree = None;
        self.tx
            .execute_batch("DELETE FROM offerings; DELETE FROM collections;")?;
        Ok(())
    }

    /// The Collection hierarchy inside this transaction.
    ///
    /// # Errors
    /// SQLite's own failures.
    pub fn tree(&mut self) -> Result<&Tree, Error> {
        let tree = match self.tree.take() {
            Some(tree) => tree,
            None => read::tree(&self.tx)?,
        };
        Ok(self.tree.insert(tree))
    }

    /// Ids of rows changed after `since`, in no order.
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
        let sql =
            format!("SELECT id, seq, body FROM {table} INDEXED BY {table}_seq WHERE seq > ?1");
        read::walk(&self.tx, &sql, since, each)
    }

    /// Drops the tombstones that a published generation covers.
    ///
    /// # Errors
    /// SQLite's own failures.
    pub fn purge(&mut self, covered: u64) -> Result<usize, Error> {
        let mut purged = 0;
        for table in ["offerings", "collections"] {
            let sql = format!(
                "DELETE FROM {table} WHERE id IN
                 (SELECT id FROM {table} INDEXED BY {table}_dead WHERE body IS NULL AND seq <= ?1)"
            );
            purged += self.tx.prepare_cached(&sql)?.execute([covered])?;
        }
        if purged > 0 {
            self.head.purged = self.head.purged.max(covered);
        }
        Ok(purged)
    }

    /// Whether there is anything to commit.
    pub fn changed(&self) -> bool {
        self.before != self.head
    }

    /// Makes everything durable; only then may anything be acknowledged.
    ///
    /// # Errors
    /// SQLite's own failures; then nothing happened.
    pub fn commit(self) -> Result<(), Error> {
        for (key, before, now) in [
            ("seq", self.before.seq, self.head.seq),
            ("epoch", self.before.epoch, self.head.epoch),
            ("purged", self.before.purged, self.head.purged),
            (
                "manifest_seq",
                self.before.manifest_seq,
                self.head.manifest_seq,
            ),
        ] {
            if before != now {
                self.set_meta(key, now)?;
            }
        }
        self.tx.commit().map_err(busy)
    }

    /// The revision of a record that exists.
    ///
    /// # Errors
    /// SQLite's own failures.
    pub fn live_revision(&self, kind: ResourceType, id: &str) -> Result<Option<u64>, Error> {
        let sql = format!(
            "SELECT seq FROM {} WHERE id = ?1 AND body IS NOT NULL",
            table(kind)
        );
        let mut statement = self.tx.prepare_cached(&sql)?;
        let mut rows = statement.query([id])?;
        Ok(rows.next()?.map(|row| row.get(0)).transpose()?)
    }

    /// What a stored record points at; `None` when it does not exist.
    pub(crate) fn references(
        &self,
        kind: ResourceType,
        id: &str,
    ) -> Result<Option<(Vec<u8>, References)>, Error> {
        let Some(body) = self.record(kind, id)?.and_then(|row| row.body) else {
            return Ok(None);
        };
        let references = References::read(id, &body)?;
        Ok(Some((body, references)))
    }

    fn set(&self, kind: ResourceType, id: &str, body: Option<&[u8]>) -> Result<(), Error> {
        let sql = format!(
            "INSERT INTO {}(id, seq, body) VALUES (?1, ?2, ?3)
             ON CONFLICT(id) DO UPDATE SET seq = excluded.seq, body = excluded.body",
            table(kind)
        );
        self.tx
            .prepare_cached(&sql)?
            .execute((id, self.head.seq, body))?;
        Ok(())
    }

    fn set_meta(&self, key: &str, value: impl rusqlite::ToSql) -> Result<(), Error> {
        self.tx
            .prepare_cached("UPDATE meta SET value = ?2 WHERE key = ?1")?
            .execute((key, value))?;
        Ok(())
    }
}

/// Whether a precondition holds for a record at `present`.
pub(crate) fn hold(precondition: Precondition, present: Option<u64>) -> Result<(), Error> {
    let holds = match precondition {
        Precondition::None => true,
        Precondition::IfMatch(revision) => present == Some(revision),
        Precondition::IfAbsent => present.is_none(),
    };
    if holds {
        Ok(())
    } else {
        Err(Error::PreconditionFailed { revision: present })
    }
}

/// Whether an Offering names only Collections that are `known`.
pub(crate) fn check_collections<E>(
    references: &[String],
    mut known: impl FnMut(&str) -> Result<bool, E>,
) -> Result<Result<(), Invalid>, E> {
    let mut report = Report::new();
    let root = Place::ROOT;
    let list = root.key("collection_ids");
    for (i, id) in references.iter().enumerate() {
        if !known(id)? {
            let reason = format!("Must be a Collection of this catalog; there is no {id}.");
            report.add(&list.index(i), reason);
        }
    }
    Ok(report.finish(Some(())))
}
