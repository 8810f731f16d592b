//! The same idempotency key on every attempt of one start.

use crate::stage::Stage;
use serde_json::{Value, json};

on_each_store! {
    the_same_key_is_the_same_run_as_it_is_now,
    a_replay_is_answered_whatever_the_limits_say_by_now,
    a_refused_start_does_not_consume_its_key,
    a_key_is_the_users_whatever_token_they_use,
    a_start_without_a_key_is_never_a_replay,
    a_webhook_delivered_again_is_the_same_run,
    a_turn_sent_again_is_the_same_turn,
}

async fn the_same_key_is_the_same_run_as_it_is_now(stage: Stage) {
    let agent = stage.agent(json!({})).await;
    let path = format!("/v1/agents/{agent}/runs");
    let token = &stage.owner.token;
    let key = [("idempotency-key", "k")];
    let first = stage.start(&stage.owner, &agent, Some("k")).await;
    assert_eq!(first.header("idempotent-replayed"), None);
    let run = first.ok(202);
    let ended = stage.ended(&run).await;
    let again = stage.start(&stage.owner, &agent, Some("k")).await;
    assert_eq!(again.ok(200), ended);
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.header("location"), first.header("location"));
    // Written otherwise it is the same request.
    let spaced = axum::body::Body::from("  { \"input\" : \"\\u0078\" }");
    let request = http::Request::post(&path)
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .header(key[0].0, key[0].1)
        .body(spaced)
        .unwrap();
    assert_eq!(stage.raw(request).await.ok(200)["id"], run["id"]);
    // Another body, or another agent, is another request.
    let other = stage
        .send("POST", &path, token, Some(&json!({ "input": "y" })), &key)
        .await;
    other.refused(409, "idempotency.key_reused");
    let elsewhere = stage.agent(json!({})).await;
    stage
        .start(&stage.owner, &elsewhere, Some("k"))
        .await
        .refused(409, "idempotency.key_reused");
    assert_eq!(stage.runs("succeeded").await.len(), 1);
}

async fn a_replay_is_answered_whatever_the_limits_say_by_now(stage: Stage) {
    stage
        .limits(&json!({ "concurrency_limit": 1, "queue_limit": 1 }))
        .await;
    let agent = stage.agent(json!({ "provider": "gate" })).await;
    let first = stage
        .start(&stage.owner, &agent, Some("first"))
        .await
        .ok(202);
    let second = stage
        .start(&stage.owner, &agent, Some("second"))
        .await
        .ok(202);
    stage
        .start(&stage.owner, &agent, Some("third"))
        .await
        .refused(429, "queue.full");
    let replayed = async || {
        for (key, run) in [("first", &first), ("second", &second)] {
            let again = stage.start(&stage.owner, &agent, Some(key)).await;
            assert_eq!(again.ok(200)["id"], run["id"]);
        }
    };
    replayed().await;
    stage
        .limits(&json!({ "queue_limit": 0, "daily_cost_cents": 0 }))
        .await;
    replayed().await;
    let path = format!("/v1/agents/{agent}");
    stage
        .patch(&path, &stage.owner.token, &json!({ "paused": true }))
        .await
        .ok(200);
    replayed().await;
}

async fn a_refused_start_does_not_consume_its_key(stage: Stage) {
    let agent = stage.agent(json!({ "paused": true })).await;
    let path = format!("/v1/agents/{agent}");
    let member = stage.member("viewer").await;
    stage
        .start(&member, &agent, Some("k"))
        .await
        .refused(403, "permission.role");
    stage
        .set_role(&stage.workspace, &member, Some("member"))
        .await;
    stage
        .start(&member, &agent, Some("k"))
        .await
        .refused(409, "state.conflict");
    stage
        .patch(&path, &stage.owner.token, &json!({ "paused": false }))
        .await
        .ok(200);
    stage.limits(&json!({ "daily_cost_cents": 0 })).await;
    stage
        .start(&member, &agent, Some("k"))
        .await
        .refused(429, "daily.cost_cents");
    stage.limits(&json!({ "daily_cost_cents": null })).await;
    let accepted = stage.start(&member, &agent, Some("k")).await;
    assert_eq!(accepted.header("idempotent-replayed"), None);
    assert_eq!(stage.ended(&accepted.ok(202)).await["status"], "succeeded");
}

async fn a_key_is_the_users_whatever_token_they_use(stage: Stage) {
    let agent = stage.agent(json!({})).await;
    let run = stage.start(&stage.owner, &agent, Some("k")).await.ok(202);
    // The page says to replace a revoked credential and to keep the key.
    let mut renewed = stage.owner.clone();
    renewed.token = stage.token(&stage.owner.id, &["runs:write"]).await;
    assert_eq!(
        stage.start(&renewed, &agent, Some("k")).await.ok(200)["id"],
        run["id"]
    );
    let member = stage.member("member").await;
    assert_ne!(
        stage.start(&member, &agent, Some("k")).await.ok(202)["id"],
        run["id"]
    );
}

async fn a_start_without_a_key_is_never_a_replay(stage: Stage) {
    let agent = stage.agent(json!({})).await;
    let first = stage.run(&stage.owner, &agent).await;
    assert_ne!(stage.run(&stage.owner, &agent).await["id"], first["id"]);
}

async fn a_webhook_delivered_again_is_the_same_run(stage: Stage) {
    let agent = stage.agent(json!({})).await;
    let path = format!("/v1/workspaces/{}/triggers", stage.workspace);
    let body = json!({ "kind": "webhook", "agent_id": agent, "input": { "from": "shop" } });
    let trigger = stage.post(&path, &stage.owner.token, &body).await.ok(201);
    let secret = trigger["token"].as_str().unwrap();
    let hook = format!("/v1/hooks/{}", trigger["id"].as_str().unwrap());
    let deliver = async |token: &str, key: (&str, &str), event: Value| {
        stage.send("POST", &hook, token, Some(&event), &[key]).await
    };
    let event = json!({ "order": 7 });
    let first = deliver(secret, ("webhook-id", "w1"), event.clone())
        .await
        .ok(202);
    assert_eq!(
        first["input"],
        json!({ "from": "shop", "event": { "order": 7 } })
    );
    assert_eq!(first["trigger_id"], trigger["id"]);
    let again = deliver(secret, ("webhook-id", "w1"), event.clone()).await;
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.ok(200)["id"], first["id"]);
    let named = deliver(secret, ("idempotency-key", "w1"), event.clone()).await;
    assert_eq!(named.ok(200)["id"], first["id"]);
    deliver(secret, ("webhook-id", "w1"), json!({}))
        .await
        .refused(409, "idempotency.key_reused");
    // A person's token is no trigger's, and a trigger's is no person's.
    let token = &stage.owner.token;
    deliver(token, ("webhook-id", "w2"), event.clone())
        .await
        .refused(401, "auth.invalid");
    stage
        .start(
            &crate::stage::Person {
                id: String::new(),
                token: secret.to_owned(),
            },
            &agent,
            None,
        )
        .await
        .refused(401, "auth.invalid");
    let place = format!("/v1/triggers/{}", trigger["id"].as_str().unwrap());
    let shown = stage.get(&place, token).await.ok(200);
    assert_eq!(shown["token"], Value::Null);
    stage
        .patch(&place, token, &json!({ "enabled": false }))
        .await
        .ok(200);
    deliver(secret, ("webhook-id", "w3"), event.clone())
        .await
        .refused(409, "state.conflict");
    assert_eq!(stage.delete(&place, token).await.status, 204);
    deliver(secret, ("webhook-id", "w4"), event)
        .await
        .refused(401, "auth.revoked");
}

async fn a_turn_sent_again_is_the_same_turn(stage: Stage) {
    let agent = stage.agent(json!({})).await;
    let token = &stage.owner.token;
    let path = format!("/v1/workspaces/{}/threads", stage.workspace);
    let thread = stage
        .post(&path, token, &json!({ "agent_id": agent }))
        .await
        .ok(201);
    let turns = format!("/v1/threads/{}/turns", thread["id"].as_str().unwrap());
    let body = json!({ "input": "hello" });
    let key = [("idempotency-key", "k")];
    let sent = stage
        .send("POST", &turns, token, Some(&body), &key)
        .await
        .ok(202);
    assert_eq!(sent["turn"]["run_id"], sent["run"]["id"]);
    assert_eq!(stage.ended(&sent["run"]).await["status"], "succeeded");
    let again = stage.send("POST", &turns, token, Some(&body), &key).await;
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    let again = again.ok(200);
    assert_eq!(again["turn"]["id"], sent["turn"]["id"]);
    assert_eq!(again["turn"]["state"], "answered");
    assert_eq!(
        stage.get(&turns, token).await.ok(200)["items"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}
