//! Random histories: starts, replays, workers, crashes, provider limits, cancels, changed limits and things that are paused, taken away or
//! closed, over hours and midnights; after every step everything that must hold is looked at.
//!
//! `PURVEY_SIM_HISTORIES` says how many (100 without it), `PURVEY_SIM_SEED` runs the one with that seed. A history that breaks a rule prints
//! its seed and what happened.

mod checks;
mod worker;

use super::world::{Seeded, World};
use crate::{
    clock::Timestamp,
    code::Code,
    error::Error,
    id::{AgentId, RunId, ThreadId, TriggerId, UserId, WorkspaceId},
    model::{Role, UserState},
    runs::{self, By, Start, Target},
    sql::Param,
};
use checks::Seen;
use std::collections::HashMap;
use worker::Node;

/// Steps of a history before time is let pass to its end.
const STEPS: usize = 250;

struct Simulation {
    world: World,
    /// Apart from the world's, so that a change in what the code under test draws does not change the history.
    dice: Seeded,
    workspaces: Vec<WorkspaceId>,
    users: Vec<UserId>,
    agents: Vec<AgentId>,
    threads: Vec<ThreadId>,
    triggers: Vec<TriggerId>,
    nodes: Vec<Node>,
    nodes_made: u32,
    /// What each accepted key named.
    keys: HashMap<(String, String), (Start, RunId)>,
    next_key: u32,
    /// What each run has cost, by the calls that were made for it.
    costs: HashMap<RunId, i64>,
    seen: Seen,
    story: Vec<String>,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let world = World::new(seed);
        let dice = Seeded::new(!seed);
        let users: Vec<_> = (0..4).map(|_| world.user()).collect();
        let mut workspaces = Vec::new();
        let (mut agents, mut threads, mut triggers) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..3 {
            // The first two have one owner, whose allowance they share.
            let owner = users[number / 2];
            let (limit, queue) = (1 + dice.below(3), dice.below(8));
            let workspace = world.workspace(owner, limit as i64, queue as i64);
            for user in &users {
                if *user != owner {
                    world.member(workspace, *user, Some(Role::Member));
                }
            }
            let mut definition = World::definition();
            definition.time_limit_seconds = *dice.pick(&[20, 120, 3_600]);
            for _ in 0..2 {
                let agent = world.agent_of(workspace, owner, &definition, "workspace");
                agents.push(agent);
                threads.push(world.thread(workspace, agent, owner));
                triggers.push(world.trigger(workspace, agent, *dice.pick(&users)));
            }
            workspaces.push(workspace);
        }
        let mut simulation = Self {
            world,
            dice,
            workspaces,
            users,
            agents,
            threads,
            triggers,
            nodes: Vec::new(),
            nodes_made: 0,
            keys: HashMap::new(),
            next_key: 0,
            costs: HashMap::new(),
            seen: Seen::default(),
            story: Vec::new(),
        };
        simulation.add_node();
        simulation.add_node();
        simulation
    }

    fn tell(&mut self, what: &str) {
        let at = self.world.now;
        self.story.push(format!("{at} {what}"));
    }

    fn history(&mut self) {
        for _ in 0..STEPS {
            self.step();
            self.check();
        }
        self.wind_down();
    }

    fn step(&mut self) {
        match self.dice.below(100) {
            0..=24 => self.starts(),
            25..=27 => self.replay(),
            28..=37 => self.claim(),
            38..=69 => self.work(),
            70..=76 => self.pass(),
            77..=79 => self.renew(),
            80..=82 => self.sweep(),
            83..=84 => self.cancel(),
            85 => self.crash(),
            86 => self.hand_over(),
            87..=89 => self.change_limit(),
            90..=91 => self.change_people(),
            92..=94 => self.change_things(),
            95..=96 => self.change_budget(),
            97 => self.resume_thread(),
            _ => self.prune(),
        }
    }

    fn new_start(&mut self) -> Start {
        let user = *self.dice.pick(&self.users);
        let (by, target) = match self.dice.below(10) {
            0..=2 => (
                self.world.by(user),
                Target::Thread(*self.dice.pick(&self.threads)),
            ),
            3..=4 => {
                let number = self.dice.below(self.triggers.len() as u64) as usize;
                let agent = self.agents[number];
                (By::Trigger(self.triggers[number]), Target::Agent(agent))
            }
            _ => (
                self.world.by(user),
                Target::Agent(*self.dice.pick(&self.agents)),
            ),
        };
        let key = match self.dice.below(3) {
            0 => None,
            _ => {
                self.next_key += 1;
                Some(format!("key-{}", self.next_key))
            }
        };
        self.world.start(by, target, key.as_deref())
    }

    fn starts(&mut self) {
        let count = *self.dice.pick(&[1, 1, 1, 2, 5]);
        let mut starts: Vec<Start> = (0..count).map(|_| self.new_start()).collect();
        if self.dice.below(4) == 0 {
            // The same start twice in one batch.
            starts.push(starts[0].clone());
        }
        let answers = self
            .world
            .at(|session, cx| runs::admit(session, cx, &starts))
            .unwrap();
        for (start, answer) in starts.into_iter().zip(answers) {
            match answer {
                Ok(admission) => {
                    let run = &admission.run;
                    let told = format!(
                        "{} starts {} ({})",
                        start.by.text(),
                        run.id,
                        run.status.text()
                    );
                    self.remember(start, run.id, admission.replayed);
                    self.tell(&told);
                }
                Err(Error::Refused(refusal)) => {
                    self.tell(&format!("a start is refused: {}", refusal.code.text()));
                    assert_eq!(
                        refusal.retry_after.is_some(),
                        refusal.code == Code::QueueFull
                    );
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn remember(&mut self, start: Start, run: RunId, replayed: bool) {
        let Some(key) = &start.key else {
            assert!(!replayed, "a start without a key is a replay");
            return;
        };
        let name = (start.by.text(), key.text.clone());
        match self.keys.get(&name) {
            Some((_, first)) => {
                assert!(replayed, "{} made a second run", key.text);
                assert_eq!(*first, run, "{} names another run", key.text);
            }
            None => {
                assert!(!replayed, "{} replays what never was", key.text);
                self.keys.insert(name, (start, run));
            }
        }
    }

    /// The retry of an accepted start: whatever has changed, it is the original run, unless its user may no longer ask or it was pruned.
    fn replay(&mut self) {
        let mut keys: Vec<_> = self.keys.keys().cloned().collect();
        keys.sort();
        if keys.is_empty() {
            return;
        }
        let (start, run) = self.keys[self.dice.pick(&keys)].clone();
        self.tell(&format!("replay of {run}"));
        match self.world.admit(&start) {
            Ok(admission) => {
                assert!(admission.replayed, "{run} was started again");
                assert_eq!(admission.run.id, run);
            }
            Err(Error::Refused(refusal)) => match refusal.code {
                Code::PermissionRole | Code::PermissionVisibility => {}
                Code::StateConflict => assert!(self.seen.is_pruned(run), "{}", refusal.detail),
                code => panic!("a replay is refused: {}", code.text()),
            },
            Err(error) => panic!("{error}"),
        }
    }

    fn pass(&mut self) {
        let millis = match self.dice.below(20) {
            0 => {
                let midnight = self.world.now.day().end();
                midnight.millis() - self.world.now.millis() + self.dice.below(3) as i64 - 1
            }
            1..=3 => 15_000 + self.dice.below(60_000) as i64,
            _ => self.dice.below(6_000) as i64,
        };
        self.world.pass(millis);
        self.tell(&format!("{millis} ms pass"));
    }

    fn sweep(&mut self) {
        self.tell("sweep");
        self.world.sweep();
    }

    fn cancel(&mut self) {
        if let Some(run) = self.seen.some_unfinished(&self.dice) {
            self.tell(&format!("cancel {run}"));
            self.world
                .at(|session, cx| runs::cancel(session, cx, run))
                .unwrap();
        }
    }

    fn change_limit(&mut self) {
        let workspace = *self.dice.pick(&self.workspaces);
        let limit = 1 + self.dice.below(5) as i64;
        self.tell(&format!("limit of {workspace} is {limit}"));
        self.world.limit(workspace, limit);
    }

    fn change_people(&mut self) {
        let user = self.users[1 + self.dice.below(3) as usize];
        if self.dice.below(2) == 0 {
            let state = *self.dice.pick(&[
                UserState::Active,
                UserState::Active,
                UserState::Locked,
                UserState::Deactivated,
            ]);
            self.tell(&format!("{user} is {}", state.text()));
            self.world.state(user, state);
            return;
        }
        let workspace = *self.dice.pick(&self.workspaces);
        let role = *self.dice.pick(&[
            None,
            Some(Role::Viewer),
            Some(Role::Member),
            Some(Role::Member),
            Some(Role::Admin),
        ]);
        self.tell(&format!("{user} is {role:?} in {workspace}"));
        self.world.member(workspace, user, role);
    }

    fn change_things(&mut self) {
        let on = self.dice.below(2) == 0;
        match self.dice.below(3) {
            0 => {
                let agent = *self.dice.pick(&self.agents);
                self.tell(&format!("{agent} paused: {}", !on));
                self.world.pause_agent(agent, !on);
            }
            1 => {
                let trigger = *self.dice.pick(&self.triggers);
                self.tell(&format!("{trigger} enabled: {on}"));
                self.world.enable(trigger, on);
            }
            _ => {
                let thread = *self.dice.pick(&self.threads);
                let state = *self.dice.pick(&["open", "paused", "paused", "closed"]);
                self.tell(&format!("{thread} is {state}"));
                self.world.thread_state(thread, state);
            }
        }
    }

    /// What resuming a thread does: a fresh run for each turn that waits without one.
    fn resume_thread(&mut self) {
        let thread = *self.dice.pick(&self.threads);
        self.tell(&format!("resume {thread}"));
        self.world.thread_state(thread, "open");
        let name = thread.to_string();
        let waiting: Vec<_> = self
            .world
            .at(|session, _| {
                session
                    .query(
                        "SELECT t.id FROM turns t LEFT JOIN runs r ON r.id = t.run_id
                         WHERE t.thread_id = $1 AND t.state = 'waiting' AND (r.id IS NULL OR r.finished_at IS NOT NULL) ORDER BY t.seq",
                        &[Param::Text(&name)],
                    )?
                    .iter()
                    .map(|row| row.parsed(0))
                    .collect::<Result<Vec<_>, _>>()
            })
            .unwrap();
        for turn in waiting {
            let requester = self
                .world
                .at(|session, _| runs::turn(session, turn))
                .unwrap()
                .unwrap()
                .requester;
            let start =
                self.world
                    .start(By::Requester(requester), Target::Turn(thread, turn), None);
            match self.world.admit(&start) {
                Ok(_) | Err(Error::Refused(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn change_budget(&mut self) {
        let cents = [None, None, Some(0), Some(3), Some(40)];
        let cap = *self.dice.pick(&cents);
        let param = cap.map_or(Param::Null, Param::Int);
        let (what, sql) = match self.dice.below(4) {
            0 => ("platform", "UPDATE limits SET platform_daily_cents = $1"),
            1 => ("allowance", "UPDATE limits SET allowance_daily_cents = $1"),
            2 => (
                "stop",
                "UPDATE limits SET budget_stop = CASE WHEN $1 = 0 THEN 1 ELSE 0 END",
            ),
            _ => ("cost", "UPDATE workspaces SET daily_cost_cents = $1"),
        };
        self.tell(&format!("{what}: {cap:?}"));
        self.world.sql(sql, &[param]);
    }

    fn prune(&mut self) {
        let older = Timestamp::from_millis(self.world.now.millis() - 3_600_000);
        let pruned = self
            .world
            .at(|session, cx| runs::prune(session, cx, older, 20))
            .unwrap();
        self.tell(&format!("prune {pruned}"));
        self.seen.prune(&self.world);
        let (seen, world) = (&self.seen, &self.world);
        self.keys
            .retain(|_, (_, run)| !seen.is_key_forgotten(*run, world));
    }

    /// Lets time pass with one good worker process: everything that was admitted comes to an end.
    fn wind_down(&mut self) {
        self.tell("winding down");
        self.nodes.clear();
        self.add_node();
        for _ in 0..2_000 {
            if self.seen.unfinished() == 0 {
                break;
            }
            self.sweep();
            self.check();
            self.claim_for(0, 64);
            self.check();
            while self.nodes[0].is_busy() {
                self.work_on(0, 0, true);
                self.check();
            }
            self.world.pass(20_000);
        }
        assert_eq!(self.seen.unfinished(), 0, "not everything has ended");
        let idle = "SELECT COUNT(*) FROM workspaces WHERE running <> 0 OR queued <> 0";
        assert_eq!(self.world.number(idle, &[]), 0);
        assert_eq!(
            self.world.number("SELECT COUNT(*) FROM reservations", &[]),
            0
        );
        let owed = "SELECT COUNT(*) FROM ledger WHERE reserved <> 0";
        assert_eq!(self.world.number(owed, &[]), 0);
    }
}

fn run(seed: u64) {
    let mut simulation = Simulation::new(seed);
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| simulation.history()));
    if ended.is_err() {
        let from = simulation.story.len().saturating_sub(60);
        let story = simulation.story[from..].join("\n");
        panic!(
            "history {seed} breaks a rule (PURVEY_SIM_SEED={seed} runs it alone); its last steps:\n{story}"
        );
    }
}

#[test]
fn histories() {
    let number = |name| {
        std::env::var(name)
            .ok()
            .map(|text| text.parse::<u64>().unwrap())
    };
    if let Some(seed) = number("PURVEY_SIM_SEED") {
        return run(seed);
    }
    for seed in 0..number("PURVEY_SIM_HISTORIES").unwrap_or(100) {
        run(seed);
    }
}
