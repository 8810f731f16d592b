use super::*;
use crate::{
    model::{RunStatus, UserState},
    runs::Admission,
    stage::{Stage, places, refused},
};
use serde_json::json;

fn make(stage: &Stage, caller: &Principal, body: &Value) -> Result<NewTrigger, Error> {
    let workspace = stage.workspace.to_string();
    stage.at(|session, cx| create(session, cx, caller, &workspace, body))
}

fn schedule(stage: &Stage, agent: &str, cron: &str) -> Trigger {
    let body = json!({ "kind": "schedule", "agent_id": agent, "input": { "n": 1 }, "cron": cron });
    make(stage, &stage.owner, &body).unwrap().trigger
}

fn webhook(stage: &Stage, agent: &str) -> (String, String) {
    let body = json!({ "kind": "webhook", "agent_id": agent, "input": { "n": 1 } });
    let made = make(stage, &stage.owner, &body).unwrap();
    (made.trigger.id.to_string(), made.token.unwrap())
}

fn call(
    stage: &Stage,
    id: &str,
    token: &str,
    key: Option<&str>,
    event: &Value,
) -> Result<Admission, Error> {
    let hook = stage.at(|session, _| authenticate(session, id, token))?;
    stage.at(|session, cx| deliver(session, cx, hook, key, event))?
}

fn seen(stage: &Stage, id: &str) -> Trigger {
    stage
        .at(|session, _| get(session, &stage.owner, id))
        .unwrap()
}

fn switch(stage: &Stage, id: &str, enabled: bool) -> Trigger {
    let body = json!({ "enabled": enabled });
    stage
        .at(|session, cx| update(session, cx, &stage.owner, id, &body))
        .unwrap()
}

/// Makes what is due; what came of each.
fn tick(stage: &Stage) -> Vec<FiringOutcome> {
    let found = stage.at(|session, cx| due(session, cx.now)).unwrap();
    let fire = |(trigger, workspace)| {
        stage
            .at(|session, cx| fire(session, cx, trigger, workspace))
            .unwrap()
    };
    found.into_iter().filter_map(fire).collect()
}

fn code(outcome: &FiringOutcome) -> Option<Code> {
    match outcome {
        FiringOutcome::Refused { code } => Some(*code),
        FiringOutcome::Started { .. } => None,
    }
}

#[test]
fn a_schedules_firing_starts_one_run_whoever_comes_first() {
    Stage::on_each(10, |stage| {
        let agent = stage.agent(json!({}));
        let trigger = schedule(stage, &agent, "30 12 * * *");
        let id = trigger.id.to_string();
        assert_eq!(
            trigger.next_fire_at.unwrap().to_string(),
            "2026-01-01T12:30:00.000Z"
        );
        stage.pass(1_799);
        assert_eq!(tick(stage), []);
        stage.pass(1);
        // Two nodes have seen it due.
        let outcomes = [(); 2].map(|()| {
            stage
                .at(|session, cx| fire(session, cx, trigger.id, stage.workspace))
                .unwrap()
        });
        let [Some(FiringOutcome::Started { run_id }), None] = outcomes else {
            panic!("{outcomes:?}")
        };
        let run = stage.run(run_id);
        assert_eq!(run.status, RunStatus::Running);
        assert_eq!(run.input, json!({ "n": 1 }));
        assert_eq!(run.trigger_id, Some(trigger.id));
        assert_eq!(run.started_by, trigger.created_by);
        let trigger = seen(stage, &id);
        assert_eq!(
            trigger.last_outcome,
            Some(FiringOutcome::Started { run_id })
        );
        assert_eq!(
            trigger.last_fired_at.unwrap().to_string(),
            "2026-01-01T12:30:00.000Z"
        );
        assert_eq!(
            trigger.next_fire_at.unwrap().to_string(),
            "2026-01-02T12:30:00.000Z"
        );
    });
}

#[test]
fn after_downtime_there_is_one_catch_up_at_most() {
    Stage::on_each(10, |stage| {
        let agent = stage.agent(json!({}));
        let id = schedule(stage, &agent, "*/10 * * * *").id.to_string();
        stage.pass(3 * 86_400 + 5 * 60);
        assert_eq!(tick(stage).len(), 1);
        assert_eq!(tick(stage), []);
        let next = seen(stage, &id).next_fire_at.unwrap().to_string();
        assert_eq!(next, "2026-01-04T12:10:00.000Z");
        stage.pass(5 * 60);
        assert_eq!(tick(stage).len(), 1);
    });
}

#[test]
fn a_refused_firing_is_recorded_and_tried_again_until_the_next() {
    Stage::on_each(10, |stage| {
        let agent = stage.agent(json!({}));
        let trigger = schedule(stage, &agent, "0 * * * *");
        let id = trigger.id.to_string();
        stage.pause_agent(&agent, true);
        stage.pass(3_600);
        let outcomes = tick(stage);
        assert_eq!(
            outcomes.iter().map(code).collect::<Vec<_>>(),
            [Some(Code::StateConflict)]
        );
        let refused = FiringOutcome::Refused {
            code: Code::StateConflict,
        };
        assert_eq!(seen(stage, &id).last_outcome, Some(refused));
        assert_eq!(tick(stage), []);
        stage.pass(60);
        assert_eq!(tick(stage).len(), 1);
        stage.pause_agent(&agent, false);
        stage.pass(60);
        // It succeeds at last, and not again.
        assert_eq!(tick(stage).iter().map(code).collect::<Vec<_>>(), [None]);
        stage.pass(60);
        assert_eq!(tick(stage), []);

        // 14:00 is refused until 15:00, which takes its place: one run, not two.
        stage.pause_agent(&agent, true);
        stage.pass(3_600);
        assert_eq!(tick(stage).len(), 1);
        stage.pause_agent(&agent, false);
        stage.pass(3_600);
        assert_eq!(tick(stage).iter().map(code).collect::<Vec<_>>(), [None]);
        stage.pass(60);
        assert_eq!(tick(stage), []);
    });
}

#[test]
fn what_a_trigger_missed_while_it_was_off_is_not_made_up_for() {
    Stage::on_each(10, |stage| {
        let agent = stage.agent(json!({}));
        let id = schedule(stage, &agent, "0 * * * *").id.to_string();
        let off = switch(stage, &id, false);
        assert!(!off.enabled);
        assert_eq!(off.next_fire_at, None);
        stage.pass(2 * 3_600 + 60);
        assert_eq!(tick(stage), []);
        let on = switch(stage, &id, true);
        assert_eq!(
            on.next_fire_at.unwrap().to_string(),
            "2026-01-01T15:00:00.000Z"
        );
        assert_eq!(tick(stage), []);
        stage.pass(3_600);
        assert_eq!(tick(stage).len(), 1);
    });
}

#[test]
fn a_webhook_adds_the_event_and_its_key_names_one_start() {
    Stage::on_each(10, |stage| {
        let agent = stage.agent(json!({}));
        let (id, token) = webhook(stage, &agent);
        assert!(token.starts_with("pvy_") && token.len() == 47);
        let event = json!({ "order": 7 });
        let first = call(stage, &id, &token, Some("evt_1"), &event).unwrap();
        assert_eq!(first.run.input, json!({ "n": 1, "event": { "order": 7 } }));
        let again = call(stage, &id, &token, Some("evt_1"), &event).unwrap();
        assert!(again.replayed);
        assert_eq!(again.run.id, first.run.id);
        let other = call(stage, &id, &token, Some("evt_1"), &json!({ "order": 8 }));
        assert_eq!(refused(other), Code::KeyReused);
        // Without a key nothing is a replay.
        let new = call(stage, &id, &token, None, &event).unwrap();
        assert_ne!(new.run.id, first.run.id);
        let started = FiringOutcome::Started { run_id: new.run.id };
        assert_eq!(seen(stage, &id).last_outcome, Some(started));
        let spaced = call(stage, &id, &token, Some("a b"), &event);
        assert_eq!(refused(spaced), Code::RequestInvalid);
    });
}

#[test]
fn a_webhooks_token_is_judged_before_its_id_and_revoked_with_it() {
    Stage::on_each(10, |stage| {
        let agent = stage.agent(json!({}));
        let (id, token) = webhook(stage, &agent);
        let (other, _) = webhook(stage, &agent);
        let event = json!({});
        for id in [id.as_str(), other.as_str(), "trg_1"] {
            for wrong in [
                "",
                "pvy_",
                "pvy_0000000000000000000000000000000000000000000",
            ] {
                assert_eq!(
                    refused(call(stage, id, wrong, None, &event)),
                    Code::AuthInvalid
                );
            }
        }
        for wrong in [other.as_str(), "trg_1", ""] {
            assert_eq!(
                refused(call(stage, wrong, &token, None, &event)),
                Code::NotFound
            );
        }
        // It is no token of a user's.
        let user = stage.at(|session, cx| tokens::authenticate(session, cx.now, &token));
        assert_eq!(refused(user), Code::AuthInvalid);

        switch(stage, &id, false);
        assert_eq!(
            refused(call(stage, &id, &token, None, &event)),
            Code::StateConflict
        );
        let refusal = FiringOutcome::Refused {
            code: Code::StateConflict,
        };
        assert_eq!(seen(stage, &id).last_outcome, Some(refusal));
        switch(stage, &id, true);
        call(stage, &id, &token, None, &event).unwrap();
        stage
            .at(|session, cx| delete(session, cx, &stage.owner, &id))
            .unwrap();
        assert_eq!(
            refused(call(stage, &id, &token, None, &event)),
            Code::AuthRevoked
        );
        let gone = stage.at(|session, _| get(session, &stage.owner, &id));
        assert_eq!(refused(gone), Code::NotFound);
    });
}

#[test]
fn a_trigger_that_is_turned_off_or_deleted_begins_nothing_that_it_queued() {
    Stage::on_each(1, |stage| {
        let agent = stage.agent(json!({}));
        let (id, token) = webhook(stage, &agent);
        let (gone, gone_token) = webhook(stage, &agent);
        let running = call(stage, &id, &token, None, &json!(1)).unwrap().run.id;
        let queued = [
            call(stage, &id, &token, None, &json!(2)).unwrap().run.id,
            call(stage, &gone, &gone_token, None, &json!(3))
                .unwrap()
                .run
                .id,
        ];
        switch(stage, &id, false);
        stage
            .at(|session, cx| delete(session, cx, &stage.owner, &gone))
            .unwrap();
        stage.succeed(running);
        for run in queued {
            assert_eq!(
                stage.run(run).error_code,
                Some(Code::DequeueTriggerDisabled)
            );
        }
    });
}

#[test]
fn a_trigger_acts_for_its_creator() {
    Stage::on_each(10, |stage| {
        let agent = stage.agent(json!({}));
        let admin = stage.user(Some(Role::Admin));
        let body = json!({ "kind": "webhook", "agent_id": agent });
        let made = make(stage, &admin, &body).unwrap();
        let (id, token) = (made.trigger.id.to_string(), made.token.unwrap());
        let Principal::User(actor) = &admin else {
            panic!("an admin is a user")
        };
        let run = call(stage, &id, &token, None, &json!(1)).unwrap().run;
        assert_eq!(run.started_by, actor.user);
        assert_eq!(run.input, json!({ "event": 1 }));
        stage.member(actor.user, None);
        assert_eq!(
            refused(call(stage, &id, &token, None, &json!(2))),
            Code::PermissionRole
        );
        stage.member(actor.user, Some(Role::Member));
        call(stage, &id, &token, None, &json!(3)).unwrap();
        let lock = json!({ "state": UserState::Locked });
        let user = actor.user.to_string();
        stage
            .at(|session, _| {
                let operator = Principal::Operator;
                crate::identity::organizations::update_user(session, &operator, &user, &lock)
            })
            .unwrap();
        assert_eq!(
            refused(call(stage, &id, &token, None, &json!(4))),
            Code::PermissionRole
        );
    });
}

#[test]
fn triggers_are_admins_business_and_absent_across_organizations() {
    Stage::on_each(10, |stage| {
        let agent = stage.agent(json!({}));
        let (id, _) = webhook(stage, &agent);
        let member = stage.user(Some(Role::Member));
        let body = json!({ "kind": "webhook", "agent_id": agent });
        assert_eq!(refused(make(stage, &member, &body)), Code::PermissionRole);
        stage.at(|session, _| get(session, &member, &id)).unwrap();
        let off = json!({ "enabled": false });
        let changed = stage.at(|session, cx| update(session, cx, &member, &id, &off));
        assert_eq!(refused(changed), Code::PermissionRole);
        let deleted = stage.at(|session, cx| delete(session, cx, &member, &id));
        assert_eq!(refused(deleted), Code::PermissionRole);
        let stranger = stage.stranger();
        for id in [id.as_str(), "trg_1"] {
            let got = stage.at(|session, _| get(session, &stranger, id));
            assert_eq!(refused(got), Code::NotFound);
        }
        let operators = make(stage, &Principal::Operator, &body);
        assert_eq!(refused(operators), Code::PermissionRole);
    });
}

#[test]
fn a_body_that_makes_no_trigger_says_everything_that_is_wrong_with_it() {
    Stage::on_each(10, |stage| {
        let agent = stage.agent(json!({}));
        let absent = AgentId::new(stage.now(), &crate::SystemChance);
        for (body, expected) in [
            (json!({}), vec!["/kind", "/agent_id"]),
            (
                json!({ "kind": "schedule", "agent_id": agent, "input": 1, "cron": "x", "time_zone": "y", "z": 1 }),
                vec!["/cron", "/time_zone", "/z"],
            ),
            (
                json!({ "kind": "schedule", "agent_id": "agt_1" }),
                vec!["/agent_id", "/input", "/cron"],
            ),
            (
                json!({ "kind": "schedule", "agent_id": agent, "input": 1, "cron": "0 0 31 6 *" }),
                vec!["/cron"],
            ),
            (
                json!({ "kind": "webhook", "agent_id": agent, "input": 1, "cron": "* * * * *", "time_zone": "UTC" }),
                vec!["/cron", "/time_zone", "/input"],
            ),
            (
                json!({ "kind": "webhook", "agent_id": absent }),
                vec!["/agent_id"],
            ),
        ] {
            assert_eq!(places(make(stage, &stage.owner, &body)), expected, "{body}");
        }
    });
}
