//! Limits of providers (Work §5).

use super::bench::{Act, Bench, NOON, after, limited, says, scripted, wants};
use crate::provider::{CallError, Message};
use serde_json::{Value, json};

super::on_each_store! {
    a_limited_run_pauses_and_goes_on_by_itself_from_where_it_stopped,
    five_in_a_row_fail_and_waits_without_a_signal_double_from_a_second,
    a_step_that_came_through_begins_to_count_anew,
    a_wait_past_the_time_limit_fails_at_once,
    one_wait_is_fifteen_minutes_at_most,
    a_restart_in_the_middle_of_a_pause_goes_on_without_doing_steps_again,
    a_failure_before_a_limit_is_paid_once,
}

fn limit_detail(resets_at: &str, consecutive: u32) -> String {
    format!(
        "{{\"code\":\"provider.rate_limited\",\"resets_at\":\"{resets_at}\",\"consecutive\":{consecutive}}}"
    )
}

async fn a_limited_run_pauses_and_goes_on_by_itself_from_where_it_stopped() {
    let mut agent = scripted();
    agent["tools"] = json!(["odp_get"]);
    let bench = Bench::new([
        Act::Reply(wants(&[("t1", "odp_get")])),
        limited(Some(20)),
        Act::Reply(says("done")),
    ]);
    let run = bench.run(&agent, &json!("hi"));
    let engine = bench.engine();
    bench.reaches(run, "paused_limit_exceeded").await;
    let expected = json!([
        "provider.rate_limited",
        limit_detail("2026-01-01T12:00:20.000Z", 1),
        Value::Null
    ]);
    assert_eq!(
        bench.read(run, "error_code, limit_detail, lease_owner"),
        expected
    );
    assert_eq!(bench.query("SELECT running FROM workspaces"), [json!([1])]);

    bench.pass(19_999).await;
    assert_eq!(bench.calls().len(), 2);
    bench.pass(251).await;
    bench.reaches(run, "succeeded").await;
    let calls = bench.calls();
    assert_eq!(calls.len(), 3);
    assert!(
        (after(20_000)..=after(20_250)).contains(&calls[2]),
        "{calls:?}"
    );
    let expected = json!([Value::Null, Value::Null, "\"done\"", 2_800, 2]);
    assert_eq!(
        bench.read(
            run,
            "error_code, limit_detail, output, cost_micros, attempt"
        ),
        expected
    );
    // The tool was used once, and what was said before is said again as it was.
    assert_eq!(bench.tools.uses.lock().len(), 1);
    {
        let requests = bench.script.calls.lock();
        assert_eq!(requests[1].1, requests[2].1);
    }
    assert_eq!(
        bench.query("SELECT settled, reserved FROM ledger WHERE scope = 'platform'"),
        [json!([2_800, 0])]
    );
    engine.shutdown(std::time::Duration::ZERO).await;
}

async fn five_in_a_row_fail_and_waits_without_a_signal_double_from_a_second() {
    let bench = Bench::new((0..5).map(|_| limited(None)));
    let run = bench.run(&scripted(), &json!("hi"));
    let _engine = bench.engine();
    for (consecutive, seconds) in [(1, 1), (2, 2), (3, 4), (4, 8)] {
        bench.reaches(run, "paused_limit_exceeded").await;
        let now = bench.calls()[consecutive - 1];
        let resets_at = now.after(std::time::Duration::from_secs(seconds));
        let detail = limit_detail(&resets_at.to_string(), u32::try_from(consecutive).unwrap());
        assert_eq!(bench.read(run, "limit_detail"), json!([detail]));
        bench.pass(seconds * 1_000).await;
        bench.called(consecutive + 1).await;
    }
    bench.reaches(run, "failed").await;
    assert_eq!(
        bench.read(run, "error_code, cost_micros"),
        json!(["provider.rate_limited", 0])
    );
    assert_eq!(bench.query("SELECT running FROM workspaces"), [json!([0])]);
}

async fn a_step_that_came_through_begins_to_count_anew() {
    let mut agent = scripted();
    agent["tools"] = json!(["odp_get"]);
    let limits = |count| (0..count).map(|_| limited(Some(1)));
    let acts = limits(4)
        .chain([Act::Reply(wants(&[("t1", "odp_get")]))])
        .chain(limits(4))
        .chain([Act::Reply(says("done"))]);
    let bench = Bench::new(acts);
    let run = bench.run(&agent, &json!("hi"));
    let _engine = bench.engine();
    for calls in [1, 2, 3, 4, 6, 7, 8, 9] {
        bench.called(calls).await;
        bench.reaches(run, "paused_limit_exceeded").await;
        bench.pass(1_000).await;
    }
    bench.reaches(run, "succeeded").await;
}

async fn a_wait_past_the_time_limit_fails_at_once() {
    let mut agent = scripted();
    agent["time_limit_seconds"] = 10.into();
    let bench = Bench::new([limited(Some(11))]);
    let run = bench.run(&agent, &json!("hi"));
    let _engine = bench.engine();
    bench.reaches(run, "failed").await;
    let expected = json!(["provider.rate_limited", NOON.millis()]);
    assert_eq!(bench.read(run, "error_code, finished_at"), expected);
}

async fn one_wait_is_fifteen_minutes_at_most() {
    let bench = Bench::new([limited(Some(5_000))]);
    let run = bench.run(&scripted(), &json!("hi"));
    let _engine = bench.engine();
    bench.reaches(run, "paused_limit_exceeded").await;
    assert_eq!(
        bench.read(run, "limit_detail"),
        json!([limit_detail("2026-01-01T12:15:00.000Z", 1)])
    );
}

async fn a_restart_in_the_middle_of_a_pause_goes_on_without_doing_steps_again() {
    let mut agent = scripted();
    agent["tools"] = json!(["odp_get"]);
    let bench = Bench::new([
        Act::Reply(wants(&[("t1", "odp_get")])),
        limited(Some(60)),
        Act::Reply(says("done")),
    ]);
    let run = bench.run(&agent, &json!("hi"));
    let engine = bench.engine();
    bench.reaches(run, "paused_limit_exceeded").await;
    drop(engine);
    bench.jump(30_000);
    let _engine = bench.engine();
    bench.pass(29_999).await;
    assert_eq!(bench.status(run), "paused_limit_exceeded");
    bench.pass(251).await;
    bench.reaches(run, "succeeded").await;
    assert_eq!(
        bench.read(run, "cost_micros, attempt, crashes"),
        json!([2_800, 2, 0])
    );
    assert_eq!(bench.calls().len(), 3);
    let calls = bench.script.calls.lock();
    let [
        Message::User { .. },
        Message::Assistant { .. },
        Message::Tool { id, content },
    ] = &calls[2].1.messages[..]
    else {
        panic!("{:?}", calls[2].1.messages);
    };
    assert_eq!(
        (id.as_str(), content),
        ("t1", &json!({"asked": {"for": "t1"}}))
    );
}

async fn a_failure_before_a_limit_is_paid_once() {
    let lost = Act::Fail(CallError::Failed {
        detail: "The connection was lost.".into(),
        retry: crate::provider::Retry::After(std::time::Duration::from_secs(1)),
        charged: true,
    });
    let bench = Bench::new([lost, limited(Some(1)), Act::Reply(says("done"))]);
    let run = bench.run(&scripted(), &json!("hi"));
    let _engine = bench.engine();
    bench.until_called(2).await;
    bench.reaches(run, "paused_limit_exceeded").await;
    assert_eq!(bench.read(run, "cost_micros"), json!([12_000]));
    bench.pass(1_250).await;
    bench.reaches(run, "succeeded").await;
    assert_eq!(bench.read(run, "cost_micros"), json!([13_400]));
}
