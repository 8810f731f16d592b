//! What the protocol says must be found, by looking at every record: mapped sets, conditions, recipes, counts.

use super::request::Asked;
use super::{Catalog, FILTERS, Filter, is_member, score};
use purvey_odp::identity::CapabilityId;
use purvey_odp::sort::{Sorted, compare_keys};
use purvey_odp::value::Scalar;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What the protocol says must be answered: ids in order, and the groups.
pub(crate) struct Expected {
    pub(crate) ids: Vec<String>,
    pub(crate) groups: Vec<Value>,
}

/// A record with the values of every filter.
struct Mapped<'a> {
    id: &'a str,
    values: BTreeMap<&'static str, Vec<Scalar>>,
    score: f32,
}

impl Mapped<'_> {
    fn of(&self, filter: &CapabilityId) -> &[Scalar] {
        &self.values[filter.as_str()]
    }
}

pub(crate) fn expected(catalog: &Catalog, asked: &Asked) -> Expected {
    let in_scope = |record: &Value| {
        asked
            .collection
            .as_ref()
            .is_none_or(|id| is_member(record, id.as_str()))
    };
    let records: Vec<Mapped<'_>> = catalog
        .live()
        .into_iter()
        .filter(|(_, record)| in_scope(record) && (!asked.with_text || score(record).is_some()))
        .map(|(id, record)| Mapped {
            id,
            values: FILTERS
                .iter()
                .map(|filter| (filter.id, filter.mapped(record)))
                .collect(),
            score: score(record).unwrap_or(0.0),
        })
        .collect();
    let search = &asked.resolved;
    let mut found: Vec<&Mapped<'_>> = records
        .iter()
        .filter(|record| search.matches(|filter| record.of(filter)))
        .collect();
    found.sort_by(|a, b| match search.sort() {
        Some(sort) => {
            let selected = |record: &'_ Mapped<'_>| -> Vec<Option<Scalar>> {
                let keys = sort.keys().iter();
                keys.map(|key| key.select(record.of(key.filter_id())).cloned())
                    .collect()
            };
            let (x, y) = (selected(a), selected(b));
            let (x, y): (Vec<_>, Vec<_>) = (
                x.iter().map(Option::as_ref).collect(),
                y.iter().map(Option::as_ref).collect(),
            );
            compare_keys(
                sort.keys(),
                Sorted {
                    selected: &x,
                    id: a.id,
                },
                Sorted {
                    selected: &y,
                    id: b.id,
                },
            )
        }
        None if asked.with_text => b
            .score
            .total_cmp(&a.score)
            .then(a.id.as_bytes().cmp(b.id.as_bytes())),
        None => a.id.as_bytes().cmp(b.id.as_bytes()),
    });
    let mut groups = Vec::new();
    for definition in search.refinements() {
        let mut counts: BTreeMap<Scalar, u64> = BTreeMap::new();
        for record in &records {
            if search.matches_beside(definition.id(), |filter| record.of(filter)) {
                for value in record.of(definition.id()) {
                    *counts.entry(value.clone()).or_default() += 1;
                }
            }
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        counts.truncate(32);
        let values: Vec<_> = counts
            .iter()
            .map(|(value, count)| json!({"value": value.to_value(), "count": count}))
            .collect();
        if !values.is_empty() {
            groups.push(json!({"filter_id": definition.id().as_str(), "values": values}));
        }
    }
    Expected {
        ids: found.iter().map(|record| record.id.to_owned()).collect(),
        groups,
    }
}

impl Filter {
    /// The values that a record has, from the rule: everything of the type at the paths, through arrays.
    pub(crate) fn mapped(&self, record: &Value) -> Vec<Scalar> {
        fn gather(at: &Value, path: &[&str], out: &mut Vec<Value>) {
            match (at, path) {
                (Value::Array(items), _) => items.iter().for_each(|item| gather(item, path, out)),
                (Value::Object(members), [first, rest @ ..]) => {
                    if let Some(member) = members.get(*first) {
                        gather(member, rest, out);
                    }
                }
                (scalar, []) => out.push(scalar.clone()),
                _ => {}
            }
        }
        let mut found = Vec::new();
        self.paths
            .iter()
            .for_each(|path| gather(record, path, &mut found));
        let mut scalars: Vec<Scalar> = Vec::new();
        for scalar in found
            .iter()
            .filter_map(|value| self.scalar_type.scalar(value))
        {
            if !scalars.contains(&scalar) {
                scalars.push(scalar);
            }
        }
        scalars
    }
}
