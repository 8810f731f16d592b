//! Random catalogs and requests, and an oracle that answers them. The oracle shares no code with the engine.
#![allow(dead_code, reason = "every test uses another part")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

pub(crate) mod oracle;
pub(crate) mod request;
pub(crate) mod values;

use purvey_catalog::search::{
    Bitset, Columns, ColumnsWriter, FilterCache, Ids, Mapping, Members, Resume, SearchIndex,
    SearchSegment, TextMatch,
};
use purvey_odp::filter::FilterDefinition;
use purvey_odp::identity::LocalId;
use purvey_odp::pointer::Pointer;
use purvey_odp::value::ScalarType;
use roaring::RoaringBitmap;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use values::{Random, record};

/// A filter of the test catalogs: identifier, type, and the members that feed it, as paths.
pub(crate) struct Filter {
    pub(crate) id: &'static str,
    pub(crate) scalar_type: ScalarType,
    pub(crate) paths: &'static [&'static [&'static str]],
    /// Of the Collection `shoes`, not of the Service.
    pub(crate) is_local: bool,
}

const fn filter(
    id: &'static str,
    scalar_type: ScalarType,
    paths: &'static [&'static [&'static str]],
) -> Filter {
    Filter {
        id,
        scalar_type,
        paths,
        is_local: false,
    }
}

pub(crate) const FILTERS: [Filter; 12] = [
    filter(
        "tag",
        ScalarType::String,
        &[&["name"], &["attributes", "tags"]],
    ),
    filter("flag", ScalarType::Boolean, &[&["attributes", "flag"]]),
    filter("count", ScalarType::Integer, &[&["attributes", "count"]]),
    filter("ratio", ScalarType::Number, &[&["attributes", "ratio"]]),
    filter(
        "amount",
        ScalarType::Decimal,
        &[&["price", "amount"], &["attributes", "amounts"]],
    ),
    filter("day", ScalarType::Date, &[&["attributes", "day"]]),
    filter("at", ScalarType::DateTime, &[&["attributes", "at"]]),
    filter("collection", ScalarType::String, &[&["collection_ids"]]),
    filter("rank", ScalarType::Integer, &[&["attributes", "rank"]]),
    filter(
        "nested",
        ScalarType::Integer,
        &[&["attributes", "list", "n"], &["attributes", "rank"]],
    ),
    filter("nothing", ScalarType::Number, &[&["attributes", "nowhere"]]),
    Filter {
        id: "size",
        scalar_type: ScalarType::Decimal,
        paths: &[&["attributes", "amounts"]],
        is_local: true,
    },
];

impl Filter {
    pub(crate) fn definition(&self) -> FilterDefinition {
        let mut operators = vec!["eq", "in", "exists"];
        if self.scalar_type.is_ordered() {
            operators.extend(["lt", "lte", "gt", "gte"]);
        }
        FilterDefinition::validate(json!({
            "id": self.id, "title": "T", "description": "D.", "type": self.scalar_type.as_str(),
            "operators": operators, "refinable": true
        }))
        .unwrap()
    }

    fn mapping(&self) -> Mapping {
        let pointers = self
            .paths
            .iter()
            .map(|path| Pointer::parse(&format!("/{}", path.join("/"))).unwrap());
        let collection = self.is_local.then(|| LocalId::parse("shoes").unwrap());
        Mapping::new(collection.as_ref(), &self.definition(), pointers.collect())
    }
}

/// Records by id, in segments; the last segment that has an id has the live record, unless it was removed.
pub(crate) struct Catalog {
    pub(crate) segments: Vec<BTreeMap<String, Value>>,
    pub(crate) removed: BTreeSet<String>,
}

impl Catalog {
    pub(crate) fn random(random: &mut Random, documents: usize, segments: usize) -> Self {
        let mut catalog = Self {
            segments: vec![BTreeMap::new(); segments],
            removed: BTreeSet::new(),
        };
        let many = random.chance(70);
        for _ in 0..documents {
            // Ids that repeat, of several lengths.
            let id = format!("o{}", random.below(documents * 3 / 2 + 1));
            let segment = match random.chance(60) {
                true => 0,
                false => random.below(segments),
            };
            let record = record(random, many);
            catalog.segments[segment].insert(id.clone(), record);
            if random.chance(8) {
                catalog.removed.insert(id);
            }
        }
        catalog
    }

    fn is_live(&self, segment: usize, id: &str) -> bool {
        let replaced = self.segments[segment + 1..]
            .iter()
            .any(|later| later.contains_key(id));
        !replaced && !self.removed.contains(id)
    }

    pub(crate) fn live(&self) -> BTreeMap<&str, &Value> {
        let all = self.segments.iter().flatten();
        let mut live: BTreeMap<&str, &Value> =
            all.map(|(id, record)| (id.as_str(), record)).collect();
        live.retain(|id, _| !self.removed.contains(*id));
        live
    }

    pub(crate) fn ids(&self, segment: usize) -> Vec<String> {
        self.segments[segment].keys().cloned().collect()
    }

    pub(crate) fn dead(&self, segment: usize) -> RoaringBitmap {
        let ids = self.segments[segment].keys().enumerate();
        ids.filter(|(_, id)| !self.is_live(segment, id))
            .map(|(ordinal, _)| ordinal as u32)
            .collect()
    }

    pub(crate) fn columns(&self, segment: usize) -> Columns {
        let mappings: Vec<_> = FILTERS.iter().map(Filter::mapping).collect();
        let mut writer = ColumnsWriter::new(&mappings);
        for record in self.segments[segment].values() {
            writer.push(record).unwrap();
        }
        writer.finish().unwrap()
    }

    pub(crate) fn index(&self, cache: &Arc<FilterCache>) -> SearchIndex {
        let segments = (0..self.segments.len()).map(|at| {
            let ids = IdList(self.ids(at));
            SearchSegment::new(Arc::new(self.columns(at)), Arc::new(ids), &self.dead(at))
        });
        SearchIndex::new(segments.collect(), Arc::clone(cache))
    }

    pub(crate) fn members(&self, collection: &str) -> Members {
        let sets = self.segments.iter().map(|records| {
            let mut set = Bitset::new(records.len() as u32);
            for (ordinal, record) in records.values().enumerate() {
                if is_member(record, collection) {
                    set.insert(ordinal as u32);
                }
            }
            set
        });
        Members::new(sets.collect())
    }
}

pub(crate) fn is_member(record: &Value, collection: &str) -> bool {
    let collections = record["collection_ids"].as_array();
    collections.is_some_and(|ids| ids.iter().any(|id| id == collection))
}

struct IdList(Vec<String>);

impl Ids for IdList {
    fn id(&self, ordinal: u32) -> &str {
        &self.0[ordinal as usize]
    }

    fn find(&self, id: &str) -> Option<u32> {
        let at = self.0.binary_search_by(|known| known.as_str().cmp(id));
        at.ok().map(|at| at as u32)
    }

    fn seek_after(&self, id: &str) -> u32 {
        self.0.partition_point(|known| known.as_str() <= id) as u32
    }
}

/// Records with a score match, by that score.
pub(crate) struct Scores<'a>(pub(crate) &'a Catalog);

pub(crate) fn score(record: &Value) -> Option<f32> {
    record["attributes"]["score"]
        .as_u64()
        .map(|score| score as f32 / 4.0)
}

impl TextMatch for Scores<'_> {
    fn matching(&self, segment: usize) -> Result<Bitset, purvey_catalog::Error> {
        let records = &self.0.segments[segment];
        let mut set = Bitset::new(records.len() as u32);
        for (ordinal, record) in records.values().enumerate() {
            if score(record).is_some() {
                set.insert(ordinal as u32);
            }
        }
        Ok(set)
    }

    fn best(
        &self,
        segment: usize,
        among: &Bitset,
        resume: Option<Resume>,
        limit: usize,
    ) -> Result<Vec<(f32, u32)>, purvey_catalog::Error> {
        let records = self.0.segments[segment].values().enumerate();
        let mut best: Vec<_> = records
            .filter_map(|(ordinal, record)| Some((score(record)?, ordinal as u32)))
            .filter(|(score, ordinal)| resume.is_none_or(|resume| resume.admits(*score, *ordinal)))
            .filter(|(_, ordinal)| among.contains(*ordinal))
            .collect();
        best.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        best.truncate(limit);
        Ok(best)
    }
}
