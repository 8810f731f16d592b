//! Writing: validated in the caller's thread, stored by the one writer.

use super::{Catalog, Change, Precondition, Stored, Written, manifest, remove};
use crate::error::Error;
use crate::index::parse_manifest;
use crate::manifest::Manifest;
use crate::record::Record;
use crate::store::{Put, Writer};
use bytes::Bytes;
use purvey_odp::identity::ResourceType;
use purvey_odp::report::{Invalid, Violation};
use serde_json::Value;
use std::sync::Arc;

/// How often a write is validated again because the manifest changed under it.
const ATTEMPTS: usize = 8;

impl Catalog {
    /// Creates or replaces the record `id`. Returns once it is durable.
    ///
    /// # Errors
    /// [`Error::Invalid`] when it breaks a rule or points at what does not exist; [`Error::PreconditionFailed`]; [`Error::Busy`]
    /// while another process writes; failures of the store.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a caller has no further use for it"
    )]
    pub fn put(
        &self,
        kind: ResourceType,
        id: &str,
        value: Value,
        precondition: Precondition,
    ) -> Result<Written, Error> {
        self.with_newest_manifest(|manifest, seq| {
            let id = id.to_owned();
            let prepared = prepare(kind, value.clone(), manifest);
            self.writer()?.run(move |write| {
                // First of all: what an older manifest refuses may be valid by now.
                if write.head().manifest_seq != seq {
                    return Ok(None);
                }
                let Prepared { put, warnings } = prepared?;
                if put.id != id {
                    return Err(Invalid::one("/id", format!("Must be {id}.")).into());
                }
                let written = write.put(&put, precondition)?;
                Ok(Some(Written {
                    warnings,
                    ..written
                }))
            })
        })
    }

    /// Creates or replaces several records in one transaction, in their order; each is taken or refused by itself, and the results
    /// come in the same order.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a caller has no further use for it"
    )]
    pub fn put_many(&self, changes: Vec<Change>) -> Vec<Result<Written, Error>> {
        let count = changes.len();
        let result = self.with_newest_manifest(|manifest, seq| {
            let prepared: Vec<_> = changes
                .iter()
                .map(|change| prepare(change.kind, change.value.clone(), manifest))
                .collect();
            self.writer()?.run(move |write| {
                if write.head().manifest_seq != seq {
                    return Ok(None);
                }
                let store = |prepared: Result<Prepared, Error>| {
                    let Prepared { put, warnings } = prepared?;
                    let written = write.step(|write| write.put(&put, Precondition::None))?;
                    Ok(Written {
                        warnings,
                        ..written
                    })
                };
                Ok(Some(prepared.into_iter().map(store).collect::<Vec<_>>()))
            })
        });
        result.unwrap_or_else(|error| (0..count).map(|_| Err(error.again())).collect())
    }

    /// Deletes the record `id`. A Collection with members or children is only deleted with `detach`, which takes those edges out in
    /// the same transaction.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Conflict`] for what still points at it; [`Error::PreconditionFailed`]; [`Error::Busy`]; failures
    /// of the store.
    pub fn delete(
        &self,
        kind: ResourceType,
        id: &str,
        precondition: Precondition,
        detach: bool,
    ) -> Result<Written, Error> {
        let snapshot = self.current();
        let id = id.to_owned();
        self.writer()?.run(move |write| {
            let generation = &snapshot.generation;
            let candidates = |each: &mut dyn FnMut(&str) -> bool| {
                for segment in generation.segments(ResourceType::Offering) {
                    let mut members = segment.postings(&id).into_iter().flatten();
                    if !members.all(|ordinal| each(segment.id(ordinal))) {
                        return;
                    }
                }
            };
            let covered = generation.number();
            remove::remove(write, kind, &id, precondition, detach, covered, candidates)
        })
    }

    /// Makes `manifest` the catalog's, and its Collections records of the catalog. Returns the first generation that holds it; `None`
    /// when nothing changes.
    ///
    /// # Errors
    /// [`Error::Manifest`] when its Collections break the hierarchy; [`Error::Invalid`] when stored Offerings do not fit its schemas;
    /// [`Error::Busy`]; failures of the store.
    pub fn set_manifest(&self, manifest: &Manifest) -> Result<Option<u64>, Error> {
        let manifest = parse_manifest(manifest.to_toml().as_bytes())?.with_lines_of(manifest);
        self.writer()?.run(move |write| {
            if !manifest::manifest_differs(write, &manifest)? {
                return Ok(None);
            }
            let seq = write.advance();
            if manifest::store_manifest(write, &manifest, false)?.recheck {
                manifest::check_stored(write, &manifest, seq)?;
            }
            Ok(Some(seq))
        })
    }

    /// The revision of a record as committed; `None` when it does not exist.
    ///
    /// # Errors
    /// Failures of the store.
    pub fn revision(&self, kind: ResourceType, id: &str) -> Result<Option<u64>, Error> {
        Ok(self.record(kind, id)?.map(|record| record.revision))
    }

    /// A record as committed, whether or not a generation holds it; `None` when it does not exist.
    ///
    /// # Errors
    /// Failures of the store.
    pub fn record(&self, kind: ResourceType, id: &str) -> Result<Option<Stored>, Error> {
        let mut store = self.inner.store.lock();
        let row = store.read()?.record(kind, id)?;
        Ok(row.and_then(|row| {
            Some(Stored {
                revision: row.seq,
                bytes: Bytes::from(row.body?),
            })
        }))
    }

    fn writer(&self) -> Result<Arc<Writer>, Error> {
        self.inner.writer.lock().clone().ok_or(Error::NotWritten {
            detail: "the catalog is shutting down".to_owned(),
        })
    }

    /// Runs `attempt` with the newest manifest and the change that brought it, again while it answers `None`: the manifest has changed.
    fn with_newest_manifest<T>(
        &self,
        mut attempt: impl FnMut(&Manifest, u64) -> Result<Option<T>, Error>,
    ) -> Result<T, Error> {
        for _ in 0..ATTEMPTS {
            let (seq, manifest) = self.inner.newest.lock().clone();
            if seq > 0
                && let Some(done) = attempt(&manifest, seq)?
            {
                return Ok(done);
            }
            let mut store = self.inner.store.lock();
            let read = store.read()?;
            let seq = read.head()?.manifest_seq;
            let manifest = Arc::new(parse_manifest(&read.manifest()?)?);
            *self.inner.newest.lock() = (seq, manifest);
        }
        Err(Error::Busy {
            retry_after_seconds: 1,
        })
    }
}

struct Prepared {
    put: Put,
    warnings: Vec<Violation>,
}

fn prepare(kind: ResourceType, value: Value, manifest: &Manifest) -> Result<Prepared, Error> {
    let record = Record::validate(value, kind, manifest)?;
    Ok(Prepared {
        put: Put::of(&record),
        warnings: record.doubts().to_vec(),
    })
}
