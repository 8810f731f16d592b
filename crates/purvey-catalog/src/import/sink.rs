//! Where prepared records arrive, in the order of the input: what needs the other records is checked here.

use super::prepare::Prepared;
use super::rejects::{Rejected, Rejects};
use super::{ImportReport, OnError};
use crate::error::Error;
use crate::reader::Raw;
use crate::store::{Put, Tree, Write, check_collections};
use purvey_odp::identity::ResourceType;
use purvey_odp::report::Invalid;
use std::collections::HashSet;
use std::convert::Infallible;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_128;

/// Bytes of records that are sorted before they are written: a B-tree takes neighbours far faster than strangers.
const BATCH_BYTES: usize = 32 * 1024 * 1024;

/// Takes the records of one import.
pub(super) struct Sink<'a, 'w> {
    /// Where they are stored; nowhere in a dry run.
    write: Option<&'a mut Write<'w>>,
    tree: Tree,
    /// Digests of the ids seen, 16 bytes each: duplicates are found without keeping a million ids.
    seen: HashSet<u128>,
    batch: Vec<Put>,
    batch_bytes: usize,
    on_error: OnError,
    rejects: Option<Rejects>,
    pub(super) report: ImportReport,
    pub(super) stopped: bool,
}

impl<'a, 'w> Sink<'a, 'w> {
    /// `tree` holds the Collections that records may name, those of the manifest included.
    pub(super) fn new(
        write: Option<&'a mut Write<'w>>,
        tree: Tree,
        on_error: OnError,
        rejects: Option<Rejects>,
    ) -> Self {
        Self {
            write,
            tree,
            seen: HashSet::new(),
            batch: Vec::new(),
            batch_bytes: 0,
            on_error,
            rejects,
            report: ImportReport::default(),
            stopped: false,
        }
    }

    /// Takes one record.
    pub(super) fn take(
        &mut self,
        source: &Path,
        raw: &Raw,
        prepared: Result<Prepared, Invalid>,
    ) -> Result<(), Error> {
        self.report.read += 1;
        match prepared.and_then(|prepared| self.judge(&prepared.put).map(|()| prepared)) {
            Ok(Prepared { put, doubts }) => {
                if !doubts.is_empty() {
                    self.report.doubtful += 1;
                    if self.report.warnings.len() < ImportReport::REJECTED {
                        let doubtful = Rejected::new(source, raw.line, doubts);
                        self.report.warnings.push(doubtful);
                    }
                }
                self.accept(put)
            }
            Err(invalid) => {
                let rejected = Rejected::new(source, raw.line, invalid.into_violations());
                self.reject(raw, rejected)
            }
        }
    }

    fn judge(&mut self, put: &Put) -> Result<(), Invalid> {
        match put.kind {
            ResourceType::Collection => self.tree.check(&put.id, &put.references)?,
            ResourceType::Offering => {
                let known = |id: &str| Ok::<_, Infallible>(self.tree.contains(id));
                let Ok(checked) = check_collections(&put.references, known);
                checked?;
            }
        }
        if self.seen.insert(digest(put.kind, &put.id)) {
            Ok(())
        } else {
            let reason = format!(
                "Must be unique among the records imported; {} came before.",
                put.id
            );
            Err(Invalid::one("/id", reason))
        }
    }

    fn accept(&mut self, put: Put) -> Result<(), Error> {
        match put.kind {
            ResourceType::Collection => {
                self.report.collections += 1;
                self.tree.insert(&put.id, put.references.clone());
            }
            ResourceType::Offering => self.report.offerings += 1,
        }
        if self.write.is_some() {
            self.batch_bytes += put.id.len() + put.body.len() + size_of::<Put>();
            self.batch.push(put);
            if self.batch_bytes >= BATCH_BYTES {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn reject(&mut self, raw: &Raw, rejected: Rejected) -> Result<(), Error> {
        self.report.rejected += 1;
        if let Some(rejects) = &mut self.rejects {
            rejects.add(raw, &rejected)?;
        }
        if self.report.faults.len() < ImportReport::REJECTED {
            self.report.faults.push(rejected);
        }
        self.stopped |= self.on_error == OnError::Stop;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.batch
            .sort_unstable_by(|a, b| (a.kind, &a.id).cmp(&(b.kind, &b.id)));
        if let Some(write) = &mut self.write {
            for put in self.batch.drain(..) {
                write.store_changed(&put)?;
            }
        }
        self.batch.clear();
        self.batch_bytes = 0;
        Ok(())
    }

    /// Writes what is left and hands the report back.
    pub(super) fn finish(mut self) -> Result<(ImportReport, Taken), Error> {
        if !self.stopped {
            self.flush()?;
        }
        if let Some(rejects) = &mut self.rejects {
            rejects.finish()?;
        }
        let taken = Taken {
            ids: self.seen,
            stopped: self.stopped,
        };
        Ok((self.report, taken))
    }
}

/// The records that an import took.
pub(super) struct Taken {
    ids: HashSet<u128>,
    /// Whether a bad record ended it.
    pub(super) stopped: bool,
}

impl Taken {
    /// Whether this one is among them.
    pub(super) fn has(&self, kind: ResourceType, id: &str) -> bool {
        self.ids.contains(&digest(kind, id))
    }
}

fn digest(kind: ResourceType, id: &str) -> u128 {
    // The namespaces are apart; one bit tells them.
    (xxh3_128(id.as_bytes()) & !1) | u128::from(kind == ResourceType::Collection)
}
