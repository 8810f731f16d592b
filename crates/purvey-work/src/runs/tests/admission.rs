//! Slots and the queue (Work §3): exact, first come first served, never leaked.

use super::world::{World, code, refusal};
use crate::{
    code::Code,
    model::{Role, RunStatus, UserState, WaitingFor, WaitingReason},
    runs::{self, Outcome, Target},
    sql::Param,
};
use serde_json::json;
use std::time::Duration;

super::on_each_store! {
    a_free_slot_is_taken_at_once_and_the_limit_queues,
    a_queued_run_begins_by_itself_when_a_slot_frees_in_its_order,
    only_a_full_queue_refuses_and_says_when_to_come_back,
    a_batch_is_judged_as_if_each_start_came_alone,
    lowering_the_limit_stops_nobody_and_nothing_begins_until_the_count_is_below_it,
    what_waits_is_cancelled_at_once_and_what_runs_as_soon_as_its_worker_looks,
    starts_are_judged_in_one_order,
    turns_of_a_thread_run_one_after_the_other,
}

fn a_free_slot_is_taken_at_once_and_the_limit_queues() {
    let world = World::new(1);
    let user = world.user();
    let workspace = world.workspace(user, 2, 10);
    let agent = world.agent(workspace, user);
    for _ in 0..2 {
        let run = world.run(agent, user);
        assert_eq!(run.status, RunStatus::Running);
        assert_eq!(run.queued_since, None);
        assert_eq!(run.started_at, Some(world.now));
    }
    for position in 1..=3 {
        let run = world.run(agent, user);
        assert_eq!(run.status, RunStatus::Pending);
        assert_eq!(run.queued_since, Some(world.now));
        assert_eq!(run.started_at, None);
        let waiting = WaitingFor {
            reason: WaitingReason::Concurrency,
            position,
        };
        assert_eq!(run.waiting_for, Some(waiting));
        assert_eq!(world.read(run.id), run);
    }
}

fn a_queued_run_begins_by_itself_when_a_slot_frees_in_its_order() {
    let mut world = World::new(2);
    let user = world.user();
    let workspace = world.workspace(user, 1, 10);
    let agent = world.agent(workspace, user);
    let runs: Vec<_> = (0..3).map(|_| world.run(agent, user).id).collect();
    world.pass(1_000);
    world.succeed(&world.claim_one(runs[0]).lease);
    let second = world.read(runs[1]);
    assert_eq!(second.status, RunStatus::Running);
    assert_eq!(second.started_at, Some(world.now));
    assert!(second.queued_since.is_some());
    assert_eq!(world.status(runs[2]), RunStatus::Pending);
    assert_eq!(world.read(runs[2]).waiting_for.unwrap().position, 1);
    world.succeed(&world.claim_one(runs[1]).lease);
    world.succeed(&world.claim_one(runs[2]).lease);
    assert_eq!(
        world.numbers("SELECT running, queued FROM workspaces", &[]),
        [[0, 0]]
    );
    assert_eq!(world.number("SELECT unfinished FROM agents", &[]), 0);
}

fn only_a_full_queue_refuses_and_says_when_to_come_back() {
    let mut world = World::new(3);
    let user = world.user();
    let workspace = world.workspace(user, 1, 1);
    let agent = world.agent(workspace, user);
    let first = world.run(agent, user).id;
    world.run(agent, user);
    let start = world.start(world.by(user), Target::Agent(agent), None);

    world.pass(40_000);
    let full = refusal(world.admit(&start));
    assert_eq!(full.code, Code::QueueFull);
    // Nothing has ended here yet: as long again as the oldest has taken.
    assert_eq!(full.retry_after, Some(Duration::from_secs(40)));

    world.succeed(&world.claim_one(first).lease);
    world.run(agent, user);
    world.pass(10_000);
    // One run has ended, ten seconds ago.
    let full = refusal(world.admit(&start));
    assert_eq!(full.retry_after, Some(Duration::from_secs(10)));

    let none = world.workspace(user, 1, 0);
    let agent = world.agent(none, user);
    world.run(agent, user);
    let start = world.start(world.by(user), Target::Agent(agent), None);
    assert_eq!(
        refusal(world.admit(&start)).retry_after,
        Some(Duration::from_secs(1))
    );
}

fn a_batch_is_judged_as_if_each_start_came_alone() {
    let world = World::new(4);
    let user = world.user();
    let workspace = world.workspace(user, 3, 50);
    let other = world.workspace(user, 1, 0);
    let agent = world.agent(workspace, user);
    let small = world.agent(other, user);
    let start = |agent, key: Option<&str>| world.start(world.by(user), Target::Agent(agent), key);
    let mut starts: Vec<_> = (0..60).map(|_| start(agent, None)).collect();
    starts.push(start(small, Some("k")));
    starts.push(start(small, Some("k")));
    starts.push(start(small, Some("l")));
    let answers = world
        .at(|session, cx| runs::admit(session, cx, &starts))
        .unwrap();
    let mut statuses = answers[..60]
        .iter()
        .map(|answer| answer.as_ref().ok().map(|admission| admission.run.status));
    assert!(
        statuses
            .by_ref()
            .take(3)
            .all(|status| status == Some(RunStatus::Running))
    );
    assert!(
        statuses
            .by_ref()
            .take(50)
            .all(|status| status == Some(RunStatus::Pending))
    );
    assert_eq!(statuses.by_ref().filter(Option::is_none).count(), 7);
    let [.., first, again, full] = &answers[..] else {
        panic!("answers");
    };
    let (first, again) = (first.as_ref().unwrap(), again.as_ref().unwrap());
    assert_eq!(first.run.id, again.run.id);
    assert!(!first.replayed && again.replayed);
    assert!(full.is_err());
    assert_eq!(
        world.numbers("SELECT running, queued FROM workspaces ORDER BY id", &[]),
        [[3, 50], [1, 0]]
    );
    let kept = "SELECT COUNT(*) FROM runs WHERE status = 'pending'";
    assert_eq!(world.number(kept, &[]), 50);
}

fn lowering_the_limit_stops_nobody_and_nothing_begins_until_the_count_is_below_it() {
    let world = World::new(5);
    let user = world.user();
    let workspace = world.workspace(user, 3, 10);
    let agent = world.agent(workspace, user);
    for _ in 0..5 {
        world.run(agent, user);
    }
    world.limit(workspace, 1);
    let claims = world.claim("node", 9);
    assert_eq!(claims.len(), 3);
    let counters = || world.numbers("SELECT running, queued FROM workspaces", &[]);
    assert_eq!(counters(), [[3, 2]]);
    world.succeed(&claims[0].lease);
    world.succeed(&claims[1].lease);
    assert_eq!(counters(), [[1, 2]]);
    world.succeed(&claims[2].lease);
    assert_eq!(counters(), [[1, 1]]);
    world.limit(workspace, 5);
    assert_eq!(counters(), [[2, 0]]);
}

fn what_waits_is_cancelled_at_once_and_what_runs_as_soon_as_its_worker_looks() {
    let mut world = World::new(6);
    let user = world.user();
    let workspace = world.workspace(user, 2, 10);
    let agent = world.agent(workspace, user);
    let [first, second, third, fourth, fifth] = [(); 5].map(|()| world.run(agent, user).id);
    let cancel = |world: &World, run| world.at(|session, cx| runs::cancel(session, cx, run));

    // Pending, and asked again.
    assert_eq!(cancel(&world, fourth).unwrap().status, RunStatus::Cancelled);
    assert_eq!(cancel(&world, fourth).unwrap().status, RunStatus::Cancelled);
    // Holding a slot, with no worker yet: the next begins.
    assert_eq!(cancel(&world, second).unwrap().status, RunStatus::Cancelled);
    assert_eq!(world.status(third), RunStatus::Running);
    // Leased.
    let claims = world.claim("node", 9);
    let lease = &claims
        .iter()
        .find(|claim| claim.lease.run == first)
        .unwrap()
        .lease;
    assert_eq!(cancel(&world, first).unwrap().status, RunStatus::Running);
    assert_eq!(
        world
            .at(|session, _| runs::to_cancel(session, "node"))
            .unwrap(),
        [first]
    );
    assert!(
        world
            .at(|session, cx| runs::renew(session, cx, lease))
            .unwrap()
            .cancel
    );
    world.finish(lease, &Outcome::Cancelled).unwrap();
    assert_eq!(world.status(first), RunStatus::Cancelled);
    assert_eq!(world.status(fifth), RunStatus::Running);
    // Leased by a worker that is gone.
    assert_eq!(cancel(&world, third).unwrap().status, RunStatus::Running);
    world.pass(14_999);
    world.sweep();
    assert_eq!(world.status(third), RunStatus::Running);
    world.pass(1);
    world.sweep();
    assert_eq!(world.status(third), RunStatus::Cancelled);
    // Ended.
    world.succeed(&world.claim_one(fifth).lease);
    assert_eq!(code(cancel(&world, fifth)), Code::StateConflict);
    assert_eq!(
        world.numbers("SELECT running, queued FROM workspaces", &[]),
        [[0, 0]]
    );
}

fn starts_are_judged_in_one_order() {
    let world = World::new(7);
    let owner = world.user();
    let workspace = world.workspace(owner, 1, 0);
    let mut definition = World::definition();
    definition.input_schema = Some(json!({"type": "object", "required": ["m"]}));
    let agent = world.agent_of(workspace, owner, &definition, "private");
    let user = world.user();
    let start = |key| {
        let mut start = world.start(world.by(user), Target::Agent(agent), key);
        start.input = json!({"n": 1});
        start
    };
    // Everything is wrong at once; what is mended next is what was refused.
    world.run_full(workspace, owner);
    world.sql("UPDATE workspaces SET daily_cost_cents = 0", &[]);
    world.pause_agent(agent, true);
    world.state(user, UserState::Locked);
    let mut narrow = start(Some("k"));
    if let runs::By::User(actor) = &mut narrow.by {
        actor.scopes.clear();
    }
    assert_eq!(code(world.admit(&narrow)), Code::PermissionScope);
    let one = start(Some("k"));
    assert_eq!(code(world.admit(&one)), Code::PermissionRole);
    world.state(user, UserState::Active);
    assert_eq!(code(world.admit(&one)), Code::PermissionRole);
    world.member(workspace, user, Some(Role::Viewer));
    assert_eq!(code(world.admit(&one)), Code::PermissionRole);
    world.member(workspace, user, Some(Role::Member));
    assert_eq!(code(world.admit(&one)), Code::PermissionVisibility);
    world.sql(
        "UPDATE agents SET shared_with = $1",
        &[Param::Text(&json!([user]).to_string())],
    );
    let invalid = refusal(world.admit(&one));
    assert_eq!(invalid.code, Code::RequestInvalid);
    assert!(!invalid.errors.is_empty());
    let mut one = one;
    one.input = json!({"m": 1});
    assert_eq!(code(world.admit(&one)), Code::StateConflict);
    world.pause_agent(agent, false);
    let capped = refusal(world.admit(&one));
    assert_eq!(capped.code, Code::DailyCost);
    assert_eq!(capped.retry_after, None);
    world.sql("UPDATE workspaces SET daily_cost_cents = NULL", &[]);
    assert_eq!(code(world.admit(&one)), Code::QueueFull);
    world.limit(workspace, 2);
    assert!(!world.admit(&one).unwrap().replayed);
    // Replay comes before everything but who may ask.
    world.pause_agent(agent, true);
    world.sql("UPDATE workspaces SET daily_cost_cents = 0", &[]);
    assert!(world.admit(&one).unwrap().replayed);
    world.member(workspace, user, None);
    assert_eq!(code(world.admit(&one)), Code::PermissionRole);
    // What is in another organization, or nowhere, is absent.
    let mut stranger = one.clone();
    if let runs::By::User(actor) = &mut stranger.by {
        actor.organization = crate::id::OrganizationId::new(world.now, &world.chance);
    }
    let absent = refusal(world.admit(&stranger));
    world.sql("UPDATE agents SET deleted_at = 1", &[]);
    assert_eq!(refusal(world.admit(&one)), absent);
    assert_eq!(absent.code, Code::NotFound);
}

fn turns_of_a_thread_run_one_after_the_other() {
    let world = World::new(8);
    let user = world.user();
    let workspace = world.workspace(user, 5, 10);
    let agent = world.agent(workspace, user);
    let thread = world.thread(workspace, agent, user);
    let send = || {
        world
            .admit(&world.start(world.by(user), Target::Thread(thread), None))
            .unwrap()
    };
    let (first, second, third) = (send(), send(), send());
    assert_eq!(first.run.status, RunStatus::Running);
    assert_eq!(first.turn.as_ref().unwrap().run_id, Some(first.run.id));
    for (sent, position) in [(&second, 2), (&third, 3)] {
        let run = world.read(sent.run.id);
        let waiting = WaitingFor {
            reason: WaitingReason::Thread,
            position,
        };
        assert_eq!(run.waiting_for, Some(waiting));
    }
    // Others need not wait for the thread.
    let beside = world.run(agent, user);
    assert_eq!(beside.status, RunStatus::Running);
    // One in the middle goes without letting the next overtake the first.
    world
        .at(|session, cx| runs::cancel(session, cx, second.run.id))
        .unwrap();
    assert_eq!(world.status(third.run.id), RunStatus::Pending);
    let claims = world.claim("node", 9);
    let of = |run| {
        &claims
            .iter()
            .find(|claim| claim.lease.run == run)
            .unwrap()
            .lease
    };
    world.succeed(of(first.run.id));
    assert_eq!(world.status(third.run.id), RunStatus::Running);
    let states = world.at(|session, _| {
        [&first, &second, &third]
            .map(|sent| runs::turn(session, sent.turn.as_ref().unwrap().id))
            .into_iter()
            .map(|turn| Ok(turn?.unwrap().state.text()))
            .collect::<Result<Vec<_>, _>>()
    });
    assert_eq!(states.unwrap(), ["answered", "failed", "waiting"]);
}

impl World {
    /// Fills a workspace whose limit is one.
    fn run_full(&self, workspace: crate::id::WorkspaceId, owner: crate::id::UserId) {
        let agent = self.agent(workspace, owner);
        self.run(agent, owner);
    }
}

#[test]
fn an_agent_that_is_deleted_while_its_start_waits_starts_nothing() {
    // In SQLite nothing happens beside a start.
    super::world::on_postgres(|| {
        let world = World::new(9);
        let user = world.user();
        let workspace = world.workspace(user, 2, 10);
        let agent = world.agent(workspace, user);
        let start = world.start(world.by(user), Target::Agent(agent), None);
        let store = world.store.clone();
        let (holds, held) = std::sync::mpsc::channel();
        let deleting = std::thread::spawn(move || {
            store.write_now(|session| {
                let hold = "UPDATE workspaces SET running = running WHERE id = $1";
                session.execute(hold, &[Param::Text(&workspace.to_string())])?;
                holds.send(()).unwrap();
                let waiting = "SELECT COUNT(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))";
                while session.row(waiting, &[])?.unwrap().int(0)? == 0 {
                    std::thread::yield_now();
                }
                let delete = "UPDATE agents SET deleted_at = 1 WHERE id = $1 AND unfinished = 0";
                session.execute(delete, &[Param::Text(&agent.to_string())])
            })
        });
        held.recv().unwrap();
        let admitted =
            world.at(|session, cx| runs::admit(session, cx, std::slice::from_ref(&start)));
        assert_eq!(code(admitted), Code::NotFound);
        assert_eq!(deleting.join().unwrap().unwrap(), 1);
        assert_eq!(world.number("SELECT COUNT(*) FROM runs", &[]), 0);
        assert_eq!(world.number("SELECT running FROM workspaces", &[]), 0);
    });
}
