//! What of filters and sorts is advertised, and how: inline up to the protocol's bounds, beyond them behind links (ODP §5).

use super::search::Capabilities;
use purvey_odp::capability::Kind;
use purvey_odp::filter::FilterDefinition;
use purvey_odp::identity::CapabilityId;
use purvey_odp::limits;
use purvey_odp::sort::SortDefinition;
use serde_json::{Map, Value, json};

/// Inline definitions of a Collection take so many bytes at most: what is larger would weigh on every page of Full Collections.
pub(super) const COLLECTION_BYTES: usize = 65_536;
/// What a page of definitions holds beside them, its longest `next` included.
const ENVELOPE_BYTES: usize = 64 + limits::NEXT_CHARS;

impl Capabilities {
    /// `search_capabilities` in at most `room` bytes, else with links in place of definitions; nothing when there is nothing to advertise. Links are below `path`.
    pub(super) fn advertise(&self, path: &str, room: usize) -> Option<Value> {
        let inline = [
            self.filters().len() <= limits::INLINE_FILTERS,
            self.sorts().len() <= limits::INLINE_SORTS,
        ];
        let fits = |value: &Value| crate::render::bytes(value).len() <= room;
        let tries = [inline, [false, inline[1]], [false, false]];
        let mut values = tries.map(|inline| self.sources(path, inline)).into_iter();
        let best = values.by_ref().find(fits);
        let value = best.unwrap_or_else(|| self.sources(path, [false, false]));
        value
            .as_object()
            .is_some_and(|map| !map.is_empty())
            .then_some(value)
    }

    /// Each source inline or linked.
    fn sources(&self, path: &str, inline: [bool; 2]) -> Value {
        let mut map = Map::new();
        for (kind, inline) in [Kind::Filters, Kind::Sorts].into_iter().zip(inline) {
            let definitions = self.definitions(kind);
            if definitions.is_empty() {
                continue;
            }
            let source = if inline {
                json!({ "inline": definitions })
            } else {
                json!({ "linked": { "href": format!("{path}/{}", kind.as_str()) } })
            };
            map.insert(kind.as_str().to_owned(), source);
        }
        Value::Object(map)
    }

    /// The definitions of one kind in their wire form, in the manifest's order.
    pub fn definitions(&self, kind: Kind) -> Vec<Value> {
        match kind {
            Kind::Filters => {
                let filters = self.filters().iter();
                filters.map(|filter| filter.definition.to_value()).collect()
            }
            Kind::Sorts => self.sorts().iter().map(SortDefinition::to_value).collect(),
        }
    }

    /// The identifiers of one kind, in the manifest's order.
    pub fn ids(&self, kind: Kind) -> Vec<&str> {
        match kind {
            Kind::Filters => {
                let filters = self.filters().iter().map(|filter| &filter.definition);
                filters
                    .map(FilterDefinition::id)
                    .map(CapabilityId::as_str)
                    .collect()
            }
            Kind::Sorts => self.sorts().iter().map(|sort| sort.id().as_str()).collect(),
        }
    }

    /// Pages that the definitions of one kind take.
    pub(super) fn pages(&self, kind: Kind) -> usize {
        let definitions = self.definitions(kind);
        let lens: Vec<usize> = definitions
            .iter()
            .map(|definition| crate::render::bytes(definition).len())
            .collect();
        let mut rest = lens.as_slice();
        let mut pages = 0;
        while !rest.is_empty() {
            rest = rest.split_at(page_len(rest, limits::PAGE_ITEMS)).1;
            pages += 1;
        }
        pages
    }
}

/// How many definitions of these lengths, from the first on, make a page of at most `limit`.
pub(crate) fn page_len(lens: &[usize], limit: usize) -> usize {
    let mut bytes = ENVELOPE_BYTES;
    let fits = |len: &&usize| {
        bytes += **len + 1;
        bytes <= limits::PAGE_BYTES
    };
    lens.iter()
        .take(limit)
        .take_while(fits)
        .count()
        .max(lens.len().min(1))
}
