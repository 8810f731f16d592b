//! Bringing a manifest, and the Collections in it, into the store.

use crate::error::Error;
use crate::index::parse_manifest;
use crate::manifest::{Manifest, note};
use crate::record::Record;
use crate::store::{Put, RowRef, Tree, Write};
use purvey_odp::identity::ResourceType;
use purvey_odp::report::{Place, Report, Violation};
use std::collections::HashSet;

/// The manifest's Collections in an order in which each comes after its parents, checked against `tree` (what exists already).
///
/// # Errors
/// [`Error::Manifest`] for edges that the hierarchy must not have (ODP §4), each below `/collections/<index>` and with its line.
pub(crate) fn manifest_collections(manifest: &Manifest, tree: &Tree) -> Result<Vec<Put>, Error> {
    let mut waiting: Vec<(usize, Put)> = manifest
        .collections()
        .iter()
        .map(Put::of)
        .enumerate()
        .collect();
    let mut tree = tree.clone();
    let mut ordered = Vec::with_capacity(waiting.len());
    let mut report = Report::new();
    let root = Place::ROOT;
    let collections = root.key("collections");
    while !waiting.is_empty() {
        let ids: HashSet<String> = waiting.iter().map(|(_, put)| put.id.clone()).collect();
        let ready = |put: &Put| !put.references.iter().any(|parent| ids.contains(parent));
        let (now, later): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|(_, put)| ready(put));
        if now.is_empty() {
            for (at, put) in &later {
                let reason = format!("Must not lead back to {}, above or below it.", put.id);
                report.add(&collections.index(*at).key("parent_ids"), reason);
            }
            break;
        }
        for (at, put) in now {
            if let Err(invalid) = tree.check(&put.id, &put.references) {
                for Violation { pointer, reason } in invalid.into_violations() {
                    let reason = format!("{reason} (The Collection is {}.)", put.id);
                    note(&mut report, &collections.index(at), &pointer, &reason);
                }
            }
            tree.insert(&put.id, put.references.clone());
            ordered.push(put);
        }
        waiting = later;
    }
    report
        .finish(Some(ordered))
        .map_err(|invalid| Error::Manifest(manifest.locate(invalid)))
}

/// What putting a manifest in force in place of another comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Whether they differ at all.
    pub(crate) any: bool,
    /// Whether records that were valid before may be invalid now.
    pub(crate) recheck: bool,
    /// Whether documents render differently.
    pub(crate) renders: bool,
}

impl Difference {
    /// Between the manifest as stored and the one to be.
    pub(crate) fn of(stored: &[u8], manifest: &Manifest) -> Self {
        if stored == manifest.to_toml().as_bytes() {
            return Self {
                any: false,
                recheck: false,
                renders: false,
            };
        }
        // A manifest that this version cannot read any more differs in everything, whatever it says.
        let known = parse_manifest(stored).ok();
        let as_valid = |known: &Manifest| {
            known.language() == manifest.language()
                && known.schemas().iter().eq(manifest.schemas().iter())
                && (manifest.service().has_openapi() || !known.service().has_openapi())
        };
        Self {
            any: true,
            recheck: !known.as_ref().is_some_and(as_valid),
            renders: known
                .is_none_or(|known| known.rendering_digest() != manifest.rendering_digest()),
        }
    }
}

/// What storing a manifest did.
pub(crate) struct StoredManifest {
    /// How many Collections it has.
    pub(crate) collections: u64,
    /// Whether records that were valid before may be invalid now.
    pub(crate) recheck: bool,
}

/// Stores `manifest` and its Collections at the present number of `write`; starts a new epoch when documents render differently.
/// A manifest that is in force already changes nothing: its Collections may have been written or deleted since, and that stays. With
/// `anew` they are stored in any case.
///
/// # Errors
/// As [`manifest_collections`]; failures of the store.
pub(crate) fn store_manifest(
    write: &mut Write<'_>,
    manifest: &Manifest,
    anew: bool,
) -> Result<StoredManifest, Error> {
    let difference = Difference::of(&write.manifest()?, manifest);
    if !difference.any && !anew {
        return Ok(StoredManifest {
            collections: 0,
            recheck: false,
        });
    }
    if difference.renders {
        write.renew();
    }
    if difference.any {
        write.set_manifest(&manifest.to_toml().into_bytes())?;
    }
    let collections = manifest_collections(manifest, write.tree()?)?;
    for put in &collections {
        write.store_changed(put)?;
    }
    Ok(StoredManifest {
        collections: collections.len() as u64,
        recheck: difference.recheck,
    })
}

/// Holds the Offerings that `rows` walks through to `manifest`.
///
/// # Errors
/// [`Error::Invalid`] with the first faults, each below `/offerings/<id>`; failures of `rows`.
pub(crate) fn check_records(
    manifest: &Manifest,
    rows: impl FnOnce(&mut dyn FnMut(RowRef<'_>) -> Result<(), Error>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut report = Report::new();
    let root = Place::ROOT;
    let offerings = root.key("offerings");
    rows(&mut |row| {
        let Some(body) = row.body else {
            return Ok(());
        };
        let value = serde_json::from_slice(body).map_err(|e| Error::Corrupt {
            path: crate::store::FILE.into(),
            detail: format!("the offering {}: {e}", row.id),
        })?;
        let place = offerings.key(row.id);
        Record::read(&mut report, &place, value, ResourceType::Offering, manifest);
        Ok(())
    })?;
    Ok(report.finish(Some(()))?)
}

/// As [`check_records`], for those stored before change `before`.
///
/// # Errors
/// As [`check_records`]; failures of the store.
pub(crate) fn check_stored(
    write: &Write<'_>,
    manifest: &Manifest,
    before: u64,
) -> Result<(), Error> {
    check_records(manifest, |each| {
        write.changes(ResourceType::Offering, 0, |row| {
            if row.seq < before { each(row) } else { Ok(()) }
        })
    })
}

/// Whether another manifest is in force.
///
/// # Errors
/// Failures of the store.
pub(crate) fn manifest_differs(write: &Write<'_>, manifest: &Manifest) -> Result<bool, Error> {
    Ok(write.manifest()? != manifest.to_toml().into_bytes())
}
