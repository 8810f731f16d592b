//! The joint: agents that are published in a workspace are Offerings of the catalog, in the Collection `agents` (Work §10).
//!
//! The catalog follows the run store: whatever is published and not paused is there, with what it is called, what it takes and where a run
//! of it is started; never what it is told. Whether a caller may start it is judged at the start.

use purvey_catalog::{
    Error,
    access::Access,
    catalog::{Catalog, ListRequest, Listing, Precondition},
    schema::AGENT_SCHEMA,
};
use purvey_odp::{
    identity::ResourceType, language::AcceptLanguage, limits, offering::Representation,
};
use purvey_work::{Platform, id::AgentId, model::Agent};
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};

/// The Collection that agents are in.
const COLLECTION: &str = "agents";
/// How soon what no notice told of is found, or tried again.
const LOOK: Duration = Duration::from_secs(5);

/// Keeps the catalog's agents as the platform has them, for as long as it is polled.
pub async fn publish_agents(catalog: Catalog, platform: Platform) {
    let mut news = platform.watch_agents();
    loop {
        match platform.published_agents().await {
            Err(error) => tracing::warn!(%error, "published agents cannot be read; trying again"),
            Ok(agents) => {
                let catalog = catalog.clone();
                let followed = tokio::task::spawn_blocking(move || follow(&catalog, &agents)).await;
                match followed {
                    Ok(Ok(())) => {}
                    // An import holds the catalog: it is followed once that is over.
                    Ok(Err(Error::Busy { .. })) => {}
                    Ok(Err(error)) => {
                        tracing::warn!(%error, "the catalog could not take the published agents; trying again");
                    }
                    Err(error) => tracing::error!(%error, "publishing agents failed"),
                }
            }
        }
        let _ = tokio::time::timeout(LOOK, news.changed()).await;
    }
}

fn follow(catalog: &Catalog, agents: &[Agent]) -> Result<(), Error> {
    let wanted: BTreeMap<String, Value> = agents
        .iter()
        .map(|agent| (agent.id.to_string(), offering(agent)))
        .collect();
    let present = present(catalog)?;
    if !wanted.is_empty()
        && catalog
            .record(ResourceType::Collection, COLLECTION)?
            .is_none()
    {
        let collection = json!({
            "id": COLLECTION, "name": "Agents",
            "description": "Agents that do work: each is started by its invoke Action.",
        });
        catalog.put(
            ResourceType::Collection,
            COLLECTION,
            collection,
            Precondition::IfAbsent,
        )?;
    }
    for (id, value) in &wanted {
        let stored = catalog.record(ResourceType::Offering, id)?;
        let same = stored.is_some_and(|stored| {
            serde_json::from_slice::<Value>(&stored.bytes).is_ok_and(|stored| stored == *value)
        });
        if !same {
            catalog.put(
                ResourceType::Offering,
                id,
                value.clone(),
                Precondition::None,
            )?;
        }
    }
    for id in present.iter().filter(|id| !wanted.contains_key(*id)) {
        match catalog.delete(ResourceType::Offering, id, Precondition::None, false) {
            Ok(_) | Err(Error::NotFound) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The agents that are in the catalog now.
fn present(catalog: &Catalog) -> Result<Vec<String>, Error> {
    let operation = Listing::CollectionOfferings(COLLECTION.into());
    let access = Access::default();
    let request = ListRequest {
        operation: operation.clone(),
        representation: Representation::Terse,
        limit: Some(*limits::PAGE_LIMIT.end()),
        accept_language: AcceptLanguage::default(),
        access: access.clone(),
    };
    let mut page = match catalog.list(&request) {
        // Without the Collection there are none.
        Err(Error::NotFound) => return Ok(Vec::new()),
        page => page?,
    };
    let mut present = Vec::new();
    loop {
        let body: Value = serde_json::from_slice(&page.bytes).unwrap_or_default();
        let items = body["items"].as_array().into_iter().flatten();
        let ids = items.filter_map(|item| item["id"].as_str());
        // Whatever else an operator has put there is theirs.
        present.extend(
            ids.filter(|id| id.parse::<AgentId>().is_ok())
                .map(str::to_owned),
        );
        let Some(next) = body["next"].as_str() else {
            return Ok(present);
        };
        page = catalog.resume(&operation, next, &access)?;
    }
}

/// An agent as an Offering.
fn offering(agent: &Agent) -> Value {
    let id = agent.id;
    let definition = &agent.definition;
    // Names of Offerings are shorter than names of agents may be.
    let name: String = definition.name.chars().take(limits::NAME_CHARS).collect();
    json!({
        "id": id.to_string(),
        "name": name,
        "collection_ids": [COLLECTION],
        "schema": { "url": AGENT_SCHEMA },
        "attributes": {
            "workspace_id": agent.workspace_id.to_string(),
            "time_limit_seconds": definition.time_limit_seconds,
            "verified": definition.output_schema.is_some(),
        },
        "actions": [{
            "id": "invoke",
            "rel": "invoke",
            "authentication": "required",
            "description": "Start a run; the answer says where it is read.",
            "http": {
                "href": format!("/v1/agents/{id}/runs"),
                "method": "POST",
                "request": {
                    "content_type": "application/json",
                    "schema": { "url": format!("/v1/agents/{id}/request-schema") },
                },
                "response_content_types": ["application/json"],
            },
        }],
    })
}

/// What a start of a published agent takes: the whole body, with the agent's own input schema for `input`.
pub(crate) fn request_schema(agent: &Agent) -> Value {
    let input = match &agent.definition.input_schema {
        None => json!(true),
        Some(schema) => match schema.as_object() {
            // Its own references keep leading into it when it has an identifier of its own.
            Some(members) if !members.contains_key("$id") => {
                let mut members = members.clone();
                members.insert(
                    "$id".into(),
                    json!(format!("/v1/agents/{}/input-schema", agent.id)),
                );
                members.into()
            }
            _ => schema.clone(),
        },
    };
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": false,
        "required": ["input"],
        "properties": {
            "input": input,
            "artifacts": {
                "type": "array",
                "maxItems": 100,
                "uniqueItems": true,
                "items": { "type": "string" },
            },
        },
    })
}
