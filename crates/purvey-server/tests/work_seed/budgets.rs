//! Daily caps and budget stops: 429 without Retry-After.

use crate::stage::{OPERATOR, Person, Stage};
use serde_json::{Value, json};
use std::time::Duration;

on_each_store! {
    the_workspaces_own_daily_cap_applies_only_when_the_owner_has_set_one_and_clears_at_midnight_utc,
    every_run_draws_on_the_owners_allowance_whoever_or_whatever_starts_it,
    every_workspace_the_owner_has_shares_the_allowance,
    the_platforms_daily_limit_counts_everyone,
    an_invited_owner_who_shares_no_workspace_with_their_inviter_needs_approval,
    a_budget_stop_needs_an_operator_to_act,
    a_cap_met_in_the_middle_of_a_run_fails_it_with_that_code,
}

/// An agent whose runs cost five cents each: two tokens to it, three from it, a cent each.
async fn dear(stage: &Stage) -> String {
    stage
        .agent(json!({ "provider": "model", "model": "dear" }))
        .await
}

/// Makes a run that costs five cents.
async fn spend(stage: &Stage, who: &Person, agent: &str) {
    let run = stage.run(who, agent).await;
    let run = stage.ended(&run).await;
    assert_eq!(
        (&run["status"], &run["cost_cents"]),
        (&json!("succeeded"), &json!(5))
    );
}

async fn refused(stage: &Stage, who: &Person, agent: &str, code: &str) -> Value {
    let answer = stage.start(who, agent, None).await;
    assert_eq!(answer.header("retry-after"), None);
    let body = answer.refused(429, code);
    assert_eq!(body["limit_detail"]["code"], code);
    body["limit_detail"].clone()
}

async fn limits(stage: &Stage, limits: Value) {
    stage
        .patch("/v1/admin/limits", OPERATOR, &limits)
        .await
        .ok(200);
}

/// From a little after noon to a little after midnight.
fn midnight(stage: &Stage) {
    stage.time.pass(Duration::from_secs(12 * 3_600));
}

async fn the_workspaces_own_daily_cap_applies_only_when_the_owner_has_set_one_and_clears_at_midnight_utc(
    stage: Stage,
) {
    let agent = dear(&stage).await;
    let path = format!("/v1/workspaces/{}", stage.workspace);
    assert_eq!(
        stage.get(&path, OPERATOR).await.ok(200)["daily_cost_cents"],
        Value::Null
    );
    spend(&stage, &stage.owner, &agent).await;
    spend(&stage, &stage.owner, &agent).await;
    let cap = json!({ "daily_cost_cents": 10 });
    stage.patch(&path, &stage.owner.token, &cap).await.ok(200);
    let limit = refused(&stage, &stage.owner, &agent, "daily.cost_cents").await;
    let expected = json!({ "code": "daily.cost_cents", "used_cents": 10, "limit_cents": 10, "resets_at": "2026-01-02T00:00:00.000Z" });
    assert_eq!(limit, expected);
    midnight(&stage);
    spend(&stage, &stage.owner, &agent).await;
    spend(&stage, &stage.owner, &agent).await;
    let limit = refused(&stage, &stage.owner, &agent, "daily.cost_cents").await;
    assert_eq!(limit["resets_at"], "2026-01-03T00:00:00.000Z");
    let none = json!({ "daily_cost_cents": null });
    stage.patch(&path, &stage.owner.token, &none).await.ok(200);
    spend(&stage, &stage.owner, &agent).await;
}

async fn every_run_draws_on_the_owners_allowance_whoever_or_whatever_starts_it(stage: Stage) {
    let agent = dear(&stage).await;
    let member = stage.member("member").await;
    limits(&stage, json!({ "allowance_daily_cents": 10 })).await;
    spend(&stage, &member, &agent).await;
    let path = format!("/v1/workspaces/{}/triggers", stage.workspace);
    let body = json!({ "kind": "webhook", "agent_id": agent, "input": {} });
    let made = stage.post(&path, &stage.owner.token, &body).await.ok(201);
    let hook = format!("/v1/hooks/{}", made["id"].as_str().unwrap());
    let secret = made["token"].as_str().unwrap();
    let run = stage.post(&hook, secret, &json!({})).await.ok(202);
    assert_eq!(stage.ended(&run).await["cost_cents"], 5);
    for person in [&member, &stage.owner] {
        let limit = refused(&stage, person, &agent, "daily.allowance_cents").await;
        let expected = json!({ "code": "daily.allowance_cents", "used_cents": 10, "limit_cents": 10, "resets_at": "2026-01-02T00:00:00.000Z" });
        assert_eq!(limit, expected);
    }
    let delivered = stage.post(&hook, secret, &json!({})).await;
    delivered.refused(429, "daily.allowance_cents");
    // It is the owner's allowance, not the starter's.
    let own = stage.new_workspace(&member).await;
    let own = stage.agent_in(&own, &member, json!({})).await;
    stage.run(&member, &own).await;
    midnight(&stage);
    spend(&stage, &member, &agent).await;
}

async fn every_workspace_the_owner_has_shares_the_allowance(stage: Stage) {
    let first = dear(&stage).await;
    let second = stage.new_workspace(&stage.owner).await;
    let model = json!({ "provider": "model", "model": "dear" });
    let second = stage.agent_in(&second, &stage.owner, model).await;
    limits(&stage, json!({ "allowance_daily_cents": 6 })).await;
    spend(&stage, &stage.owner, &first).await;
    spend(&stage, &stage.owner, &second).await;
    for agent in [&first, &second] {
        let limit = refused(&stage, &stage.owner, agent, "daily.allowance_cents").await;
        assert_eq!(limit["used_cents"], 10);
    }
}

async fn the_platforms_daily_limit_counts_everyone(stage: Stage) {
    let agent = dear(&stage).await;
    let organization = stage.new_organization().await;
    let stranger = stage.person_of(&organization, None).await;
    let theirs = stage.new_workspace_in(&organization, &stranger).await;
    let theirs = stage.agent_in(&theirs, &stranger, json!({})).await;
    limits(&stage, json!({ "platform_daily_cents": 5 })).await;
    stage.run(&stranger, &theirs).await;
    spend(&stage, &stage.owner, &agent).await;
    for (person, agent) in [(&stage.owner, &agent), (&stranger, &theirs)] {
        let limit = refused(&stage, person, agent, "daily.platform_cents").await;
        let expected = json!({ "code": "daily.platform_cents", "used_cents": 5, "limit_cents": 5, "resets_at": "2026-01-02T00:00:00.000Z" });
        assert_eq!(limit, expected);
    }
    limits(&stage, json!({ "platform_daily_cents": null })).await;
    stage.run(&stranger, &theirs).await;
}

async fn an_invited_owner_who_shares_no_workspace_with_their_inviter_needs_approval(stage: Stage) {
    let inviter = stage.owner.clone();
    let invited = stage.person_of(&stage.organization, Some(&inviter)).await;
    let workspace = stage.new_workspace(&invited).await;
    let agent = stage.agent_in(&workspace, &invited, json!({})).await;
    let code = "account.needs_approval";
    assert_eq!(
        refused(&stage, &invited, &agent, code).await,
        json!({ "code": code })
    );
    // While they share one it is free.
    stage
        .set_role(&stage.workspace, &invited, Some("viewer"))
        .await;
    stage.run(&invited, &agent).await;
    stage.set_role(&stage.workspace, &invited, None).await;
    refused(&stage, &invited, &agent, code).await;
    // That one does not clear at midnight.
    midnight(&stage);
    refused(&stage, &invited, &agent, code).await;
    let path = format!("/v1/admin/users/{}", invited.id);
    stage
        .patch(&path, OPERATOR, &json!({ "approved": true }))
        .await
        .ok(200);
    stage.run(&invited, &agent).await;
}

async fn a_budget_stop_needs_an_operator_to_act(stage: Stage) {
    let agent = stage.agent(json!({})).await;
    limits(&stage, json!({ "budget_stop": true })).await;
    let code = "budget.stopped";
    assert_eq!(
        refused(&stage, &stage.owner, &agent, code).await,
        json!({ "code": code })
    );
    midnight(&stage);
    refused(&stage, &stage.owner, &agent, code).await;
    limits(&stage, json!({ "budget_stop": false })).await;
    stage.run(&stage.owner, &agent).await;
}

async fn a_cap_met_in_the_middle_of_a_run_fails_it_with_that_code(stage: Stage) {
    let agent = dear(&stage).await;
    stage.limits(&json!({ "daily_cost_cents": 5 })).await;
    // The first call costs five cents and asks for a tool; there is no money for the second.
    stage.model.replies([crate::model::Reply::wants("none")]);
    let run = stage.run(&stage.owner, &agent).await;
    let run = stage.ended(&run).await;
    assert_eq!(
        (&run["status"], &run["error_code"]),
        (&json!("failed"), &json!("daily.cost_cents"))
    );
    assert_eq!(run["cost_cents"], 5);
    let expected = json!({ "code": "daily.cost_cents", "used_cents": 5, "limit_cents": 5, "resets_at": "2026-01-02T00:00:00.000Z" });
    assert_eq!(run["limit_detail"], expected);
    assert_eq!(stage.model.asked().len(), 1);
}
