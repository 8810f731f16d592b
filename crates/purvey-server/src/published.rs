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
    let mut follower = Follower::new(catalog, platform);
    loop {
        follower.look().await;
        let _ = tokio::time::timeout(LOOK, news.changed()).await;
    }
}

/// Follows the run store, and what others do to the catalog's agents.
struct Follower {
    catalog: Catalog,
    platform: Platform,
    /// What both were when the catalog had last been made to follow.
    followed: Option<Seen>,
}

/// The published agents, and the generation of the catalog.
#[derive(PartialEq, Eq)]
struct Seen(Vec<(AgentId, i64)>, u64);

impl Follower {
    fn new(catalog: Catalog, platform: Platform) -> Self {
        Self {
            catalog,
            platform,
            followed: None,
        }
    }

    /// Makes the catalog follow where it or the run store is another than the last time; whether it was.
    async fn look(&mut self) -> bool {
        let revisions = match self.platform.published_revisions().await {
            Ok(revisions) => revisions,
            Err(error) => {
                tracing::warn!(%error, "published agents cannot be read; trying again");
                return false;
            }
        };
        // Seen before it is written to: what this writes is looked at once more.
        let seen = Seen(revisions, self.catalog.current().generation.number());
        if self.followed.as_ref() == Some(&seen) {
            return false;
        }
        self.followed = self.follow().await.then_some(seen);
        true
    }

    /// Whether the catalog has all agents now.
    async fn follow(&self) -> bool {
        let agents = match self.platform.published_agents().await {
            Ok(agents) => agents,
            Err(error) => {
                tracing::warn!(%error, "published agents cannot be read; trying again");
                return false;
            }
        };
        let catalog = self.catalog.clone();
        match tokio::task::spawn_blocking(move || follow(&catalog, &agents)).await {
            Ok(Ok(())) => return true,
            // An import holds the catalog: it is followed once that is over.
            Ok(Err(Error::Busy { .. })) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "the catalog could not take the published agents; trying again");
            }
            Err(error) => tracing::error!(%error, "publishing agents failed"),
        }
        false
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use purvey_catalog::catalog::Options;
    use purvey_work::{PlatformOptions, Principal, Store};

    /// Whether an Offering is served.
    fn is_there(catalog: &Catalog, id: &str) -> bool {
        let current = catalog.current();
        current.generation.contains(ResourceType::Offering, id)
    }

    #[tokio::test]
    async fn the_catalog_is_looked_at_again_only_where_it_or_the_run_store_has_changed() {
        let directory = tempfile::tempdir().unwrap();
        let catalog = Catalog::open(directory.path(), Options::default()).unwrap();
        let store = Store::in_memory().unwrap();
        let platform = Platform::new(store, PlatformOptions::default());
        let made = platform.bootstrap().await.unwrap().unwrap();
        let user = platform
            .authenticate(made.token.secret.as_str())
            .await
            .unwrap();
        let body = json!({
            "name": "Greeter", "instructions": "", "provider": "echo", "model": "", "published": true,
        });
        let workspace = made.workspace.id.to_string();
        let agent = platform
            .create_agent(user, workspace, body)
            .await
            .unwrap()
            .id
            .to_string();
        let mut follower = Follower::new(catalog.clone(), platform.clone());

        assert!(follower.look().await, "the agent is new");
        catalog.publish().unwrap();
        assert!(is_there(&catalog, &agent));
        assert!(follower.look().await, "the catalog was written");
        for _ in 0..3 {
            assert!(!follower.look().await, "nothing has changed");
        }

        // Somebody else takes it out of the catalog.
        let kind = ResourceType::Offering;
        catalog
            .delete(kind, &agent, Precondition::None, false)
            .unwrap();
        catalog.publish().unwrap();
        assert!(!is_there(&catalog, &agent));
        assert!(follower.look().await);
        catalog.publish().unwrap();
        assert!(is_there(&catalog, &agent));
        assert!(follower.look().await);
        assert!(!follower.look().await);

        let paused = json!({ "paused": true });
        platform
            .update_agent(Principal::Operator, agent.clone(), paused)
            .await
            .unwrap();
        assert!(follower.look().await, "the agent is paused");
        catalog.publish().unwrap();
        assert!(!is_there(&catalog, &agent));
        assert!(follower.look().await);
        assert!(!follower.look().await);
    }
}
