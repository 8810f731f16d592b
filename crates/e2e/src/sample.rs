//! Small catalogs whose content the tests know.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// The Collections of the sample manifest.
pub const COLLECTIONS: [&str; 2] = ["even", "odd"];

/// Writes the sample manifest: wire-form records, two Collections.
pub fn manifest(directory: &Path) -> PathBuf {
    let path = directory.join("catalog.toml");
    let text = r#"
        [service]
        name = "A small shelf"
        description = "Numbered things for tests."
        language = "en"
        [[collections]]
        id = "even"
        name = "Even things"
        [[collections]]
        id = "odd"
        name = "Odd things"
    "#;
    fs::write(&path, text).expect("a manifest");
    path
}

/// The Offering `id` in its `version`: every version differs in all it shows, and moves to the other Collection.
#[must_use]
pub fn offering(id: &str, version: u64) -> Value {
    let collection = if version.is_multiple_of(2) {
        "even"
    } else {
        "odd"
    };
    // Long enough that a document spans several disk sectors now and then.
    let filler = "abcdefghij".repeat(usize::try_from(version % 40).expect("small"));
    json!({
        "id": id,
        "name": format!("{id} v{version}"),
        "description": format!("Version {version} of {id}. {filler}"),
        "collection_ids": [collection],
    })
}

/// The version that an Offering's full or terse form shows.
#[must_use]
pub fn version_of(item: &Value) -> u64 {
    let name = item["name"].as_str().expect("a name");
    let (_, version) = name
        .rsplit_once(" v")
        .unwrap_or_else(|| panic!("not a sample Offering: {item}"));
    version.parse().expect("a version")
}

/// Writes NDJSON of Offerings.
pub fn records(path: &Path, offerings: impl IntoIterator<Item = Value>) {
    let lines: String = offerings
        .into_iter()
        .map(|offering| format!("{offering}\n"))
        .collect();
    fs::write(path, lines).expect("records");
}
