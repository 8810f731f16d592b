//! Starts that come at once.

use crate::{Tenant, code, on_each, pointers};
use futures_util::future::join_all;
use purvey_work::Code;
use purvey_work::model::{Role, RunStatus};
use serde_json::json;

#[test]
fn of_starts_that_come_at_once_each_has_its_own_answer() {
    on_each(async |tenant: Tenant| {
        let platform = &tenant.platform;
        let owner = tenant.caller(&tenant.owner).await;
        let (_, viewer) = tenant.member(Role::Viewer).await;
        let limits = json!({ "concurrency_limit": 4, "queue_limit": 2 });
        platform
            .update_workspace(owner.clone(), tenant.ws(), limits)
            .await
            .unwrap();
        let schema = json!({ "input_schema": { "type": "object", "required": ["n"] } });
        let agent = tenant.agent(&owner, schema).await.unwrap().id.to_string();
        let gone = tenant
            .agent(&owner, json!({}))
            .await
            .unwrap()
            .id
            .to_string();
        platform
            .delete_agent(owner.clone(), gone.clone())
            .await
            .unwrap();
        let good = |n: u32| json!({ "input": { "n": n } });
        // Once it is known where agents are, starts come in the order in which they are called.
        for (caller, agent, refused) in [
            (&viewer, &agent, Code::PermissionRole),
            (&owner, &gone, Code::NotFound),
        ] {
            let start = platform.start_run(caller.clone(), agent.clone(), good(1), None);
            assert_eq!(code(start.await), refused);
        }
        let starts = [
            (&owner, &agent, good(1), Some("a")),
            (&owner, &agent, good(1), Some("a")),
            (&owner, &agent, good(2), Some("a")),
            (&viewer, &agent, good(1), Some("b")),
            (&owner, &gone, good(1), None),
            (&owner, &agent, json!({ "input": {} }), Some("c")),
            (&owner, &agent, good(3), Some("c")),
            (&owner, &agent, good(4), None),
            (&owner, &agent, good(5), None),
            (&owner, &agent, good(6), None),
            (&owner, &agent, good(7), None),
            (&owner, &agent, good(8), None),
            (&owner, &agent, good(1), Some("a")),
        ];
        let calls = starts.map(|(caller, agent, body, key)| {
            platform.start_run(caller.clone(), agent.clone(), body, key.map(str::to_owned))
        });
        let mut answers = join_all(calls).await.into_iter();
        let mut next = || answers.next().unwrap();
        let first = next().unwrap();
        assert!(!first.replayed);
        let again = next().unwrap();
        assert!(again.replayed);
        assert_eq!(again.run.id, first.run.id);
        assert_eq!(code(next()), Code::KeyReused);
        assert_eq!(code(next()), Code::PermissionRole);
        assert_eq!(code(next()), Code::NotFound);
        assert_eq!(pointers(next()), ["/input"]);
        let statuses: Vec<_> = (0..5).map(|_| next().unwrap().run.status).collect();
        let (running, pending) = (RunStatus::Running, RunStatus::Pending);
        assert_eq!(statuses, [running, running, running, pending, pending]);
        assert_eq!(code(next()), Code::QueueFull);
        assert_eq!(next().unwrap().run.id, first.run.id);
    });
}
