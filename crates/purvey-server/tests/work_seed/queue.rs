//! Starts at the concurrency limit.

use crate::stage::Stage;
use serde_json::{Value, json};

on_each_store! {
    a_run_at_the_concurrency_limit_is_accepted_pending_and_starts_on_its_own,
    only_a_full_queue_answers_429_with_retry_after,
    a_start_that_finds_a_free_slot_never_counts_as_queued,
    raising_the_limit_starts_who_waits_and_lowering_it_stops_nobody,
    a_cancelled_run_gives_its_slot_to_the_next,
}

const AT_ONCE: u64 = 1;

/// An agent whose runs end when the gate opens, in a workspace of one slot.
async fn narrow(stage: &Stage) -> String {
    stage
        .limits(&json!({ "concurrency_limit": AT_ONCE, "queue_limit": 2 }))
        .await;
    stage.agent(json!({ "provider": "gate" })).await
}

async fn counts(stage: &Stage) -> (Value, Value) {
    let path = format!("/v1/workspaces/{}", stage.workspace);
    let workspace = stage.get(&path, &stage.owner.token).await.ok(200);
    (workspace["running"].clone(), workspace["queued"].clone())
}

async fn a_run_at_the_concurrency_limit_is_accepted_pending_and_starts_on_its_own(stage: Stage) {
    let agent = narrow(&stage).await;
    let first = stage.run(&stage.owner, &agent).await;
    assert_eq!(first["status"], "running");
    let answer = stage.start(&stage.owner, &agent, None).await;
    let second = answer.ok(202);
    let place = format!("/v1/runs/{}", second["id"].as_str().unwrap());
    assert_eq!(answer.header("location"), Some(place.as_str()));
    assert_eq!(answer.header("retry-after"), None);
    assert_eq!(second["status"], "pending");
    assert!(
        second["queued_since"]
            .as_str()
            .unwrap()
            .starts_with("2026-01-01T12:")
    );
    assert_eq!(
        second["waiting_for"],
        json!({ "reason": "concurrency", "position": 1 })
    );
    assert_eq!(second["started_at"], Value::Null);
    let third = stage.run(&stage.owner, &agent).await;
    assert_eq!(
        third["waiting_for"],
        json!({ "reason": "concurrency", "position": 2 })
    );
    assert_eq!(counts(&stage).await, (json!(1), json!(2)));

    stage.open_gate();
    for run in [&first, &second, &third] {
        let run = stage.ended(run).await;
        assert_eq!(run["status"], "succeeded", "{run}");
        assert_eq!(run["output"], "through");
        assert_eq!(run["waiting_for"], Value::Null);
    }
    let second = stage.read(&second).await;
    assert!(second["queued_since"].is_string() && second["started_at"].is_string());
    assert_eq!(counts(&stage).await, (json!(0), json!(0)));
}

async fn only_a_full_queue_answers_429_with_retry_after(stage: Stage) {
    let agent = narrow(&stage).await;
    for _ in 0..3 {
        stage.run(&stage.owner, &agent).await;
    }
    let full = stage.start(&stage.owner, &agent, Some("late")).await;
    let body = full.refused(429, "queue.full");
    assert_eq!(body["limit_detail"]["code"], "queue.full");
    let seconds: u64 = full.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=3_600).contains(&seconds));
    // Nothing was kept of it: once there is room its key starts a run.
    stage.open_gate();
    stage
        .until("the queue is empty", async || {
            counts(&stage).await.1 == json!(0)
        })
        .await;
    let late = stage.start(&stage.owner, &agent, Some("late")).await;
    assert_eq!(late.header("idempotent-replayed"), None);
    assert_eq!(stage.ended(&late.ok(202)).await["status"], "succeeded");
}

async fn a_start_that_finds_a_free_slot_never_counts_as_queued(stage: Stage) {
    stage.limits(&json!({ "queue_limit": 0 })).await;
    let agent = stage.agent(json!({})).await;
    let run = stage.run(&stage.owner, &agent).await;
    assert_eq!(run["status"], "running");
    assert_eq!(run["queued_since"], Value::Null);
    let run = stage.ended(&run).await;
    assert_eq!(
        (&run["status"], &run["output"]),
        (&json!("succeeded"), &json!("x"))
    );
}

async fn raising_the_limit_starts_who_waits_and_lowering_it_stops_nobody(stage: Stage) {
    let agent = narrow(&stage).await;
    let first = stage.run(&stage.owner, &agent).await;
    let second = stage.run(&stage.owner, &agent).await;
    assert_eq!(second["status"], "pending");
    stage.limits(&json!({ "concurrency_limit": 2 })).await;
    assert_eq!(stage.read(&second).await["status"], "running");
    stage.limits(&json!({ "concurrency_limit": 1 })).await;
    let third = stage.run(&stage.owner, &agent).await;
    assert_eq!(third["status"], "pending");
    assert_eq!(counts(&stage).await, (json!(2), json!(1)));
    stage.open_gate();
    for run in [first, second, third] {
        assert_eq!(stage.ended(&run).await["status"], "succeeded");
    }
}

async fn a_cancelled_run_gives_its_slot_to_the_next(stage: Stage) {
    let agent = narrow(&stage).await;
    let runs = [
        stage.run(&stage.owner, &agent).await,
        stage.run(&stage.owner, &agent).await,
        stage.run(&stage.owner, &agent).await,
    ];
    for run in &runs[..2] {
        let path = format!("/v1/runs/{}/cancel", run["id"].as_str().unwrap());
        stage
            .send("POST", &path, &stage.owner.token, None, &[])
            .await
            .ok(200);
        let run = stage.ended(run).await;
        assert_eq!(
            (&run["status"], &run["error_code"]),
            (&json!("cancelled"), &Value::Null)
        );
    }
    stage.reaches(&runs[2], "running").await;
    stage.open_gate();
    assert_eq!(stage.ended(&runs[2]).await["status"], "succeeded");
}
