//! Leases, steps, provider limits, time limits and events (Work §3, §5).

use super::world::World;
use crate::{
    clock::Timestamp,
    code::Code,
    error::Error,
    id::{AgentId, RunId, UserId},
    model::{RunStatus, StepState, VerificationError, VerificationStatus},
    runs::{self, EventData, Lease, Outcome, Paused},
};
use serde_json::json;

super::on_each_store! {
    a_run_has_one_worker_until_its_lease_runs_out,
    what_a_worker_holds_without_knowing_is_given_back_and_counts_as_no_crash,
    a_later_attempt_goes_on_from_the_steps_that_are_done,
    the_fifth_crash_fails_the_run_and_a_handover_is_none,
    a_lone_server_takes_its_runs_up_at_its_start,
    a_provider_limit_pauses_the_run_which_goes_on_by_itself,
    five_in_a_row_on_one_step_fail_the_run,
    one_wait_is_fifteen_minutes_at_most_and_none_passes_the_time_limit,
    a_wait_that_would_pass_the_time_limit_fails_the_run_at_once,
    the_time_limit_is_wall_clock_from_the_first_start,
    no_workspace_starves_another,
    output_that_breaks_the_contract_fails_the_run_and_says_where,
    watchers_are_told_each_change_as_it_was_and_can_go_on_after_any,
    lists_are_newest_first_and_filtered,
}

fn setting(seed: u64, limit: i64) -> (World, UserId, AgentId) {
    let world = World::new(seed);
    let user = world.user();
    let workspace = world.workspace(user, limit, 99);
    let agent = world.agent(workspace, user);
    (world, user, agent)
}

fn pause(world: &World, lease: &Lease, seq: u32, seconds: i64) -> Paused {
    let at = Timestamp::from_millis(world.now.millis() + seconds * 1_000);
    world
        .at(|session, cx| {
            runs::begin_step(
                session,
                cx,
                lease,
                seq,
                crate::model::StepKind::Provider,
                None,
            )?;
            runs::pause(session, cx, lease, seq, at)
        })
        .unwrap()
}

fn what_a_worker_holds_without_knowing_is_given_back_and_counts_as_no_crash() {
    let (world, user, agent) = setting(14, 2);
    let [known, unknown] = [(); 2].map(|()| world.run(agent, user).id);
    assert_eq!(world.claim("node", 9).len(), 2);
    let disown = |node: &str, works_on: &[RunId]| {
        world
            .at(|session, cx| runs::disown(session, cx, node, works_on))
            .unwrap();
    };
    disown("other", &[]);
    assert!(world.claim("third", 9).is_empty());
    disown("node", &[known]);
    let claims = world.claim("third", 9);
    let runs: Vec<_> = claims.iter().map(|claim| claim.lease.run).collect();
    assert_eq!(runs, [unknown]);
    assert_eq!(
        world.number("SELECT CAST(SUM(crashes) AS BIGINT) FROM runs", &[]),
        0
    );
}

fn a_run_has_one_worker_until_its_lease_runs_out() {
    let (mut world, user, agent) = setting(1, 1);
    let run = world.run(agent, user).id;
    let claim = world.claim_one(run);
    assert_eq!(claim.lease.attempt, 1);
    assert_eq!(claim.until.millis(), world.now.millis() + 15_000);
    assert_eq!(claim.definition, World::definition());
    assert_eq!(claim.input, json!({"n": 1}));
    assert_eq!(
        claim.deadline,
        Timestamp::from_millis(world.now.millis() + 3_600_000)
    );
    assert!(world.claim("other", 9).is_empty());
    world.pass(10_000);
    assert!(
        !world
            .at(|session, cx| runs::renew(session, cx, &claim.lease))
            .unwrap()
            .cancel
    );
    world.pass(14_999);
    assert!(world.claim("other", 9).is_empty());
    world.pass(1);
    let next = world.claim("other", 9).remove(0);
    assert_eq!(next.lease.attempt, 2);
    // Whatever the first worker writes now is refused.
    let lease = &claim.lease;
    let lost = [
        world
            .at(|session, cx| runs::renew(session, cx, lease))
            .err(),
        world.call(lease, 1, 1).err(),
        world.settle(lease, 1, 1).err(),
        world
            .at(|session, cx| runs::pause(session, cx, lease, 1, cx.now))
            .err(),
        world
            .at(|session, cx| runs::release(session, cx, lease))
            .err(),
        world.finish(lease, &Outcome::Cancelled).err(),
    ];
    assert!(
        lost.iter()
            .all(|error| matches!(error, Some(Error::LeaseLost)))
    );
    world.succeed(&next.lease);
    assert!(matches!(
        world.finish(&next.lease, &Outcome::Cancelled),
        Err(Error::LeaseLost)
    ));
}

fn a_later_attempt_goes_on_from_the_steps_that_are_done() {
    let (mut world, user, agent) = setting(2, 1);
    let run = world.run(agent, user).id;
    let first = world.claim_one(run);
    world.call(&first.lease, 1, 0).unwrap();
    world.settle(&first.lease, 1, 0).unwrap();
    world.call(&first.lease, 2, 0).unwrap();
    world.pass(15_000);
    let second = world.claim_one(run);
    let kept: Vec<_> = second
        .steps
        .iter()
        .map(|step| (step.seq, step.state, step.result.clone()))
        .collect();
    assert_eq!(
        kept,
        [
            (1, StepState::Done, Some(json!(1))),
            (2, StepState::Started, None)
        ]
    );
    // What is done is not begun again.
    assert!(matches!(
        world.call(&second.lease, 1, 0),
        Err(Error::Store { .. })
    ));
    let steps = world
        .at(|session, _| runs::steps(session, run, 0, 100))
        .unwrap();
    assert_eq!(steps.len(), 2);
    assert_eq!((steps[0].input_tokens, steps[0].output_tokens), (3, 4));
}

fn the_fifth_crash_fails_the_run_and_a_handover_is_none() {
    let (mut world, user, agent) = setting(3, 1);
    let run = world.run(agent, user).id;
    for _ in 0..9 {
        let claim = world.claim_one(run);
        world
            .at(|session, cx| runs::release(session, cx, &claim.lease))
            .unwrap();
    }
    for _ in 0..5 {
        world.sweep();
        assert_eq!(world.status(run), RunStatus::Running);
        world.claim_one(run);
        world.pass(15_000);
    }
    assert!(world.claim("node", 9).is_empty());
    world.sweep();
    assert_eq!(world.failed(run), Code::RunCrashed);
    assert_eq!(world.read(run).attempt, 14);
}

fn a_lone_server_takes_its_runs_up_at_its_start() {
    let (world, user, agent) = setting(4, 1);
    let run = world.run(agent, user).id;
    world.claim_one(run);
    assert!(world.claim("node", 9).is_empty());
    assert_eq!(world.at(runs::expire_leases).unwrap(), 1);
    assert_eq!(world.claim_one(run).lease.attempt, 2);
}

fn a_provider_limit_pauses_the_run_which_goes_on_by_itself() {
    let (mut world, user, agent) = setting(5, 1);
    let run = world.run(agent, user).id;
    let waiting = world.run(agent, user).id;
    let claim = world.claim_one(run);
    world.call(&claim.lease, 1, 0).unwrap();
    world.settle(&claim.lease, 1, 0).unwrap();
    let until = Timestamp::from_millis(world.now.millis() + 30_000);
    assert_eq!(pause(&world, &claim.lease, 2, 30), Paused::Until(until));
    let paused = world.read(run);
    assert_eq!(paused.status, RunStatus::Paused);
    assert_eq!(paused.error_code, Some(Code::ProviderRateLimited));
    let limit = paused.limit_detail.unwrap();
    assert_eq!(limit.resets_at, Some(until));
    assert_eq!(limit.consecutive, Some(1));
    // It keeps its slot, and nobody can take it up before its time.
    world.sweep();
    assert_eq!(world.status(waiting), RunStatus::Pending);
    world.pass(29_999);
    assert!(world.claim("node", 9).is_empty());
    world.pass(1);
    let next = world.claim_one(run);
    assert_eq!(next.steps[1].limited, 1);
    assert_eq!(next.steps[0].state, StepState::Done);
    let on = world.read(run);
    assert_eq!(on.status, RunStatus::Running);
    assert_eq!(
        (on.error_code, on.error_detail, on.limit_detail),
        (None, None, None)
    );
}

fn five_in_a_row_on_one_step_fail_the_run() {
    let (mut world, user, agent) = setting(6, 1);
    let run = world.run(agent, user).id;
    for round in 1..=4 {
        let claim = world.claim_one(run);
        assert!(matches!(
            pause(&world, &claim.lease, 1, 1),
            Paused::Until(_)
        ));
        assert_eq!(
            world.read(run).limit_detail.unwrap().consecutive,
            Some(round)
        );
        world.pass(1_000);
    }
    // Another step begins its own row.
    let claim = world.claim_one(run);
    world.call(&claim.lease, 1, 0).unwrap();
    world.settle(&claim.lease, 1, 0).unwrap();
    assert!(matches!(
        pause(&world, &claim.lease, 2, 1),
        Paused::Until(_)
    ));
    for _ in 0..3 {
        world.pass(1_000);
        let claim = world.claim_one(run);
        assert!(matches!(
            pause(&world, &claim.lease, 2, 1),
            Paused::Until(_)
        ));
    }
    world.pass(1_000);
    let claim = world.claim_one(run);
    assert_eq!(pause(&world, &claim.lease, 2, 1), Paused::Failed);
    assert_eq!(world.failed(run), Code::ProviderRateLimited);
    assert_eq!(world.read(run).limit_detail.unwrap().consecutive, Some(5));
    assert_eq!(world.numbers("SELECT running FROM workspaces", &[]), [[0]]);
}

fn one_wait_is_fifteen_minutes_at_most_and_none_passes_the_time_limit() {
    let (mut world, user, agent) = setting(7, 1);
    let run = world.run(agent, user).id;
    let claim = world.claim_one(run);
    let quarter = Timestamp::from_millis(world.now.millis() + 900_000);
    assert_eq!(
        pause(&world, &claim.lease, 1, 86_400),
        Paused::Until(quarter)
    );
    world.pass(2_700_000);
    let claim = world.claim_one(run);
    let end = Timestamp::from_millis(world.now.millis() + 900_000);
    assert_eq!(claim.deadline, end);
    let last = Timestamp::from_millis(end.millis() - 1_000);
    assert_eq!(pause(&world, &claim.lease, 1, 899), Paused::Until(last));
    world.pass(900_000);
    world.sweep();
    assert_eq!(world.failed(run), Code::RunTimeLimit);
}

fn a_wait_that_would_pass_the_time_limit_fails_the_run_at_once() {
    let (mut world, user, agent) = setting(8, 1);
    let run = world.run(agent, user).id;
    world.pass(3_590_000);
    let claim = world.claim_one(run);
    assert_eq!(pause(&world, &claim.lease, 1, 10), Paused::Failed);
    assert_eq!(world.failed(run), Code::ProviderRateLimited);
}

fn the_time_limit_is_wall_clock_from_the_first_start() {
    let (mut world, user, agent) = setting(9, 2);
    let unclaimed = world.run(agent, user).id;
    let worked_on = world.run(agent, user).id;
    let queued = world.run(agent, user).id;
    world.pass(3_599_999);
    world.sweep();
    let claims = world.claim("node", 9);
    let lease = &claims
        .iter()
        .find(|claim| claim.lease.run == worked_on)
        .unwrap()
        .lease;
    let other = &claims
        .iter()
        .find(|claim| claim.lease.run == unclaimed)
        .unwrap()
        .lease;
    world
        .at(|session, cx| runs::release(session, cx, other))
        .unwrap();
    world.pass(1);
    assert!(world.claim("node", 9).is_empty());
    world.sweep();
    assert_eq!(world.failed(unclaimed), Code::RunTimeLimit);
    // A worker that holds its lease ends the run itself; one that does not is overruled.
    assert_eq!(world.status(worked_on), RunStatus::Running);
    world
        .at(|session, cx| runs::renew(session, cx, lease))
        .unwrap();
    world.pass(14_999);
    world
        .at(|session, cx| runs::renew(session, cx, lease))
        .unwrap();
    world.pass(1);
    world.sweep();
    assert_eq!(world.failed(worked_on), Code::RunTimeLimit);
    // Time in the queue does not count.
    let queued = world.read(queued);
    assert_eq!(queued.status, RunStatus::Running);
    assert_eq!(
        world.claim_one(queued.id).deadline.millis(),
        queued.started_at.unwrap().millis() + 3_600_000
    );
}

fn no_workspace_starves_another() {
    let world = World::new(10);
    let user = world.user();
    let noisy = world.agent(world.workspace(user, 500, 0), user);
    for _ in 0..400 {
        world.run(noisy, user);
    }
    let quiet: Vec<AgentId> = (0..3)
        .map(|_| world.agent(world.workspace(user, 5, 0), user))
        .collect();
    let late: Vec<RunId> = quiet
        .iter()
        .flat_map(|agent| [world.run(*agent, user).id, world.run(*agent, user).id])
        .collect();
    let claims = world.claim("node", 8);
    let has = |run: &RunId| claims.iter().any(|claim| claim.lease.run == *run);
    assert_eq!(claims.len(), 8);
    assert!(late.iter().all(has));
    assert_eq!(world.claim("node", 500).len(), 398);
}

fn output_that_breaks_the_contract_fails_the_run_and_says_where() {
    let world = World::new(11);
    let user = world.user();
    let workspace = world.workspace(user, 3, 0);
    let mut definition = World::definition();
    definition.output_schema = Some(json!({"type": "string"}));
    let agent = world.agent_of(workspace, user, &definition, "workspace");
    let [good, bad] = [world.run(agent, user), world.run(agent, user)];
    assert_eq!(good.verification_status, VerificationStatus::Pending);
    let claims = world.claim("node", 2);
    let of = |run| {
        &claims
            .iter()
            .find(|claim| claim.lease.run == run)
            .unwrap()
            .lease
    };
    let errors = vec![VerificationError {
        instance: String::new(),
        keyword: "/type".into(),
        reason: "must be a string".into(),
    }];
    let broken = Outcome::Broken {
        output: json!(5),
        errors: errors.clone(),
    };
    world.finish(of(bad.id), &broken).unwrap();
    let verified = Outcome::Succeeded {
        output: json!("5"),
        verified: true,
    };
    world.finish(of(good.id), &verified).unwrap();
    assert_eq!(world.failed(bad.id), Code::VerificationFailed);
    let bad = world.read(bad.id);
    assert_eq!(bad.verification_status, VerificationStatus::Failed);
    assert_eq!(bad.verification_errors, errors);
    assert_eq!(bad.output, Some(json!(5)));
    assert_eq!(
        world.read(good.id).verification_status,
        VerificationStatus::Verified
    );
}

fn watchers_are_told_each_change_as_it_was_and_can_go_on_after_any() {
    let (mut world, user, agent) = setting(12, 1);
    let blocker = world.run(agent, user).id;
    let run = world.run(agent, user).id;
    world.succeed(&world.claim_one(blocker).lease);
    let claim = world.claim_one(run);
    pause(&world, &claim.lease, 1, 5);
    world.pass(5_000);
    let claim = world.claim_one(run);
    // As after answers that got lost: nothing happens twice.
    for _ in 0..2 {
        world.call(&claim.lease, 1, 0).unwrap();
    }
    for _ in 0..2 {
        world.settle(&claim.lease, 1, 0).unwrap();
    }
    world.succeed(&claim.lease);
    let now = world.read(run);
    let events = world
        .at(|session, _| runs::events(session, &now, 0, 100))
        .unwrap();
    let told: Vec<String> = events
        .iter()
        .map(|event| match &event.what {
            EventData::Status(run) => format!(
                "{} {}{}",
                run.status.text(),
                run.error_code.map_or("", Code::text),
                if run.output.is_some() { "!" } else { "" }
            ),
            EventData::Step(step) => format!("step {}", step.state.text()),
            EventData::Output(run) => format!("output {}", run.output.as_ref().unwrap()),
        })
        .collect();
    assert_eq!(
        told,
        [
            "pending ",
            "running ",
            "step started",
            "step paused",
            "paused_limit_exceeded provider.rate_limited",
            "running ",
            "step started",
            "step done",
            "output \"done\"",
            "succeeded !",
        ]
    );
    assert!(events.iter().map(|event| event.seq).eq(1..=10));
    let rest = world
        .at(|session, _| runs::events(session, &now, 8, 100))
        .unwrap();
    assert_eq!(rest, events[8..]);
}

fn lists_are_newest_first_and_filtered() {
    let (mut world, user, agent) = setting(13, 2);
    let other = world.agent(world.workspace(user, 1, 1), user);
    world.run(other, user);
    let mut runs: Vec<RunId> = Vec::new();
    for _ in 0..5 {
        world.pass(1);
        runs.push(world.run(agent, user).id);
    }
    runs.reverse();
    let workspace = world.read(runs[0]).workspace_id;
    let list = |filter, limit: &str, cursor: Option<&str>| {
        let page = crate::paging::PageRequest::parse(Some(limit), cursor).unwrap();
        world
            .at(|session, _| runs::list(session, workspace, filter, &page))
            .unwrap()
    };
    let ids = |listing: &crate::paging::Listing<crate::model::Run>| {
        listing.items.iter().map(|run| run.id).collect::<Vec<_>>()
    };
    let first = list(runs::Filter::default(), "3", None);
    assert_eq!(ids(&first), runs[..3]);
    let positions: Vec<_> = first
        .items
        .iter()
        .map(|run| run.waiting_for.unwrap().position)
        .collect();
    assert_eq!(positions, [3, 2, 1]);
    let rest = list(runs::Filter::default(), "3", first.next_cursor.as_deref());
    assert_eq!(ids(&rest), runs[3..]);
    assert_eq!(rest.next_cursor, None);
    let running = runs::Filter {
        status: Some(RunStatus::Running),
        agent: Some(agent),
    };
    assert_eq!(ids(&list(running, "9", None)), runs[3..]);
    let others = runs::Filter {
        status: None,
        agent: Some(other),
    };
    assert!(list(others, "9", None).items.is_empty());
    let page = crate::paging::PageRequest::parse(None, Some("agt_1")).unwrap();
    let refused = world.at(|session, _| runs::list(session, workspace, running, &page));
    assert_eq!(super::world::code(refused), Code::RequestInvalid);
}
