//! Agents.

use crate::{Tenant, code, on_each, pointers};
use purvey_work::model::{Agent, Role, Visibility};
use purvey_work::{Code, PageRequest, Principal};
use serde_json::json;

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
