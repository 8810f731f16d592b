//! Attribute schemas (ODP §10): Draft 2020-12, compiled once, without the network and with bounded regular expressions.

mod builtin;
mod cost;
mod graph;

pub use builtin::AGENT_SCHEMA;

use crate::manifest::{RESERVED, is_reserved, note};
use jsonschema::{Draft, PatternOptions, Registry, Uri, Validator};
use purvey_odp::decode::{Bounds, decode};
use purvey_odp::limits;
use purvey_odp::report::{Place, Report};
use serde_json::Value;
use std::collections::BTreeMap;

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
/// A path's schema needs an absolute base while the Service's origin is unknown; this name resolves nowhere (RFC 2606).
const BASE: &str = "https://catalog.invalid";
/// Steps that one regular expression may take on one text; what is slower counts as a mismatch.
const BACKTRACK_LIMIT: usize = 100_000;

/// The manifest's schemas by URL: a path is served, an absolute URL only validates.
#[derive(Debug, Default)]
pub struct Schemas(BTreeMap<String, Schema>);

#[derive(Debug)]
struct Schema {
    text: String,
    validator: Validator,
}

impl Schemas {
    /// Compiles `texts` (URL to JSON text), each of which may refer to the others; notes every fault at `place`, by URL.
    pub fn compile(
        report: &mut Report,
        place: &Place<'_>,
        texts: Vec<(String, String)>,
    ) -> Option<Self> {
        let before = report.len();
        let mut documents = Vec::new();
        for (url, text) in texts {
            let place = place.key(&url);
            if let Some(value) = read(report, &place, &url, &text) {
                documents.push((url, text, value));
            }
        }
        let mut graph = graph::Graph::new();
        for (url, text, value) in &documents {
            graph::insert(&mut graph, &absolute(url), text, value);
        }
        for (url, ..) in &documents {
            if let Some(excess) = graph::excess(&graph, &absolute(url)) {
                report.add(
                    &place.key(url),
                    format!("With what it refers to, it {excess}."),
                );
            }
        }
        let registry = registry(report, place, &documents)?;
        for (url, _, value) in &documents {
            if let Some(excess) = cost::excess(&registry, &absolute(url), value) {
                report.add(
                    &place.key(url),
                    format!("Is not a usable schema: it {excess}."),
                );
            }
        }
        if report.len() > before {
            return None;
        }
        let mut schemas = BTreeMap::new();
        for (url, text, value) in &documents {
            let built = jsonschema::options()
                .with_draft(Draft::Draft202012)
                .with_base_uri(absolute(url))
                .with_registry(&registry)
                .with_retriever(Nowhere)
                .with_pattern_options(
                    PatternOptions::fancy_regex().backtrack_limit(BACKTRACK_LIMIT),
                )
                .build(value);
            match built {
                Ok(validator) => {
                    let text = text.clone();
                    schemas.insert(url.clone(), Schema { text, validator });
                }
                Err(error) => report.add(
                    &place.key(url),
                    format!(
                        "Is not a usable schema: {error} (at {}).",
                        error.instance_path()
                    ),
                ),
            }
        }
        (report.len() == before).then_some(Self(schemas))
    }

    /// Whether a schema has this URL, compared as text.
    pub fn contains(&self, url: &str) -> bool {
        self.0.contains_key(url)
    }

    /// The JSON text of the schema that is served at `path`.
    pub fn served(&self, path: &str) -> Option<&str> {
        let Some(schema) = self.0.get(path) else {
            return builtin::text(path);
        };
        path.starts_with('/').then_some(schema.text.as_str())
    }

    /// Every schema: URL and JSON text, in the order of URLs.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(url, schema)| (url.as_str(), schema.text.as_str()))
    }

    /// Validates `attributes` against the schema of this URL; notes every fault at `place`, and an unknown URL too.
    pub fn validate(&self, report: &mut Report, place: &Place<'_>, url: &str, attributes: &Value) {
        let known = self.0.get(url).map(|schema| &schema.validator);
        let Some(validator) = known.or_else(|| builtin::validator(url)) else {
            report.add(
                place,
                format!("The manifest has no schema {url:?} to validate them."),
            );
            return;
        };
        if validator.is_valid(attributes) {
            return;
        }
        for error in validator.iter_errors(attributes) {
            let path = error.instance_path().to_string();
            note(
                report,
                place,
                &path,
                &format!("Does not fit its schema: {error}."),
            );
        }
    }
}

fn read(report: &mut Report, place: &Place<'_>, url: &str, text: &str) -> Option<Value> {
    let path = url.starts_with('/') && !url.starts_with("//");
    if !path && !url.starts_with("https://") {
        report.add(
            place,
            "Must be a path that starts with one / or an absolute https URL.",
        );
        return None;
    }
    if path && (is_reserved(url) || url.contains(['?', '#'])) {
        report.add(
            place,
            format!(
                "Must be a path alone, and not at or below {}: the server has other things there.",
                RESERVED.join(", ")
            ),
        );
        return None;
    }
    let bounds = Bounds {
        bytes: limits::ATTRIBUTE_SCHEMA_BYTES,
        depth: limits::JSON_DEPTH,
    };
    let value = match decode(text.as_bytes(), bounds) {
        Ok(value) => value,
        Err(error) => {
            report.add(place, format!("Is not JSON that can be served: {error}."));
            return None;
        }
    };
    if value.get("$schema").and_then(Value::as_str) != Some(DIALECT) {
        report.add(
            place,
            format!("Must declare Draft 2020-12: \"$schema\": \"{DIALECT}\"."),
        );
        return None;
    }
    Some(value)
}

fn registry<'a>(
    report: &mut Report,
    place: &Place<'_>,
    documents: &'a [(String, String, Value)],
) -> Option<Registry<'a>> {
    let pairs = documents
        .iter()
        .map(|(url, _, value)| (absolute(url), value));
    let prepared = Registry::new()
        .draft(Draft::Draft202012)
        .retriever(Nowhere)
        .extend(pairs)
        .and_then(jsonschema::RegistryBuilder::prepare);
    match prepared {
        Ok(registry) => Some(registry),
        Err(error) => {
            report.add(
                place,
                format!("A reference leads to none of these schemas: {error}."),
            );
            None
        }
    }
}

fn absolute(url: &str) -> String {
    if url.starts_with('/') {
        format!("{BASE}{url}")
    } else {
        url.to_owned()
    }
}

/// Schemas refer only to each other: nothing is ever fetched.
struct Nowhere;

impl jsonschema::Retrieve for Nowhere {
    fn retrieve(
        &self,
        uri: &Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        let uri = uri.as_str();
        Err(format!(
            "the manifest has no schema {}",
            uri.strip_prefix(BASE).unwrap_or(uri)
        )
        .into())
    }
}
