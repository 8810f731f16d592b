//! For tests: an organization in a store, at moments that the test chooses, on each store that is there.

use crate::{
    access::{Actor, Principal},
    clock::{Cx, SystemChance, Timestamp},
    code::Code,
    error::{Error, Fault, Place},
    id::{RunId, TokenId, UserId, WorkspaceId},
    identity::{organizations, workspaces},
    model::{Role, Run, Scope, UserState},
    runs::{self, Outcome},
    sql::{Param, Session, Store},
};
use serde_json::{Value, json};
use std::{cell::Cell, collections::BTreeSet};

#[path = "../tests/support/postgres.rs"]
pub(crate) mod postgres;

/// 2026-01-01T12:00:00Z, a Thursday.
const NOON: i64 = 1_767_268_800_000;

/// Runs a test on each store that is there.
pub(crate) fn on_each_store(test: impl Fn(&Store)) {
    let directory = tempfile::tempdir().unwrap();
    test(&Store::sqlite(&directory.path().join("work.db")).unwrap());
    test(&Store::in_memory().unwrap());
    if let Some(schema) = postgres::Schema::fresh() {
        test(&Store::postgres(&schema.url()).unwrap());
    }
}

pub(crate) struct Stage {
    pub(crate) store: Store,
    now: Cell<i64>,
    organization: Value,
    pub(crate) owner: Principal,
    pub(crate) workspace: WorkspaceId,
}

impl Stage {
    /// An organization with an owner and a workspace of this concurrency limit, on each store.
    pub(crate) fn on_each(limit: u32, test: impl Fn(&Self)) {
        on_each_store(|store| test(&Self::new(store, limit)));
    }

    fn new(store: &Store, limit: u32) -> Self {
        let cx = Cx {
            now: Timestamp::from_millis(NOON),
            chance: &SystemChance,
        };
        let operator = Principal::Operator;
        let made = store.write_now(|session| {
            let body = json!({ "name": "o" });
            let organization = organizations::create_organization(session, cx, &operator, &body)?;
            let body = json!({ "organization_id": organization.id, "display_name": "owner" });
            let user = organizations::create_user(session, cx, &operator, &body)?;
            let body =
                json!({ "organization_id": organization.id, "name": "w", "owner_id": user.id });
            let workspace = workspaces::create(session, cx, &operator, &body)?;
            let body = json!({ "concurrency_limit": limit });
            workspaces::update(session, &operator, &workspace.id.to_string(), &body)?;
            Ok((organization.id, user.id, workspace.id))
        });
        let (organization, user, workspace) = made.unwrap();
        Self {
            store: store.clone(),
            now: Cell::new(NOON),
            organization: json!(organization),
            owner: Principal::User(Actor {
                user,
                organization,
                state: UserState::Active,
                scopes: Scope::ALL.to_vec(),
                token: TokenId::new(cx.now, &SystemChance),
            }),
            workspace,
        }
    }

    /// Runs `job` in a transaction at the present moment.
    pub(crate) fn at<T>(
        &self,
        mut job: impl FnMut(&mut dyn Session, Cx<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let cx = Cx {
            now: Timestamp::from_millis(self.now.get()),
            chance: &SystemChance,
        };
        self.store.write_now(|session| job(session, cx))
    }

    pub(crate) fn pass(&self, seconds: i64) {
        self.now.set(self.now.get() + seconds * 1_000);
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now.get())
    }

    /// A user of the organization who is a member with this role, or of none.
    pub(crate) fn user(&self, role: Option<Role>) -> Principal {
        let Principal::User(owner) = &self.owner else {
            panic!("the owner is a user")
        };
        let operator = Principal::Operator;
        let body = json!({ "organization_id": self.organization, "display_name": "u" });
        let user = self
            .at(|session, cx| organizations::create_user(session, cx, &operator, &body))
            .unwrap();
        self.member(user.id, role);
        Principal::User(Actor {
            user: user.id,
            ..owner.clone()
        })
    }

    /// A user of another organization.
    pub(crate) fn stranger(&self) -> Principal {
        let Principal::User(stranger) = Self::new(&self.store, 1).owner else {
            panic!("the owner is a user")
        };
        Principal::User(stranger)
    }

    pub(crate) fn member(&self, user: UserId, role: Option<Role>) {
        let (workspace, user) = (self.workspace.to_string(), user.to_string());
        let operator = Principal::Operator;
        self.at(|session, cx| match role {
            Some(role) => {
                let body = json!({ "role": role });
                workspaces::put_member(session, cx, &operator, &workspace, &user, &body).map(drop)
            }
            None => match workspaces::remove_member(session, &operator, &workspace, &user) {
                Err(Error::Refused(refusal)) if refusal.code == Code::NotFound => Ok(()),
                removed => removed,
            },
        })
        .unwrap();
    }

    /// An agent of the owner's that echoes, with these members besides.
    pub(crate) fn agent(&self, besides: Value) -> String {
        let mut body = json!({ "name": "a", "instructions": "", "provider": "echo", "model": "" });
        let members = body.as_object_mut().unwrap();
        members.extend(besides.as_object().unwrap().clone());
        let providers = BTreeSet::from(["echo".to_owned()]);
        let workspace = self.workspace.to_string();
        let agent = self.at(|session, cx| {
            crate::agents::create(session, cx, &self.owner, &workspace, &body, &providers)
        });
        agent.unwrap().id.to_string()
    }

    pub(crate) fn pause_agent(&self, agent: &str, paused: bool) {
        let sql = "UPDATE agents SET paused = $2 WHERE id = $1";
        self.at(|session, _| session.execute(sql, &[Param::Text(agent), paused.into()]))
            .unwrap();
    }

    pub(crate) fn run(&self, id: RunId) -> Run {
        self.at(|session, _| runs::run(session, id))
            .unwrap()
            .unwrap()
    }

    /// Lets a worker take up what runs, and ends this run well.
    pub(crate) fn succeed(&self, id: RunId) {
        let claims = self
            .at(|session, cx| runs::claim(session, cx, "node", 100))
            .unwrap();
        // What else was claimed is given back.
        for claim in claims {
            let lease = claim.lease;
            let outcome = Outcome::Succeeded {
                output: json!("done"),
                verified: false,
            };
            self.at(|session, cx| match lease.run == id {
                true => runs::finish(session, cx, &lease, &outcome).map(drop),
                false => runs::release(session, cx, &lease),
            })
            .unwrap();
        }
        assert!(self.run(id).status.is_terminal());
    }
}

/// The code of a refusal.
pub(crate) fn refused<T: std::fmt::Debug>(outcome: Result<T, Error>) -> Code {
    match outcome {
        Err(Error::Refused(refusal)) => refusal.code,
        other => panic!("not refused: {other:?}"),
    }
}

/// The places of a refusal's faults in the body.
pub(crate) fn places<T: std::fmt::Debug>(outcome: Result<T, Error>) -> Vec<String> {
    let Err(Error::Refused(refusal)) = outcome else {
        panic!("not refused: {outcome:?}")
    };
    assert_eq!(refusal.code, Code::RequestInvalid);
    let place = |fault: Fault| match fault.place {
        Place::Body(pointer) => pointer,
        other => format!("{other:?}"),
    };
    refusal.errors.into_iter().map(place).collect()
}
