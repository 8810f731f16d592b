//! A queued run is checked again when it gets its slot.

use crate::stage::{OPERATOR, Person, Stage};
use serde_json::{Value, json};

on_each_store! {
    agent_paused,
    actor_not_member_when_who_started_it_left_the_workspace,
    actor_unavailable_when_the_account_was_deactivated_locked_or_deleted,
    actor_unavailable_when_they_were_made_a_viewer,
    trigger_disabled_when_its_webhook_was_turned_off,
    thread_closed,
    thread_paused_and_the_request_waits_for_it_to_resume,
    turn_requester_unavailable,
    a_budget_that_is_used_up_meanwhile_ends_it_too,
}

/// A workspace whose one slot is taken until the gate opens.
struct Full {
    stage: Stage,
    /// Who starts what waits.
    starter: Person,
    agent: String,
}

async fn full(stage: Stage) -> Full {
    stage.limits(&json!({ "concurrency_limit": 1 })).await;
    let gate = stage.agent(json!({ "provider": "gate" })).await;
    let starter = stage.member("member").await;
    let agent = stage.agent(json!({})).await;
    stage.run(&stage.owner, &gate).await;
    Full {
        stage,
        starter,
        agent,
    }
}

impl Full {
    async fn queued(&self) -> Value {
        let run = self
            .stage
            .start(&self.starter, &self.agent, Some("k"))
            .await;
        waits(run.ok(202))
    }

    /// A thread of the starter's and what was answered to a request in it.
    async fn turn(&self) -> (String, Value) {
        let path = format!("/v1/workspaces/{}/threads", self.stage.workspace);
        let body = json!({ "agent_id": self.agent });
        let made = self
            .stage
            .post(&path, &self.starter.token, &body)
            .await
            .ok(201);
        let thread = format!("/v1/threads/{}", made["id"].as_str().unwrap());
        let body = json!({ "input": "hello" });
        let path = format!("{thread}/turns");
        let sent = self
            .stage
            .post(&path, &self.starter.token, &body)
            .await
            .ok(202);
        waits(sent["run"].clone());
        (thread, sent)
    }

    async fn change(&self, thread: &str, change: &str) {
        let path = format!("{thread}/{change}");
        self.stage
            .send("POST", &path, &self.starter.token, None, &[])
            .await
            .ok(200);
    }

    async fn set_state(&self, state: &str) {
        let path = format!("/v1/admin/users/{}", self.starter.id);
        self.stage
            .patch(&path, OPERATOR, &json!({ "state": state }))
            .await
            .ok(200);
    }

    /// Frees the slot: the run ends with this code, and the one behind it runs.
    async fn dequeued(&self, run: &Value, code: &str) {
        let behind = self.stage.agent(json!({})).await;
        let behind = self.stage.run(&self.stage.owner, &behind).await;
        self.stage.open_gate();
        let run = self.stage.ended(run).await;
        assert_eq!(run["status"], "failed", "{run}");
        assert_eq!(run["error_code"], code);
        assert!(!run["error_detail"].as_str().unwrap().is_empty());
        assert_eq!(run["started_at"], Value::Null);
        assert_eq!(run["attempt"], 0);
        assert_eq!(self.stage.ended(&behind).await["status"], "succeeded");
    }
}

fn waits(run: Value) -> Value {
    assert_eq!(run["status"], "pending", "{run}");
    assert!(run["queued_since"].is_string());
    run
}

async fn agent_paused(stage: Stage) {
    let full = full(stage).await;
    let run = full.queued().await;
    let path = format!("/v1/agents/{}", full.agent);
    let stage = &full.stage;
    stage
        .patch(&path, &stage.owner.token, &json!({ "paused": true }))
        .await
        .ok(200);
    full.dequeued(&run, "dequeue.agent_paused").await;
    // None clears on its own: it stays as it ended, and the same key is the same run.
    stage
        .patch(&path, &stage.owner.token, &json!({ "paused": false }))
        .await
        .ok(200);
    let again = stage
        .start(&full.starter, &full.agent, Some("k"))
        .await
        .ok(200);
    assert_eq!(
        (&again["id"], &again["status"]),
        (&run["id"], &json!("failed"))
    );
    let anew = stage
        .start(&full.starter, &full.agent, Some("k2"))
        .await
        .ok(202);
    assert_eq!(stage.ended(&anew).await["status"], "succeeded");
}

async fn actor_not_member_when_who_started_it_left_the_workspace(stage: Stage) {
    let full = full(stage).await;
    let run = full.queued().await;
    full.stage
        .set_role(&full.stage.workspace, &full.starter, None)
        .await;
    full.dequeued(&run, "dequeue.actor_not_member").await;
}

async fn actor_unavailable_when_the_account_was_deactivated_locked_or_deleted(stage: Stage) {
    let mut full = full(stage).await;
    let mut runs = Vec::new();
    for state in ["deactivated", "locked", "deleted"] {
        full.starter = full.stage.member("member").await;
        runs.push(full.queued().await);
        full.set_state(state).await;
    }
    for run in &runs {
        full.dequeued(run, "dequeue.actor_unavailable").await;
    }
}

async fn actor_unavailable_when_they_were_made_a_viewer(stage: Stage) {
    let full = full(stage).await;
    let run = full.queued().await;
    full.stage
        .set_role(&full.stage.workspace, &full.starter, Some("viewer"))
        .await;
    full.dequeued(&run, "dequeue.actor_unavailable").await;
}

async fn trigger_disabled_when_its_webhook_was_turned_off(stage: Stage) {
    let full = full(stage).await;
    let stage = &full.stage;
    let path = format!("/v1/workspaces/{}/triggers", stage.workspace);
    let body = json!({ "kind": "webhook", "agent_id": full.agent, "input": {} });
    let mut runs = Vec::new();
    for delete in [false, true] {
        let made = stage.post(&path, &stage.owner.token, &body).await.ok(201);
        let hook = format!("/v1/hooks/{}", made["id"].as_str().unwrap());
        let run = stage
            .post(&hook, made["token"].as_str().unwrap(), &json!({}))
            .await;
        runs.push(waits(run.ok(202)));
        let place = format!("/v1/triggers/{}", made["id"].as_str().unwrap());
        let off = json!({ "enabled": false });
        match delete {
            true => assert_eq!(stage.delete(&place, &stage.owner.token).await.status, 204),
            false => drop(stage.patch(&place, &stage.owner.token, &off).await.ok(200)),
        }
    }
    for run in &runs {
        full.dequeued(run, "dequeue.trigger_disabled").await;
    }
}

async fn thread_closed(stage: Stage) {
    let full = full(stage).await;
    let (thread, sent) = full.turn().await;
    full.change(&thread, "close").await;
    full.dequeued(&sent["run"], "dequeue.thread_closed").await;
    let turns = full
        .stage
        .get(&format!("{thread}/turns"), OPERATOR)
        .await
        .ok(200);
    assert_eq!(turns["items"][0]["state"], "failed");
}

async fn thread_paused_and_the_request_waits_for_it_to_resume(stage: Stage) {
    let full = full(stage).await;
    let (thread, sent) = full.turn().await;
    full.change(&thread, "pause").await;
    full.dequeued(&sent["run"], "dequeue.thread_paused").await;
    let turn = async || {
        let turns = full
            .stage
            .get(&format!("{thread}/turns"), OPERATOR)
            .await
            .ok(200);
        assert_eq!(turns["items"].as_array().unwrap().len(), 1);
        turns["items"][0].clone()
    };
    assert_eq!(turn().await["state"], "waiting");
    full.change(&thread, "resume").await;
    let fresh = turn().await["run_id"].clone();
    assert_ne!(fresh, sent["run"]["id"]);
    let fresh = full.stage.ended(&json!({ "id": fresh })).await;
    assert_eq!(
        (&fresh["status"], &fresh["turn_id"]),
        (&json!("succeeded"), &sent["turn"]["id"])
    );
    assert_eq!(turn().await["state"], "answered");
}

async fn turn_requester_unavailable(stage: Stage) {
    let mut full = full(stage).await;
    let mut runs = Vec::new();
    for role in [None, Some("viewer")] {
        full.starter = full.stage.member("member").await;
        runs.push(full.turn().await.1["run"].clone());
        full.stage
            .set_role(&full.stage.workspace, &full.starter, role)
            .await;
    }
    full.starter = full.stage.member("member").await;
    runs.push(full.turn().await.1["run"].clone());
    full.set_state("deactivated").await;
    for run in &runs {
        full.dequeued(run, "dequeue.turn_requester_unavailable")
            .await;
    }
}

async fn a_budget_that_is_used_up_meanwhile_ends_it_too(stage: Stage) {
    let full = full(stage).await;
    let run = full.queued().await;
    full.stage.limits(&json!({ "daily_cost_cents": 0 })).await;
    full.stage.open_gate();
    let run = full.stage.ended(&run).await;
    assert_eq!(
        (&run["status"], &run["error_code"]),
        (&json!("failed"), &json!("daily.cost_cents"))
    );
    let expected = json!({ "code": "daily.cost_cents", "used_cents": 0, "limit_cents": 0, "resets_at": "2026-01-02T00:00:00.000Z" });
    assert_eq!(run["limit_detail"], expected);
}
