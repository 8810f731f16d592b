//! Bringing a manifest, and the Collections in it, into the store.

use crate::error::Error;
use crate::index::parse_manifest;
use crate::manifest::Manifest;
use crate::record::Record;
use crate::store::{Put, Tree, Write};
use purvey_odp::identity::ResourceType;
use purvey_odp::report::{Place, Report};

/// The manifest's Collections in an order in which each comes after its parents, checked against `tree` (what exists already).
///
/// # Errors
/// [`Error::Invalid`] for edges that the hierarchy must not have (ODP §4).
pub(crate) fn manifest_collections(manifest: &Manifest, tree: &Tree) -> Result<Vec<Put>, Error> {
    let mut waiting: Vec<Put> = manifest.collections().iter().map(Put::of).collect();
    let mut tree = tree.clone();
    let mut ordered = Vec::with_capacity(waiting.len());
    while !waiting.is_empty() {
        let ids: std::collections::HashSet<String> =
            waiting.iter().map(|put| put.id.clone()).collect();
        let ready = |put: &Put| !put.references.iter().any(|parent| ids.contains(parent));
        let (now, later): (Vec<_>, Vec<_>) = waiting.into_iter().partition(ready);
        if now.is_empty() {
            let ids: Vec<_> = later.iter().map(|put| put.id.as_str()).collect();
            return Err(Error::Conflict {
                detail: format!(
                    "The Collections {} are each other's parents.",
                    ids.join(", ")
                ),
            });
        }
        for put in now {
            tree.check(&put.id, &put.references)?;
            tree.insert(&put.id, put.references.clone());
            ordered.push(put);
        }
        waiting = later;
    }
    Ok(ordered)
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
    let stored = manifest.to_toml().into_bytes();
    let present = write.manifest()?;
    if present == stored && !anew {
        return Ok(StoredManifest {
            collections: 0,
            recheck: false,
        });
    }
    let mut recheck = false;
    if present != stored {
        // A manifest that this version cannot read any more renders differently, whatever it says.
        let known = parse_manifest(&present).ok();
        let same_schemas = |known: &Manifest| known.schemas().iter().eq(manifest.schemas().iter());
        recheck = !known
            .as_ref()
            .is_some_and(|known| known.language() == manifest.language() && same_schemas(known));
        if known.is_none_or(|known| known.rendering_digest() != manifest.rendering_digest()) {
            write.renew();
        }
        write.set_manifest(&stored)?;
    }
    let collections = manifest_collections(manifest, write.tree()?)?;
    for put in &collections {
        write.store_changed(put)?;
    }
    Ok(StoredManifest {
        collections: collections.len() as u64,
        recheck,
    })
}

/// Whether the Offerings stored before change `before` are valid under `manifest`.
///
/// # Errors
/// [`Error::Invalid`] with the first faults, each below `/offerings/<id>`; failures of the store.
pub(crate) fn check_records(
    write: &Write<'_>,
    manifest: &Manifest,
    before: u64,
) -> Result<(), Error> {
    let mut report = Report::new();
    let root = Place::ROOT;
    let offerings = root.key("offerings");
    write.changes(ResourceType::Offering, 0, |row| {
        let Some(body) = row.body.filter(|_| row.seq < before) else {
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

/// Whether another manifest is in force.
///
/// # Errors
/// Failures of the store.
pub(crate) fn manifest_differs(write: &Write<'_>, manifest: &Manifest) -> Result<bool, Error> {
    Ok(write.manifest()? != manifest.to_toml().into_bytes())
}
