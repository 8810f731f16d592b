//! Import: a manifest and records become the catalog, all in one transaction.
//!
//! One thread reads, several decode and validate, one writes, in the order of the input: line numbers and results do not depend on
//! timing. Killed at any moment, an import leaves the old catalog whole; run again, it finishes. The order of the input counts in
//! one way: a Collection comes before what points at it (those of the manifest come first of all).

mod prepare;
mod rejects;
mod sink;

pub use prepare::record_kind;
pub use rejects::{Reason, Rejected};

use crate::catalog::{
    Difference, Options, check_records, check_stored, manifest_collections, store_manifest,
};
use crate::error::Error;
use crate::index::Indexer;
use crate::manifest::{Manifest, Mapping};
use crate::pipeline;
use crate::reader::{self, Format, Header, Raw, Source};
use crate::store::{Store, Tree};
use prepare::prepare;
use purvey_odp::identity::ResourceType;
use rejects::Rejects;
use serde::Serialize;
use sink::{Sink, Taken};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Page cache of an import's transaction, in bytes: what it changes beyond that goes to the log early.
const CACHE_BYTES: u32 = 96 * 1024 * 1024;
/// Records handed to a worker at once.
const CHUNK: usize = 128;

/// What a record that breaks rules means for the import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// The first one ends it, and nothing is imported.
    #[default]
    Stop,
    /// It is left out, and reported.
    Skip,
}

/// How an import is done.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The import becomes the whole catalog, in one step; otherwise records are added and replaced by id.
    pub replace: bool,
    /// Everything is checked and nothing is written.
    pub dry_run: bool,
    /// What a bad record means.
    pub on_error: OnError,
    /// Where rejected records are kept as they came, one a line; beside it, with `.report.ndjson` added to its name, why.
    pub rejects: Option<PathBuf>,
    /// The format of every source; `None`: as their names say.
    pub format: Option<Format>,
    /// How the catalog is opened.
    pub catalog: Options,
}

/// How far an import is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Records are read, validated and stored.
    Records {
        /// Records judged so far.
        read: u64,
        /// Those of them that were rejected.
        rejected: u64,
        /// Bytes of the sources read so far, as they lie on disk.
        bytes: u64,
        /// Bytes of all sources; `None` when one is standard input.
        total_bytes: Option<u64>,
    },
    /// The transaction is made durable.
    Committing,
    /// The first generation with the import is built.
    Publishing,
}

/// Is told how far an import is, often; from the thread that imports.
pub trait Progress {
    /// The import got there.
    fn at(&self, stage: Stage);
}

/// Nobody watches.
impl Progress for () {
    fn at(&self, _: Stage) {}
}

/// What an import did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ImportReport {
    /// Whether the records are in the catalog; `false` after a dry run, and when a bad record stopped the import.
    pub committed: bool,
    /// Records read.
    pub read: u64,
    /// Offerings accepted.
    pub offerings: u64,
    /// Collections accepted, those of the manifest included.
    pub collections: u64,
    /// Records rejected.
    pub rejected: u64,
    /// The first rejected records, at most [`ImportReport::REJECTED`].
    pub faults: Vec<Rejected>,
    /// Records accepted although something in them looks like a typing error.
    pub doubtful: u64,
    /// The first of those, at most [`ImportReport::REJECTED`], with the members in doubt.
    pub warnings: Vec<Rejected>,
    /// Where stored Offerings, which the import does not replace, would no longer fit the manifest, below `/offerings/<id>`; only a dry run
    /// finds such, and such an import fails.
    pub unfit: Vec<Reason>,
    /// The generation that holds the import; `None` when nothing was committed or publishing failed.
    pub generation: Option<u64>,
    /// Why what was committed could not be published yet; a server that has the catalog open goes on trying.
    pub publish_error: Option<String>,
    /// Whole seconds and thousandths that it took.
    pub seconds: f64,
}

impl ImportReport {
    /// Most rejected, and most doubtful, records that a report names; the rejects file has all that were rejected.
    pub const REJECTED: usize = 100;
}

/// Imports `sources` into the catalog in `dir`, which is created when it is missing, and publishes the generation that holds them.
/// Other writers are [`Error::Busy`] meanwhile; readers are not disturbed.
///
/// # Errors
/// [`Error::Busy`] while somebody else writes; [`Error::Manifest`] when the manifest's Collections break the hierarchy or it maps a column
/// that a table has not; [`Error::Invalid`] when stored Offerings would no longer fit (a dry run reports them);
/// [`Error::Source`] when a source cannot be read to its end; failures of the store and the disk. Then nothing was imported.
pub fn import(
    dir: &Path,
    manifest: &Manifest,
    sources: &[Source],
    options: &ImportOptions,
    progress: &dyn Progress,
) -> Result<ImportReport, Error> {
    let started = Instant::now();
    let rejects = options.rejects.as_deref().map(Rejects::new).transpose()?;
    let mut report = if options.dry_run {
        try_out(dir, manifest, sources, options, rejects, progress)?
    } else {
        write(dir, manifest, sources, options, rejects, progress)?
    };
    report.seconds = started.elapsed().as_millis() as f64 / 1_000.0;
    Ok(report)
}

/// Finds what [`write`] would find, and writes nothing.
fn try_out(
    dir: &Path,
    manifest: &Manifest,
    sources: &[Source],
    options: &ImportOptions,
    rejects: Option<Rejects>,
    progress: &dyn Progress,
) -> Result<ImportReport, Error> {
    let mut store = match options.replace {
        true => None,
        false => Store::open_existing(dir)?,
    };
    let (mut tree, mut collections, mut recheck) = (Tree::default(), None, false);
    if let Some(store) = &mut store {
        let read = store.read()?;
        tree = read.tree()?;
        let difference = Difference::of(&read.manifest()?, manifest);
        recheck = difference.recheck;
        if !difference.any {
            collections = Some(Vec::new());
        }
    }
    let collections = match collections {
        Some(none) => none,
        None => manifest_collections(manifest, &tree)?,
    };
    for put in &collections {
        tree.insert(&put.id, put.references.clone());
    }
    // Nothing is at stake: whoever tries wants to hear of every fault.
    let sink = Sink::new(None, tree, OnError::Skip, rejects);
    let (mut report, taken) = run(sink, manifest, sources, options, progress)?;
    refuse_nothing(&report, sources, options)?;
    report.collections += collections.len() as u64;
    if let Some(store) = store.as_mut().filter(|_| recheck) {
        let read = store.read()?;
        let checked = check_records(manifest, |each| {
            read.changes(ResourceType::Offering, 0, |row| {
                if taken.has(ResourceType::Offering, row.id) {
                    Ok(())
                } else {
                    each(row)
                }
            })
        });
        match checked {
            Err(Error::Invalid(invalid)) => {
                let unfit = invalid.into_violations().into_iter();
                report.unfit = unfit.map(Reason::from).collect();
            }
            other => other?,
        }
    }
    Ok(report)
}

/// A source that came out empty is a fault of whatever made it, more likely than a wish to empty the catalog.
fn refuse_nothing(
    report: &ImportReport,
    sources: &[Source],
    options: &ImportOptions,
) -> Result<(), Error> {
    let nothing = report.offerings == 0 && report.collections == 0;
    if options.replace && nothing && !sources.is_empty() {
        return Err(Error::Conflict {
            detail: "the sources hold no record that can be taken, and replacing would leave an empty catalog: nothing was \
                     changed (to empty it, replace without naming records)"
                .to_owned(),
        });
    }
    Ok(())
}

fn write(
    dir: &Path,
    manifest: &Manifest,
    sources: &[Source],
    options: &ImportOptions,
    rejects: Option<Rejects>,
    progress: &dyn Progress,
) -> Result<ImportReport, Error> {
    let mut store = crate::catalog::open_store_later(dir, &options.catalog)?;
    store.set_cache(CACHE_BYTES)?;
    let mut write = store.write()?;
    let seq = write.advance();
    if options.replace {
        write.clear()?;
        write.renew();
    }
    let stored = store_manifest(&mut write, manifest, options.replace)?;
    let tree = write.tree()?.clone();
    let sink = Sink::new(Some(&mut write), tree, options.on_error, rejects);
    let (mut report, taken) = run(sink, manifest, sources, options, progress)?;
    let stopped = taken.stopped;
    if !stopped {
        refuse_nothing(&report, sources, options)?;
    }
    report.collections += stored.collections;
    if stopped {
        return Ok(report);
    }
    if stored.recheck {
        check_stored(&write, manifest, seq)?;
    }
    progress.at(Stage::Committing);
    write.commit()?;
    report.committed = true;
    if let Err(error) = store.checkpoint() {
        tracing::debug!(%error, "the store's log is merged later");
    }
    drop(store);
    progress.at(Stage::Publishing);
    let published =
        Indexer::open(dir, &options.catalog).and_then(|mut indexer| indexer.catch_up(seq));
    match published {
        Ok(generation) => report.generation = Some(generation.number()),
        // The records are durable all the same: whoever serves the catalog publishes them.
        Err(error) => report.publish_error = Some(error.to_string()),
    }
    Ok(report)
}

/// Reads, prepares and takes every record; stops early when the sink did.
fn run(
    mut sink: Sink<'_, '_>,
    manifest: &Manifest,
    sources: &[Source],
    options: &ImportOptions,
    progress: &dyn Progress,
) -> Result<(ImportReport, Taken), Error> {
    let mut reader = reader::open(sources.to_vec(), options.format)?;
    let read = reader.progress();
    let mut headers: Vec<Option<Arc<Header>>> = vec![None; sources.len()];
    pipeline::consume_here(
        pipeline::workers(),
        |feed| {
            let mut chunk = Vec::with_capacity(CHUNK);
            let mut failed = None;
            for raw in reader.by_ref() {
                match raw {
                    Ok(raw) => chunk.push(raw),
                    Err(error) => {
                        failed = Some(error);
                        break;
                    }
                }
                if chunk.len() == CHUNK && !feed.push(std::mem::take(&mut chunk)) {
                    return Ok(());
                }
            }
            feed.push(chunk);
            if let Some(error) = failed {
                return Err(error.into());
            }
            // A table without rows has columns all the same.
            if let Some(mapping) = manifest.mapping() {
                for header in reader.headers() {
                    check_columns(mapping, header, manifest)?;
                }
            }
            Ok(())
        },
        |chunk: Vec<Raw>| {
            let judge = |raw: Raw| {
                let prepared = prepare(&raw, manifest);
                (raw, prepared)
            };
            chunk.into_iter().map(judge).collect::<Vec<_>>()
        },
        |chunk| {
            for (raw, prepared) in chunk {
                check_header(&mut headers, &raw, manifest)?;
                let source = sources.get(raw.source).map_or(Path::new(""), Source::name);
                sink.take(source, &raw, prepared)?;
                if sink.stopped {
                    return Ok(false);
                }
            }
            progress.at(Stage::Records {
                read: sink.report.read,
                rejected: sink.report.rejected,
                bytes: read.read(),
                total_bytes: read.total(),
            });
            Ok(true)
        },
    )?;
    sink.finish()
}

fn check_columns(mapping: &Mapping, header: &Header, manifest: &Manifest) -> Result<(), Error> {
    let checked = mapping.check_columns(header);
    checked.map_err(|invalid| Error::Manifest(manifest.locate(invalid)))
}

/// A table that lacks a mapped column is one fault of its header, not one of each of its rows.
fn check_header(
    seen: &mut [Option<Arc<Header>>],
    raw: &Raw,
    manifest: &Manifest,
) -> Result<(), Error> {
    let (Some(header), Some(place)) = (raw.header(), seen.get_mut(raw.source)) else {
        return Ok(());
    };
    if place.is_none() {
        if let Some(mapping) = manifest.mapping() {
            check_columns(mapping, header, manifest)?;
        }
        *place = Some(Arc::clone(header));
    }
    Ok(())
}
