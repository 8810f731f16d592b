//! The life of a random catalog, and what callers see of it by the records alone.

use super::{NONE, access, list, put};
use proptest::prelude::*;
use proptest::sample::subsequence;
use purvey_catalog::Error;
use purvey_catalog::catalog::{Catalog, Listing};
use purvey_odp::identity::ResourceType::{self, Collection, Offering};
use purvey_odp::offering::Representation::Terse;
use serde_json::{Value, json};

pub(crate) const AUDIENCES: [&str; 2] = ["staff", "trade"];

/// One step of the life of a random catalog.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Put(ResourceType, Value),
    Delete(ResourceType, String),
    Publish,
}

pub(crate) fn audience() -> impl Strategy<Value = Vec<&'static str>> {
    prop_oneof![
        2 => Just(Vec::new()),
        3 => subsequence(&AUDIENCES[..], 1..=2),
    ]
}

pub(crate) fn decorated(
    kind: ResourceType,
    number: usize,
    named: &[usize],
    audience: &[&str],
    shape: u8,
) -> Value {
    let (prefix, member) = match kind {
        Collection => ("c", "parent_ids"),
        Offering => ("o", "collection_ids"),
    };
    let mut value = json!({"id": format!("{prefix}{number}"), "name": format!("Number {number}")});
    if !named.is_empty() {
        value[member] = named.iter().map(|n| format!("c{n}")).collect();
    }
    if shape & 1 != 0 {
        value["description"] = json!("Something.");
    }
    if shape & 6 == 2 {
        value["language"] = json!("fr");
    }
    if shape & 6 == 4 {
        value["translations"] = json!({"de": {"name": "Nummer"}, "tlh": {"name": "mI'"}});
    }
    if shape & 8 != 0 {
        value["web_url"] = json!("https://shop.example/x");
    }
    if !audience.is_empty() {
        value["audience"] = json!(audience);
    }
    value
}

/// Collections name earlier ones only, so that there is no cycle.
pub(crate) fn step() -> impl Strategy<Value = Step> {
    let parents = subsequence((0..6).collect::<Vec<usize>>(), 0..=3);
    prop_oneof![
        4 => (0..6_usize, parents.clone(), audience(), 0..16_u8).prop_map(|(n, mut named, audience, shape)| {
            named.retain(|parent| *parent < n);
            Step::Put(Collection, decorated(Collection, n, &named, &audience, shape))
        }),
        8 => (0..9_usize, parents, audience(), 0..16_u8)
            .prop_map(|(n, named, audience, shape)| Step::Put(Offering, decorated(Offering, n, &named, &audience, shape))),
        1 => (0..9_usize).prop_map(|n| Step::Delete(Offering, format!("o{n}"))),
        1 => (0..6_usize).prop_map(|n| Step::Delete(Collection, format!("c{n}"))),
        2 => Just(Step::Publish),
    ]
}

pub(crate) fn run(catalog: &Catalog, steps: &[Step]) {
    for n in 0..6 {
        put(catalog, Collection, &decorated(Collection, n, &[], &[], 0));
    }
    for step in steps {
        apply(catalog, step);
        if matches!(step, Step::Publish) {
            // Continuations keep generations, from which callers may go on being answered.
            for audiences in [&[][..], &["staff"]] {
                list(
                    catalog,
                    &Listing::Offerings,
                    Terse,
                    1,
                    None,
                    &access(audiences),
                )
                .unwrap();
            }
        }
    }
    catalog.publish().unwrap();
}

pub(crate) fn apply(catalog: &Catalog, step: &Step) {
    match step {
        Step::Put(kind, value) => {
            let id = value["id"].as_str().unwrap();
            match catalog.put(*kind, id, value.clone(), NONE) {
                // It names a Collection that was deleted.
                Ok(_) | Err(Error::Invalid(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        Step::Delete(kind, id) => match catalog.delete(*kind, id, NONE, true) {
            Ok(_) | Err(Error::NotFound) => {}
            Err(error) => panic!("{error}"),
        },
        Step::Publish => drop(catalog.publish().unwrap()),
    }
}

/// Everything in a catalog, as it is stored.
pub(crate) fn records(catalog: &Catalog) -> Vec<(ResourceType, Value)> {
    let mut found = Vec::new();
    for n in 0..9 {
        for (kind, prefix) in [(Collection, "c"), (Offering, "o")] {
            if let Some(stored) = catalog.record(kind, &format!("{prefix}{n}")).unwrap() {
                found.push((kind, serde_json::from_slice(&stored.bytes).unwrap()));
            }
        }
    }
    found
}

/// The records that a caller sees, without their audience and without what names a Collection that the caller does not see.
pub(crate) fn visible(
    records: &[(ResourceType, Value)],
    audiences: &[&str],
) -> Vec<(ResourceType, Value)> {
    let sees = |value: &Value| match value.get("audience") {
        None => true,
        Some(names) => {
            let mut names = names.as_array().unwrap().iter();
            names.any(|name| audiences.contains(&name.as_str().unwrap()))
        }
    };
    let collections: Vec<&str> = records
        .iter()
        .filter(|(kind, value)| *kind == Collection && sees(value))
        .map(|(_, value)| value["id"].as_str().unwrap())
        .collect();
    let mut seen: Vec<(ResourceType, Value)> = records
        .iter()
        .filter(|(_, value)| sees(value))
        .cloned()
        .collect();
    for (_, value) in &mut seen {
        let map = value.as_object_mut().unwrap();
        map.shift_remove("audience");
        for member in ["parent_ids", "collection_ids"] {
            let Some(named) = map.get_mut(member) else {
                continue;
            };
            let named = named.as_array_mut().unwrap();
            named.retain(|id| collections.contains(&id.as_str().unwrap()));
            if named.is_empty() {
                map.shift_remove(member);
            }
        }
    }
    seen
}
