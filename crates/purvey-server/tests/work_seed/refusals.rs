//! The table of response classes: 409, 413, 415, 422, 429, 5xx.

use crate::stage::{Answer, OPERATOR, Stage, config};
use axum::body::Body;
use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};
use std::{convert::Infallible, num::NonZeroU32, task::Poll};
use tokio::sync::mpsc;

on_each_store! {
    a_409_is_a_state_conflict_whose_detail_says_which,
    a_409_is_an_idempotency_conflict,
    a_413_is_what_is_declared_or_received_as_too_large,
    a_415_is_an_unsupported_media_type,
    malformed_payloads_answer_422_not_400_with_pointers,
    validation_runs_before_endpoint_logic,
    an_input_that_breaks_the_input_schema_is_a_422_of_the_start,
    a_429_of_the_request_rate_says_when_to_come_back,
    a_5xx_is_a_failure_of_the_server_or_what_it_depends_on,
}

async fn a_409_is_a_state_conflict_whose_detail_says_which(stage: Stage) {
    let conflict = |answer: Answer, word: &str| {
        let body = answer.refused(409, "state.conflict");
        assert!(body["detail"].as_str().unwrap().contains(word), "{body}");
    };
    let token = &stage.owner.token;
    let agent = stage.agent(json!({})).await;
    let path = format!("/v1/agents/{agent}");
    stage
        .patch(&path, token, &json!({ "paused": true }))
        .await
        .ok(200);
    conflict(stage.start(&stage.owner, &agent, None).await, "paused");
    stage
        .patch(&path, token, &json!({ "paused": false }))
        .await
        .ok(200);

    let run = stage.run(&stage.owner, &agent).await;
    let run = stage.ended(&run).await;
    let cancel = format!("/v1/runs/{}/cancel", run["id"].as_str().unwrap());
    conflict(
        stage.send("POST", &cancel, token, None, &[]).await,
        "succeeded",
    );

    let slow = stage.agent(json!({ "provider": "gate" })).await;
    let run = stage.run(&stage.owner, &slow).await;
    conflict(
        stage.delete(&format!("/v1/agents/{slow}"), token).await,
        "unfinished",
    );
    // Cancelling is idempotent.
    let cancel = format!("/v1/runs/{}/cancel", run["id"].as_str().unwrap());
    for _ in 0..2 {
        stage.send("POST", &cancel, token, None, &[]).await.ok(200);
    }
    assert_eq!(stage.ended(&run).await["status"], "cancelled");
    stage.send("POST", &cancel, token, None, &[]).await.ok(200);

    let threads = format!("/v1/workspaces/{}/threads", stage.workspace);
    let thread = stage
        .post(&threads, token, &json!({ "agent_id": agent }))
        .await
        .ok(201);
    let thread = format!("/v1/threads/{}", thread["id"].as_str().unwrap());
    let turns = format!("{thread}/turns");
    for (change, word) in [("pause", "paused"), ("close", "closed")] {
        stage
            .send("POST", &format!("{thread}/{change}"), token, None, &[])
            .await
            .ok(200);
        conflict(
            stage.post(&turns, token, &json!({ "input": 1 })).await,
            word,
        );
    }
}

async fn a_409_is_an_idempotency_conflict(stage: Stage) {
    let agent = stage.agent(json!({})).await;
    let path = format!("/v1/agents/{agent}/runs");
    let key = [("idempotency-key", "k")];
    let token = &stage.owner.token;
    let first = json!({ "input": "a private word" });
    stage
        .send("POST", &path, token, Some(&first), &key)
        .await
        .ok(202);
    let other = stage
        .send("POST", &path, token, Some(&json!({ "input": 2 })), &key)
        .await;
    other.refused(409, "idempotency.key_reused");
    assert!(!String::from_utf8_lossy(&other.body).contains("private"));
}

/// A start of this media type with this body.
fn start(stage: &Stage, agent: &str, media: Option<&str>, body: Body) -> Request<Body> {
    let mut request = Request::post(format!("/v1/agents/{agent}/runs"))
        .header("authorization", format!("Bearer {}", stage.owner.token));
    if let Some(media) = media {
        request = request.header("content-type", media);
    }
    request.body(body).unwrap()
}

async fn a_413_is_what_is_declared_or_received_as_too_large(stage: Stage) {
    let agent = stage.agent(json!({})).await;
    let json = Some("application/json");
    let large = format!("{{\"input\":\"{}\"}}", "x".repeat(4 * 1_024 * 1_024));
    let declared = start(&stage, &agent, json, Body::from(large.clone()));
    stage.raw(declared).await.refused(413, "request.too_large");
    let pieces: Vec<_> = large
        .as_bytes()
        .chunks(1 << 20)
        .map(|piece| Ok::<_, Infallible>(Bytes::copy_from_slice(piece)))
        .collect();
    let received = Body::from_stream(futures_util::stream::iter(pieces));
    let received = start(&stage, &agent, json, received);
    stage.raw(received).await.refused(413, "request.too_large");
}

async fn a_415_is_an_unsupported_media_type(stage: Stage) {
    let agent = stage.agent(json!({})).await;
    for media in [
        None,
        Some("text/plain"),
        Some("application/x-www-form-urlencoded"),
    ] {
        let sent = start(&stage, &agent, media, Body::from("{\"input\":1}"));
        let body = stage
            .raw(sent)
            .await
            .refused(415, "request.unsupported_media_type");
        // It says what is documented.
        assert!(
            body["detail"]
                .as_str()
                .unwrap()
                .contains("application/json")
        );
    }
    let sent = start(
        &stage,
        &agent,
        Some("Application/JSON; charset=utf-8"),
        Body::from("{\"input\":1}"),
    );
    stage.raw(sent).await.ok(202);
}

async fn malformed_payloads_answer_422_not_400_with_pointers(stage: Stage) {
    let token = &stage.owner.token;
    let agent = stage.agent(json!({})).await;
    let runs = format!("/v1/agents/{agent}/runs");
    for broken in [
        "",
        "{",
        "{\"input\":1}x",
        "{\"input\":1,\"input\":2}",
        "\u{0}",
    ] {
        let sent = start(&stage, &agent, Some("application/json"), Body::from(broken));
        stage.raw(sent).await.refused(422, "request.invalid");
    }
    let workspace = format!("/v1/workspaces/{}", stage.workspace);
    let agents = format!("{workspace}/agents");
    // A missing field, a wrong type, an out-of-range value, an unknown member.
    let cases = [
        ("POST", &runs, json!({}), vec!["body /input"]),
        ("POST", &runs, json!([]), vec!["body "]),
        (
            "POST",
            &runs,
            json!({ "input": 1, "inputs": 2 }),
            vec!["body /inputs"],
        ),
        (
            "POST",
            &runs,
            json!({ "input": 1, "artifacts": "x" }),
            vec!["body /artifacts"],
        ),
        (
            "POST",
            &runs,
            json!({ "input": 1, "artifacts": ["x"] }),
            vec!["body /artifacts/0"],
        ),
        (
            "PATCH",
            &workspace,
            json!({ "concurrency_limit": 0 }),
            vec!["body /concurrency_limit"],
        ),
        (
            "PATCH",
            &workspace,
            json!({ "concurrency_limit": 10_001 }),
            vec!["body /concurrency_limit"],
        ),
        (
            "PATCH",
            &workspace,
            json!({ "queue_limit": "9" }),
            vec!["body /queue_limit"],
        ),
        (
            "PATCH",
            &workspace,
            json!({ "daily_cost_cents": -1 }),
            vec!["body /daily_cost_cents"],
        ),
        (
            "POST",
            &agents,
            json!({ "name": "", "provider": "no-such", "model": 1, "time_limit_seconds": 86_401 }),
            vec![
                "body /name",
                "body /instructions",
                "body /model",
                "body /time_limit_seconds",
                "body /provider",
            ],
        ),
        (
            "POST",
            &agents,
            json!({ "name": "a", "instructions": "", "provider": "echo", "model": "", "output_schema": { "type": "sting" } }),
            vec!["body /output_schema/type"],
        ),
    ];
    for (method, path, body, places) in cases {
        let answer = stage.send(method, path, token, Some(&body), &[]).await;
        assert_eq!(answer.places(), places, "{body}");
    }
    let long = "k".repeat(256);
    for key in ["", "two words", &long] {
        let body = json!({ "input": 1 });
        let answer = stage
            .send(
                "POST",
                &runs,
                token,
                Some(&body),
                &[("idempotency-key", key)],
            )
            .await;
        assert_eq!(answer.places(), ["header Idempotency-Key"]);
    }
    let parameters = [
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("cursor=%00", "cursor"),
        ("status=done", "status"),
        ("agent_id=x", "agent_id"),
    ];
    for (query, name) in parameters {
        let answer = stage.get(&format!("{workspace}/runs?{query}"), token).await;
        assert_eq!(answer.places(), [format!("query {name}")]);
    }
    for wait in ["61", "-1", "1.5", "", "soon"] {
        let answer = stage
            .get(&format!("/v1/runs/none?wait={wait}"), token)
            .await;
        assert_eq!(answer.places(), ["query wait"]);
    }
}

async fn validation_runs_before_endpoint_logic(stage: Stage) {
    // Absent, forbidden, in the wrong state, out of money: what is malformed is 422 all the same.
    let bad = json!({ "input": 1, "more": 2 });
    let places = ["body /more"];
    let absent = "/v1/agents/agt_01890000000070008000000000000000/runs";
    assert_eq!(
        stage.post(absent, &stage.owner.token, &bad).await.places(),
        places
    );
    let agent = stage.agent(json!({ "paused": true })).await;
    let path = format!("/v1/agents/{agent}/runs");
    let viewer = stage.member("viewer").await;
    assert_eq!(
        stage.post(&path, &viewer.token, &bad).await.places(),
        places
    );
    assert_eq!(
        stage.post(&path, &stage.owner.token, &bad).await.places(),
        places
    );
    let stop = json!({ "budget_stop": true });
    stage
        .patch("/v1/admin/limits", OPERATOR, &stop)
        .await
        .ok(200);
    assert_eq!(
        stage.post(&path, &stage.owner.token, &bad).await.places(),
        places
    );
}

async fn an_input_that_breaks_the_input_schema_is_a_422_of_the_start(stage: Stage) {
    let schema = json!({ "type": "object", "required": ["topic"], "properties": { "topic": { "type": "string" } } });
    let agent = stage.agent(json!({ "input_schema": schema })).await;
    let path = format!("/v1/agents/{agent}/runs");
    let token = &stage.owner.token;
    let key = [("idempotency-key", "k")];
    let send = async |input: Value| {
        let body = json!({ "input": input });
        stage.send("POST", &path, token, Some(&body), &key).await
    };
    assert_eq!(
        send(json!({ "topic": 1 })).await.places(),
        ["body /input/topic"]
    );
    assert_eq!(send(json!({})).await.places(), ["body /input"]);
    // A refused start does not consume its key.
    send(json!({ "topic": "lamps" })).await.ok(202);
    // With a key that has named a start, the conflict is judged first.
    send(json!({})).await.refused(409, "idempotency.key_reused");
}

async fn a_429_of_the_request_rate_says_when_to_come_back(stage: Stage) {
    let mut slow = config();
    slow.rate_per_second = NonZeroU32::new(1);
    let router = stage.router_with(slow);
    let ask = || Request::get("/v1/tokens").body(Body::empty()).unwrap();
    let mut refused = 0;
    // However long these take, not every one of them comes a second after the one before.
    for _ in 0..100 {
        let answer = Answer::of(router.clone(), ask()).await;
        if answer.status == 429 {
            let body = answer.refused(429, "rate.limited");
            assert_eq!(answer.header("retry-after"), Some("1"));
            assert_eq!(body["limit_detail"]["code"], "rate.limited");
            refused += 1;
        }
    }
    assert!(refused > 0);
}

async fn a_5xx_is_a_failure_of_the_server_or_what_it_depends_on(stage: Stage) {
    let agent = stage.agent(json!({})).await;
    stage.break_store();
    let failed = stage.start(&stage.owner, &agent, Some("k")).await;
    failed.refused(500, "server.error");
    let said = String::from_utf8_lossy(&failed.body).into_owned();
    for inside in ["elsewhere", "SELECT", "relation", "table"] {
        assert!(!said.contains(inside), "{said}");
    }
    // A server that is full is one too, and passes.
    let mut small = config();
    small.max_in_flight = 1;
    let router = stage.router_with(small);
    let (asked_for, mut asked) = mpsc::unbounded_channel();
    let pending = futures_util::stream::poll_fn(move |_| {
        asked_for.send(()).ok();
        Poll::<Option<Result<Bytes, Infallible>>>::Pending
    });
    let slow = start(
        &stage,
        &agent,
        Some("application/json"),
        Body::from_stream(pending),
    );
    let held = tokio::spawn(Answer::of(router.clone(), slow));
    // The place is taken once the body is asked for.
    asked.recv().await.unwrap();
    let ask = Request::get("/v1/tokens").body(Body::empty()).unwrap();
    let full = Answer::of(router.clone(), ask).await;
    full.refused(503, "server.unavailable");
    assert_eq!(full.header("retry-after"), Some("1"));
    held.abort();
}
