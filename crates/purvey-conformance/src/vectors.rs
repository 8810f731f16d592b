//! The vectors on disk.

use crate::adapter::{Role, VectorInfo};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::io;
use std::path::Path;

/// One vector with its cases.
#[derive(Clone, Debug, Deserialize)]
pub struct Vector {
    /// Whose behaviour it tests.
    pub applies_to: Vec<Role>,
    /// What it is about.
    #[serde(flatten)]
    pub info: VectorInfo,
    /// Its cases, in order.
    pub cases: Vec<Map<String, Value>>,
}

impl Vector {
    /// The cases for `role`: none when the vector is not for it, and without those that name the other one.
    pub fn cases(&self, role: Role) -> impl Iterator<Item = &Map<String, Value>> {
        let applies = self.applies_to.contains(&role);
        self.cases.iter().filter(move |case| {
            let named = case.get("role").and_then(Value::as_str);
            applies && named.is_none_or(|named| named == role.as_str())
        })
    }
}

/// The vectors that `directory/index.json` lists, in its order.
///
/// # Errors
/// A file that is missing or is not what it should be.
pub fn load(directory: &Path) -> io::Result<Vec<Vector>> {
    #[derive(Deserialize)]
    struct Index {
        vectors: Vec<String>,
    }
    let index: Index = read(&directory.join("index.json"))?;
    index
        .vectors
        .iter()
        .map(|file| read(&directory.join(file)))
        .collect()
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> io::Result<T> {
    let named =
        |error: &dyn std::fmt::Display| io::Error::other(format!("{}: {error}", path.display()));
    let bytes = std::fs::read(path).map_err(|error| named(&error))?;
    serde_json::from_slice(&bytes).map_err(|error| named(&error))
}
