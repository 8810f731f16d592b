//! A queued run is judged again when it gets its slot (Work §3): the seven codes, and none of them for a run that began before.

use super::world::{World, code};
use crate::{
    code::Code,
    id::{AgentId, RunId, ThreadId, UserId, WorkspaceId},
    model::{Role, RunStatus, UserState},
    runs::{self, By, Outcome, Target},
};

super::on_each_store! {
    agent_paused,
    actor_not_member,
    actor_unavailable,
    trigger_disabled,
    a_trigger_acts_for_its_creator,
    thread_closed,
    thread_paused_leaves_the_turn_waiting_and_resuming_runs_it_anew,
    turn_requester_unavailable,
    a_limit_of_spending_met_while_it_waited,
    recovery_of_a_run_that_began_judges_nothing_again,
}

struct Setting {
    world: World,
    owner: UserId,
    starter: UserId,
    workspace: WorkspaceId,
    agent: AgentId,
    thread: ThreadId,
    first: RunId,
}

/// A workspace whose one slot is taken.
fn full(seed: u64) -> Setting {
    let world = World::new(seed);
    let (owner, starter) = (world.user(), world.user());
    let workspace = world.workspace(owner, 1, 10);
    world.member(workspace, starter, Some(Role::Member));
    let blocker = world.agent(workspace, owner);
    let agent = world.agent(workspace, owner);
    let thread = world.thread(workspace, agent, starter);
    let first = world.run(blocker, owner).id;
    Setting {
        world,
        owner,
        starter,
        workspace,
        agent,
        thread,
        first,
    }
}

impl Setting {
    fn queue(&self, by: By, target: Target) -> RunId {
        let start = self.world.start(by, target, None);
        let run = self.world.admit(&start).unwrap().run;
        assert_eq!(run.status, RunStatus::Pending);
        run.id
    }

    /// Frees the slot; what becomes of the run that gets it.
    fn dequeued(&self, run: RunId) -> Code {
        let next = self.queue(
            self.world.by(self.owner),
            Target::Agent(self.world.agent(self.workspace, self.owner)),
        );
        self.world.succeed(&self.world.claim_one(self.first).lease);
        // It took no slot: the one behind it has it.
        assert_eq!(self.world.status(next), RunStatus::Running);
        let failed = self.world.read(run);
        assert_eq!(failed.started_at, None);
        assert_eq!(failed.finished_at, Some(self.world.now));
        assert_eq!(
            self.world
                .numbers("SELECT running, queued FROM workspaces", &[]),
            [[1, 0]]
        );
        self.world.failed(run)
    }
}

fn agent_paused() {
    let s = full(1);
    let run = s.queue(s.world.by(s.starter), Target::Agent(s.agent));
    s.world.pause_agent(s.agent, true);
    assert_eq!(s.dequeued(run), Code::DequeueAgentPaused);
}

fn actor_not_member() {
    let s = full(2);
    let run = s.queue(s.world.by(s.starter), Target::Agent(s.agent));
    s.world.member(s.workspace, s.starter, None);
    s.world.state(s.starter, UserState::Deleted);
    assert_eq!(s.dequeued(run), Code::DequeueActorNotMember);
}

fn actor_unavailable() {
    for state in [
        UserState::Deactivated,
        UserState::Locked,
        UserState::Deleted,
    ] {
        let s = full(3);
        let run = s.queue(s.world.by(s.starter), Target::Agent(s.agent));
        s.world.state(s.starter, state);
        assert_eq!(s.dequeued(run), Code::DequeueActorUnavailable);
    }
    let s = full(4);
    let run = s.queue(s.world.by(s.starter), Target::Agent(s.agent));
    s.world.member(s.workspace, s.starter, Some(Role::Viewer));
    assert_eq!(s.dequeued(run), Code::DequeueActorUnavailable);
}

fn trigger_disabled() {
    let s = full(5);
    let trigger = s.world.trigger(s.workspace, s.agent, s.starter);
    let run = s.queue(By::Trigger(trigger), Target::Agent(s.agent));
    s.world.enable(trigger, false);
    assert_eq!(s.dequeued(run), Code::DequeueTriggerDisabled);

    let s = full(6);
    let trigger = s.world.trigger(s.workspace, s.agent, s.starter);
    let run = s.queue(By::Trigger(trigger), Target::Agent(s.agent));
    s.world.sql("DELETE FROM triggers", &[]);
    assert_eq!(s.dequeued(run), Code::DequeueTriggerDisabled);
}

fn a_trigger_acts_for_its_creator() {
    let s = full(7);
    let trigger = s.world.trigger(s.workspace, s.agent, s.starter);
    let run = s.queue(By::Trigger(trigger), Target::Agent(s.agent));
    s.world.member(s.workspace, s.starter, None);
    assert_eq!(s.dequeued(run), Code::DequeueActorNotMember);
}

fn thread_closed() {
    let s = full(8);
    let run = s.queue(s.world.by(s.starter), Target::Thread(s.thread));
    s.world.thread_state(s.thread, "closed");
    assert_eq!(s.dequeued(run), Code::DequeueThreadClosed);
}

fn thread_paused_leaves_the_turn_waiting_and_resuming_runs_it_anew() {
    let s = full(9);
    let start = s
        .world
        .start(s.world.by(s.starter), Target::Thread(s.thread), None);
    let queued = s.world.admit(&start).unwrap();
    let turn = queued.turn.unwrap().id;
    s.world.thread_state(s.thread, "paused");
    assert_eq!(s.dequeued(queued.run.id), Code::DequeueThreadPaused);
    let read = || {
        s.world
            .at(|session, _| runs::turn(session, turn))
            .unwrap()
            .unwrap()
    };
    assert_eq!(read().state.text(), "waiting");

    let again = s
        .world
        .start(By::Requester(s.starter), Target::Turn(s.thread, turn), None);
    assert_eq!(code(s.world.admit(&again)), Code::StateConflict);
    s.world.thread_state(s.thread, "open");
    s.world.limit(s.workspace, 2);
    let fresh = s.world.admit(&again).unwrap();
    assert_eq!(fresh.run.status, RunStatus::Running);
    assert_eq!(fresh.run.turn_id, Some(turn));
    assert_eq!(read().run_id, Some(fresh.run.id));
    let claims = s.world.claim("node", 9);
    let claim = claims.iter().find(|claim| claim.lease.run == fresh.run.id);
    s.world.succeed(&claim.unwrap().lease);
    assert_eq!(read().state.text(), "answered");
    assert_eq!(s.world.number("SELECT COUNT(*) FROM turns", &[]), 1);
}

fn turn_requester_unavailable() {
    let changes: [fn(&Setting); 3] = [
        |s| s.world.member(s.workspace, s.starter, None),
        |s| s.world.member(s.workspace, s.starter, Some(Role::Viewer)),
        |s| s.world.state(s.starter, UserState::Locked),
    ];
    for change in changes {
        let s = full(10);
        let run = s.queue(s.world.by(s.starter), Target::Thread(s.thread));
        change(&s);
        assert_eq!(s.dequeued(run), Code::DequeueTurnRequesterUnavailable);
    }
}

fn a_limit_of_spending_met_while_it_waited() {
    let s = full(11);
    let run = s.queue(s.world.by(s.starter), Target::Agent(s.agent));
    s.world
        .sql("UPDATE workspaces SET daily_cost_cents = 0", &[]);
    s.world.succeed(&s.world.claim_one(s.first).lease);
    assert_eq!(s.world.failed(run), Code::DailyCost);
    let detail = s.world.read(run).limit_detail.unwrap();
    assert_eq!(detail.code, Code::DailyCost);
    assert_eq!((detail.used_cents, detail.limit_cents), (Some(0), Some(0)));
    assert_eq!(
        detail.resets_at.unwrap().to_string(),
        "2026-01-02T00:00:00.000Z"
    );
}

fn recovery_of_a_run_that_began_judges_nothing_again() {
    let mut s = full(12);
    s.world.claim_one(s.first);
    s.world.sql("UPDATE agents SET paused = 1", &[]);
    s.world.member(s.workspace, s.owner, None);
    s.world.pass(15_000);
    let claim = s.world.claim_one(s.first);
    assert_eq!(claim.lease.attempt, 2);
    let outcome = Outcome::Failed {
        code: Code::ProviderRejected,
        detail: "no such model".into(),
        limit: None,
    };
    s.world.finish(&claim.lease, &outcome).unwrap();
    let run = s.world.read(s.first);
    assert_eq!(run.error_code, Some(Code::ProviderRejected));
    assert_eq!(run.error_detail.as_deref(), Some("no such model"));
    assert_eq!(run.attempt, 2);
}
