//! Agents.

use super::Platform;
use crate::{
    access::Principal,
    agents,
    error::Error,
    id::AgentId,
    model::Agent,
    paging::{Listing, PageRequest},
    sql::Watch,
};
use serde_json::Value;
use std::sync::Arc;

impl Platform {
    /// `POST /v1/workspaces/{ws}/agents`.
    ///
    /// # Errors
    /// Any refusal of Work §2; failures of the store.
    pub async fn create_agent(
        &self,
        caller: Principal,
        workspace: String,
        body: Value,
    ) -> Result<Agent, Error> {
        let inner = Arc::clone(&self.0);
        self.write(move |session, cx| {
            agents::create(session, cx, &caller, &workspace, &body, &inner.providers)
        })
        .await
    }

    /// `GET /v1/workspaces/{ws}/agents`: those that the caller may see.
    ///
    /// # Errors
    /// As [`Self::create_agent`].
    pub async fn agents(
        &self,
        caller: Principal,
        workspace: String,
        page: PageRequest,
    ) -> Result<Listing<Agent>, Error> {
        self.read(move |session, _| agents::list(session, &caller, &workspace, &page))
            .await
    }

    /// `GET /v1/agents/{id}`.
    ///
    /// # Errors
    /// As [`Self::create_agent`].
    pub async fn agent(&self, caller: Principal, id: String) -> Result<Agent, Error> {
        self.read(move |session, _| agents::get(session, &caller, &id))
            .await
    }

    /// `PATCH /v1/agents/{id}`.
    ///
    /// # Errors
    /// As [`Self::create_agent`].
    pub async fn update_agent(
        &self,
        caller: Principal,
        id: String,
        body: Value,
    ) -> Result<Agent, Error> {
        let inner = Arc::clone(&self.0);
        self.write(move |session, cx| {
            agents::update(session, cx, &caller, &id, &body, &inner.providers)
        })
        .await
    }

    /// `DELETE /v1/agents/{id}`.
    ///
    /// # Errors
    /// As [`Self::create_agent`].
    pub async fn delete_agent(&self, caller: Principal, id: String) -> Result<(), Error> {
        self.write(move |session, cx| agents::delete(session, cx, &caller, &id))
            .await
    }

    /// Every agent that is an Offering of the catalog now: published and not paused.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn published_agents(&self) -> Result<Vec<Agent>, Error> {
        self.read(|session, _| agents::published(session)).await
    }

    /// The same in short: what has equal lists has equal agents.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn published_revisions(&self) -> Result<Vec<(AgentId, i64)>, Error> {
        self.read(|session, _| agents::published_revisions(session))
            .await
    }

    /// An agent that is an Offering of the catalog now, whoever asks; none otherwise.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn published_agent(&self, id: String) -> Result<Option<Agent>, Error> {
        self.read(move |session, _| {
            let found = match agents::find(session, &Principal::Operator, &id) {
                Err(Error::Refused(_)) => return Ok(None),
                found => found?,
            };
            let agent = found.agent;
            Ok((agent.published && !agent.paused).then_some(agent))
        })
        .await
    }

    /// Begins to wait for changes of published agents; from now on none is missed.
    #[must_use]
    pub fn watch_agents(&self) -> Watch {
        self.0.store.hub().watch(agents::AGENTS)
    }
}
