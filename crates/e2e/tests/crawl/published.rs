//! The protocol's published JSON Schemas.

use std::collections::BTreeMap;
use std::fs;

use e2e::shared::shared;
use jsonschema::{Draft, Registry, Validator};
use serde_json::Value;

/// Schemas that documents of ours must satisfy, by name.
pub(crate) struct Published(BTreeMap<&'static str, Validator>);

const USED: [&str; 8] = [
    "service-document",
    "offering",
    "collection",
    "page-envelope",
    "problem-details",
    "detail-fields",
    "offering-search-response",
    "filter-definition-page",
];

impl Published {
    /// Compiles them; they refer to each other by their `$id`. `None` when they are not at hand.
    pub(crate) fn load() -> Option<Self> {
        let directory = shared("odp/schemas")?;
        let mut files = BTreeMap::new();
        for file in fs::read_dir(directory).unwrap() {
            let path = file.unwrap().path();
            let schema: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            files.insert(schema["$id"].as_str().unwrap().to_owned(), schema);
        }
        let pairs = files.iter().map(|(id, schema)| (id.as_str(), schema));
        let registry = Registry::new()
            .draft(Draft::Draft202012)
            .extend(pairs)
            .unwrap()
            .prepare()
            .unwrap();
        let compiled = USED.map(|name| {
            let id = format!("https://offeringprotocol.org/schemas/{name}.schema.json");
            let validator = jsonschema::options()
                .with_draft(Draft::Draft202012)
                .with_registry(&registry)
                .should_validate_formats(true)
                .build(&files[&id]);
            (name, validator.unwrap_or_else(|e| panic!("{name}: {e}")))
        });
        Some(Self(compiled.into()))
    }

    /// Holds a top-level document to a schema.
    pub(crate) fn check(&self, schema: &str, document: &Value) {
        let faults: Vec<String> = self.0[schema]
            .iter_errors(document)
            .map(|fault| format!("{}: {fault}", fault.instance_path()))
            .collect();
        assert!(faults.is_empty(), "not a {schema}: {document}\n{faults:#?}");
    }

    /// Holds an item of a page to the schema of a top-level document: the item lacks the version, and nothing else.
    pub(crate) fn check_item(&self, schema: &str, item: &Value) {
        assert!(item.get("odp_version").is_none(), "{item}");
        self.check(schema, &with_version(item));
        self.check_details(item);
    }

    /// Holds `detail_fields`, when there are any, to their schema.
    pub(crate) fn check_details(&self, terse: &Value) {
        if let Some(fields) = terse.get("detail_fields") {
            self.check("detail-fields", fields);
        }
    }
}

/// The top-level document that an item is.
pub(crate) fn with_version(item: &Value) -> Value {
    let mut document = item.clone();
    let members = document.as_object_mut().unwrap();
    members.insert("odp_version".to_owned(), "1.0".into());
    document
}
