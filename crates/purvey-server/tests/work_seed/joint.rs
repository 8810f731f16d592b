//! Published agents are Offerings of the catalog.

use crate::stage::{Stage, config};
use axum::body::Body;
use http::Request;
use purvey_server::publish_agents;
use serde_json::{Value, json};
use std::collections::BTreeSet;

on_each_store! {
    a_published_agent_is_an_offering_that_is_started_by_its_invoke_action,
    what_is_paused_unpublished_or_deleted_is_gone,
}

const SECRET: &str = "Keep this to yourself.";

/// What anybody gets.
async fn public(stage: &Stage, path: &str) -> crate::stage::Answer {
    let request = Request::get(path).body(Body::empty()).unwrap();
    crate::stage::Answer::of(stage.router_with(config()), request).await
}

/// The Offerings of the Collection `agents`.
async fn offered(stage: &Stage) -> Vec<Value> {
    let answer = public(stage, "/odp/collections/agents/offerings").await;
    if answer.status == 404 {
        return Vec::new();
    }
    assert!(!String::from_utf8_lossy(&answer.body).contains(SECRET));
    answer.ok(200)["items"].as_array().unwrap().clone()
}

async fn offers(stage: &Stage, agents: &[&str]) {
    stage
        .until("the catalog follows", async || {
            let offered = offered(stage).await;
            let ids: BTreeSet<_> = offered
                .iter()
                .map(|offering| offering["id"].as_str().unwrap())
                .collect();
            // They come in the order of their identifiers, which chance decides for those made within a millisecond.
            ids.len() == offered.len() && ids == agents.iter().copied().collect()
        })
        .await;
}

async fn a_published_agent_is_an_offering_that_is_started_by_its_invoke_action(stage: Stage) {
    stage.catalog.start_indexer().unwrap();
    tokio::spawn(publish_agents(
        stage.catalog.clone(),
        stage.platform.clone(),
    ));
    stage.agent(json!({ "name": "Quiet" })).await;
    let schema = json!({ "type": "object", "required": ["topic"], "properties": { "topic": { "type": "string" } } });
    let agent = stage
        .agent(json!({ "name": "Writer", "published": true, "input_schema": schema, "time_limit_seconds": 60 }))
        .await;
    offers(&stage, &[&agent]).await;
    // One token goes to the whole origin: a user's reads what is public, and what is no token is refused.
    for (token, status) in [(stage.owner.token.as_str(), 200), ("pvy_wrong", 401)] {
        let request = Request::get(format!("/odp/offerings/{agent}"))
            .header("authorization", format!("Bearer {token}"))
            .body(Body::empty())
            .unwrap();
        let answer = crate::stage::Answer::of(stage.router_with(config()), request).await;
        assert_eq!(answer.status, status);
    }
    let offering = public(&stage, &format!("/odp/offerings/{agent}")).await;
    assert!(!String::from_utf8_lossy(&offering.body).contains(SECRET));
    let offering = offering.ok(200);
    assert_eq!(offering["name"], "Writer");
    assert_eq!(offering["collection_ids"], json!(["agents"]));
    let expected =
        json!({ "workspace_id": stage.workspace, "time_limit_seconds": 60, "verified": false });
    assert_eq!(offering["attributes"], expected);
    // The attributes' schema is served.
    let described = public(&stage, offering["schema"]["url"].as_str().unwrap()).await;
    let described = described.ok(200);
    assert_eq!(
        described["properties"]["time_limit_seconds"]["type"],
        "integer"
    );

    let action = &offering["actions"][0];
    assert_eq!(
        (&action["rel"], &action["http"]["method"]),
        (&json!("invoke"), &json!("POST"))
    );
    assert_eq!(action["http"]["href"], format!("/v1/agents/{agent}/runs"));
    let request = public(
        &stage,
        action["http"]["request"]["schema"]["url"].as_str().unwrap(),
    )
    .await;
    assert!(!String::from_utf8_lossy(&request.body).contains(SECRET));
    let request = request.ok(200);
    assert_eq!(request["required"], json!(["input"]));
    assert_eq!(request["additionalProperties"], false);
    assert_eq!(request["properties"]["input"]["required"], json!(["topic"]));
    // It is started as the Action says; permission is judged there.
    let href = action["http"]["href"].as_str().unwrap();
    let body = json!({ "input": { "topic": "lamps" } });
    let run = stage.post(href, &stage.owner.token, &body).await.ok(202);
    assert_eq!(stage.ended(&run).await["status"], "succeeded");
    let outsider = stage.person().await;
    stage
        .post(href, &outsider.token, &body)
        .await
        .refused(403, "permission.role");
}

async fn what_is_paused_unpublished_or_deleted_is_gone(stage: Stage) {
    stage.catalog.start_indexer().unwrap();
    tokio::spawn(publish_agents(
        stage.catalog.clone(),
        stage.platform.clone(),
    ));
    let first = stage.agent(json!({ "published": true })).await;
    let second = stage.agent(json!({ "published": true })).await;
    offers(&stage, &[&first, &second]).await;
    let schema = format!("/v1/agents/{first}/request-schema");
    public(&stage, &schema).await.ok(200);
    let path = format!("/v1/agents/{first}");
    let token = &stage.owner.token;
    let changes = [
        (json!({ "paused": true }), false),
        (json!({ "paused": false }), true),
        (json!({ "published": false }), false),
        (json!({ "published": true }), true),
    ];
    for (change, there) in changes {
        stage.patch(&path, token, &change).await.ok(200);
        match there {
            true => offers(&stage, &[&first, &second]).await,
            false => offers(&stage, &[&second]).await,
        }
        let answer = public(&stage, &schema).await;
        match there {
            true => drop(answer.ok(200)),
            false => drop(answer.refused(404, "resource.not_found")),
        }
    }
    assert_eq!(stage.delete(&path, token).await.status, 204);
    offers(&stage, &[&second]).await;
    public(&stage, &format!("/odp/offerings/{first}"))
        .await
        .ok(404);
}
