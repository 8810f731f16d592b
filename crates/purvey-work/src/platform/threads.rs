//! Threads and their turns.

use super::Platform;
use crate::{
    access::Principal,
    code::Code,
    error::Error,
    model::{Run, Thread, Turn},
    paging::{Listing, PageRequest},
    threads,
};
use serde::Serialize;
use serde_json::Value;

/// A request to a thread that was accepted, now or before.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sent {
    /// The request.
    pub turn: Turn,
    /// The run that answers it, as it is now.
    pub run: Run,
    /// Whether its key had named this request before.
    #[serde(skip)]
    pub replayed: bool,
}

impl Platform {
    /// `POST /v1/workspaces/{ws}/threads`.
    ///
    /// # Errors
    /// Any refusal of Work §2; failures of the store.
    pub async fn open_thread(
        &self,
        caller: Principal,
        workspace: String,
        body: Value,
    ) -> Result<Thread, Error> {
        self.write(move |session, cx| threads::open(session, cx, &caller, &workspace, &body))
            .await
    }

    /// `GET /v1/workspaces/{ws}/threads`.
    ///
    /// # Errors
    /// As [`Self::open_thread`].
    pub async fn threads(
        &self,
        caller: Principal,
        workspace: String,
        page: PageRequest,
    ) -> Result<Listing<Thread>, Error> {
        self.read(move |session, _| threads::list(session, &caller, &workspace, &page))
            .await
    }

    /// `GET /v1/threads/{id}`.
    ///
    /// # Errors
    /// As [`Self::open_thread`].
    pub async fn thread(&self, caller: Principal, id: String) -> Result<Thread, Error> {
        self.read(move |session, _| threads::get(session, &caller, &id))
            .await
    }

    /// `GET /v1/threads/{id}/turns`.
    ///
    /// # Errors
    /// As [`Self::open_thread`].
    pub async fn turns(
        &self,
        caller: Principal,
        id: String,
        page: PageRequest,
    ) -> Result<Listing<Turn>, Error> {
        self.read(move |session, _| threads::turns(session, &caller, &id, &page))
            .await
    }

    /// `POST /v1/threads/{id}/turns`.
    ///
    /// # Errors
    /// As [`Platform::start_run`].
    pub async fn send_turn(
        &self,
        caller: Principal,
        id: String,
        body: Value,
        idempotency_key: Option<String>,
    ) -> Result<Sent, Error> {
        let request = threads::request(&caller, &id, idempotency_key.as_deref(), &body);
        let (start, lane) = match request {
            Ok(start) => {
                let lane =
                    self.read(move |session, _| threads::workspace_of(session, &caller, &id));
                (start, lane.await?)
            }
            // Whoever cannot send learns of an absent thread first.
            Err(Error::Refused(refusal)) if refusal.code == Code::PermissionRole => {
                self.read(move |session, _| threads::workspace_of(session, &caller, &id))
                    .await?;
                return Err(Error::Refused(refusal));
            }
            Err(error) => return Err(error),
        };
        let admission = self.admit(lane, start).await?;
        let turn = admission.turn.ok_or_else(|| Error::Store {
            detail: "a turn was admitted without being kept".into(),
        })?;
        Ok(Sent {
            turn,
            run: admission.run,
            replayed: admission.replayed,
        })
    }

    /// `POST /v1/threads/{id}/pause`.
    ///
    /// # Errors
    /// As [`Self::open_thread`].
    pub async fn pause_thread(&self, caller: Principal, id: String) -> Result<Thread, Error> {
        self.write(move |session, _| threads::pause(session, &caller, &id))
            .await
    }

    /// `POST /v1/threads/{id}/resume`.
    ///
    /// # Errors
    /// As [`Self::open_thread`], and what refuses a run for now: then the thread stays paused.
    pub async fn resume_thread(&self, caller: Principal, id: String) -> Result<Thread, Error> {
        self.write(move |session, cx| threads::resume(session, cx, &caller, &id))
            .await
    }

    /// `POST /v1/threads/{id}/close`.
    ///
    /// # Errors
    /// As [`Self::open_thread`].
    pub async fn close_thread(&self, caller: Principal, id: String) -> Result<Thread, Error> {
        self.write(move |session, _| threads::close(session, &caller, &id))
            .await
    }
}
