//! Attributes, explained by their schema.

use purvey_agent::Schema;
use serde_json::{Map, Value};

/// Schemas that are looked at for one attribute.
const MOST_SCHEMAS: usize = 32;

/// A row for each attribute: its path, its value, and what its schema says that it means.
pub(super) fn attributes(
    attributes: &Map<String, Value>,
    schema: Option<&Schema>,
) -> Vec<Vec<String>> {
    let root = schema.map(Schema::document);
    let mut rows = Rows {
        root,
        rows: Vec::new(),
    };
    rows.members("", attributes, &root.into_iter().collect::<Vec<_>>());
    rows.rows
}

struct Rows<'a> {
    root: Option<&'a Value>,
    rows: Vec<Vec<String>>,
}

impl<'a> Rows<'a> {
    fn members(&mut self, path: &str, members: &Map<String, Value>, schemas: &[&'a Value]) {
        for (name, value) in members {
            let path = match path {
                "" => name.clone(),
                path => format!("{path}.{name}"),
            };
            let schemas = schemas
                .iter()
                .filter_map(|schema| schema.get("properties")?.get(name))
                .collect();
            self.value(&path, value, &self.all(schemas));
        }
    }

    fn value(&mut self, path: &str, value: &Value, schemas: &[&'a Value]) {
        match value {
            Value::Object(members) if !members.is_empty() => self.members(path, members, schemas),
            Value::Array(items) if items.iter().any(is_container) => {
                let schemas = schemas
                    .iter()
                    .filter_map(|schema| schema.get("items"))
                    .collect();
                let schemas = self.all(schemas);
                for (i, item) in items.iter().enumerate() {
                    self.value(&format!("{path}[{i}]"), item, &schemas);
                }
            }
            value => {
                let row = vec![path.to_owned(), shown(value), meaning(schemas)];
                self.rows.push(row);
            }
        }
    }

    /// These schemas and the ones that they are made of.
    fn all(&self, mut schemas: Vec<&'a Value>) -> Vec<&'a Value> {
        let mut i = 0;
        while let Some(schema) = schemas.get(i).copied() {
            i += 1;
            let parts = schema.get("allOf").and_then(Value::as_array);
            let target = schema.get("$ref").and_then(Value::as_str);
            let target = target.and_then(|reference| self.target(reference));
            for part in parts.into_iter().flatten().chain(target) {
                if schemas.len() < MOST_SCHEMAS && !schemas.iter().any(|s| std::ptr::eq(*s, part)) {
                    schemas.push(part);
                }
            }
        }
        schemas
    }

    /// What a reference of a locally complete schema means. One that is not found explains nothing.
    fn target(&self, reference: &str) -> Option<&'a Value> {
        let root = self.root?;
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let embedded = root.get("$defs").and_then(Value::as_object);
        let mut candidates =
            std::iter::once(root).chain(embedded.into_iter().flat_map(Map::values));
        let has_id = |schema: &&Value| schema.get("$id").and_then(Value::as_str) == Some(document);
        let found = match document {
            "" => Some(root),
            _ => candidates.find(has_id),
        };
        found?.pointer(fragment)
    }
}

fn is_container(value: &Value) -> bool {
    value.is_object() || value.is_array()
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn meaning(schemas: &[&Value]) -> String {
    let says = |keyword: &str| {
        schemas
            .iter()
            .find_map(|schema| schema.get(keyword)?.as_str())
    };
    let parts = [says("title"), says("description")];
    let mut parts: Vec<&str> = parts.into_iter().flatten().collect();
    parts.dedup();
    parts.join(": ")
}
