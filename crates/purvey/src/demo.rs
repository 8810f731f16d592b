//! The demo catalog, compiled in.

use crate::failure::{Failure, say};
use purvey_catalog::{
    catalog::Options,
    import::{ImportOptions, import},
    manifest::Manifest,
    reader::Source,
    store::Store,
};
use std::path::Path;

const MANIFEST: &str = include_str!("../../../catalogs/demo/catalog.toml");
const OFFERINGS: &[u8] = include_bytes!("../../../catalogs/demo/offerings.ndjson");
/// What the manifest names.
const FILES: &[(&str, &str)] = &[
    (
        "openapi.json",
        include_str!("../../../catalogs/demo/openapi.json"),
    ),
    (
        "schemas/course.json",
        include_str!("../../../catalogs/demo/schemas/course.json"),
    ),
    (
        "schemas/material.json",
        include_str!("../../../catalogs/demo/schemas/material.json"),
    ),
    (
        "schemas/reservation.json",
        include_str!("../../../catalogs/demo/schemas/reservation.json"),
    ),
    (
        "schemas/tool.json",
        include_str!("../../../catalogs/demo/schemas/tool.json"),
    ),
];

/// Loads the demo into `directory`; a catalog that is there already stays as it is, so that the same command can be given again.
pub(crate) fn load(directory: &Path, catalog: &Options) -> Result<(), Failure> {
    // A first start that was interrupted left a store that nothing was ever written to.
    let written = match Store::open_existing(directory)? {
        Some(mut store) => store.read()?.head()?.seq > 1,
        None => false,
    };
    if written {
        say(format_args!(
            "{} holds a catalog already: serving that one",
            directory.display()
        ));
        return Ok(());
    }
    let failed = |error: &dyn std::fmt::Display| Failure::new(format_args!("--demo: {error}"));
    let manifest = Manifest::parse_embedded(MANIFEST, FILES).map_err(|error| failed(&error))?;
    let records = tempfile::Builder::new()
        .prefix("purvey-demo-")
        .suffix(".ndjson")
        .tempfile()
        .map_err(|error| failed(&error))?;
    std::fs::write(records.path(), OFFERINGS).map_err(|error| failed(&error))?;
    let options = ImportOptions {
        catalog: catalog.clone(),
        ..ImportOptions::default()
    };
    let sources = [Source::of(records.path())];
    let report = import(directory, &manifest, &sources, &options, &())?;
    match report.faults.first() {
        Some(fault) => Err(failed(&format_args!(
            "line {}: {:?}",
            fault.line, fault.violations
        ))),
        None => Ok(()),
    }
}
