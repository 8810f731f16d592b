//! The hierarchy of Collections, and membership.

use super::complete;
use crate::adapter::Role;
use crate::case::{Fault, Input, Outcome};
use crate::service::Service;
use purvey_odp::collection::Collection;
use purvey_odp::hierarchy::{EdgeFault, Hierarchy};
use purvey_odp::identity::LocalId;
use purvey_odp::offering::{Offering, Placement};
use purvey_odp::service::Operation;
use serde_json::{Value, json};

/// A Service must refuse to write the edge that breaks it; an Agent must find one.
pub(super) fn hierarchy(role: Role, input: &Input) -> Result<Outcome, Fault> {
    let collections = match input.get("chain_length") {
        Some(_) => chain(input.read("chain_length")?),
        None => input.read("collections")?,
    };
    let valid = match role {
        Role::Agent => graph(&collections)?.broken().is_empty(),
        Role::Service => written(&Service::empty()?, &collections)?,
    };
    Ok(Outcome::valid(valid))
}

/// A chain of so many edges.
fn chain(edges: usize) -> Vec<Value> {
    let id = |i: usize| format!("c{i}");
    let child = |i: usize| json!({"id": id(i), "parent_ids": [id(i - 1)]});
    std::iter::once(json!({"id": id(0)}))
        .chain((1..=edges).map(child))
        .collect()
}

fn graph(collections: &[Value]) -> Result<Hierarchy, Fault> {
    let mut edges = Vec::with_capacity(collections.len());
    for collection in collections {
        let collection = complete::resource(collection.clone());
        let collection = Collection::validate(collection, Placement::Embedded)
            .map_err(Fault::of("Collection"))?;
        edges.push((collection.id().clone(), collection.parent_ids().to_vec()));
    }
    Ok(Hierarchy::new(edges))
}

/// Writes all Collections as roots, then every one with its parents; whether all were taken.
fn written(service: &Service, collections: &[Value]) -> Result<bool, Fault> {
    for collection in collections {
        let mut root = complete::resource(collection.clone());
        if let Value::Object(map) = &mut root {
            map.shift_remove("parent_ids");
        }
        if !service.put("collections", &root)? {
            return Err(Fault(format!("a root was refused: {root}")));
        }
    }
    for collection in collections {
        if !service.put("collections", &complete::resource(collection.clone()))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Puts one broken edge beside a sound one into what an Agent reads, and looks for what it does with the two.
pub(super) fn invalid_edge(_: Role, input: &Input) -> Result<Outcome, Fault> {
    let condition: String = input.read("condition")?;
    let id = |text: &str| LocalId::parse(text).map_err(Fault::of("identifier"));
    let (collections, child, parent, fault) = match condition.as_str() {
        "cycle" => {
            let collections = vec![
                json!({"id": "sound"}),
                json!({"id": "a", "parent_ids": ["b"]}),
                json!({"id": "b", "parent_ids": ["sound", "a"]}),
            ];
            (collections, "b", "a", EdgeFault::Cycle)
        }
        "depth-exceeded" => {
            let mut collections = chain(33);
            collections.push(json!({"id": "sound"}));
            if let Some(parents) = collections
                .get_mut(33)
                .and_then(|last| last.get_mut("parent_ids"))
            {
                *parents = json!(["sound", "c32"]);
            }
            (collections, "c33", "c32", EdgeFault::TooDeep)
        }
        "missing-parent" => {
            let collections = vec![
                json!({"id": "sound"}),
                json!({"id": "a", "parent_ids": ["missing", "sound"]}),
            ];
            (collections, "a", "missing", EdgeFault::MissingParent)
        }
        "missing-collection" => {
            let graph = graph(&[json!({"id": "sound"})])?;
            let offering =
                json!({"id": "item", "name": "Item", "collection_ids": ["missing", "sound"]});
            let offering =
                Offering::validate(offering, Placement::Embedded).map_err(Fault::of("Offering"))?;
            let known: Vec<_> = offering
                .collection_ids()
                .iter()
                .filter(|id| graph.contains(id))
                .collect();
            return Ok(edge(known == [&id("sound")?]));
        }
        _ => return Err(Fault(format!("the condition {condition} is not known"))),
    };
    let graph = graph(&collections)?;
    let (child, parent, sound) = (id(child)?, id(parent)?, id("sound")?);
    let named: Vec<_> = graph
        .broken()
        .iter()
        .map(|edge| (&edge.parent, edge.fault))
        .collect();
    let kept: Vec<_> = graph.parents(&child).collect();
    Ok(edge(
        named == [(&parent, fault)] && kept == [&sound] && graph.contains(&child),
    ))
}

fn edge(only_it_is_ignored: bool) -> Outcome {
    let word = if only_it_is_ignored {
        "ignore-edge"
    } else {
        "something-else"
    };
    Outcome::new().with("expected", word)
}

/// A Service takes only memberships of Collections that exist, and lists the direct ones. An Agent sees which of what it read are.
pub(super) fn membership(role: Role, input: &Input) -> Result<Outcome, Fault> {
    let collections: Vec<String> = input.read("collections")?;
    let collections: Vec<Value> = collections
        .into_iter()
        .map(|id| json!({"id": id}))
        .collect();
    let offerings: Vec<Value> = input.read("offerings")?;
    let offerings: Vec<Value> = offerings.into_iter().map(complete::resource).collect();
    let queried: String = input.read("query_collection_id")?;
    let members = match role {
        Role::Service => listed(&collections, &offerings, &queried)?,
        Role::Agent => read(&collections, offerings, &queried)?,
    };
    Ok(match members {
        Some(ids) => Outcome::valid(true).with("offering_ids", ids),
        None => Outcome::valid(false),
    })
}

fn listed(
    collections: &[Value],
    offerings: &[Value],
    queried: &str,
) -> Result<Option<Vec<Value>>, Fault> {
    let service = Service::empty()?;
    if !written(&service, collections)? {
        return Ok(None);
    }
    for offering in offerings {
        if !service.put("offerings", offering)? {
            return Ok(None);
        }
    }
    let page =
        service.document(&service.path(Operation::ListCollectionOfferings, Some(queried))?)?;
    if page.get("next").is_some() {
        return Err(Fault("the list has a second page".to_owned()));
    }
    let items = page.get("items").and_then(Value::as_array);
    let items = items.ok_or_else(|| Fault("the page has no items".to_owned()))?;
    Ok(Some(
        items
            .iter()
            .filter_map(|item| item.get("id").cloned())
            .collect(),
    ))
}

fn read(
    collections: &[Value],
    offerings: Vec<Value>,
    queried: &str,
) -> Result<Option<Vec<Value>>, Fault> {
    let graph = graph(collections)?;
    let mut members = Vec::new();
    for offering in offerings {
        let offering =
            Offering::validate(offering, Placement::Embedded).map_err(Fault::of("Offering"))?;
        if !offering
            .collection_ids()
            .iter()
            .all(|id| graph.contains(id))
        {
            return Ok(None);
        }
        if offering
            .collection_ids()
            .iter()
            .any(|id| id.as_str() == queried)
        {
            members.push(offering.id().as_str().into());
        }
    }
    Ok(Some(members))
}
