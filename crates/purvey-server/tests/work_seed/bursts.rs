//! Bursts: exact limits and one run per key, however many come at once. `PURVEY_BURST` says how many; 200 unless set.

use crate::stage::{Answer, Person, Stage};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

on_each_store! {
    a_burst_at_a_limit_of_five_runs_five_at_once_and_never_one_more,
    a_burst_with_one_key_is_one_run,
    a_burst_of_accepted_and_refused_starts_in_turn_is_judged_one_by_one,
    a_burst_on_a_short_queue_fills_it_exactly,
}

const AT_ONCE: usize = 5;

fn size() -> usize {
    std::env::var("PURVEY_BURST").map_or(200, |size| size.parse().unwrap())
}

/// Starts of these agents with these keys, all at once.
async fn burst(stage: &Stage, who: &Person, starts: Vec<(String, String)>) -> Vec<Answer> {
    let starts = starts.into_iter().map(|(agent, key)| {
        let request = http::Request::post(format!("/v1/agents/{agent}/runs"))
            .header("authorization", format!("Bearer {}", who.token))
            .header("content-type", "application/json")
            .header("idempotency-key", key)
            .body(axum::body::Body::from("{\"input\":\"x\"}"))
            .unwrap();
        tokio::spawn(Answer::of(stage.router(), request))
    });
    let answers = join_all(starts.collect::<Vec<_>>()).await;
    answers.into_iter().map(Result::unwrap).collect()
}

fn keys(size: usize) -> impl Iterator<Item = String> {
    (0..size).map(|number| format!("key-{number}"))
}

async fn workspace(stage: &Stage) -> Value {
    let path = format!("/v1/workspaces/{}", stage.workspace);
    stage.get(&path, &stage.owner.token).await.ok(200)
}

/// How many answers have each status.
fn statuses(answers: &[Answer]) -> BTreeMap<u16, usize> {
    let mut statuses = BTreeMap::new();
    for answer in answers {
        *statuses.entry(answer.status).or_default() += 1;
    }
    statuses
}

async fn all_succeed(stage: &Stage, count: usize) {
    stage
        .until("every run ends", async || {
            let workspace = workspace(stage).await;
            assert!(
                workspace["running"].as_u64().unwrap() <= AT_ONCE as u64,
                "{workspace}"
            );
            workspace["running"] == 0 && workspace["queued"] == 0
        })
        .await;
    let runs = stage.runs("succeeded").await;
    let ids: BTreeSet<_> = runs.iter().map(|run| run["id"].as_str().unwrap()).collect();
    assert_eq!((runs.len(), ids.len()), (count, count));
    // Each was made once.
    assert!(runs.iter().all(|run| run["attempt"] == 1));
}

async fn a_burst_at_a_limit_of_five_runs_five_at_once_and_never_one_more(stage: Stage) {
    let size = size();
    stage
        .limits(&json!({ "concurrency_limit": AT_ONCE, "queue_limit": size }))
        .await;
    let agent = stage
        .agent(json!({ "provider": "model", "model": "free" }))
        .await;
    stage.model.close();
    let starts = keys(size).map(|key| (agent.clone(), key)).collect();
    let answers = burst(&stage, &stage.owner, starts).await;
    let mut pending = 0;
    for answer in &answers {
        let run = answer.ok(202);
        match run["status"].as_str().unwrap() {
            "running" => assert_eq!(run["queued_since"], Value::Null),
            "pending" => {
                assert!(run["queued_since"].is_string());
                pending += 1;
            }
            status => panic!("{status}"),
        }
    }
    assert_eq!(pending, size - AT_ONCE);
    let now = workspace(&stage).await;
    assert_eq!(
        (&now["running"], &now["queued"]),
        (&json!(AT_ONCE), &json!(size - AT_ONCE))
    );
    // All of the five are used.
    stage
        .until("five are asked at once", async || {
            stage.model.callers() == AT_ONCE
        })
        .await;
    stage.model.open();
    all_succeed(&stage, size).await;
    assert_eq!(stage.model.most(), AT_ONCE);
    assert_eq!(stage.model.asked().len(), size);
}

async fn a_burst_with_one_key_is_one_run(stage: Stage) {
    let size = size();
    stage.limits(&json!({ "concurrency_limit": AT_ONCE })).await;
    let agent = stage
        .agent(json!({ "provider": "model", "model": "free" }))
        .await;
    let starts = vec![(agent, "k".to_owned()); size];
    let answers = burst(&stage, &stage.owner, starts).await;
    assert_eq!(
        statuses(&answers),
        BTreeMap::from([(200, size - 1), (202, 1)])
    );
    let mut ids = BTreeSet::new();
    for answer in &answers {
        let run: Value = serde_json::from_slice(&answer.body).unwrap();
        ids.insert(run["id"].as_str().unwrap().to_owned());
        let replayed = (answer.status == 200).then_some("true");
        assert_eq!(answer.header("idempotent-replayed"), replayed);
    }
    assert_eq!(ids.len(), 1);
    all_succeed(&stage, 1).await;
    assert_eq!(stage.model.asked().len(), 1);
}

async fn a_burst_of_accepted_and_refused_starts_in_turn_is_judged_one_by_one(stage: Stage) {
    let size = size();
    stage
        .limits(&json!({ "concurrency_limit": AT_ONCE, "queue_limit": size }))
        .await;
    let (good, paused) = (
        stage.agent(json!({})).await,
        stage.agent(json!({ "paused": true })).await,
    );
    let starts = || {
        keys(size)
            .enumerate()
            .map(|(number, key)| match number % 2 {
                0 => (good.clone(), key),
                _ => (paused.clone(), key),
            })
            .collect()
    };
    let answers = burst(&stage, &stage.owner, starts()).await;
    for (number, answer) in answers.iter().enumerate() {
        match number % 2 {
            0 => drop(answer.ok(202)),
            _ => drop(answer.refused(409, "state.conflict")),
        }
    }
    // What was accepted is replayed; what was refused has not consumed its key.
    let path = format!("/v1/agents/{paused}");
    stage
        .patch(&path, &stage.owner.token, &json!({ "paused": false }))
        .await
        .ok(200);
    let again = burst(&stage, &stage.owner, starts()).await;
    for (number, (before, now)) in answers.iter().zip(&again).enumerate() {
        match number % 2 {
            0 => assert_eq!(now.ok(200)["id"], before.ok(202)["id"]),
            _ => assert_eq!(now.ok(202)["agent_id"], *paused),
        }
    }
    all_succeed(&stage, size).await;
}

async fn a_burst_on_a_short_queue_fills_it_exactly(stage: Stage) {
    let size = size();
    stage
        .limits(&json!({ "concurrency_limit": AT_ONCE, "queue_limit": 10 }))
        .await;
    let agent = stage
        .agent(json!({ "provider": "model", "model": "free" }))
        .await;
    stage.model.close();
    let starts = keys(size).map(|key| (agent.clone(), key)).collect();
    let answers = burst(&stage, &stage.owner, starts).await;
    assert_eq!(
        statuses(&answers),
        BTreeMap::from([(202, 15), (429, size - 15)])
    );
    for answer in answers.iter().filter(|answer| answer.status == 429) {
        answer.refused(429, "queue.full");
        assert!(answer.header("retry-after").is_some());
    }
    stage.model.open();
    all_succeed(&stage, 15).await;
}
