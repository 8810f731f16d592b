//! Fetching a schema and everything that it refers to, and making one document of it (ODP §10).

use super::index::is_built_in;
use crate::issue::{Fault, IssueCode};
use crate::supporting::{Supporting, undecodable};
use crate::transport::Class;
use purvey_odp::decode::{Bounds, decode};
use purvey_odp::keywords::within_mut;
use purvey_odp::limits;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet, VecDeque};
use url::Url;

/// The only dialect.
pub(super) const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
/// The base of a schema that was not found at a URL.
const LOCAL: &str = "https://schema.invalid/";
const VOCABULARIES: &str = "https://json-schema.org/draft/2020-12/vocab/";
const KNOWN_VOCABULARIES: [&str; 8] = [
    "core",
    "applicator",
    "unevaluated",
    "validation",
    "meta-data",
    "format-annotation",
    "format-assertion",
    "content",
];

/// The schema at `url` with everything that it refers to, as one document: what was fetched beside it is embedded in `$defs`
/// under its own `$id`, and every reference is absolute. The whole graph is read before any of it is used.
pub(super) async fn fetch(supporting: &Supporting<'_>, url: Url) -> Result<Value, Fault> {
    let mut graph = Graph::default();
    let mut queue = VecDeque::from([(url, 0)]);
    while let Some((url, depth)) = queue.pop_front() {
        if graph.has(&url) {
            continue;
        }
        if depth > limits::SCHEMA_GRAPH_DEPTH {
            return Err(excess(format!(
                "The schema refers deeper than {} documents.",
                limits::SCHEMA_GRAPH_DEPTH
            )));
        }
        if graph.documents.len() >= limits::SCHEMA_GRAPH_DOCUMENTS {
            return Err(excess(format!(
                "The schema needs more than {} documents.",
                limits::SCHEMA_GRAPH_DOCUMENTS
            )));
        }
        let fetched = supporting
            .fetch(Class::AttributeSchema, url.clone())
            .await?;
        graph.bytes += fetched.body.len();
        if graph.bytes > limits::SCHEMA_GRAPH_BYTES {
            return Err(excess(format!(
                "The schema needs more than {} bytes of documents.",
                limits::SCHEMA_GRAPH_BYTES
            )));
        }
        let value = decode(&fetched.body, Bounds::ATTRIBUTE_SCHEMA)
            .map_err(|error| undecodable("schema", &error))?;
        for reference in graph.add(&url, fetched.url, value)? {
            queue.push_back((reference, depth + 1));
        }
    }
    graph.bundle()
}

/// The schema at `pointer` in `document`, which was found at `url` and is no schema itself, as one that is; `beside` are
/// pointers of further schemas in it. It may refer to those, and to nothing elsewhere.
pub(super) fn embedded(
    document: &Map<String, Value>,
    url: &Url,
    pointer: &str,
    beside: &[String],
) -> Result<Value, Fault> {
    let mut graph = Graph::default();
    graph.ids.insert(url.as_str().to_owned());
    let mut root = Value::Object(document.clone());
    let mut scan = Scan {
        graph: &mut graph,
        references: Vec::new(),
    };
    for at in beside.iter().map(String::as_str).chain([pointer]) {
        if let Some(schema) = root.pointer_mut(at) {
            scan.schema(schema, url)?;
        }
    }
    let references = scan.references;
    if references.iter().any(|reference| !graph.has(reference)) {
        return Err(Fault::new(
            IssueCode::Unsupported,
            "A schema in the document refers to another document.",
        ));
    }
    if let Value::Object(map) = &mut root {
        map.insert("$schema".into(), DIALECT.into());
        map.insert("$id".into(), url.as_str().into());
        let target = percent_encoding(pointer);
        map.insert("$ref".into(), format!("{url}#{target}").into());
    }
    Ok(root)
}

/// A whole schema that came by itself, from nowhere: it may refer to what is in it, and to nothing elsewhere.
pub(super) fn local(mut schema: Value) -> Result<Value, Fault> {
    let base = Url::parse(LOCAL).map_err(|_| invalid("The schema has no base."))?;
    let mut graph = Graph::default();
    match &mut schema {
        Value::Object(map) => {
            map.entry("$schema").or_insert_with(|| DIALECT.into());
            map.entry("$id").or_insert_with(|| LOCAL.into());
        }
        Value::Bool(_) => {}
        _ => return Err(invalid("A schema is an object, true or false.")),
    }
    let mut scan = Scan {
        graph: &mut graph,
        references: Vec::new(),
    };
    scan.schema(&mut schema, &base)?;
    let references = scan.references;
    match references.iter().find(|reference| !graph.has(reference)) {
        Some(_) => Err(Fault::new(
            IssueCode::Unsupported,
            "The schema refers to another document.",
        )),
        None => Ok(schema),
    }
}

/// A JSON Pointer as a URI fragment.
fn percent_encoding(pointer: &str) -> String {
    let mut out = String::with_capacity(pointer.len());
    for byte in pointer.bytes() {
        let plain = byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
        if plain {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn excess(message: String) -> Fault {
    Fault::new(IssueCode::ResponseLimitExceeded, message)
}

#[derive(Default)]
struct Graph {
    documents: Vec<Value>,
    bytes: usize,
    /// Absolute `$id`s at hand, of documents and of what is embedded in them.
    ids: HashSet<String>,
    /// Where a document was found, to the `$id` that it has instead.
    aliases: HashMap<String, String>,
}

impl Graph {
    fn has(&self, url: &Url) -> bool {
        self.ids.contains(url.as_str()) || self.aliases.contains_key(url.as_str())
    }

    /// Takes the document that was asked for at `asked` and found at `found`; gives what it refers to elsewhere.
    fn add(&mut self, asked: &Url, mut found: Url, mut value: Value) -> Result<Vec<Url>, Fault> {
        let Value::Object(map) = &mut value else {
            return Err(invalid("A schema document is not an object."));
        };
        if map.get("$schema").and_then(Value::as_str) != Some(DIALECT) {
            return Err(Fault::new(
                IssueCode::Unsupported,
                format!("A schema document does not declare \"$schema\": \"{DIALECT}\"."),
            ));
        }
        found.set_fragment(None);
        let own = match map.get("$id") {
            None => found.clone(),
            Some(Value::String(id)) => identifier(id, &found)?,
            Some(_) => return Err(invalid("A schema's $id is not a string.")),
        };
        for place in [asked, &found] {
            if *place != own {
                let (place, own) = (place.as_str().to_owned(), own.as_str().to_owned());
                self.aliases.insert(place, own);
            }
        }
        if self.ids.contains(own.as_str()) {
            // The same resource at another place: the one that is at hand stands for both.
            return Ok(Vec::new());
        }
        map.insert("$id".into(), own.as_str().into());
        let mut scan = Scan {
            graph: self,
            references: Vec::new(),
        };
        scan.schema(&mut value, &found)?;
        let references = scan.references;
        self.documents.push(value);
        Ok(references)
    }

    fn bundle(self) -> Result<Value, Fault> {
        let Self {
            documents, aliases, ..
        } = self;
        let mut documents = documents.into_iter();
        let Some(Value::Object(mut root)) = documents.next() else {
            return Err(invalid("A schema document is not an object."));
        };
        let mut others: Vec<(String, Value)> = documents
            .map(|document| {
                let id = document.get("$id").and_then(Value::as_str);
                (id.unwrap_or_default().to_owned(), document)
            })
            .collect();
        if !others.is_empty() {
            let definitions = root
                .entry("$defs")
                .or_insert_with(|| Value::Object(Map::new()));
            let Value::Object(definitions) = definitions else {
                return Err(invalid("The schema's $defs are not an object."));
            };
            for (id, document) in others.drain(..) {
                if definitions.insert(id, document).is_some() {
                    return Err(invalid("A definition has the name of another document."));
                }
            }
        }
        let mut root = Value::Object(root);
        if !aliases.is_empty() {
            rename(&mut root, &aliases);
        }
        Ok(root)
    }
}

fn invalid(message: &str) -> Fault {
    Fault::new(IssueCode::Invalid, message)
}

/// Writes every reference to an alias as one to the `$id` that stands for it.
fn rename(schema: &mut Value, aliases: &HashMap<String, String>) {
    let Value::Object(map) = schema else {
        return;
    };
    if let Some(Value::String(reference)) = map.get_mut("$ref") {
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        if let Some(id) = aliases.get(document) {
            *reference = match fragment {
                "" => id.clone(),
                fragment => format!("{id}#{fragment}"),
            };
        }
    }
    for inner in within_mut(map) {
        rename(inner, aliases);
    }
}

/// Goes through one document: makes `$id` and `$ref` absolute, notes what is named here and what is referred to.
struct Scan<'g> {
    graph: &'g mut Graph,
    references: Vec<Url>,
}

impl Scan<'_> {
    fn schema(&mut self, schema: &mut Value, base: &Url) -> Result<(), Fault> {
        let Value::Object(map) = schema else {
            return Ok(());
        };
        check_dialect(map)?;
        let own = match map.get_mut("$id") {
            None => None,
            Some(Value::String(id)) => Some(self.name(id, base)?),
            Some(_) => return Err(invalid("A schema's $id is not a string.")),
        };
        let base = own.as_ref().unwrap_or(base);
        match map.get_mut("$ref") {
            None => {}
            Some(Value::String(reference)) => self.refer(reference, base)?,
            Some(_) => return Err(invalid("A schema's $ref is not a string.")),
        }
        match map.get("$dynamicRef") {
            None => {}
            Some(Value::String(reference)) if reference.starts_with('#') => {}
            Some(_) => {
                return Err(Fault::new(
                    IssueCode::Unsupported,
                    "A schema's $dynamicRef is not a fragment alone.",
                ));
            }
        }
        for inner in within_mut(map) {
            self.schema(inner, base)?;
        }
        Ok(())
    }

    fn name(&mut self, id: &mut String, base: &Url) -> Result<Url, Fault> {
        let url = identifier(id, base)?;
        url.as_str().clone_into(id);
        if !self.graph.ids.insert(id.clone()) {
            return Err(invalid("Two schemas have the same $id."));
        }
        Ok(url)
    }

    fn refer(&mut self, reference: &mut String, base: &Url) -> Result<(), Fault> {
        let mut url = base
            .join(reference)
            .map_err(|_| invalid("A schema's $ref is not a URI reference."))?;
        if url.fragment() == Some("") {
            url.set_fragment(None);
        }
        url.as_str().clone_into(reference);
        url.set_fragment(None);
        if !is_built_in(url.as_str()) {
            self.references.push(url);
        }
        Ok(())
    }
}

/// The URI that `$id` gives at `base`.
fn identifier(id: &str, base: &Url) -> Result<Url, Fault> {
    let mut url = base
        .join(id)
        .map_err(|_| invalid("A schema's $id is not a URI."))?;
    if url.fragment().is_some_and(|fragment| !fragment.is_empty()) {
        return Err(invalid("A schema's $id has a fragment."));
    }
    if is_built_in(url.as_str()) {
        return Err(invalid("A schema's $id is that of the dialect."));
    }
    url.set_fragment(None);
    Ok(url)
}

fn check_dialect(map: &Map<String, Value>) -> Result<(), Fault> {
    let unsupported = |message| Err(Fault::new(IssueCode::Unsupported, message));
    if map.get("$schema").is_some_and(|dialect| dialect != DIALECT) {
        return unsupported("A schema declares a dialect that is not supported.");
    }
    let required = map.get("$vocabulary").and_then(Value::as_object);
    let unknown = required.into_iter().flatten().any(|(name, required)| {
        let known = name
            .strip_prefix(VOCABULARIES)
            .is_some_and(|name| KNOWN_VOCABULARIES.contains(&name));
        *required == true && !known
    });
    if unknown {
        return unsupported("A schema requires a vocabulary that is not supported.");
    }
    Ok(())
}
