//! Organizations, users, workspaces, members, tokens and agents as callers meet them (Work §1, §11), on both stores.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a failure in a test's helper is the test's failure"
)]

mod agents;
mod identity;
mod starts;
#[path = "../support/mod.rs"]
mod support;
mod workspaces;

use purvey_work::model::{Agent, Organization, Role, Scope, User, Workspace};
use purvey_work::{Code, Error, Place, Platform, PlatformOptions, Principal, Refusal};
use serde_json::{Value, json};
use std::sync::Arc;
use support::{SetClock, on_each_store};

/// An organization with an owner and a workspace.
struct Tenant {
    platform: Platform,
    clock: Arc<SetClock>,
    organization: Organization,
    owner: User,
    workspace: Workspace,
}

impl Tenant {
    async fn new(platform: Platform, clock: Arc<SetClock>) -> Self {
        let operator = || Principal::Operator;
        let body = json!({ "name": "Corner shop" });
        let organization = platform
            .create_organization(operator(), body)
            .await
            .unwrap();
        let body = json!({ "organization_id": organization.id, "display_name": "Ada" });
        let owner = platform.create_user(operator(), body).await.unwrap();
        let body =
            json!({ "organization_id": organization.id, "name": "Front", "owner_id": owner.id });
        let workspace = platform.create_workspace(operator(), body).await.unwrap();
        Self {
            platform,
            clock,
            organization,
            owner,
            workspace,
        }
    }

    fn ws(&self) -> String {
        self.workspace.id.to_string()
    }

    /// A token of this user with every scope, presented.
    async fn caller(&self, user: &User) -> Principal {
        self.caller_with(user, Scope::ALL).await
    }

    async fn caller_with(&self, user: &User, scopes: &[Scope]) -> Principal {
        let body = json!({ "user_id": user.id, "scopes": scopes });
        let made = self.platform.create_token(Principal::Operator, body).await;
        self.platform
            .authenticate(&made.unwrap().secret)
            .await
            .unwrap()
    }

    async fn member(&self, role: Role) -> (User, Principal) {
        let (user, caller) = self.colleague().await;
        let body = json!({ "role": role });
        self.platform
            .put_member(Principal::Operator, self.ws(), user.id.to_string(), body)
            .await
            .unwrap();
        (user, caller)
    }

    /// A user of the organization who is no member.
    async fn colleague(&self) -> (User, Principal) {
        let body = json!({ "organization_id": self.organization.id, "display_name": "Bo" });
        let user = self
            .platform
            .create_user(Principal::Operator, body)
            .await
            .unwrap();
        let caller = self.caller(&user).await;
        (user, caller)
    }

    async fn agent(&self, caller: &Principal, besides: Value) -> Result<Agent, Error> {
        let mut body = json!({ "name": "a", "instructions": "", "provider": "echo", "model": "" });
        if let (Value::Object(members), Value::Object(besides)) = (&mut body, besides) {
            members.extend(besides);
        }
        self.platform
            .create_agent(caller.clone(), self.ws(), body)
            .await
    }
}

fn on_each(test: impl AsyncFn(Tenant)) {
    on_each_store(async |store| {
        let clock = Arc::new(SetClock::new());
        let mut options = PlatformOptions::default();
        options.clock = clock.clone();
        let platform = Platform::new(store, options);
        test(Tenant::new(platform, clock).await).await;
    });
}

fn refusal<T: std::fmt::Debug>(outcome: Result<T, Error>) -> Refusal {
    match outcome {
        Err(Error::Refused(refusal)) => *refusal,
        other => panic!("not refused: {other:?}"),
    }
}

fn code<T: std::fmt::Debug>(outcome: Result<T, Error>) -> Code {
    refusal(outcome).code
}

fn pointers<T: std::fmt::Debug>(outcome: Result<T, Error>) -> Vec<String> {
    let refusal = refusal(outcome);
    assert_eq!(refusal.code, Code::RequestInvalid);
    let pointer = |fault: purvey_work::Fault| match fault.place {
        Place::Body(pointer) => pointer,
        other => panic!("{other:?}"),
    };
    refusal.errors.into_iter().map(pointer).collect()
}
