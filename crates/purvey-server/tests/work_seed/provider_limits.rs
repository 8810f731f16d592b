//! A run whose model provider rate limits its requests.

use crate::{
    model::{Reply, SAYS},
    stage::Stage,
};
use serde_json::{Value, json};
use std::time::Duration;

on_each_store! {
    it_pauses_and_continues_on_its_own_from_where_it_stopped,
    one_wait_lasts_at_most_fifteen_minutes,
    five_times_in_a_row_on_the_same_step_fail_the_run,
    a_wait_that_would_pass_the_time_limit_fails_the_run,
    a_paused_run_keeps_its_slot_and_can_be_cancelled,
    a_failing_provider_is_asked_again_and_a_refusing_one_is_not,
}

async fn modelled(stage: &Stage, with: Value) -> String {
    let mut body = json!({ "provider": "model", "model": "dear" });
    body.as_object_mut()
        .unwrap()
        .extend(with.as_object().unwrap().clone());
    stage.agent(body).await
}

fn limited(seconds: &str) -> Reply {
    Reply::refuses(429, &[("retry-after", seconds)])
}

async fn it_pauses_and_continues_on_its_own_from_where_it_stopped(stage: Stage) {
    let agent = modelled(&stage, json!({})).await;
    let reset = ("x-ratelimit-reset-requests", "10m0s");
    let left = ("x-ratelimit-remaining-requests", "0");
    stage
        .model
        .replies([Reply::wants("none"), Reply::refuses(429, &[reset, left])]);
    let run = stage.start(&stage.owner, &agent, Some("k")).await.ok(202);
    let paused = stage.reaches(&run, "paused_limit_exceeded").await;
    assert_eq!(paused["error_code"], "provider.rate_limited");
    assert_eq!(paused["limit_detail"]["code"], "provider.rate_limited");
    assert_eq!(paused["limit_detail"]["consecutive"], 1);
    // Ten minutes after a little past noon.
    let resets_at = paused["limit_detail"]["resets_at"].as_str().unwrap();
    assert!(resets_at.starts_with("2026-01-01T12:1"), "{resets_at}");
    assert_eq!(paused["finished_at"], Value::Null);
    // Starting the work again with its key while it waits starts nothing.
    let again = stage.start(&stage.owner, &agent, Some("k")).await.ok(200);
    assert_eq!(
        (&again["id"], &again["status"]),
        (&run["id"], &json!("paused_limit_exceeded"))
    );

    stage.time.pass(Duration::from_secs(600));
    let run = stage.ended(&run).await;
    assert_eq!(
        (&run["status"], &run["output"]),
        (&json!("succeeded"), &json!(SAYS))
    );
    assert_eq!(
        (&run["error_code"], &run["limit_detail"]),
        (&Value::Null, &Value::Null)
    );
    // The first step was neither made nor paid again.
    assert_eq!(run["cost_cents"], 10);
    let asked = stage.model.asked();
    assert_eq!(asked.len(), 3);
    assert_eq!(asked[1], asked[2]);
    let path = format!("/v1/runs/{}/steps", run["id"].as_str().unwrap());
    let steps = stage.get(&path, &stage.owner.token).await.ok(200);
    let steps = steps["items"].as_array().unwrap().iter();
    let steps: Vec<_> = steps
        .map(|step| {
            (
                step["kind"].as_str().unwrap(),
                step["state"].as_str().unwrap(),
                step["cost_cents"].clone(),
            )
        })
        .collect();
    let expected = [
        ("provider", "done", json!(5)),
        ("tool", "done", json!(0)),
        ("provider", "done", json!(5)),
    ];
    assert_eq!(steps, expected);
}

async fn one_wait_lasts_at_most_fifteen_minutes(stage: Stage) {
    let agent = modelled(&stage, json!({})).await;
    // From the date in the provider's own signal: a quarter past is sooner.
    let date = "Thu, 01 Jan 2026 20:00:00 GMT";
    stage
        .model
        .replies([Reply::refuses(429, &[("retry-after", date)])]);
    let run = stage.run(&stage.owner, &agent).await;
    let paused = stage.reaches(&run, "paused_limit_exceeded").await;
    let resets_at = paused["limit_detail"]["resets_at"].as_str().unwrap();
    assert!(resets_at.starts_with("2026-01-01T12:1"), "{resets_at}");
    stage.time.pass(Duration::from_secs(900));
    assert_eq!(stage.ended(&run).await["status"], "succeeded");
}

async fn five_times_in_a_row_on_the_same_step_fail_the_run(stage: Stage) {
    let agent = modelled(&stage, json!({})).await;
    stage.model.replies((0..5).map(|_| limited("60")));
    let run = stage.run(&stage.owner, &agent).await;
    for consecutive in 1..5 {
        stage
            .until("the run is limited once more", async || {
                let run = stage.read(&run).await;
                run["status"] == "paused_limit_exceeded"
                    && run["limit_detail"]["consecutive"] == consecutive
            })
            .await;
        stage.time.pass(Duration::from_secs(60));
    }
    let run = stage.ended(&run).await;
    assert_eq!(
        (&run["status"], &run["error_code"]),
        (&json!("failed"), &json!("provider.rate_limited"))
    );
    assert_eq!(run["limit_detail"]["consecutive"], 5);
    assert_eq!(run["cost_cents"], 0);
    assert_eq!(stage.model.asked().len(), 5);
    // Start it again later.
    let again = stage.run(&stage.owner, &agent).await;
    assert_eq!(stage.ended(&again).await["status"], "succeeded");
}

async fn a_wait_that_would_pass_the_time_limit_fails_the_run(stage: Stage) {
    let agent = modelled(&stage, json!({ "time_limit_seconds": 300 })).await;
    stage.model.replies([limited("301")]);
    let run = stage.run(&stage.owner, &agent).await;
    let run = stage.ended(&run).await;
    assert_eq!(
        (&run["status"], &run["error_code"]),
        (&json!("failed"), &json!("provider.rate_limited"))
    );
    assert!(
        run["finished_at"]
            .as_str()
            .unwrap()
            .starts_with("2026-01-01T12:0")
    );
}

async fn a_paused_run_keeps_its_slot_and_can_be_cancelled(stage: Stage) {
    let agent = modelled(&stage, json!({})).await;
    stage.limits(&json!({ "concurrency_limit": 1 })).await;
    stage.model.replies([limited("600")]);
    let run = stage.run(&stage.owner, &agent).await;
    stage.reaches(&run, "paused_limit_exceeded").await;
    let next = stage.run(&stage.owner, &agent).await;
    assert_eq!(next["status"], "pending");
    let path = format!("/v1/runs/{}/cancel", run["id"].as_str().unwrap());
    let cancelled = stage
        .send("POST", &path, &stage.owner.token, None, &[])
        .await;
    assert_eq!(cancelled.ok(200)["status"], "cancelled");
    assert_eq!(stage.ended(&next).await["status"], "succeeded");
}

async fn a_failing_provider_is_asked_again_and_a_refusing_one_is_not(stage: Stage) {
    let agent = modelled(&stage, json!({})).await;
    stage.model.replies([Reply::refuses(500, &[])]);
    let run = stage.run(&stage.owner, &agent).await;
    let run = stage.ended(&run).await;
    assert_eq!(
        (&run["status"], &run["cost_cents"]),
        (&json!("succeeded"), &json!(5))
    );
    assert_eq!(stage.model.asked().len(), 2);
    stage.model.replies([Reply::refuses(404, &[])]);
    let run = stage.run(&stage.owner, &agent).await;
    let run = stage.ended(&run).await;
    assert_eq!(
        (&run["status"], &run["error_code"]),
        (&json!("failed"), &json!("provider.rejected"))
    );
    assert_eq!(stage.model.asked().len(), 3);
}
