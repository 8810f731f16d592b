//! The graph of documents that one attribute schema needs: an Agent fetches no more than the protocol bounds (ODP §7, §10).

use purvey_odp::limits;
use serde_json::Value;
use std::collections::BTreeMap;
use url::Url;

/// A document: its size in bytes, and the documents that it refers to.
#[derive(Debug)]
pub(super) struct Node {
    bytes: usize,
    references: Vec<Url>,
}

/// Documents by URL.
pub(super) type Graph = BTreeMap<Url, Node>;

/// Adds a document.
pub(super) fn insert(graph: &mut Graph, url: &str, text: &str, value: &Value) {
    if let Ok(url) = Url::parse(url) {
        let (mut references, mut own) = (Vec::new(), vec![url.clone()]);
        collect(value, &url, &mut references, &mut own);
        references.sort_unstable();
        references.dedup();
        references.retain(|reference| !own.contains(reference));
        let bytes = text.len();
        graph.insert(url, Node { bytes, references });
    }
}

/// Which bound the graph of the document at `url` passes, in words.
pub(super) fn excess(graph: &Graph, url: &str) -> Option<String> {
    let mut seen = vec![Url::parse(url).ok()?];
    let mut bytes = 0;
    let mut from = 0;
    for depth in 0.. {
        let to = seen.len();
        if from == to {
            return None;
        }
        if depth > limits::SCHEMA_GRAPH_DEPTH {
            return Some(format!(
                "must not refer deeper than {} documents",
                limits::SCHEMA_GRAPH_DEPTH
            ));
        }
        for at in from..to {
            let Some(node) = graph.get(&seen[at]) else {
                continue;
            };
            bytes += node.bytes;
            for reference in &node.references {
                if !seen.contains(reference) {
                    seen.push(reference.clone());
                }
            }
        }
        if bytes > limits::SCHEMA_GRAPH_BYTES {
            return Some(format!(
                "must not need more than {} bytes of schemas",
                limits::SCHEMA_GRAPH_BYTES
            ));
        }
        if seen.len() > limits::SCHEMA_GRAPH_DOCUMENTS {
            return Some(format!(
                "must not need more than {} schemas",
                limits::SCHEMA_GRAPH_DOCUMENTS
            ));
        }
        from = to;
    }
    None
}

/// Finds what is referred to, and the names that parts of the document have themselves.
fn collect(value: &Value, base: &Url, out: &mut Vec<Url>, own: &mut Vec<Url>) {
    match value {
        Value::Object(members) => {
            let named = members.get("$id").and_then(Value::as_str);
            let named = named.and_then(|id| base.join(id).ok());
            own.extend(named.clone());
            let base = named.as_ref().unwrap_or(base);
            for name in ["$ref", "$dynamicRef"] {
                let target = members.get(name).and_then(Value::as_str);
                if let Some(mut target) = target.and_then(|target| base.join(target).ok()) {
                    target.set_fragment(None);
                    out.push(target);
                }
            }
            members
                .values()
                .for_each(|value| collect(value, base, out, own));
        }
        Value::Array(items) => items
            .iter()
            .for_each(|value| collect(value, base, out, own)),
        _ => {}
    }
}
