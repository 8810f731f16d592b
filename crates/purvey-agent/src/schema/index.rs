//! Where everything is in a schema that is one document.

use crate::issue::{Fault, IssueCode};
use purvey_odp::keywords;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::ptr;

/// Most schemas that refer to others: a chain of them is followed by recursion.
const REFERENCES: usize = 2_048;
/// Most distinct regular expressions of one schema, and most bytes of them together: each is compiled, and may take
/// [`super::check::PATTERN_BYTES`] of memory.
const PATTERNS: usize = 256;
const PATTERN_TEXT: usize = 16_384;

/// The dialect's own schemas are part of every validator and are not fetched.
const BUILT_IN: &str = "https://json-schema.org/draft/2020-12/";

/// Whether an absolute URI is that of one of the dialect's own schemas.
pub(super) fn is_built_in(uri: &str) -> bool {
    uri.starts_with(BUILT_IN)
}

/// The schemas of a document, by name.
pub(super) struct Index<'a> {
    /// Absolute URIs, and absolute URIs with an anchor.
    names: HashMap<String, &'a Value>,
    /// Anchors alone, static and dynamic: what a `$dynamicRef` can mean.
    anchors: HashMap<&'a str, Vec<&'a Value>>,
    /// Every schema by its address, with the absolute URI of the resource that it is part of.
    schemas: HashMap<*const Value, &'a str>,
    /// Those that refer to others.
    referring: Vec<&'a Value>,
    patterns: HashSet<&'a str>,
}

impl<'a> Index<'a> {
    /// The index of `root`, in which every `$id` is absolute; `beside` are further schemas in it that no keyword holds.
    pub(super) fn new(root: &'a Value, beside: &[&'a Value]) -> Result<Self, Fault> {
        let mut index = Self {
            names: HashMap::new(),
            anchors: HashMap::new(),
            schemas: HashMap::new(),
            referring: Vec::new(),
            patterns: HashSet::new(),
        };
        let base = root.get("$id").and_then(Value::as_str).unwrap_or_default();
        index.add(root, base);
        for schema in beside {
            index.add(schema, base);
        }
        let text: usize = index.patterns.iter().map(|pattern| pattern.len()).sum();
        if index.referring.len() > REFERENCES
            || index.patterns.len() > PATTERNS
            || text > PATTERN_TEXT
        {
            return Err(Fault::new(
                IssueCode::TooCostly,
                format!(
                    "The schema has more than {REFERENCES} references, {PATTERNS} patterns or {PATTERN_TEXT} bytes of patterns."
                ),
            ));
        }
        Ok(index)
    }

    fn add(&mut self, schema: &'a Value, base: &'a str) {
        let mut base = base;
        if let Value::Object(map) = schema {
            if let Some(id) = map.get("$id").and_then(Value::as_str) {
                base = id;
                self.names.insert(id.to_owned(), schema);
            }
            self.note(schema, map, base);
            for inner in keywords::within(map) {
                self.add(inner, base);
            }
        }
        self.schemas.insert(ptr::from_ref(schema), base);
    }

    fn note(&mut self, schema: &'a Value, map: &'a Map<String, Value>, base: &'a str) {
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(anchor) = map.get(keyword).and_then(Value::as_str) {
                self.names.insert(format!("{base}#{anchor}"), schema);
                self.anchors.entry(anchor).or_default().push(schema);
            }
        }
        if map.contains_key("$ref") || map.contains_key("$dynamicRef") {
            self.referring.push(schema);
        }
        let pattern = map.get("pattern").and_then(Value::as_str);
        let of_members = map.get("patternProperties").and_then(Value::as_object);
        let patterns = of_members
            .into_iter()
            .flat_map(Map::keys)
            .map(String::as_str);
        for pattern in pattern.into_iter().chain(patterns) {
            self.patterns.insert(pattern);
        }
    }

    /// Every schema that the keyword of `schema` can refer to: one for `$ref`, perhaps several for `$dynamicRef`, of which a
    /// value meets one. None for other keywords, and when there is none at hand.
    pub(super) fn referred(
        &self,
        schema: &'a Value,
        keyword: &str,
        held: &Value,
    ) -> Vec<&'a Value> {
        match (keyword, held.as_str()) {
            ("$ref", Some(reference)) => self.reference(reference).into_iter().collect(),
            ("$dynamicRef", Some(reference)) => self.dynamic(schema, reference),
            _ => Vec::new(),
        }
    }

    /// Every schema that something refers to.
    pub(super) fn targets(&self) -> Vec<&'a Value> {
        let mut targets = HashMap::new();
        for schema in &self.referring {
            for (keyword, held) in schema.as_object().into_iter().flatten() {
                for target in self.referred(schema, keyword, held) {
                    targets.insert(ptr::from_ref(target), target);
                }
            }
        }
        targets.into_values().collect()
    }

    /// Refuses a reference to the dialect's own schemas, or to what is no schema here.
    pub(super) fn check_references(&self) -> Result<(), Fault> {
        for schema in &self.referring {
            for (keyword, held) in schema.as_object().into_iter().flatten() {
                if !matches!(keyword.as_str(), "$ref" | "$dynamicRef") {
                    continue;
                }
                if held.as_str().is_some_and(is_built_in) {
                    return Err(Fault::new(
                        IssueCode::Unsupported,
                        "The schema asks for schemas as values.",
                    ));
                }
                if self.referred(schema, keyword, held).is_empty() {
                    return Err(Fault::new(
                        IssueCode::Invalid,
                        "A reference of the schema leads to no schema.",
                    ));
                }
            }
        }
        Ok(())
    }

    /// The schema that an absolute `$ref` means; nothing when there is none at hand.
    fn reference(&self, reference: &str) -> Option<&'a Value> {
        let (resource, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        if fragment.is_empty() || !fragment.starts_with('/') {
            let name = if fragment.is_empty() {
                resource
            } else {
                reference
            };
            return self.names.get(name).copied();
        }
        let pointer = percent_decoded(fragment)?;
        let schema = self.names.get(resource)?.pointer(&pointer)?;
        self.schemas
            .contains_key(&ptr::from_ref(schema))
            .then_some(schema)
    }

    /// Every schema that the `$dynamicRef` of `schema` can mean.
    fn dynamic(&self, schema: &'a Value, reference: &str) -> Vec<&'a Value> {
        let anchor = reference.trim_start_matches('#');
        if anchor.is_empty() || anchor.starts_with('/') {
            let base = self.schemas.get(&ptr::from_ref(schema)).copied();
            let reference = format!("{}{reference}", base.unwrap_or_default());
            return self.reference(&reference).into_iter().collect();
        }
        self.anchors.get(anchor).cloned().unwrap_or_default()
    }
}

/// The text that a URI fragment stands for.
pub(crate) fn percent_decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let high = char::from(rest.next()?).to_digit(16)?;
                let low = char::from(rest.next()?).to_digit(16)?;
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}
