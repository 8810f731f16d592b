//! Keys (Work §3, §9): one start each, whatever else is true by the time of the replay.

use super::world::{World, code};
use crate::{
    code::Code,
    id::{AgentId, UserId, WorkspaceId},
    model::RunStatus,
    runs::{self, By, Start, Target},
    sql::Param,
};
use serde_json::json;

super::on_each_store! {
    a_replay_is_the_original_run_as_it_is_now_whatever_the_limits_say,
    a_key_is_not_used_for_another_request,
    a_refused_start_does_not_consume_its_key,
    a_key_belongs_to_a_principal_and_a_workspace,
    two_racing_starts_with_one_key_make_one_run,
    a_replayed_turn_answers_the_same_turn,
    keys_outlive_the_pruning_of_their_runs_by_a_day,
}

fn setting(seed: u64, limit: i64, queue: i64) -> (World, UserId, WorkspaceId, AgentId) {
    let world = World::new(seed);
    let user = world.user();
    let workspace = world.workspace(user, limit, queue);
    let agent = world.agent(workspace, user);
    (world, user, workspace, agent)
}

fn keyed(world: &World, user: UserId, agent: AgentId, key: &str) -> Start {
    world.start(world.by(user), Target::Agent(agent), Some(key))
}

fn a_replay_is_the_original_run_as_it_is_now_whatever_the_limits_say() {
    let (world, user, _, agent) = setting(1, 1, 0);
    let start = keyed(&world, user, agent, "k");
    let first = world.admit(&start).unwrap();
    assert!(!first.replayed);
    // The ceiling is reached, a budget is used up and the agent paused: the retry of an accepted start is still answered.
    world.sql("UPDATE limits SET budget_stop = 1", &[]);
    world.pause_agent(agent, true);
    let again = world.admit(&start).unwrap();
    assert!(again.replayed);
    assert_eq!(again.run, first.run);
    world.succeed(&world.claim_one(first.run.id).lease);
    let ended = world.admit(&start).unwrap();
    assert_eq!(ended.run.id, first.run.id);
    assert_eq!(ended.run.status, RunStatus::Succeeded);
    assert_eq!(ended.run.output, Some(json!("done")));
    assert_eq!(world.number("SELECT COUNT(*) FROM runs", &[]), 1);
}

fn a_key_is_not_used_for_another_request() {
    let (world, user, _, agent) = setting(2, 5, 5);
    let start = keyed(&world, user, agent, "k");
    world.admit(&start).unwrap();
    let mut other = start.clone();
    other.key.as_mut().unwrap().fingerprint[0] ^= 1;
    let refused = super::world::refusal(world.admit(&other));
    assert_eq!(refused.code, Code::KeyReused);
    assert_eq!(refused.detail, Code::KeyReused.detail());
    assert_eq!(world.number("SELECT COUNT(*) FROM runs", &[]), 1);
}

fn a_refused_start_does_not_consume_its_key() {
    let (world, user, _, agent) = setting(3, 1, 0);
    let holder = world.run(agent, user);
    let start = keyed(&world, user, agent, "k");
    assert_eq!(code(world.admit(&start)), Code::QueueFull);
    world.pause_agent(agent, true);
    assert_eq!(code(world.admit(&start)), Code::StateConflict);
    world.pause_agent(agent, false);
    assert_eq!(world.number("SELECT COUNT(*) FROM keys", &[]), 0);
    world.succeed(&world.claim_one(holder.id).lease);
    assert!(!world.admit(&start).unwrap().replayed);
}

fn a_key_belongs_to_a_principal_and_a_workspace() {
    let (world, user, workspace, agent) = setting(4, 9, 9);
    let other = world.user();
    world.member(workspace, other, Some(crate::model::Role::Member));
    let trigger = world.trigger(workspace, agent, user);
    let elsewhere = world.agent(world.workspace(user, 9, 9), user);
    let mut runs = vec![
        world
            .admit(&keyed(&world, user, agent, "k"))
            .unwrap()
            .run
            .id,
        world
            .admit(&keyed(&world, other, agent, "k"))
            .unwrap()
            .run
            .id,
        world
            .admit(&keyed(&world, user, elsewhere, "k"))
            .unwrap()
            .run
            .id,
    ];
    let fired = world.start(By::Trigger(trigger), Target::Agent(agent), Some("k"));
    let admission = world.admit(&fired).unwrap();
    assert_eq!(admission.run.trigger_id, Some(trigger));
    assert_eq!(admission.run.started_by, user);
    runs.push(admission.run.id);
    runs.dedup();
    assert_eq!(runs.len(), 4);
    // The token is not the principal: another one of the same user replays.
    assert!(
        world
            .admit(&keyed(&world, user, agent, "k"))
            .unwrap()
            .replayed
    );
}

fn two_racing_starts_with_one_key_make_one_run() {
    let (world, user, _, agent) = setting(5, 1, 500);
    let start = keyed(&world, user, agent, "k");
    let world = &world;
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..25 {
                    world.admit(&start).unwrap();
                }
            });
        }
    });
    assert_eq!(world.number("SELECT COUNT(*) FROM runs", &[]), 1);
    assert_eq!(
        world.numbers("SELECT running, queued FROM workspaces", &[]),
        [[1, 0]]
    );
}

fn a_replayed_turn_answers_the_same_turn() {
    let (world, user, workspace, agent) = setting(6, 5, 5);
    let thread = world.thread(workspace, agent, user);
    let start = world.start(world.by(user), Target::Thread(thread), Some("k"));
    let first = world.admit(&start).unwrap();
    world.thread_state(thread, "closed");
    let again = world.admit(&start).unwrap();
    assert!(again.replayed);
    assert_eq!(again.turn, first.turn);
    assert_eq!(world.number("SELECT COUNT(*) FROM turns", &[]), 1);
}

fn keys_outlive_the_pruning_of_their_runs_by_a_day() {
    let (mut world, user, _, agent) = setting(7, 5, 5);
    let start = keyed(&world, user, agent, "k");
    let run = world.admit(&start).unwrap().run.id;
    world.succeed(&world.claim_one(run).lease);
    let waiting = keyed(&world, user, agent, "other");
    world.admit(&waiting).unwrap();
    let prune = |world: &World| {
        let older = world.now;
        world
            .at(|session, cx| runs::prune(session, cx, older, 100))
            .unwrap()
    };
    world.pass(30 * 86_400_000);
    assert_eq!(prune(&world), 1);
    assert_eq!(
        world.at(|session, _| runs::run(session, run)).unwrap(),
        None
    );
    for table in ["steps", "events"] {
        let left = format!("SELECT COUNT(*) FROM {table} WHERE run_id = $1");
        assert_eq!(world.number(&left, &[Param::Text(&run.to_string())]), 0);
    }
    // The run is gone, but the key does not start another.
    assert_eq!(code(world.admit(&start)), Code::StateConflict);
    world.pass(86_399_999);
    prune(&world);
    assert_eq!(code(world.admit(&start)), Code::StateConflict);
    world.pass(1);
    prune(&world);
    assert!(!world.admit(&start).unwrap().replayed);
    // One whose run has not ended is kept however old it is.
    assert!(world.admit(&waiting).unwrap().replayed);
}
