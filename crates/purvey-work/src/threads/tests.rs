use super::*;
use crate::{
    model::{RunStatus, TurnState, WaitingReason},
    runs::Admission,
    stage::{Stage, places, refused},
};
use serde_json::json;

/// What a test does with one thread.
struct Talk<'a> {
    stage: &'a Stage,
    thread: Thread,
    id: String,
}

impl<'a> Talk<'a> {
    fn open(stage: &'a Stage) -> Self {
        let body = json!({ "agent_id": stage.agent(json!({})) });
        let workspace = stage.workspace.to_string();
        let thread = stage
            .at(|session, cx| open(session, cx, &stage.owner, &workspace, &body))
            .unwrap();
        let id = thread.id.to_string();
        Self { stage, thread, id }
    }

    fn send_as(
        &self,
        caller: &Principal,
        key: Option<&str>,
        input: &str,
    ) -> Result<Admission, Error> {
        let start = request(caller, &self.id, key, &json!({ "input": input }))?;
        self.stage.at(|session, cx| {
            let mut answers = runs::admit(session, cx, std::slice::from_ref(&start))?;
            answers.pop().unwrap()
        })
    }

    fn send(&self, input: &str) -> Admission {
        self.send_as(&self.stage.owner, None, input).unwrap()
    }

    fn pause(&self) {
        self.stage
            .at(|session, _| pause(session, &self.stage.owner, &self.id))
            .unwrap();
    }

    fn resume(&self) -> Result<Thread, Error> {
        self.stage
            .at(|session, cx| resume(session, cx, &self.stage.owner, &self.id))
    }

    fn close(&self) {
        self.stage
            .at(|session, _| close(session, &self.stage.owner, &self.id))
            .unwrap();
    }

    /// State of each turn, oldest first, and its run.
    fn turns(&self) -> Vec<(TurnState, RunId)> {
        let page = PageRequest::default();
        let turns = self
            .stage
            .at(|session, _| turns(session, &self.stage.owner, &self.id, &page))
            .unwrap();
        let turn = |turn: &Turn| (turn.state, turn.run_id.unwrap());
        turns.items.iter().rev().map(turn).collect()
    }

    /// Starts a run of another agent, which takes or waits for a slot.
    fn other_run(&self) -> RunId {
        let Principal::User(actor) = &self.stage.owner else {
            panic!("the owner is a user")
        };
        let start = Start {
            by: By::User(actor.clone()),
            target: Target::Agent(self.stage.agent(json!({})).parse().unwrap()),
            input: json!(0),
            artifacts: Vec::new(),
            key: None,
        };
        let admitted = self.stage.at(|session, cx| {
            runs::admit(session, cx, std::slice::from_ref(&start))?
                .pop()
                .unwrap()
        });
        admitted.unwrap().run.id
    }

    fn status(&self, run: RunId) -> RunStatus {
        self.stage.run(run).status
    }
}

#[test]
fn turns_are_answered_in_order_with_one_active_run_per_thread() {
    Stage::on_each(10, |stage| {
        let talk = Talk::open(stage);
        let sent = ["one", "two", "three"].map(|input| {
            stage.pass(1);
            talk.send(input)
        });
        let [one, two, three] = sent.map(|admission| admission.run.id);
        assert_eq!(talk.status(one), RunStatus::Running);
        for waits in [two, three] {
            let waiting = stage.run(waits).waiting_for.unwrap();
            assert_eq!(waiting.reason, WaitingReason::Thread);
        }
        stage.succeed(one);
        assert_eq!(talk.status(two), RunStatus::Running);
        assert_eq!(talk.status(three), RunStatus::Pending);
        stage.succeed(two);
        stage.succeed(three);
        let states: Vec<_> = talk.turns().iter().map(|(state, _)| *state).collect();
        assert_eq!(states, [TurnState::Answered; 3]);
        let input = stage.run(three).input;
        assert_eq!(input, json!("three"));
    });
}

#[test]
fn a_new_turn_on_a_paused_or_closed_thread_is_a_conflict() {
    Stage::on_each(10, |stage| {
        let talk = Talk::open(stage);
        let sent = talk.send_as(&stage.owner, Some("k"), "one").unwrap();
        talk.pause();
        talk.pause();
        let new = talk.send_as(&stage.owner, Some("l"), "two");
        assert_eq!(refused(new), Code::StateConflict);
        // A replay is judged before the state.
        let again = talk.send_as(&stage.owner, Some("k"), "one").unwrap();
        assert!(again.replayed);
        assert_eq!(again.run.id, sent.run.id);
        assert_eq!(again.turn.unwrap().id, sent.turn.unwrap().id);
        let other = talk.send_as(&stage.owner, Some("k"), "other");
        assert_eq!(refused(other), Code::KeyReused);
        talk.resume().unwrap();
        talk.send("three");
        talk.close();
        talk.close();
        assert_eq!(
            refused(talk.send_as(&stage.owner, None, "four")),
            Code::StateConflict
        );
        assert_eq!(refused(talk.resume()), Code::StateConflict);
    });
}

#[test]
fn resuming_admits_a_fresh_run_for_each_waiting_turn_in_order() {
    Stage::on_each(1, |stage| {
        let talk = Talk::open(stage);
        let busy = talk.other_run();
        let [one, two] = ["one", "two"].map(|input| talk.send(input).run.id);
        talk.pause();
        stage.succeed(busy);
        for run in [one, two] {
            let run = stage.run(run);
            assert_eq!(run.status, RunStatus::Failed);
            assert_eq!(run.error_code, Some(Code::DequeueThreadPaused));
        }
        let waiting = [(TurnState::Waiting, one), (TurnState::Waiting, two)];
        assert_eq!(talk.turns(), waiting);

        stage.pass(60);
        talk.resume().unwrap();
        let turns = talk.turns();
        let [
            (TurnState::Waiting, fresh_one),
            (TurnState::Waiting, fresh_two),
        ] = turns[..]
        else {
            panic!("{turns:?}")
        };
        assert!(fresh_one != one && fresh_two != two);
        assert_eq!(talk.status(fresh_one), RunStatus::Running);
        assert_eq!(talk.status(fresh_two), RunStatus::Pending);
        assert_eq!(stage.run(fresh_one).input, json!("one"));
        stage.succeed(fresh_one);
        stage.succeed(fresh_two);
        let answered = [
            (TurnState::Answered, fresh_one),
            (TurnState::Answered, fresh_two),
        ];
        assert_eq!(talk.turns(), answered);
        // Nothing is left to resume.
        talk.resume().unwrap();
        assert_eq!(talk.turns(), answered);
    });
}

#[test]
fn a_turn_that_was_left_over_goes_before_a_later_one_that_still_waits() {
    Stage::on_each(1, |stage| {
        let talk = Talk::open(stage);
        let busy = talk.other_run();
        let one = talk.send("one").run.id;
        let next = talk.other_run();
        let two = talk.send("two").run.id;
        talk.pause();
        // The first turn's run is judged and fails; the run behind it takes the slot, so that the second turn's is not judged.
        stage.succeed(busy);
        assert_eq!(talk.status(one), RunStatus::Failed);
        assert_eq!(talk.status(next), RunStatus::Running);
        assert_eq!(talk.status(two), RunStatus::Pending);

        talk.resume().unwrap();
        let fresh = talk.turns()[0].1;
        stage.succeed(next);
        assert_eq!(talk.status(fresh), RunStatus::Running);
        assert_eq!(talk.status(two), RunStatus::Pending);
        stage.succeed(fresh);
        stage.succeed(two);
        let answered = [(TurnState::Answered, fresh), (TurnState::Answered, two)];
        assert_eq!(talk.turns(), answered);
    });
}

#[test]
fn closing_fails_the_turns_that_wait() {
    Stage::on_each(1, |stage| {
        let talk = Talk::open(stage);
        let busy = talk.other_run();
        let one = talk.send("one").run.id;
        talk.pause();
        stage.succeed(busy);
        assert_eq!(talk.turns(), [(TurnState::Waiting, one)]);
        talk.close();
        assert_eq!(talk.turns(), [(TurnState::Failed, one)]);

        let talk = Talk::open(stage);
        let running = talk.send("one").run.id;
        let queued = talk.send("two").run.id;
        talk.close();
        stage.succeed(running);
        // What ran goes on; what had not begun does not.
        let turns = [(TurnState::Answered, running), (TurnState::Failed, queued)];
        assert_eq!(talk.turns(), turns);
        assert_eq!(
            stage.run(queued).error_code,
            Some(Code::DequeueThreadClosed)
        );
    });
}

#[test]
fn who_can_no_longer_start_work_has_their_turn_failed_on_resuming() {
    Stage::on_each(1, |stage| {
        let member = stage.user(Some(Role::Member));
        let talk = Talk::open(stage);
        let busy = talk.other_run();
        let one = talk.send_as(&member, None, "one").unwrap().run.id;
        let two = talk.send("two").run.id;
        talk.pause();
        stage.succeed(busy);
        let Principal::User(actor) = &member else {
            panic!("a member is a user")
        };
        stage.member(actor.user, Some(Role::Viewer));
        talk.resume().unwrap();
        let turns = talk.turns();
        assert_eq!(turns[0], (TurnState::Failed, one));
        assert_eq!(turns[1].0, TurnState::Waiting);
        assert_ne!(turns[1].1, two);
        assert_eq!(talk.status(turns[1].1), RunStatus::Running);
    });
}

#[test]
fn what_refuses_runs_for_now_refuses_resuming_and_changes_nothing() {
    Stage::on_each(1, |stage| {
        let talk = Talk::open(stage);
        let busy = talk.other_run();
        let one = talk.send("one").run.id;
        talk.pause();
        stage.succeed(busy);
        let agent = talk.thread.agent_id.to_string();
        stage.pause_agent(&agent, true);
        assert_eq!(refused(talk.resume()), Code::StateConflict);
        let thread = stage.at(|session, _| get(session, &stage.owner, &talk.id));
        assert_eq!(thread.unwrap().state, ThreadState::Paused);
        assert_eq!(talk.turns(), [(TurnState::Waiting, one)]);
        stage.pause_agent(&agent, false);
        talk.resume().unwrap();
        assert_eq!(talk.status(talk.turns()[0].1), RunStatus::Running);
    });
}

#[test]
fn a_thread_is_absent_across_organizations_and_judged_by_role_within() {
    Stage::on_each(10, |stage| {
        let talk = Talk::open(stage);
        let stranger = stage.stranger();
        let absent = ThreadId::new(stage.now(), &crate::SystemChance).to_string();
        for id in [talk.id.as_str(), absent.as_str(), "thr_1", ""] {
            let page = PageRequest::default();
            let get = stage.at(|session, _| get(session, &stranger, id));
            assert_eq!(refused(get), Code::NotFound, "{id}");
            let turns = stage.at(|session, _| turns(session, &stranger, id, &page));
            assert_eq!(refused(turns), Code::NotFound, "{id}");
            let close = stage.at(|session, _| close(session, &stranger, id));
            assert_eq!(refused(close), Code::NotFound, "{id}");
        }
        assert_eq!(refused(talk.send_as(&stranger, None, "x")), Code::NotFound);

        let viewer = stage.user(Some(Role::Viewer));
        let member = stage.user(Some(Role::Member));
        let nobody = stage.user(None);
        let read = |caller: &Principal| stage.at(|session, _| get(session, caller, &talk.id));
        read(&viewer).unwrap();
        assert_eq!(refused(read(&nobody)), Code::PermissionRole);
        assert_eq!(
            refused(talk.send_as(&viewer, None, "x")),
            Code::PermissionRole
        );
        talk.send_as(&member, None, "x").unwrap();
        // It is another's thread.
        let paused = stage.at(|session, _| pause(session, &member, &talk.id));
        assert_eq!(refused(paused), Code::PermissionRole);
    });
}

#[test]
fn a_thread_is_opened_with_an_agent_of_the_workspace_that_one_may_see() {
    Stage::on_each(10, |stage| {
        let member = stage.user(Some(Role::Member));
        let workspace = stage.workspace.to_string();
        let open = |caller: &Principal, body: Value| {
            stage.at(|session, cx| open(session, cx, caller, &workspace, &body))
        };
        let private = stage.agent(json!({ "visibility": "private" }));
        assert_eq!(
            refused(open(&member, json!({ "agent_id": private }))),
            Code::PermissionVisibility
        );
        open(&stage.owner, json!({ "agent_id": private })).unwrap();
        let absent = AgentId::new(stage.now(), &crate::SystemChance);
        assert_eq!(
            places(open(&member, json!({ "agent_id": absent }))),
            ["/agent_id"]
        );
        assert_eq!(
            places(open(&member, json!({ "agent": 1 }))),
            ["/agent_id", "/agent"]
        );
        let page = PageRequest::default();
        let listed = stage.at(|session, _| list(session, &member, &workspace, &page));
        assert_eq!(listed.unwrap().items.len(), 1);
    });
}
