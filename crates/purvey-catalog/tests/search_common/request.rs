//! Random legal requests.

use super::values::{Random, valid};
use super::{FILTERS, Filter};
use purvey_odp::capability::{EffectiveCapabilities, Fetched, ScopeCapabilities};
use purvey_odp::identity::LocalId;
use purvey_odp::request::{OfferingSearchRequest, ResolvedSearch};
use purvey_odp::sort::SortDefinition;
use purvey_odp::value::Scalar;
use serde_json::{Value, json};

/// A request as the protocol has it.
pub(crate) struct Asked {
    pub(crate) body: Value,
    pub(crate) resolved: ResolvedSearch,
    pub(crate) collection: Option<LocalId>,
    pub(crate) with_text: bool,
    pub(crate) limit: usize,
}

pub(crate) fn asked(random: &mut Random) -> Asked {
    let collection = random.chance(40).then_some("shoes");
    let filters: Vec<&Filter> = FILTERS
        .iter()
        .filter(|filter| !filter.is_local || collection.is_some())
        .collect();
    let mut body = json!({"odp_version": "1.0"});
    let with_text = random.chance(30);
    if with_text {
        body["query"] = json!("anything");
    }
    let n = [0, 1, 1, 1, 2, 2, 3, 5][random.below(8)].max(usize::from(!with_text));
    if n > 0 {
        body["filters"] = (0..n).map(|_| expression(random, &filters)).collect();
    }
    if let Some(collection) = collection {
        body["collection_id"] = json!(collection);
    }
    let sort = random.chance(70).then(|| recipe(random, &filters));
    if sort.is_some() {
        body["sort"] = json!("by");
    }
    let refinements: Vec<_> = filters
        .iter()
        .filter(|_| random.chance(40))
        .map(|filter| filter.id)
        .collect();
    if !refinements.is_empty() {
        body["refinements"] = json!(refinements);
    }
    let (local, own): (Vec<&Filter>, Vec<&Filter>) =
        filters.iter().partition(|filter| filter.is_local);
    let scope = |filters: &[&Filter], sorts| ScopeCapabilities {
        filters: Fetched::Definitions(filters.iter().map(|filter| filter.definition()).collect()),
        sorts,
    };
    let sorts = Fetched::Definitions(sort.into_iter().collect());
    let effective = match collection {
        None => EffectiveCapabilities::check(scope(&own, sorts), None),
        Some(_) => {
            EffectiveCapabilities::check(scope(&own, Fetched::Absent), Some(scope(&local, sorts)))
        }
    };
    let request = OfferingSearchRequest::validate(body.clone()).unwrap();
    Asked {
        resolved: request.resolve(&effective.unwrap()).unwrap(),
        body,
        collection: collection.map(|id| LocalId::parse(id).unwrap()),
        with_text,
        limit: 1 + random.below(7),
    }
}

fn expression(random: &mut Random, filters: &[&Filter]) -> Value {
    let filter = random.pick(filters);
    let definition = filter.definition();
    let operator = random.pick(definition.operators()).as_str();
    let value = match operator {
        "exists" => json!(random.chance(70)),
        "in" => {
            let mut values: Vec<(Scalar, Value)> = Vec::new();
            for _ in 0..=random.below(6) {
                let value = valid(random, filter.scalar_type);
                let scalar = filter.scalar_type.scalar(&value).unwrap();
                if !values.iter().any(|(known, _)| *known == scalar) {
                    values.push((scalar, value));
                }
            }
            values.into_iter().map(|(_, value)| value).collect()
        }
        _ => valid(random, filter.scalar_type),
    };
    json!({"id": filter.id, "operator": operator, "value": value})
}

fn recipe(random: &mut Random, filters: &[&Filter]) -> SortDefinition {
    let mut ids: Vec<&str> = Vec::new();
    for _ in 0..=random.below(3) {
        let id = random.pick(filters).id;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    let keys: Vec<_> = ids
        .iter()
        .map(|id| {
            json!({
                "filter_id": id,
                "direction": random.pick(&["ascending", "descending"]),
                "missing": random.pick(&["first", "last"]),
            })
        })
        .collect();
    SortDefinition::validate(json!({"id": "by", "title": "T", "description": "D.", "keys": keys}))
        .unwrap()
}
