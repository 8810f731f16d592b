//! What stops a worker: crashes, cancels, time limits, a node that goes away.

use super::bench::{Act, Bench, NOON, after, echo, says, scripted, wants};
use crate::sql::Param;
use serde_json::{Value, json};
use std::{
    sync::{atomic::Ordering, mpsc::channel},
    time::Duration,
};

super::on_each_store! {
    a_crash_in_the_middle_of_a_call_is_charged_and_the_step_done_again,
    a_lone_server_takes_its_runs_up_again_at_once,
    a_cancelled_run_stops_within_a_second,
    a_run_past_its_time_limit_fails,
    a_node_that_stops_hands_its_runs_over,
    a_node_that_stops_lets_the_step_end_that_it_is_at,
    a_node_that_is_about_to_stop_takes_up_nothing_more,
    a_worker_that_cannot_renew_its_lease_stops_before_the_store_gives_its_run_to_another,
    a_panic_is_a_crash_of_its_run_alone,
    a_worker_whose_run_is_anothers_stops,
}

async fn a_crash_in_the_middle_of_a_call_is_charged_and_the_step_done_again() {
    let mut agent = scripted();
    agent["tools"] = json!(["odp_get"]);
    let bench = Bench::new([
        Act::Reply(wants(&[("t1", "odp_get")])),
        Act::Hang,
        Act::Reply(says("done")),
    ]);
    let run = bench.run(&agent, &json!("hi"));
    let engine = bench.engine();
    bench.called(2).await;
    drop(engine);
    bench
        .when(|| bench.script.dropped.load(Ordering::Relaxed) == 1)
        .await;
    bench.jump(10_000);
    let _engine = bench.engine();
    bench.pass(4_000).await;
    assert_eq!(bench.calls().len(), 2, "the lease still holds");
    bench.pass(1_250).await;
    bench.reaches(run, "succeeded").await;
    // A reply, the reservation of the lost call, a reply.
    let expected = json!([1_400 + 12_000 + 1_400, 2, 1]);
    assert_eq!(bench.read(run, "cost_micros, attempt, crashes"), expected);
    assert_eq!(bench.tools.uses.lock().len(), 1);
    let steps =
        bench.query("SELECT seq, attempt, kind, state, cost_micros FROM steps ORDER BY seq");
    let expected = [
        json!([1, 1, "provider", "done", 1_400]),
        json!([2, 1, "tool", "done", 0]),
        json!([3, 2, "provider", "done", 13_400]),
    ];
    assert_eq!(steps, expected);
}

async fn a_lone_server_takes_its_runs_up_again_at_once() {
    let bench = Bench::new([Act::Hang, Act::Reply(says("done"))]).alone();
    let run = bench.run(&scripted(), &json!("hi"));
    let engine = bench.engine();
    bench.called(1).await;
    drop(engine);
    let _engine = bench.engine();
    bench.reaches(run, "succeeded").await;
    assert_eq!(
        bench.read(run, "attempt, crashes, finished_at"),
        json!([2, 1, NOON.millis()])
    );
}

async fn a_cancelled_run_stops_within_a_second() {
    let bench = Bench::new([Act::Hang]);
    let run = bench.run(&scripted(), &json!("hi"));
    let _engine = bench.engine();
    bench.called(1).await;
    bench.sql(
        "UPDATE runs SET cancel_requested = 1 WHERE id = $1",
        &[Param::Text(&run.to_string())],
    );
    bench.pass(1_000).await;
    bench.reaches(run, "cancelled").await;
    assert_eq!(bench.script.dropped.load(Ordering::Relaxed), 1);
    let finished = bench.read(run, "finished_at")[0].as_i64().unwrap();
    assert!(finished <= after(1_000).millis(), "{finished}");
    // It is not known what the call took.
    assert_eq!(
        bench.read(run, "cost_micros, lease_owner"),
        json!([12_000, Value::Null])
    );
    assert_eq!(bench.query("SELECT running FROM workspaces"), [json!([0])]);
}

async fn a_run_past_its_time_limit_fails() {
    let mut agent = scripted();
    agent["time_limit_seconds"] = 30.into();
    let bench = Bench::new([Act::Hang]);
    let run = bench.run(&agent, &json!("hi"));
    let _engine = bench.engine();
    bench.called(1).await;
    bench.pass(29_750).await;
    assert_eq!(
        bench.read(run, "status, attempt"),
        json!(["running", 1]),
        "its lease was renewed"
    );
    bench.pass(250).await;
    bench.reaches(run, "failed").await;
    let expected = json!(["run.time_limit", after(30_000).millis(), 1]);
    assert_eq!(
        bench.read(run, "error_code, finished_at, attempt"),
        expected
    );
    assert_eq!(bench.script.dropped.load(Ordering::Relaxed), 1);
}

async fn a_node_that_stops_hands_its_runs_over() {
    let bench = Bench::new([Act::Hang, Act::Reply(says("done"))]);
    let run = bench.run(&scripted(), &json!("hi"));
    let engine = bench.engine();
    bench.called(1).await;
    engine.shutdown(Duration::ZERO).await;
    assert_eq!(
        bench.read(run, "status, lease_owner, crashes"),
        json!(["running", Value::Null, 0])
    );
    let _engine = bench.engine();
    bench.reaches(run, "succeeded").await;
    assert_eq!(
        bench.read(run, "attempt, crashes, finished_at"),
        json!([2, 0, NOON.millis()])
    );
}

async fn a_node_that_stops_lets_the_step_end_that_it_is_at() {
    let mut agent = scripted();
    agent["tools"] = json!(["odp_get"]);
    let wait = Act::Fail(crate::provider::CallError::Failed {
        detail: "Overloaded.".into(),
        retry: crate::provider::Retry::After(Duration::from_secs(1)),
        charged: false,
    });
    let bench = Bench::new([
        wait,
        Act::Reply(wants(&[("t1", "odp_get")])),
        Act::Reply(says("done")),
    ]);
    let run = bench.run(&agent, &json!("hi"));
    let engine = bench.engine();
    bench.called(1).await;
    bench.time.tasks.store(2, Ordering::Relaxed);
    let stopping = tokio::spawn(engine.shutdown(Duration::from_secs(60)));
    bench.until_called(2).await;
    bench.when(|| stopping.is_finished()).await;
    // The step was kept; the next one was not begun.
    assert_eq!(
        bench.query("SELECT seq, state FROM steps"),
        [json!([1, "done"])]
    );
    assert_eq!(bench.calls().len(), 2);
    bench.time.tasks.store(3, Ordering::Relaxed);
    let _engine = bench.engine();
    bench.reaches(run, "succeeded").await;
    assert_eq!(
        bench.read(run, "attempt, crashes, cost_micros"),
        json!([2, 0, 2_800])
    );
}

async fn a_node_that_is_about_to_stop_takes_up_nothing_more() {
    let bench = Bench::new([Act::Hang]);
    let run = bench.run(&scripted(), &json!("hi"));
    let engine = bench.engine();
    bench.called(1).await;
    engine.close();
    // It no longer looks for runs, but keeps the leases that it has.
    bench.time.tasks.store(2, Ordering::Relaxed);
    let later = bench.run(&echo(), &json!("later"));
    bench.pass(20_000).await;
    assert_eq!(bench.read(later, "attempt"), json!([0]));
    assert_eq!(bench.read(run, "status, attempt"), json!(["running", 1]));
    assert_eq!(bench.script.dropped.load(Ordering::Relaxed), 0);
}

async fn a_worker_that_cannot_renew_its_lease_stops_before_the_store_gives_its_run_to_another() {
    let bench = Bench::new([Act::Hang]);
    bench.run(&scripted(), &json!("hi"));
    let _engine = bench.engine();
    bench.called(1).await;
    let store = bench.store.clone();
    let ((holds, held), (release, released)) = (channel(), channel::<()>());
    let holding = std::thread::spawn(move || {
        store.write_now(|session| {
            session.execute("UPDATE runs SET attempt = attempt", &[])?;
            holds.send(()).unwrap();
            let _ = released.recv();
            Ok(())
        })
    });
    held.recv().unwrap();
    // The store's lease is one of 15 seconds.
    bench.jump(14_000);
    let dropped = || bench.script.dropped.load(Ordering::Relaxed) == 1;
    bench.when(dropped).await;
    drop(release);
    holding.join().unwrap().unwrap();
}

async fn a_panic_is_a_crash_of_its_run_alone() {
    let bench = Bench::new([Act::Panic, Act::Reply(says("done"))]);
    let run = bench.run(&scripted(), &json!("hi"));
    let engine = bench.engine();
    bench.called(1).await;
    bench.when(|| engine.working() == 0).await;
    let other = bench.run(&echo(), &json!("still here"));
    bench.pass(250).await;
    bench.reaches(other, "succeeded").await;
    bench.pass(15_000).await;
    bench.reaches(run, "succeeded").await;
    assert_eq!(bench.read(run, "attempt, crashes"), json!([2, 1]));
}

async fn a_worker_whose_run_is_anothers_stops() {
    let bench = Bench::new([Act::Hang]);
    let run = bench.run(&scripted(), &json!("hi"));
    let engine = bench.engine();
    bench.called(1).await;
    bench.sql(
        "UPDATE runs SET attempt = 2, lease_owner = 'another', due_at = due_at + 600000 WHERE id = $1",
        &[Param::Text(&run.to_string())],
    );
    bench.pass(6_000).await;
    bench.when(|| engine.working() == 0).await;
    assert_eq!(bench.script.dropped.load(Ordering::Relaxed), 1);
    assert_eq!(
        bench.read(run, "status, attempt, lease_owner"),
        json!(["running", 2, "another"])
    );
}
