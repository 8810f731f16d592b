//! Steps: calls, their cost and retries, tools.

use super::bench::{Act, Bench, echo, says, scripted, wants};
use crate::{
    model::ToolName,
    provider::{CallError, Message, Retry},
    sql::Param,
};
use serde_json::{Value, json};
use std::time::Duration;

super::on_each_store! {
    echo_gives_the_input_back,
    a_provider_that_fails_is_tried_again_within_the_step,
    retries_are_bounded,
    a_wait_longer_than_a_minute_is_not_waited,
    what_cannot_help_is_not_tried_again,
    a_provider_that_refuses_fails_the_run,
    a_provider_that_is_not_configured_fails_the_run,
    a_reply_without_usage_is_charged_what_was_reserved,
    a_cap_that_is_met_on_the_way_ends_the_run_with_its_code,
    each_use_of_a_tool_is_a_step_with_a_key_of_its_own,
    tools_that_the_agent_does_not_name_are_not_used,
    a_run_has_so_many_steps_and_no_more,
    a_turn_is_asked_with_what_was_said_before_in_its_thread,
}

fn failure(retry: Retry, charged: bool) -> Act {
    Act::Fail(CallError::Failed {
        detail: "The provider answered 503.".into(),
        retry,
        charged,
    })
}

async fn echo_gives_the_input_back() {
    let bench = Bench::new([]);
    let input = json!({"a": [1, 2.5, null]});
    let run = bench.run(&echo(), &input);
    let _engine = bench.engine();
    bench.reaches(run, "succeeded").await;
    let expected = json!(["{\"a\":[1,2.5,null]}", 0, "not_required", 1]);
    assert_eq!(
        bench.read(run, "output, cost_micros, verification_status, attempt"),
        expected
    );
    assert_eq!(bench.query("SELECT running FROM workspaces"), [json!([0])]);
    assert_eq!(bench.query("SELECT unfinished FROM agents"), [json!([0])]);
}

async fn a_provider_that_fails_is_tried_again_within_the_step() {
    let second = Retry::After(Duration::from_millis(900));
    let bench = Bench::new([
        failure(second, false),
        failure(second, true),
        Act::Reply(says("done")),
    ]);
    let run = bench.run(&scripted(), &json!("hi"));
    let _engine = bench.engine();
    bench.until_called(3).await;
    bench.reaches(run, "succeeded").await;
    // Nothing for the refusal, the reservation for the call of unknown end, the reply.
    assert_eq!(bench.read(run, "cost_micros, attempt"), json!([13_400, 1]));
    assert_eq!(
        bench.query("SELECT seq, cost_micros, input_tokens, output_tokens FROM steps"),
        [json!([1, 13_400, 100, 10])]
    );
}

async fn retries_are_bounded() {
    let bench = Bench::new((0..4).map(|_| failure(Retry::After(Duration::from_secs(1)), false)));
    let run = bench.run(&scripted(), &json!("hi"));
    let _engine = bench.engine();
    bench.until_called(4).await;
    bench.reaches(run, "failed").await;
    let expected = json!([
        "provider.failed",
        "The provider answered 503. It was tried 4 times."
    ]);
    assert_eq!(bench.read(run, "error_code, error_detail"), expected);
}

async fn a_wait_longer_than_a_minute_is_not_waited() {
    let bench = Bench::new([failure(Retry::After(Duration::from_secs(61)), false)]);
    let run = bench.run(&scripted(), &json!("hi"));
    let _engine = bench.engine();
    bench.reaches(run, "failed").await;
    assert_eq!(bench.read(run, "error_code"), json!(["provider.failed"]));
}

async fn what_cannot_help_is_not_tried_again() {
    let bench = Bench::new([failure(Retry::Never, false)]);
    let run = bench.run(&scripted(), &json!("hi"));
    let _engine = bench.engine();
    bench.reaches(run, "failed").await;
    let expected = json!(["provider.failed", "The provider answered 503."]);
    assert_eq!(bench.read(run, "error_code, error_detail"), expected);
}

async fn a_provider_that_refuses_fails_the_run() {
    let refused = Act::Fail(CallError::Rejected {
        detail: "The provider answered 404 Not Found (model_not_found)".into(),
    });
    let bench = Bench::new([refused]);
    let run = bench.run(&scripted(), &json!("hi"));
    let _engine = bench.engine();
    bench.reaches(run, "failed").await;
    let expected = json!([
        "provider.rejected",
        "The provider answered 404 Not Found (model_not_found)",
        0
    ]);
    assert_eq!(
        bench.read(run, "error_code, error_detail, cost_micros"),
        expected
    );
}

async fn a_provider_that_is_not_configured_fails_the_run() {
    let mut agent = scripted();
    agent["provider"] = "gone".into();
    let bench = Bench::new([]);
    let run = bench.run(&agent, &json!("hi"));
    let _engine = bench.engine();
    bench.reaches(run, "failed").await;
    let expected = json!([
        "provider.rejected",
        "The agent's provider \"gone\" is not configured on this server."
    ]);
    assert_eq!(bench.read(run, "error_code, error_detail"), expected);
}

async fn a_reply_without_usage_is_charged_what_was_reserved() {
    let mut reply = says("done");
    reply.usage = None;
    let bench = Bench::new([Act::Reply(reply)]);
    let run = bench.run(&scripted(), &json!("hi"));
    let _engine = bench.engine();
    bench.reaches(run, "succeeded").await;
    assert_eq!(bench.read(run, "cost_micros"), json!([12_000]));
}

async fn a_cap_that_is_met_on_the_way_ends_the_run_with_its_code() {
    let mut agent = scripted();
    agent["tools"] = json!(["odp_get"]);
    let mut dear = wants(&[("t1", "odp_get")]);
    // 100,000 × 10 = a cent.
    dear.usage = Some(crate::provider::Usage {
        input_tokens: 100_000,
        output_tokens: 0,
    });
    let bench = Bench::new([Act::Reply(dear)]);
    bench.sql(
        "UPDATE workspaces SET daily_cost_cents = $1",
        &[Param::Int(1)],
    );
    let run = bench.run(&agent, &json!("hi"));
    let _engine = bench.engine();
    bench.reaches(run, "failed").await;
    let detail = "{\"code\":\"daily.cost_cents\",\"used_cents\":1,\"limit_cents\":1,\"resets_at\":\"2026-01-02T00:00:00.000Z\"}";
    let expected = json!(["daily.cost_cents", detail, 1_000_000]);
    assert_eq!(
        bench.read(run, "error_code, limit_detail, cost_micros"),
        expected
    );
}

async fn each_use_of_a_tool_is_a_step_with_a_key_of_its_own() {
    let mut agent = scripted();
    agent["tools"] = json!(["odp_get", "odp_search"]);
    let bench = Bench::new([
        Act::Reply(wants(&[("t1", "odp_search"), ("t2", "odp_get")])),
        Act::Reply(says("done")),
    ]);
    let run = bench.run(&agent, &json!("hi"));
    let _engine = bench.engine();
    bench.reaches(run, "succeeded").await;
    let uses: Vec<_> = bench
        .tools
        .uses
        .lock()
        .iter()
        .map(|one| (one.name, one.key.clone()))
        .collect();
    let expected = [
        (ToolName::OdpSearch, format!("{run}-2")),
        (ToolName::OdpGet, format!("{run}-3")),
    ];
    assert_eq!(uses, expected);
    let steps = bench.query("SELECT seq, kind, name, request, state FROM steps ORDER BY seq");
    let expected = [
        json!([1, "provider", "m", Value::Null, "done"]),
        json!([2, "tool", "odp_search", "{\"for\":\"t1\"}", "done"]),
        json!([3, "tool", "odp_get", "{\"for\":\"t2\"}", "done"]),
        json!([4, "provider", "m", Value::Null, "done"]),
    ];
    assert_eq!(steps, expected);
}

async fn tools_that_the_agent_does_not_name_are_not_used() {
    let mut agent = scripted();
    agent["tools"] = json!(["odp_get"]);
    let bench = Bench::new([
        Act::Reply(wants(&[("t1", "odp_invoke"), ("t2", "shell")])),
        Act::Reply(says("done")),
    ]);
    let run = bench.run(&agent, &json!("hi"));
    let _engine = bench.engine();
    bench.reaches(run, "succeeded").await;
    assert_eq!(bench.tools.uses.lock().len(), 0);
    let calls = bench.script.calls.lock();
    let tools: Vec<_> = calls[0].1.tools.iter().map(|tool| tool.name).collect();
    assert_eq!(tools, ["odp_get"]);
    for message in &calls[1].1.messages[2..] {
        let Message::Tool { content, .. } = message else {
            panic!("{message:?}");
        };
        assert_eq!(content["error"]["code"], "NOT_USED");
    }
}

async fn a_run_has_so_many_steps_and_no_more() {
    let mut agent = scripted();
    agent["tools"] = json!(["odp_get"]);
    let asks = || Act::Reply(wants(&[("t", "odp_get")]));
    let bench = Bench::new([asks(), asks()]).steps(4);
    let run = bench.run(&agent, &json!("hi"));
    let _engine = bench.engine();
    bench.reaches(run, "failed").await;
    let detail = "The model did not come to an end in 4 steps; mend the agent's instructions or give it fewer tools.";
    assert_eq!(
        bench.read(run, "error_code, error_detail"),
        json!(["provider.rejected", detail])
    );
    assert_eq!(bench.calls().len(), 2);
}

async fn a_turn_is_asked_with_what_was_said_before_in_its_thread() {
    let bench = Bench::new([Act::Reply(says("Fine."))]);
    let said = [
        (json!("Hello"), json!("Hi.")),
        (json!({"n": 1}), json!({"m": 2})),
    ];
    let turn = bench.thread(&said, &json!("How are you?"));
    let run = bench.run_of(&scripted(), &json!("How are you?"), Some(turn));
    let _engine = bench.engine();
    bench.reaches(run, "succeeded").await;
    let user = |content: Value| Message::User { content };
    let assistant = |content: Value| Message::Assistant {
        content,
        tool_calls: Vec::new(),
    };
    let expected = [
        user(json!("Hello")),
        assistant(json!("Hi.")),
        user(json!({"n": 1})),
        assistant(json!({"m": 2})),
        user(json!("How are you?")),
    ];
    assert_eq!(bench.script.calls.lock()[0].1.messages, expected);
}
