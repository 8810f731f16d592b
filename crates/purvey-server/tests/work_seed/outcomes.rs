//! How runs end: the output contract, programs that fail, the time limit.

use crate::{model::Reply, stage::Stage};
use serde_json::{Value, json};

on_each_store! {
    a_response_that_fails_the_output_contract_does_not_make_the_start_a_422,
    output_that_fits_its_contract_is_verified,
    a_contract_that_is_none_is_refused_when_the_agent_is_saved,
    a_program_that_fails_says_why,
    a_run_past_its_time_limit_fails,
    what_happened_can_be_followed_and_taken_up_again,
}

async fn a_response_that_fails_the_output_contract_does_not_make_the_start_a_422(stage: Stage) {
    let contract =
        json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "string" });
    let agent = stage
        .agent(json!({ "provider": "number", "output_schema": contract }))
        .await;
    let started = stage.start(&stage.owner, &agent, Some("k")).await;
    // The run is admitted before its output exists.
    let run = started.ok(202);
    assert_eq!(run["verification_status"], "pending");
    let run = stage.ended(&run).await;
    assert_eq!(run["status"], "failed");
    assert_eq!(run["verification_status"], "verification_failed");
    assert_eq!(run["error_code"], "verification.failed");
    let errors = run["verification_errors"].as_array().unwrap();
    assert_eq!(errors.len(), 1);
    assert_eq!(
        (&errors[0]["instance"], &errors[0]["keyword"]),
        (&json!(""), &json!("/type"))
    );
    assert!(!errors[0]["reason"].as_str().unwrap().is_empty());
    // Nor afterwards.
    assert_eq!(
        stage.start(&stage.owner, &agent, Some("k")).await.ok(200),
        run
    );
    // With the contract mended it succeeds.
    let path = format!("/v1/agents/{agent}");
    let mended = json!({ "output_schema": { "type": "integer" } });
    stage
        .patch(&path, &stage.owner.token, &mended)
        .await
        .ok(200);
    let run = stage.run(&stage.owner, &agent).await;
    assert_eq!(stage.ended(&run).await["verification_status"], "verified");
}

async fn output_that_fits_its_contract_is_verified(stage: Stage) {
    let contract = json!({ "type": "object", "required": ["title"], "properties": { "title": { "type": "string" } } });
    let agent = stage
        .agent(json!({ "provider": "model", "model": "free", "output_schema": contract }))
        .await;
    stage.model.replies([
        Reply::says(r#"{"title":"Lamps"}"#),
        Reply::says(r#"{"title":7}"#),
    ]);
    let run = stage.run(&stage.owner, &agent).await;
    let run = stage.ended(&run).await;
    assert_eq!(
        (&run["status"], &run["verification_status"]),
        (&json!("succeeded"), &json!("verified"))
    );
    assert_eq!(run["output"], json!({ "title": "Lamps" }));
    let run = stage.run(&stage.owner, &agent).await;
    let run = stage.ended(&run).await;
    let error = &run["verification_errors"][0];
    assert_eq!(error["instance"], "/title");
    assert_eq!(error["keyword"], "/properties/title/type");
    // Without a contract there is nothing to verify.
    let plain = stage.agent(json!({})).await;
    let run = stage.run(&stage.owner, &plain).await;
    assert_eq!(
        stage.ended(&run).await["verification_status"],
        "not_required"
    );
}

async fn a_contract_that_is_none_is_refused_when_the_agent_is_saved(stage: Stage) {
    let path = format!("/v1/workspaces/{}/agents", stage.workspace);
    let body = json!({ "name": "a", "instructions": "", "provider": "echo", "model": "", "output_schema": { "minLength": "x" } });
    let refused = stage.post(&path, &stage.owner.token, &body).await;
    assert_eq!(refused.places(), ["body /output_schema/minLength"]);
    let agent = stage.agent(json!({})).await;
    let body = json!({ "output_schema": { "required": 1 } });
    let refused = stage
        .patch(&format!("/v1/agents/{agent}"), &stage.owner.token, &body)
        .await;
    assert_eq!(refused.places(), ["body /output_schema/required"]);
}

async fn a_program_that_fails_says_why(stage: Stage) {
    for (provider, said) in [
        ("fails", "It said: out of ink"),
        ("half", "not one JSON value"),
    ] {
        let agent = stage.agent(json!({ "provider": provider })).await;
        let run = stage.run(&stage.owner, &agent).await;
        let run = stage.ended(&run).await;
        assert_eq!(
            (&run["status"], &run["error_code"]),
            (&json!("failed"), &json!("provider.failed"))
        );
        assert!(
            run["error_detail"].as_str().unwrap().contains(said),
            "{run}"
        );
        // It is no failure of verification.
        assert_eq!(run["verification_errors"], Value::Null);
    }
}

async fn a_run_past_its_time_limit_fails(stage: Stage) {
    let agent = stage
        .agent(json!({ "provider": "gate", "time_limit_seconds": 1 }))
        .await;
    let run = stage.run(&stage.owner, &agent).await;
    let run = stage.ended(&run).await;
    assert_eq!(
        (&run["status"], &run["error_code"]),
        (&json!("failed"), &json!("run.time_limit"))
    );
}

async fn what_happened_can_be_followed_and_taken_up_again(stage: Stage) {
    let agent = stage.agent(json!({})).await;
    let run = stage.run(&stage.owner, &agent).await;
    let path = format!("/v1/runs/{}/events", run["id"].as_str().unwrap());
    let token = &stage.owner.token;
    // It ends with the run.
    let all = stage.get(&path, token).await;
    assert_eq!(all.status, 200);
    assert_eq!(all.header("content-type"), Some("text/event-stream"));
    let events = events(&all.body);
    let kinds: Vec<_> = events.iter().map(|(_, kind, _)| kind.as_str()).collect();
    assert_eq!(kinds.first(), Some(&"status"));
    assert_eq!(kinds[kinds.len() - 2..], ["output", "status"]);
    let (last, _, run) = events.last().unwrap();
    assert_eq!(
        (&run["status"], &run["output"]),
        (&json!("succeeded"), &json!("x"))
    );
    for (id, ..) in &events {
        let rest = stage
            .send("GET", &path, token, None, &[("last-event-id", id)])
            .await;
        let rest: Vec<_> = self::events(&rest.body)
            .into_iter()
            .map(|(id, ..)| id)
            .collect();
        let after: Vec<_> = events
            .iter()
            .map(|(id, ..)| id.clone())
            .skip_while(|other| other != id)
            .skip(1)
            .collect();
        assert_eq!(rest, after);
    }
    assert!(!last.is_empty());
    let wrong = stage
        .send("GET", &path, token, None, &[("last-event-id", "x")])
        .await;
    assert_eq!(wrong.places(), ["header last-event-id"]);
}

/// The events of a stream: id, kind, data.
fn events(stream: &[u8]) -> Vec<(String, String, Value)> {
    let text = std::str::from_utf8(stream).unwrap();
    let blocks = text.split("\n\n").filter(|block| block.contains("data:"));
    let event = |block: &str| {
        let field = |name: &str| {
            let line = block.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap().trim().to_owned()
        };
        let data = serde_json::from_str(&field("data:")).unwrap();
        (field("id:"), field("event:"), data)
    };
    blocks.map(event).collect()
}
