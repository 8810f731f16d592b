//! The table of response classes: 400, 401, 403, 404.

use crate::stage::{Answer, OPERATOR, SCOPES, Stage};
use axum::body::Body;
use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};
use std::{io, time::Duration};

on_each_store! {
    a_400_is_a_request_that_the_endpoint_could_not_act_upon,
    a_401_is_a_missing_invalid_or_revoked_credential,
    a_403_names_the_scope,
    a_token_with_the_scope_writes_the_catalog,
    a_403_names_the_role,
    a_403_names_visibility_and_sharing,
    a_404_is_absent_or_hidden_across_an_organization_boundary_byte_for_byte,
    every_problem_leads_to_its_page,
}

async fn a_400_is_a_request_that_the_endpoint_could_not_act_upon(stage: Stage) {
    let agent = stage.agent(json!({})).await;
    let pieces = [
        Ok(Bytes::from_static(b"{\"input\":")),
        Err(io::Error::other("the caller went away")),
    ];
    let request = Request::post(format!("/v1/agents/{agent}/runs"))
        .header("authorization", format!("Bearer {}", stage.owner.token))
        .header("content-type", "application/json")
        .body(Body::from_stream(futures_util::stream::iter(pieces)))
        .unwrap();
    stage.raw(request).await.refused(400, "request.broken");
    assert!(stage.runs("succeeded").await.is_empty());
}

async fn a_401_is_a_missing_invalid_or_revoked_credential(stage: Stage) {
    let path = format!("/v1/workspaces/{}", stage.workspace);
    let refused = |answer: Answer, code: &str| {
        answer.refused(401, code);
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    };
    let missing = Request::get(&path).body(Body::empty()).unwrap();
    refused(stage.raw(missing).await, "auth.missing");
    let basic = Request::get(&path)
        .header("authorization", "Basic dXNlcjpwYXNz")
        .body(Body::empty())
        .unwrap();
    refused(stage.raw(basic).await, "auth.invalid");
    refused(stage.get(&path, "pvy_nobodys").await, "auth.invalid");

    let body = json!({ "user_id": stage.owner.id, "scopes": ["workspaces:read"], "expires_at": "2026-01-01T13:00:00Z" });
    let made = stage.post("/v1/tokens", OPERATOR, &body).await.ok(201);
    let token = made["token"].as_str().unwrap();
    stage.get(&path, token).await.ok(200);
    stage.time.pass(Duration::from_secs(3_600));
    refused(stage.get(&path, token).await, "auth.invalid");

    let body = json!({ "user_id": stage.owner.id, "scopes": ["workspaces:read"] });
    let made = stage.post("/v1/tokens", OPERATOR, &body).await.ok(201);
    let token = made["token"].as_str().unwrap();
    stage.get(&path, token).await.ok(200);
    let place = format!("/v1/tokens/{}", made["id"].as_str().unwrap());
    assert_eq!(stage.delete(&place, &stage.owner.token).await.status, 204);
    refused(stage.get(&path, token).await, "auth.revoked");
    // The credential is judged before anything that was sent.
    let start = Request::post("/v1/agents/none/runs")
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "text/plain")
        .body(Body::from("x"))
        .unwrap();
    refused(stage.raw(start).await, "auth.revoked");
    // Nobody is shown what they sent as a credential.
    let answer = stage.get(&path, "pvy_nobodys").await;
    assert!(!String::from_utf8_lossy(&answer.body).contains("nobodys"));
}

async fn a_403_names_the_scope(stage: Stage) {
    let agent = stage.agent(json!({})).await;
    let run = stage.run(&stage.owner, &agent).await;
    let run = run["id"].as_str().unwrap();
    let workspace = &stage.workspace;
    let input = json!({ "input": 1 });
    let cases = [
        (
            "runs:write",
            "POST",
            format!("/v1/agents/{agent}/runs"),
            Some(&input),
        ),
        ("runs:write", "POST", format!("/v1/runs/{run}/cancel"), None),
        ("runs:read", "GET", format!("/v1/runs/{run}"), None),
        ("runs:read", "GET", format!("/v1/runs/{run}/steps"), None),
        ("runs:read", "GET", format!("/v1/runs/{run}/events"), None),
        (
            "runs:read",
            "GET",
            format!("/v1/workspaces/{workspace}/runs"),
            None,
        ),
        ("agents:read", "GET", format!("/v1/agents/{agent}"), None),
        (
            "agents:write",
            "DELETE",
            format!("/v1/agents/{agent}"),
            None,
        ),
        (
            "threads:read",
            "GET",
            format!("/v1/workspaces/{workspace}/threads"),
            None,
        ),
        (
            "triggers:read",
            "GET",
            format!("/v1/workspaces/{workspace}/triggers"),
            None,
        ),
        (
            "workspaces:read",
            "GET",
            format!("/v1/workspaces/{workspace}"),
            None,
        ),
    ];
    for (scope, method, path, body) in cases {
        let others: Vec<&str> = SCOPES.into_iter().filter(|other| *other != scope).collect();
        let token = stage.token(&stage.owner.id, &others).await;
        let answer = stage.send(method, &path, &token, body, &[]).await;
        let body = answer.refused(403, "permission.scope");
        assert_eq!(
            body["detail"],
            format!("The token does not have the scope {scope}.")
        );
    }
}

async fn a_token_with_the_scope_writes_the_catalog(stage: Stage) {
    let write = async |token: &str| {
        let request = Request::put("/v1/catalog/offerings/lamp")
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/odp+json")
            .body(Body::from(r#"{"id":"lamp","name":"Lamp"}"#))
            .unwrap();
        stage.raw(request).await
    };
    let others = &SCOPES[..SCOPES.len() - 1];
    let token = stage.token(&stage.owner.id, others).await;
    write(&token).await.refused(403, "permission.scope");
    write("pvy_nobodys").await.refused(401, "auth.invalid");
    // The catalog is the first organization's; another's users leave it alone, whatever their scopes.
    stage.time.pass(Duration::from_secs(1));
    let other = stage.new_organization().await;
    let foreign = stage.person_of(&other, None).await;
    let refused = write(&foreign.token).await;
    let body = refused.refused(403, "permission.role");
    let detail =
        "The catalog belongs to another organization; its users and the operator write it.";
    assert_eq!(body["detail"], detail);
    let token = stage.token(&stage.owner.id, &["catalog:write"]).await;
    write(&token).await.ok(201);
    write(OPERATOR).await.ok(200);
}

async fn a_403_names_the_role(stage: Stage) {
    let agent = stage.agent(json!({ "visibility": "organization" })).await;
    let (viewer, member) = (stage.member("viewer").await, stage.member("member").await);
    let outsider = stage.person().await;
    let code = "permission.role";
    for person in [&viewer, &outsider] {
        stage.start(person, &agent, None).await.refused(403, code);
    }
    stage.run(&member, &agent).await;
    // Members own agents and change no others.
    let path = format!("/v1/agents/{agent}");
    let paused = json!({ "paused": true });
    stage
        .patch(&path, &member.token, &paused)
        .await
        .refused(403, code);
    // Admins manage limits and triggers; owners also budgets.
    let admin = stage.member("admin").await;
    let path = format!("/v1/workspaces/{}", stage.workspace);
    let (limit, budget) = (
        json!({ "concurrency_limit": 7 }),
        json!({ "daily_cost_cents": 7 }),
    );
    stage
        .patch(&path, &member.token, &limit)
        .await
        .refused(403, code);
    stage.patch(&path, &admin.token, &limit).await.ok(200);
    stage
        .patch(&path, &admin.token, &budget)
        .await
        .refused(403, code);
    stage
        .patch(&path, &stage.owner.token, &budget)
        .await
        .ok(200);
    // Who is not active can do nothing, whatever their role.
    let path = format!("/v1/admin/users/{}", member.id);
    stage
        .patch(&path, OPERATOR, &json!({ "state": "locked" }))
        .await
        .ok(200);
    stage.start(&member, &agent, None).await.refused(403, code);
    // The operator is nobody, and what is the operator's is nobody else's.
    let path = format!("/v1/agents/{agent}/runs");
    let input = json!({ "input": 1 });
    stage.post(&path, OPERATOR, &input).await.refused(403, code);
    stage
        .get("/v1/admin/limits", &stage.owner.token)
        .await
        .refused(403, code);
}

async fn a_403_names_visibility_and_sharing(stage: Stage) {
    let private = stage.agent(json!({ "visibility": "private" })).await;
    let member = stage.member("member").await;
    let code = "permission.visibility";
    stage
        .start(&member, &private, None)
        .await
        .refused(403, code);
    let path = format!("/v1/agents/{private}");
    stage.get(&path, &member.token).await.refused(403, code);
    let owners = stage.run(&stage.owner, &private).await;
    let run = format!("/v1/runs/{}", owners["id"].as_str().unwrap());
    stage.get(&run, &member.token).await.refused(403, code);
    stage
        .get(&format!("{run}/events"), &member.token)
        .await
        .refused(403, code);
    // Sharing it is the remedy that the page names.
    let share = json!({ "shared_with": [member.id] });
    stage.patch(&path, &stage.owner.token, &share).await.ok(200);
    stage.get(&path, &member.token).await.ok(200);
    stage.run(&member, &private).await;
    stage.get(&run, &member.token).await.ok(200);

    let elsewhere = stage.new_workspace(&member).await;
    let theirs = json!({ "visibility": "workspace" });
    let theirs = stage.agent_in(&elsewhere, &member, theirs).await;
    let path = format!("/v1/agents/{theirs}");
    stage
        .get(&path, &stage.owner.token)
        .await
        .refused(403, code);
}

async fn a_404_is_absent_or_hidden_across_an_organization_boundary_byte_for_byte(stage: Stage) {
    let agent = stage.agent(json!({})).await;
    let run = stage.run(&stage.owner, &agent).await["id"].clone();
    let token = &stage.owner.token;
    let workspace = &stage.workspace;
    let made = async |kind: &str, body: Value| {
        let path = format!("/v1/workspaces/{workspace}/{kind}");
        stage.post(&path, token, &body).await.ok(201)["id"].clone()
    };
    let thread = made("threads", json!({ "agent_id": agent })).await;
    let trigger = made(
        "triggers",
        json!({ "kind": "webhook", "agent_id": agent, "input": {} }),
    )
    .await;
    let (run, thread, trigger) = (text(&run), text(&thread), text(&trigger));
    let tokens = stage.get("/v1/tokens", token).await.ok(200);
    let a_token = text(&tokens["items"][0]["id"]);

    let organization = stage.new_organization().await;
    let stranger = stage.person_of(&organization, None).await;
    let (input, some) = (json!({ "input": 1 }), json!({}));
    let role = json!({ "role": "viewer" });
    let enabled = json!({ "enabled": false });
    let paths = [
        ("GET", "/v1/workspaces/{}", workspace.as_str(), None),
        ("PATCH", "/v1/workspaces/{}", workspace, Some(&some)),
        ("GET", "/v1/workspaces/{}/members", workspace, None),
        ("GET", "/v1/workspaces/{}/agents", workspace, None),
        ("GET", "/v1/workspaces/{}/runs", workspace, None),
        ("GET", "/v1/workspaces/{}/threads", workspace, None),
        ("GET", "/v1/workspaces/{}/triggers", workspace, None),
        ("GET", "/v1/agents/{}", &agent, None),
        ("PATCH", "/v1/agents/{}", &agent, Some(&some)),
        ("DELETE", "/v1/agents/{}", &agent, None),
        ("POST", "/v1/agents/{}/runs", &agent, Some(&input)),
        ("GET", "/v1/runs/{}", &run, None),
        ("GET", "/v1/runs/{}?wait=1", &run, None),
        ("GET", "/v1/runs/{}/steps", &run, None),
        ("GET", "/v1/runs/{}/events", &run, None),
        ("POST", "/v1/runs/{}/cancel", &run, None),
        ("GET", "/v1/threads/{}", &thread, None),
        ("GET", "/v1/threads/{}/turns", &thread, None),
        ("POST", "/v1/threads/{}/turns", &thread, Some(&input)),
        ("POST", "/v1/threads/{}/pause", &thread, None),
        ("POST", "/v1/threads/{}/resume", &thread, None),
        ("POST", "/v1/threads/{}/close", &thread, None),
        ("GET", "/v1/triggers/{}", &trigger, None),
        ("PATCH", "/v1/triggers/{}", &trigger, Some(&enabled)),
        ("DELETE", "/v1/triggers/{}", &trigger, None),
        ("DELETE", "/v1/tokens/{}", &a_token, None),
    ];
    let member = format!("/v1/workspaces/{{}}/members/{}", stranger.id);
    let members = [
        ("PUT", member.as_str(), workspace.as_str(), Some(&role)),
        ("DELETE", member.as_str(), workspace, None),
    ];
    for (method, path, hidden, body) in paths.into_iter().chain(members) {
        let prefix = hidden.split_once('_').unwrap().0;
        let absent = format!("{prefix}_01890000000070008000000000000000");
        let mut answers = Vec::new();
        for id in [hidden, absent.as_str(), "not-an-id"] {
            let path = path.replace("{}", id);
            let fields = [("x-request-id", "the-same-one")];
            let answer = stage
                .send(method, &path, &stranger.token, body, &fields)
                .await;
            answer.refused(404, "resource.not_found");
            answers.push((answer.headers, answer.body));
        }
        assert_eq!(answers[0], answers[1], "{method} {path}");
        assert_eq!(answers[0], answers[2], "{method} {path}");
    }
    // What is named inside a body is hidden alike.
    let theirs = stage.new_workspace_in(&organization, &stranger).await;
    let path = format!("/v1/workspaces/{theirs}/threads");
    let mut bodies = Vec::new();
    for id in [agent.as_str(), "agt_01890000000070008000000000000000"] {
        let fields = [("x-request-id", "the-same-one")];
        let body = json!({ "agent_id": id });
        let answer = stage
            .send("POST", &path, &stranger.token, Some(&body), &fields)
            .await;
        assert_eq!(answer.places(), ["body /agent_id"]);
        bodies.push(answer.body);
    }
    assert_eq!(bodies[0], bodies[1]);
}

async fn every_problem_leads_to_its_page(stage: Stage) {
    let refused = [
        stage.get("/v1/workspaces/none", "x").await,
        stage.get("/v1/workspaces/none", OPERATOR).await,
        stage.get("/v1/tokens?limit=0", OPERATOR).await,
        stage.delete("/v1/workspaces", OPERATOR).await,
    ];
    let statuses = refused.each_ref().map(|answer| answer.status);
    assert_eq!(statuses, [401, 404, 422, 405]);
    for answer in refused {
        let problem: Value = serde_json::from_slice(&answer.body).unwrap();
        let page = stage.get(problem["type"].as_str().unwrap(), "").await;
        assert_eq!(page.status, 200);
        let page = String::from_utf8_lossy(&page.body).into_owned();
        assert!(page.contains(problem["code"].as_str().unwrap()), "{page}");
    }
    // Codes that only end runs have pages too.
    let page = stage.get("/v1/problems/dequeue.agent_paused", "").await;
    assert_eq!(page.status, 200);
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}
