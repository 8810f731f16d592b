//! Workspaces, their limits and members.

use crate::{Tenant, code, on_each, pointers, refusal};
use purvey_work::model::{Role, User};
use purvey_work::{Code, PageRequest, Principal, Refusal};
use serde_json::json;

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
