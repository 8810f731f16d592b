//! Organizations, users, workspaces, members, tokens and agents as callers meet them (Work §1, §11), on both stores.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a failure in a test's helper is the test's failure"
)]

mod support;

use purvey_work::{
    Code, Error, PageRequest, Place, Platform, PlatformOptions, Principal, Refusal,
    model::{Agent, Organization, Role, Scope, User, UserState, Visibility, Workspace},
};
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

#[test]
fn the_first_start_of_an_empty_store_makes_one_of_each() {
    on_each_store(async |store| {
        let platform = Platform::new(store, PlatformOptions::default());
        let made = platform.bootstrap().await.unwrap().unwrap();
        assert_eq!(made.workspace.owner_id, made.user.id);
        assert_eq!(made.token.token.scopes, Scope::ALL);
        let caller = platform.authenticate(&made.token.secret).await.unwrap();
        let workspace = made.workspace.id.to_string();
        let members = platform.members(caller, workspace).await.unwrap().items;
        assert_eq!(members.len(), 1);
        assert_eq!(
            (members[0].user_id, members[0].role),
            (made.user.id, Role::Owner)
        );
        assert!(platform.bootstrap().await.unwrap().is_none());
    });
}

#[test]
fn a_token_is_shown_once_and_works_until_it_is_revoked_or_over() {
    on_each(async |tenant: Tenant| {
        let platform = &tenant.platform;
        let body = json!({ "user_id": tenant.owner.id, "scopes": ["workspaces:read"], "expires_at": "2026-01-01T13:00:00Z" });
        let made = platform
            .create_token(Principal::Operator, body)
            .await
            .unwrap();
        assert!(made.secret.starts_with("pvy_"));
        assert_eq!(made.secret.len(), 4 + 43);
        assert!(!format!("{made:?}").contains(&made.secret));
        let listed = platform
            .tokens(Principal::Operator, PageRequest::default())
            .await
            .unwrap();
        assert!(
            !serde_json::to_string(&listed)
                .unwrap()
                .contains(&made.secret)
        );

        let Principal::User(actor) = platform.authenticate(&made.secret).await.unwrap() else {
            panic!("a token is a user's")
        };
        assert_eq!(actor.user, tenant.owner.id);
        assert_eq!(actor.scopes, [Scope::WorkspacesRead]);
        for wrong in [
            "",
            "pvy_",
            "Bearer",
            &made.secret[..46],
            &format!("{}x", made.secret),
        ] {
            assert_eq!(code(platform.authenticate(wrong).await), Code::AuthInvalid);
        }
        tenant.clock.pass(3_599);
        platform.authenticate(&made.secret).await.unwrap();
        tenant.clock.pass(1);
        assert_eq!(
            code(platform.authenticate(&made.secret).await),
            Code::AuthInvalid
        );

        let body = json!({ "user_id": tenant.owner.id, "scopes": ["runs:read"] });
        let made = platform
            .create_token(Principal::Operator, body)
            .await
            .unwrap();
        let id = made.token.id.to_string();
        platform
            .revoke_token(Principal::Operator, id.clone())
            .await
            .unwrap();
        platform
            .revoke_token(Principal::Operator, id)
            .await
            .unwrap();
        assert_eq!(
            code(platform.authenticate(&made.secret).await),
            Code::AuthRevoked
        );
    });
}

#[test]
fn users_make_tokens_for_themselves_and_with_their_own_scopes_only() {
    on_each(async |tenant: Tenant| {
        let platform = &tenant.platform;
        let scopes = [Scope::WorkspacesWrite, Scope::RunsRead];
        let caller = tenant.caller_with(&tenant.owner, &scopes).await;
        let (other, _) = tenant.colleague().await;
        let make = |user: &User, scopes: Value| {
            platform.create_token(
                caller.clone(),
                json!({ "user_id": user.id, "scopes": scopes }),
            )
        };
        make(&tenant.owner, json!(["runs:read"])).await.unwrap();
        let beyond = make(&tenant.owner, json!(["runs:read", "runs:write"])).await;
        assert_eq!(code(beyond), Code::PermissionScope);
        assert_eq!(
            code(make(&other, json!(["runs:read"])).await),
            Code::PermissionRole
        );
        let wrong = make(&tenant.owner, json!(["runs:read", "runs:run", "runs:read"])).await;
        assert_eq!(pointers(wrong), ["/scopes/1", "/scopes/2"]);
        assert_eq!(pointers(make(&tenant.owner, json!([])).await), ["/scopes"]);
        let past = json!({ "user_id": tenant.owner.id, "scopes": ["runs:read"], "expires_at": "2026-01-01T12:00:00Z" });
        assert_eq!(
            pointers(platform.create_token(caller.clone(), past).await),
            ["/expires_at"]
        );
    });
}

#[test]
fn a_user_who_is_not_active_may_do_nothing() {
    on_each(async |tenant: Tenant| {
        let platform = &tenant.platform;
        let (user, _) = tenant.member(Role::Admin).await;
        let body = json!({ "user_id": user.id, "scopes": Scope::ALL });
        let secret = platform
            .create_token(Principal::Operator, body)
            .await
            .unwrap()
            .secret;
        for state in [UserState::Deactivated, UserState::Locked, UserState::Active] {
            platform
                .update_user(
                    Principal::Operator,
                    user.id.to_string(),
                    json!({ "state": state }),
                )
                .await
                .unwrap();
            let caller = platform.authenticate(&secret).await.unwrap();
            let read = platform.workspace(caller, tenant.ws()).await;
            match state {
                UserState::Active => assert_eq!(read.unwrap().id, tenant.workspace.id),
                _ => assert_eq!(code(read), Code::PermissionRole),
            }
        }
        let update = |body| platform.update_user(Principal::Operator, user.id.to_string(), body);
        update(json!({ "state": "deleted" })).await.unwrap();
        assert_eq!(
            code(platform.authenticate(&secret).await),
            Code::AuthInvalid
        );
        assert_eq!(
            code(update(json!({ "state": "active" })).await),
            Code::StateConflict
        );
        assert_eq!(
            pointers(update(json!({ "state": "gone" })).await),
            ["/state"]
        );
    });
}

#[test]
fn administration_is_the_operators_alone() {
    on_each(async |tenant: Tenant| {
        let platform = &tenant.platform;
        let owner = tenant.caller(&tenant.owner).await;
        let named = json!({ "name": "n" });
        assert_eq!(
            code(platform.create_organization(owner.clone(), named).await),
            Code::PermissionRole
        );
        let body = json!({ "organization_id": tenant.organization.id, "display_name": "n" });
        assert_eq!(
            code(platform.create_user(owner.clone(), body).await),
            Code::PermissionRole
        );
        assert_eq!(
            code(platform.limits(owner.clone()).await),
            Code::PermissionRole
        );
        let approve = json!({ "approved": true });
        let id = tenant.owner.id.to_string();
        assert_eq!(
            code(
                platform
                    .update_user(owner.clone(), id.clone(), approve.clone())
                    .await
            ),
            Code::PermissionRole
        );
        let approved = platform.update_user(Principal::Operator, id, approve).await;
        assert!(approved.unwrap().approved);

        let limits = json!({ "platform_daily_cents": 500, "allowance_daily_cents": null, "budget_stop": true });
        let set = platform
            .update_limits(Principal::Operator, limits)
            .await
            .unwrap();
        assert_eq!(set.platform_daily_cents, Some(500));
        assert_eq!(set.allowance_daily_cents, None);
        assert!(set.budget_stop);
        let partly = json!({ "budget_stop": false });
        let set = platform
            .update_limits(Principal::Operator, partly)
            .await
            .unwrap();
        assert_eq!(set.platform_daily_cents, Some(500));
        assert!(!set.budget_stop);
        let wrong = json!({ "platform_daily_cents": -1, "budget_stop": 1, "cents": 1 });
        assert_eq!(
            pointers(platform.update_limits(Principal::Operator, wrong).await),
            ["/platform_daily_cents", "/budget_stop", "/cents"]
        );
    });
}

#[test]
fn a_workspaces_limits_are_its_admins_and_its_budget_its_owners() {
    on_each(async |tenant: Tenant| {
        let platform = &tenant.platform;
        assert_eq!(tenant.workspace.concurrency_limit, 10);
        assert_eq!(tenant.workspace.queue_limit, 1_000);
        assert_eq!(tenant.workspace.daily_cost_cents, None);
        let owner = tenant.caller(&tenant.owner).await;
        let (_, admin) = tenant.member(Role::Admin).await;
        let (_, member) = tenant.member(Role::Member).await;
        let update =
            |caller: &Principal, body| platform.update_workspace(caller.clone(), tenant.ws(), body);
        let changed = update(&admin, json!({ "concurrency_limit": 3, "queue_limit": 0 })).await;
        let changed = changed.unwrap();
        assert_eq!((changed.concurrency_limit, changed.queue_limit), (3, 0));
        let budget = json!({ "daily_cost_cents": 100 });
        assert_eq!(
            code(update(&admin, budget.clone()).await),
            Code::PermissionRole
        );
        assert_eq!(
            code(update(&member, json!({ "queue_limit": 1 })).await),
            Code::PermissionRole
        );
        assert_eq!(
            update(&owner, budget).await.unwrap().daily_cost_cents,
            Some(100)
        );
        let unset = update(&owner, json!({ "daily_cost_cents": null }))
            .await
            .unwrap();
        assert_eq!(unset.daily_cost_cents, None);
        assert_eq!(unset.concurrency_limit, 3);
        for wrong in [0, 10_001, -1] {
            let outcome = update(&owner, json!({ "concurrency_limit": wrong })).await;
            assert_eq!(pointers(outcome), ["/concurrency_limit"], "{wrong}");
        }
        let outcome = update(
            &owner,
            json!({ "queue_limit": 1_000_001, "daily_cost_cents": "1", "x": 1 }),
        )
        .await;
        assert_eq!(
            pointers(outcome),
            ["/queue_limit", "/daily_cost_cents", "/x"]
        );
    });
}

#[test]
fn members_are_managed_by_admins_and_the_owner_stays() {
    on_each(async |tenant: Tenant| {
        let platform = &tenant.platform;
        let owner = tenant.caller(&tenant.owner).await;
        let (_, admin) = tenant.member(Role::Admin).await;
        let (member, as_member) = tenant.member(Role::Member).await;
        let (colleague, _) = tenant.colleague().await;
        let put = |caller: &Principal, user: &User, role: Role| {
            let body = json!({ "role": role });
            platform.put_member(caller.clone(), tenant.ws(), user.id.to_string(), body)
        };
        let remove = |caller: &Principal, user: &User| {
            platform.remove_member(caller.clone(), tenant.ws(), user.id.to_string())
        };
        assert_eq!(
            put(&admin, &colleague, Role::Viewer).await.unwrap().role,
            Role::Viewer
        );
        assert_eq!(
            code(put(&as_member, &colleague, Role::Member).await),
            Code::PermissionRole
        );
        assert_eq!(
            code(put(&admin, &member, Role::Owner).await),
            Code::PermissionRole
        );
        assert_eq!(
            put(&owner, &member, Role::Owner).await.unwrap().role,
            Role::Owner
        );
        assert_eq!(code(remove(&admin, &member).await), Code::PermissionRole);
        remove(&owner, &member).await.unwrap();
        assert_eq!(code(remove(&owner, &member).await), Code::NotFound);
        assert_eq!(
            code(put(&owner, &tenant.owner, Role::Admin).await),
            Code::StateConflict
        );
        assert_eq!(
            code(remove(&Principal::Operator, &tenant.owner).await),
            Code::StateConflict
        );
        let body = json!({ "role": "boss" });
        let wrong = platform.put_member(owner.clone(), tenant.ws(), member.id.to_string(), body);
        assert_eq!(pointers(wrong.await), ["/role"]);
        assert_eq!(
            code(platform.members(as_member, tenant.ws()).await),
            Code::PermissionRole
        );
    });
}

#[test]
fn what_lies_in_another_organization_is_refused_like_what_is_absent() {
    on_each(async |tenant: Tenant| {
        let platform = &tenant.platform;
        let other = Tenant::new(platform.clone(), tenant.clock.clone()).await;
        let owner = tenant.caller(&tenant.owner).await;
        let stranger = other.caller(&other.owner).await;
        let agent = tenant
            .agent(&owner, json!({}))
            .await
            .unwrap()
            .id
            .to_string();
        let turned = |id: &str| {
            // The same but for its last digit: nothing has this id.
            let last = if id.ends_with('0') { '1' } else { '0' };
            format!("{}{last}", &id[..id.len() - 1])
        };
        let there = [tenant.ws(), agent, tenant.owner.id.to_string()];
        for [workspace, agent, user] in [
            there.clone(),
            there.map(|id| turned(&id)),
            ["ws_1", "agt_", "x"].map(str::to_owned),
        ] {
            let patch = || json!({});
            let role = json!({ "role": "viewer" });
            let caller = || stranger.clone();
            let page = PageRequest::default;
            let absent = Refusal::new(Code::NotFound);
            for outcome in [
                platform
                    .workspace(caller(), workspace.clone())
                    .await
                    .map(drop),
                platform
                    .update_workspace(caller(), workspace.clone(), patch())
                    .await
                    .map(drop),
                platform
                    .members(caller(), workspace.clone())
                    .await
                    .map(drop),
                platform
                    .put_member(caller(), workspace.clone(), user.clone(), role)
                    .await
                    .map(drop),
                platform
                    .remove_member(caller(), workspace.clone(), user.clone())
                    .await,
                platform
                    .agents(caller(), workspace.clone(), page())
                    .await
                    .map(drop),
                platform
                    .threads(caller(), workspace.clone(), page())
                    .await
                    .map(drop),
                platform
                    .triggers(caller(), workspace.clone(), page())
                    .await
                    .map(drop),
                platform.agent(caller(), agent.clone()).await.map(drop),
                platform
                    .update_agent(caller(), agent.clone(), patch())
                    .await
                    .map(drop),
                platform.delete_agent(caller(), agent.clone()).await,
                platform
                    .update_user(caller(), user.clone(), patch())
                    .await
                    .map(drop),
            ] {
                assert_eq!(refusal(outcome), absent);
            }
        }
        // Nobody of the other organization becomes a member.
        let role = json!({ "role": "viewer" });
        let across = platform.put_member(owner, tenant.ws(), other.owner.id.to_string(), role);
        assert_eq!(code(across.await), Code::NotFound);
    });
}

#[test]
fn an_agent_is_seen_by_whom_its_visibility_and_shares_name() {
    on_each(async |tenant: Tenant| {
        let platform = &tenant.platform;
        let (_, maker) = tenant.member(Role::Member).await;
        let (_, admin) = tenant.member(Role::Admin).await;
        let (_, viewer) = tenant.member(Role::Viewer).await;
        let (colleague, outside) = tenant.colleague().await;
        let seen = async |caller: &Principal, agent: &Agent| {
            let read = platform.agent(caller.clone(), agent.id.to_string()).await;
            match read {
                Ok(_) => true,
                refused => {
                    assert_eq!(code(refused), Code::PermissionVisibility);
                    false
                }
            }
        };
        let rows = [
            (
                json!({ "visibility": "private" }),
                [true, true, false, false],
            ),
            (json!({}), [true, true, true, false]),
            (
                json!({ "visibility": "organization" }),
                [true, true, true, true],
            ),
            (
                json!({ "visibility": "private", "shared_with": [colleague.id] }),
                [true, true, false, true],
            ),
        ];
        for (besides, expected) in rows {
            tenant.clock.pass(1);
            let agent = tenant.agent(&maker, besides.clone()).await.unwrap();
            let callers = [&maker, &admin, &viewer, &outside];
            for (caller, expected) in callers.into_iter().zip(expected) {
                assert_eq!(seen(caller, &agent).await, expected, "{besides}");
            }
        }
        let listed = platform
            .agents(viewer, tenant.ws(), PageRequest::default())
            .await
            .unwrap();
        let shown: Vec<Visibility> = listed.items.iter().map(|agent| agent.visibility).collect();
        assert_eq!(shown, [Visibility::Organization, Visibility::Workspace]);
    });
}

#[test]
fn an_agent_is_changed_by_its_maker_and_by_admins() {
    on_each(async |tenant: Tenant| {
        let platform = &tenant.platform;
        let (_, maker) = tenant.member(Role::Member).await;
        let (_, other) = tenant.member(Role::Member).await;
        let (_, admin) = tenant.member(Role::Admin).await;
        let (_, viewer) = tenant.member(Role::Viewer).await;
        assert_eq!(
            code(tenant.agent(&viewer, json!({})).await),
            Code::PermissionRole
        );
        let agent = tenant.agent(&maker, json!({})).await.unwrap();
        assert_eq!(agent.definition.time_limit_seconds, 3_600);
        assert_eq!(agent.visibility, Visibility::Workspace);
        let id = agent.id.to_string();
        let update =
            |caller: &Principal, body| platform.update_agent(caller.clone(), id.clone(), body);
        let paused = update(&maker, json!({ "paused": true, "name": "b" }))
            .await
            .unwrap();
        assert!(paused.paused);
        assert_eq!(paused.definition.name, "b");
        assert_eq!(paused.definition.provider, "echo");
        assert_eq!(
            code(update(&other, json!({ "paused": false })).await),
            Code::PermissionRole
        );
        update(&admin, json!({ "paused": false, "published": true }))
            .await
            .unwrap();
        assert_eq!(platform.published_agents().await.unwrap().len(), 1);
        assert_eq!(
            code(platform.delete_agent(other, id.clone()).await),
            Code::PermissionRole
        );
        platform.delete_agent(maker, id.clone()).await.unwrap();
        assert_eq!(
            code(platform.agent(admin, id.clone()).await),
            Code::NotFound
        );
        assert!(platform.published_agents().await.unwrap().is_empty());
    });
}

#[test]
fn an_agent_with_unfinished_runs_is_not_deleted() {
    on_each(async |tenant: Tenant| {
        let platform = &tenant.platform;
        let owner = tenant.caller(&tenant.owner).await;
        let id = tenant
            .agent(&owner, json!({}))
            .await
            .unwrap()
            .id
            .to_string();
        let started = platform
            .start_run(owner.clone(), id.clone(), json!({ "input": 1 }), None)
            .await
            .unwrap();
        assert_eq!(
            code(platform.delete_agent(owner.clone(), id.clone()).await),
            Code::StateConflict
        );
        let run = started.run.id.to_string();
        platform.cancel_run(owner.clone(), run).await.unwrap();
        platform.delete_agent(owner, id).await.unwrap();
    });
}

#[test]
fn an_agents_body_is_judged_whole_when_it_is_saved() {
    on_each(async |tenant: Tenant| {
        let owner = tenant.caller(&tenant.owner).await;
        let absent = purvey_work::id::UserId::new(
            purvey_work::Timestamp::from_millis(0),
            &purvey_work::SystemChance,
        );
        for (besides, expected) in [
            (
                json!({ "name": "", "provider": "none", "time_limit_seconds": 0, "secret": 1 }),
                vec!["/name", "/time_limit_seconds", "/provider", "/secret"],
            ),
            (
                json!({ "time_limit_seconds": 86_401, "visibility": "public", "tools": ["rm"] }),
                vec!["/time_limit_seconds", "/tools/0", "/visibility"],
            ),
            (json!({ "shared_with": [absent] }), vec!["/shared_with/0"]),
        ] {
            assert_eq!(
                pointers(tenant.agent(&owner, besides.clone()).await),
                expected,
                "{besides}"
            );
        }
        // An invalid contract is refused when the agent is saved (Work §6).
        let contract = json!({ "output_schema": { "type": "object", "properties": { "a": { "minimum": "x" } } } });
        let places = pointers(tenant.agent(&owner, contract).await);
        assert_eq!(places.len(), 1);
        assert!(places[0].starts_with("/output_schema"), "{places:?}");
    });
}

#[test]
fn lists_are_newest_first_and_go_on_where_they_stopped() {
    on_each(async |tenant: Tenant| {
        let owner = tenant.caller(&tenant.owner).await;
        let mut made = Vec::new();
        for _ in 0..5 {
            tenant.clock.pass(1);
            made.push(tenant.agent(&owner, json!({})).await.unwrap().id);
        }
        made.reverse();
        let page = async |cursor: Option<&str>| {
            let page = PageRequest::parse(Some("2"), cursor).unwrap();
            let agents = tenant
                .platform
                .agents(owner.clone(), tenant.ws(), page)
                .await
                .unwrap();
            let ids: Vec<_> = agents.items.iter().map(|agent| agent.id).collect();
            (ids, agents.next_cursor)
        };
        let (first, cursor) = page(None).await;
        assert_eq!(first, made[..2]);
        let (second, cursor) = page(cursor.as_deref()).await;
        assert_eq!(second, made[2..4]);
        let (third, cursor) = page(cursor.as_deref()).await;
        assert_eq!(third, made[4..]);
        assert_eq!(cursor, None);
        for limit in ["0", "101", "x", "+1"] {
            assert_eq!(
                code(PageRequest::parse(Some(limit), None)),
                Code::RequestInvalid
            );
        }
        let page = PageRequest::parse(None, Some("elsewhere")).unwrap();
        let wrong = tenant
            .platform
            .agents(owner.clone(), tenant.ws(), page)
            .await;
        assert_eq!(code(wrong), Code::RequestInvalid);
    });
}
