//! Programs that work on files: what they are given, and what becomes of what they leave.

use crate::{
    stage::Stage,
    uploads::{Upload, artifacts, id, upload},
};
use serde_json::{Value, json};

on_each_store_of_bytes! {
    a_program_reads_the_runs_artifacts_and_makes_artifacts,
    a_run_that_does_not_succeed_makes_nothing,
    what_a_call_left_that_failed_is_nobodys,
    what_cannot_become_an_artifact_fails_the_run_and_says_why,
    what_has_no_room_fails_the_run_and_takes_none,
    an_artifact_that_is_gone_by_then_fails_the_run,
}

async fn run(stage: &Stage, provider: &str, more: Value) -> Value {
    let agent = stage.agent(json!({ "provider": provider })).await;
    start(stage, &agent, more).await
}

async fn start(stage: &Stage, agent: &str, more: Value) -> Value {
    let mut body = json!({ "input": "x" });
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let path = format!("/v1/agents/{agent}/runs");
    let run = stage.post(&path, &stage.owner.token, &body).await.ok(202);
    stage.ended(&run).await
}

async fn content(stage: &Stage, artifact: &Value) -> Vec<u8> {
    let path = format!("/v1/artifacts/{}/content", artifact.as_str().unwrap());
    let got = stage.get(&path, &stage.owner.token).await;
    assert_eq!(got.status, 200);
    got.body.to_vec()
}

async fn a_program_reads_the_runs_artifacts_and_makes_artifacts(stage: Stage) {
    let owner = stage.owner.clone();
    let one = Upload::of(&stage, &owner, "1", b"one,").with("x-filename", "a%2Fb.txt");
    let one = one.send(&stage, "one,").await.ok(201);
    let two = Upload::of(&stage, &owner, "2", b"two").with("x-filename", "..");
    let two = two.send(&stage, "two").await.ok(201);
    let run = run(
        &stage,
        "copies",
        json!({ "artifacts": [one["id"], two["id"]] }),
    )
    .await;
    assert_eq!(run["output"], "copied", "{run}");
    assert_eq!(run["artifacts"], json!([one["id"], two["id"]]));
    let produced = run["produced"].as_array().unwrap();
    assert_eq!(produced.len(), 2);
    assert_eq!(content(&stage, &produced[0]).await, b"one,two");
    assert_eq!(
        content(&stage, &produced[1]).await,
        b"000-a_b.txt\n001-..\n"
    );
    let ready = artifacts(&stage, "ready").await;
    let mut names: Vec<_> = ready
        .iter()
        .map(|it| it["filename"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["..", "a/b.txt", "all", "names"]);
    // They are artifacts like others: a run may read them, and they can be deleted.
    let copied = self::run(&stage, "echo", json!({ "artifacts": [produced[0]] })).await;
    assert_eq!(copied["status"], "succeeded");
    for artifact in [&produced[0], &produced[1], &one["id"], &two["id"]] {
        let path = format!("/v1/artifacts/{}", artifact.as_str().unwrap());
        assert_eq!(stage.delete(&path, &owner.token).await.status, 204);
    }
    assert_eq!(stage.objects.count().await, 0);
}

async fn a_run_that_does_not_succeed_makes_nothing(stage: Stage) {
    let failed = run(&stage, "litters", json!({})).await;
    assert_eq!(failed["error_code"], "provider.failed");
    assert_eq!(failed["produced"], Value::Null);
    // Nor one whose output breaks the contract.
    let contract = json!({ "provider": "fits", "output_schema": { "type": "string" } });
    let agent = stage.agent(contract).await;
    let broken = start(&stage, &agent, json!({})).await;
    assert_eq!(broken["verification_status"], "verification_failed");
    for status in ["uploading", "ready", "failed"] {
        assert_eq!(artifacts(&stage, status).await, [Value::Null; 0]);
    }
    assert_eq!(stage.objects.count().await, 0);
}

async fn what_a_call_left_that_failed_is_nobodys(stage: Stage) {
    let done = run(&stage, "again", json!({})).await;
    assert_eq!(done["status"], "succeeded", "{done}");
    let ready = artifacts(&stage, "ready").await;
    assert_eq!(done["produced"], json!([ready[0]["id"]]));
    assert_eq!((ready.len(), &ready[0]["filename"]), (1, &json!("new")));
}

async fn what_cannot_become_an_artifact_fails_the_run_and_says_why(stage: Stage) {
    for (provider, why) in [
        ("many", "more than 2 files"),
        ("large", "1500001 bytes in files, and 1500000 are the most"),
        ("nested", "inner, which is no file"),
        ("linked", "passwd, which is no file"),
    ] {
        let failed = run(&stage, provider, json!({})).await;
        assert_eq!(failed["error_code"], "provider.failed", "{failed}");
        let detail = failed["error_detail"].as_str().unwrap();
        assert!(detail.contains(why), "{detail}");
    }
    assert_eq!(artifacts(&stage, "ready").await, [Value::Null; 0]);
    assert_eq!(stage.objects.count().await, 0);
}

async fn what_has_no_room_fails_the_run_and_takes_none(stage: Stage) {
    let owner = stage.owner.clone();
    for key in ["1", "2"] {
        upload(&stage, &owner, key, &[7; 900_000]).await.ok(201);
    }
    let failed = run(&stage, "fits", json!({})).await;
    assert_eq!(failed["error_code"], "artifact.storage_quota", "{failed}");
    assert_eq!(failed["limit_detail"]["code"], "artifact.storage_quota");
    assert_eq!(stage.objects.count().await, 2);
    // 2,500,000 in all.
    upload(&stage, &owner, "3", &[7; 700_000]).await.ok(201);
}

async fn an_artifact_that_is_gone_by_then_fails_the_run(stage: Stage) {
    let owner = stage.owner.clone();
    stage.limits(&json!({ "concurrency_limit": 1 })).await;
    let gate = stage.agent(json!({ "provider": "gate" })).await;
    stage.run(&owner, &gate).await;
    let made = upload(&stage, &owner, "k", b"few").await.ok(201);
    let agent = stage.agent(json!({ "provider": "copies" })).await;
    let body = json!({ "input": "x", "artifacts": [made["id"]] });
    let path = format!("/v1/agents/{agent}/runs");
    let waiting = stage.post(&path, &owner.token, &body).await.ok(202);
    let artifact = format!("/v1/artifacts/{}", id(&made));
    assert_eq!(stage.delete(&artifact, &owner.token).await.status, 204);
    stage.open_gate();
    let ended = stage.ended(&waiting).await;
    assert_eq!(ended["error_code"], "artifact.deleted", "{ended}");
    assert!(ended["error_detail"].as_str().unwrap().contains(id(&made)));
}
