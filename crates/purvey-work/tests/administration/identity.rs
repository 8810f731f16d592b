//! The first start, tokens, users, and what is the operator's.

use crate::support::on_each_store;
use crate::{Tenant, code, on_each, pointers};
use purvey_work::model::{Role, Scope, User, UserState};
use purvey_work::{Code, PageRequest, Platform, PlatformOptions, Principal};
use serde_json::{Value, json};

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
