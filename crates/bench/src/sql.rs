//! What the two databases share: the conditions of a search as SQL.

use crate::ask::{Ask, Facet};

/// The conditions but those of `without`, joined with AND; `text` is the condition of the text.
pub(crate) fn conditions(ask: &Ask, without: Option<Facet>, text: &str) -> String {
    let mut all = Vec::new();
    if ask.text.is_some() {
        all.push(text.to_owned());
    }
    // The values are the benchmark's own.
    if let Some(registry) = ask.registry.filter(|_| without != Some(Facet::Registry)) {
        all.push(format!("p.registry = '{registry}'"));
    }
    if let Some(from) = ask
        .updated_from
        .as_deref()
        .filter(|_| without != Some(Facet::Updated))
    {
        all.push(format!("p.updated >= '{from}'"));
    }
    if let Some(from) = ask.downloads_from {
        all.push(format!("p.downloads >= {from}"));
    }
    if let Some(from) = ask.major_from.filter(|_| without != Some(Facet::Major)) {
        all.push(format!("p.major >= {from}"));
    }
    if all.is_empty() {
        "true".to_owned()
    } else {
        all.join(" AND ")
    }
}
