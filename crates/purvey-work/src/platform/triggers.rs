//! Triggers: schedules and webhooks.

use super::{Platform, Started};
use crate::{
    access::Principal,
    error::Error,
    model::Trigger,
    paging::{Listing, PageRequest},
    triggers::{self, NewTrigger},
};
use serde_json::Value;
use std::sync::Arc;

impl Platform {
    /// `POST /v1/workspaces/{ws}/triggers`.
    ///
    /// # Errors
    /// Any refusal of Work §2; failures of the store.
    pub async fn create_trigger(
        &self,
        caller: Principal,
        workspace: String,
        body: Value,
    ) -> Result<NewTrigger, Error> {
        self.write(move |session, cx| triggers::create(session, cx, &caller, &workspace, &body))
            .await
    }

    /// `GET /v1/workspaces/{ws}/triggers`.
    ///
    /// # Errors
    /// As [`Self::create_trigger`].
    pub async fn triggers(
        &self,
        caller: Principal,
        workspace: String,
        page: PageRequest,
    ) -> Result<Listing<Trigger>, Error> {
        self.read(move |session, _| triggers::list(session, &caller, &workspace, &page))
            .await
    }

    /// `GET /v1/triggers/{id}`.
    ///
    /// # Errors
    /// As [`Self::create_trigger`].
    pub async fn trigger(&self, caller: Principal, id: String) -> Result<Trigger, Error> {
        self.read(move |session, _| triggers::get(session, &caller, &id))
            .await
    }

    /// `PATCH /v1/triggers/{id}`.
    ///
    /// # Errors
    /// As [`Self::create_trigger`].
    pub async fn update_trigger(
        &self,
        caller: Principal,
        id: String,
        body: Value,
    ) -> Result<Trigger, Error> {
        self.write(move |session, cx| triggers::update(session, cx, &caller, &id, &body))
            .await
    }

    /// `DELETE /v1/triggers/{id}`.
    ///
    /// # Errors
    /// As [`Self::create_trigger`].
    pub async fn delete_trigger(&self, caller: Principal, id: String) -> Result<(), Error> {
        self.write(move |session, cx| triggers::delete(session, cx, &caller, &id))
            .await
    }

    /// Whether this is a trigger's token, before anything else of a delivery is looked at.
    ///
    /// # Errors
    /// `auth.invalid`, `auth.revoked`, `resource.not_found`; failures of the store.
    pub async fn authenticate_hook(&self, id: String, secret: String) -> Result<(), Error> {
        self.read(move |session, _| triggers::authenticate(session, &id, &secret).map(drop))
            .await
    }

    /// `POST /v1/hooks/{trigger_id}`: starts a run with `event` in the trigger's input. The key is the `Idempotency-Key` or the `Webhook-Id`.
    ///
    /// # Errors
    /// Those of [`Self::authenticate_hook`], and as [`Platform::start_run`].
    pub async fn deliver(
        &self,
        id: String,
        secret: String,
        key: Option<String>,
        event: Value,
    ) -> Result<Started, Error> {
        let hook = self
            .read(move |session, _| triggers::authenticate(session, &id, &secret))
            .await?;
        let inner = Arc::clone(&self.0);
        let admission = self
            .0
            .store
            .write_in(&hook.workspace.to_string(), move |session| {
                triggers::deliver(session, inner.cx(), hook, key.as_deref(), &event)
            })
            .await??;
        Ok(Started {
            run: admission.run,
            replayed: admission.replayed,
        })
    }

    /// Makes the firings of schedules that are due; how many. For each node, about each second.
    ///
    /// # Errors
    /// Failures of the store.
    pub async fn fire_schedules(&self) -> Result<usize, Error> {
        let inner = &self.0;
        triggers::fire_due(&inner.store, &inner.clock, &inner.chance).await
    }
}
