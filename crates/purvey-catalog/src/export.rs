//! Export: a catalog as files that an import makes the same catalog of.

use crate::catalog::Options;
use crate::error::Error;
use crate::fs::{TEMPORARY, beside};
use crate::index::parse_manifest;
use crate::store::{FILE, Read, Store};
use purvey_odp::identity::ResourceType;
use serde::Serialize;
use serde_json::Value;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Name of the manifest in an export.
pub const MANIFEST: &str = "catalog.toml";
/// Name of the Offerings in an export.
pub const OFFERINGS: &str = "offerings.ndjson";

const BUFFER_BYTES: usize = 256 * 1024;

/// What an export holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExportReport {
    /// Offerings written.
    pub offerings: u64,
    /// Collections written.
    pub collections: u64,
    /// The newest change that is in it.
    pub change: u64,
}

/// Writes the catalog in `dir`, as it is at one moment, into the directory `out`, which is created: [`MANIFEST`], which carries its
/// schemas and Collections in it, and [`OFFERINGS`] in id order. Files of these names are replaced only when `overwrite` says so.
///
/// # Errors
/// [`Error::NotFound`] when there is no catalog; [`Error::Conflict`] when a file is in the way; failures of the store and the disk.
pub fn export(
    dir: &Path,
    out: &Path,
    overwrite: bool,
    options: &Options,
) -> Result<ExportReport, Error> {
    let mut store = Store::open_existing(dir)?.ok_or(Error::NotFound)?;
    let paths = [MANIFEST, OFFERINGS].map(|name| out.join(name));
    if let Some(taken) = paths.iter().find(|path| !overwrite && path.exists()) {
        return Err(Error::Conflict {
            detail: format!(
                "{} is there already, and nothing was written",
                taken.display()
            ),
        });
    }
    let [manifest_path, path] = paths;
    let read = store.read()?;
    std::fs::create_dir_all(out).map_err(Error::io(out))?;
    let manifest = parse_manifest(&read.manifest()?)?;
    let mut collections = Vec::new();
    read.live(ResourceType::Collection, |row| {
        let value: Value =
            serde_json::from_slice(row.body.unwrap_or_default()).map_err(|e| Error::Corrupt {
                path: FILE.into(),
                detail: format!("the collection {}: {e}", row.id),
            })?;
        collections.push(value);
        Ok(())
    })?;
    let count = collections.len() as u64;
    let toml = manifest.to_export(collections);
    options.durability.write(&manifest_path, toml.as_bytes())?;
    let unfinished = beside(&path, TEMPORARY);
    let file = File::create(&unfinished).map_err(Error::io(&unfinished))?;
    let mut file = BufWriter::with_capacity(BUFFER_BYTES, file);
    let offerings = write_offerings(&read, &mut file, &unfinished)?;
    let file = file
        .into_inner()
        .map_err(|e| Error::io(&unfinished)(e.into_error()))?;
    options.durability.sync_file(&file, &unfinished)?;
    options.durability.rename(&unfinished, &path)?;
    options.durability.sync_dir(out)?;
    Ok(ExportReport {
        offerings,
        collections: count,
        change: read.head()?.seq,
    })
}

/// Writes the records of the catalog in `dir`, as they are at one moment, to `out`: one JSON document a line, Collections first, each as
/// `{"collection": …}`, then Offerings.
///
/// # Errors
/// As [`export`].
pub fn export_records(dir: &Path, out: &mut dyn Write) -> Result<ExportReport, Error> {
    let mut store = Store::open_existing(dir)?.ok_or(Error::NotFound)?;
    let read = store.read()?;
    let name = Path::new("-");
    let tree = read.tree()?;
    let mut collections = 0;
    for id in tree.parents_first() {
        let row = read.record(ResourceType::Collection, &id)?;
        if let Some(body) = row.and_then(|row| row.body) {
            let line = [b"{\"collection\":".as_slice(), &body, b"}\n"].concat();
            out.write_all(&line).map_err(Error::io(name))?;
            collections += 1;
        }
    }
    let offerings = write_offerings(&read, out, name)?;
    out.flush().map_err(Error::io(name))?;
    Ok(ExportReport {
        offerings,
        collections,
        change: read.head()?.seq,
    })
}

fn write_offerings(read: &Read<'_>, out: &mut dyn Write, name: &Path) -> Result<u64, Error> {
    let mut count = 0;
    read.live(ResourceType::Offering, |row| {
        out.write_all(row.body.unwrap_or_default())
            .and_then(|()| out.write_all(b"\n"))
            .map_err(Error::io(name))?;
        count += 1;
        Ok(())
    })?;
    Ok(count)
}
