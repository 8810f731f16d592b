//! What must hold after every step.

use super::Simulation;
use crate::{
    budget::MICROS_PER_CENT,
    code::Code,
    id::{RunId, WorkspaceId},
    model::{RunStatus, StepState},
    runs::{
        Claim,
        tests::world::{Seeded, World},
    },
    sql::Param,
};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// A run's row, as far as rules speak of it.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    workspace: String,
    status: RunStatus,
    position: Option<i64>,
    blocked: bool,
    leased: bool,
    due_at: Option<i64>,
    deadline_at: Option<i64>,
    cost: i64,
    error: Option<String>,
    thread: Option<String>,
}

/// What was seen after the step before.
#[derive(Default)]
pub(super) struct Seen {
    runs: BTreeMap<RunId, Row>,
    running: BTreeMap<String, i64>,
    /// When runs were pruned.
    pruned: BTreeMap<RunId, i64>,
    /// Results that were kept, by run and step.
    results: HashMap<(RunId, u32), Value>,
    /// Reservations of calls in flight, by run and step.
    open: BTreeMap<(RunId, u32), i64>,
}

impl Seen {
    pub(super) fn unfinished(&self) -> usize {
        self.runs
            .values()
            .filter(|row| !row.status.is_terminal())
            .count()
    }

    pub(super) fn some_unfinished(&self, dice: &Seeded) -> Option<RunId> {
        let runs: Vec<_> = self
            .runs
            .iter()
            .filter(|(_, row)| !row.status.is_terminal())
            .map(|(run, _)| *run)
            .collect();
        (!runs.is_empty()).then(|| *dice.pick(&runs))
    }

    pub(super) fn is_pruned(&self, run: RunId) -> bool {
        self.pruned.contains_key(&run)
    }

    /// Notes which runs are gone; only those that had ended may be.
    pub(super) fn prune(&mut self, world: &World) {
        let kept = rows(world);
        self.runs.retain(|run, row| {
            let stays = kept.contains_key(run);
            if !stays {
                assert!(row.status.is_terminal(), "{run} was pruned before its end");
                self.pruned.insert(*run, world.now.millis());
            }
            stays
        });
    }

    /// Whether the last pruning forgot the key of a run too.
    pub(super) fn is_key_forgotten(&self, run: RunId, world: &World) -> bool {
        let pruned = self.pruned.get(&run);
        pruned.is_some_and(|pruned| pruned + 86_400_000 <= world.now.millis())
    }

    pub(super) fn open(&mut self, run: RunId, seq: u32, most: i64) {
        let before = self.open.insert((run, seq), most);
        assert_eq!(before, None, "two calls of step {seq} of {run} at once");
    }

    /// Whether a call was in flight.
    pub(super) fn close(&mut self, run: RunId, seq: u32) -> bool {
        self.open.remove(&(run, seq)).is_some()
    }

    pub(super) fn close_all(&mut self, run: RunId) -> i64 {
        let mut sum = 0;
        self.open.retain(|(of, _), most| {
            if *of == run {
                sum += *most;
            }
            *of != run
        });
        sum
    }

    pub(super) fn done(&mut self, run: RunId, seq: u32, result: &Value) {
        let before = self.results.insert((run, seq), result.clone());
        assert_eq!(before, None, "step {seq} of {run} is done twice");
    }

    /// A claim carries every result that was kept, and nothing else.
    pub(super) fn check_claim(&self, claim: &Claim) {
        let run = claim.lease.run;
        let done = claim
            .steps
            .iter()
            .filter(|step| step.state == StepState::Done);
        for step in done.clone() {
            assert_eq!(step.result.as_ref(), self.results.get(&(run, step.seq)));
        }
        let kept = self.results.keys().filter(|(of, _)| *of == run).count();
        assert_eq!(done.count(), kept, "steps of {run} are lost");
    }
}

fn rows(world: &World) -> BTreeMap<RunId, Row> {
    world
        .store
        .read_now(|session| {
            session
                .query(
                    "SELECT id, workspace_id, status, position, blocked, lease_owner, due_at, deadline_at, cost_micros, error_code,
                        thread_id FROM runs",
                    &[],
                )?
                .iter()
                .map(|row| {
                    let read = Row {
                        workspace: row.text(1)?.into(),
                        status: row.parsed(2)?,
                        position: row.opt_int(3)?,
                        blocked: row.int(4)? != 0,
                        leased: row.opt_text(5)?.is_some(),
                        due_at: row.opt_int(6)?,
                        deadline_at: row.opt_int(7)?,
                        cost: row.int(8)?,
                        error: row.opt_text(9)?.map(Into::into),
                        thread: row.opt_text(10)?.map(Into::into),
                    };
                    Ok((row.parsed(0)?, read))
                })
                .collect()
        })
        .unwrap()
}

impl Simulation {
    pub(super) fn check(&mut self) {
        let now = rows(&self.world);
        for (run, row) in &now {
            if row.status.is_terminal() {
                self.take_charges(*run);
            }
            self.check_run(*run, row);
        }
        self.check_counters(&now);
        self.check_order(&now);
        self.check_threads(&now);
        self.check_keys();
        self.check_money();
        self.check_ends(&now);
        self.seen.runs = now;
    }

    fn check_run(&self, run: RunId, row: &Row) {
        let now = self.world.now.millis();
        match row.status {
            RunStatus::Pending => {
                assert!(
                    row.position.is_some() && !row.leased && row.due_at.is_none(),
                    "{run}: {row:?}"
                );
                assert_eq!(row.error, None);
            }
            RunStatus::Running => {
                // A live lease, or to be claimed at once.
                let due = row.due_at.unwrap();
                assert!(
                    due <= now || (row.leased && due <= now + 15_000),
                    "{run}: {row:?}"
                );
                assert!(row.deadline_at.is_some());
                assert_eq!(row.error, None);
            }
            RunStatus::Paused => {
                assert!(
                    !row.leased && row.due_at.unwrap() <= now + 900_000,
                    "{run}: {row:?}"
                );
                assert!(row.due_at < row.deadline_at);
                assert_eq!(row.error.as_deref(), Some("provider.rate_limited"));
            }
            RunStatus::Succeeded | RunStatus::Cancelled => assert_eq!(row.error, None),
            RunStatus::Failed => assert!(row.error.is_some()),
        }
        if row.status.is_terminal() {
            assert!(
                !row.leased && row.due_at.is_none() && !row.blocked,
                "{run}: {row:?}"
            );
            if let Some(before) = self.seen.runs.get(&run)
                && before.status.is_terminal()
            {
                assert_eq!(before, row, "{run} changed after its end");
            }
        }
        assert_eq!(
            row.cost,
            self.costs.get(&run).copied().unwrap_or(0),
            "cost of {run}"
        );
    }

    /// Counters are what is there, and no limit is passed but one that was lowered.
    fn check_counters(&mut self, now: &BTreeMap<RunId, Row>) {
        let counters = self
            .world
            .store
            .read_now(|session| {
                session.query(
                    "SELECT id, running, queued, concurrency_limit, queue_limit FROM workspaces",
                    &[],
                )
            })
            .unwrap();
        for row in counters {
            let id = row.text(0).unwrap();
            let number = |column| row.int(column).unwrap();
            let count = |holds: fn(RunStatus) -> bool| {
                now.values()
                    .filter(|row| row.workspace == id && holds(row.status))
                    .count() as i64
            };
            let (running, queued, limit) = (number(1), number(2), number(3));
            assert_eq!(running, count(RunStatus::holds_slot), "running of {id}");
            assert_eq!(
                queued,
                count(|status| status == RunStatus::Pending),
                "queued of {id}"
            );
            let before = self.seen.running.insert(id.into(), running).unwrap_or(0);
            assert!(
                running <= limit.max(before),
                "{id}: {running} run at a limit of {limit}"
            );
            assert!(queued <= number(4), "{id}: {queued} wait");
            let waits = now
                .values()
                .any(|row| row.workspace == id && row.status == RunStatus::Pending && !row.blocked);
            assert!(
                !(waits && running < limit),
                "{id}: a slot is free while a run waits"
            );
        }
        let wrong = "SELECT COUNT(*) FROM agents a WHERE unfinished <>
            (SELECT COUNT(*) FROM runs r WHERE r.agent_id = a.id AND r.finished_at IS NULL)";
        assert_eq!(
            self.world.number(wrong, &[]),
            0,
            "unfinished runs of an agent"
        );
    }

    /// First come, first served: who got a slot or was judged was before everyone who still waits for one.
    fn check_order(&self, now: &BTreeMap<RunId, Row>) {
        for (run, row) in now {
            let began = row.status.holds_slot()
                && self
                    .seen
                    .runs
                    .get(run)
                    .is_none_or(|before| before.status == RunStatus::Pending);
            if !began {
                continue;
            }
            for (other, waiting) in now {
                let waited =
                    self.seen.runs.get(other).is_some_and(|before| {
                        before.status == RunStatus::Pending && !before.blocked
                    });
                let overtaken = waited
                    && waiting.status == RunStatus::Pending
                    && waiting.workspace == row.workspace
                    && row
                        .position
                        .is_none_or(|position| position > waiting.position.unwrap_or(0));
                assert!(!overtaken, "{run} began before {other}");
            }
        }
    }

    /// One run of a thread at a time, and the next is not held up once it has ended.
    fn check_threads(&self, now: &BTreeMap<RunId, Row>) {
        let mut threads = BTreeMap::<&str, (usize, usize)>::new();
        for row in now.values().filter(|row| !row.status.is_terminal()) {
            if let Some(thread) = &row.thread {
                let counts = threads.entry(thread).or_default();
                if row.blocked {
                    counts.1 += 1;
                } else {
                    counts.0 += 1;
                }
            } else {
                assert!(!row.blocked);
            }
        }
        for (thread, (active, _)) in threads {
            assert_eq!(active, 1, "active runs of {thread}");
        }
    }

    fn check_keys(&self) {
        let doubled = "SELECT COUNT(*) FROM (SELECT 1 FROM runs WHERE key IS NOT NULL
            GROUP BY workspace_id, COALESCE(trigger_id, started_by), key HAVING COUNT(*) > 1) AS doubled";
        assert_eq!(self.world.number(doubled, &[]), 0, "two runs of one key");
    }

    /// The ledger is the sum of what calls cost; the reservations are those of calls in flight.
    fn check_money(&self) {
        let total: i64 = self.costs.values().sum();
        let open: i64 = self.seen.open.values().sum();
        let kinds = self.world.numbers(
            "SELECT SUM(settled), SUM(reserved) FROM ledger GROUP BY CASE WHEN scope LIKE 'ws_%' THEN 1 WHEN scope LIKE 'usr_%' THEN 2 ELSE 3 END",
            &[],
        );
        for kind in kinds {
            assert_eq!(kind, [total, open], "the ledger");
        }
        let kept = "SELECT COALESCE(SUM(micros), 0) FROM reservations";
        assert_eq!(self.world.number(kept, &[]), open, "reservations");
        let torn = "SELECT COUNT(*) FROM runs r WHERE cost_micros <>
            (SELECT COALESCE(SUM(s.cost_micros), 0) FROM steps s WHERE s.run_id = r.id)";
        assert_eq!(
            self.world.number(torn, &[]),
            0,
            "a run's cost is not that of its steps"
        );
    }

    /// Who failed without having begun did so for a reason that is there.
    fn check_ends(&self, now: &BTreeMap<RunId, Row>) {
        for (run, row) in now {
            let waited = self
                .seen
                .runs
                .get(run)
                .is_some_and(|before| before.status == RunStatus::Pending);
            let (true, RunStatus::Failed) = (waited, row.status) else {
                continue;
            };
            let reason = row.error.as_deref().unwrap_or_default();
            if !reason.starts_with("dequeue.") {
                let workspace = row.workspace.parse().unwrap();
                assert_eq!(
                    self.limit_met(workspace).map(Code::text),
                    Some(reason),
                    "{run}"
                );
                continue;
            }
            let holds = "SELECT CASE $2
                WHEN 'dequeue.agent_paused' THEN a.paused = 1
                WHEN 'dequeue.actor_not_member' THEN m.role IS NULL AND r.turn_id IS NULL
                WHEN 'dequeue.actor_unavailable' THEN r.turn_id IS NULL AND m.role IS NOT NULL
                    AND (u.state <> 'active' OR m.role = 'viewer')
                WHEN 'dequeue.trigger_disabled' THEN t.enabled = 0
                WHEN 'dequeue.thread_closed' THEN h.state = 'closed'
                WHEN 'dequeue.thread_paused' THEN h.state = 'paused'
                WHEN 'dequeue.turn_requester_unavailable' THEN r.turn_id IS NOT NULL
                    AND (u.state <> 'active' OR m.role IS NULL OR m.role = 'viewer') END
                FROM runs r JOIN agents a ON a.id = r.agent_id JOIN users u ON u.id = r.started_by
                LEFT JOIN members m ON m.workspace_id = r.workspace_id AND m.user_id = r.started_by
                LEFT JOIN triggers t ON t.id = r.trigger_id LEFT JOIN threads h ON h.id = r.thread_id WHERE r.id = $1";
            let holds = self
                .world
                .number(holds, &[Param::Text(&run.to_string()), Param::Text(reason)]);
            assert_eq!(holds, 1, "{run} failed for {reason}");
        }
    }

    /// Which limit of spending a workspace has met, worked out from the tables.
    pub(super) fn limit_met(&self, workspace: WorkspaceId) -> Option<Code> {
        let used = |scope: &str| {
            self.world.number(
                "SELECT COALESCE(SUM(settled + reserved), 0) FROM ledger WHERE scope = $1 AND day = $2",
                &[Param::Text(scope), Param::Int(self.world.now.millis() / 86_400_000)],
            )
        };
        let row = self
            .world
            .store
            .read_now(|session| {
                session.row(
                    "SELECT w.owner_id, w.daily_cost_cents, l.allowance_daily_cents, l.platform_daily_cents, l.budget_stop
                     FROM workspaces w, limits l WHERE w.id = $1",
                    &[Param::Text(&workspace.to_string())],
                )
            })
            .unwrap()
            .unwrap();
        if row.int(4).unwrap() == 1 {
            return Some(Code::BudgetStopped);
        }
        let owner = row.text(0).unwrap().to_owned();
        let caps = [
            (1, workspace.to_string(), Code::DailyCost),
            (2, owner, Code::DailyAllowance),
            (3, "platform".into(), Code::DailyPlatform),
        ];
        caps.into_iter().find_map(|(column, scope, code)| {
            let cap = row.opt_int(column).unwrap()?;
            (used(&scope) >= cap * MICROS_PER_CENT).then_some(code)
        })
    }

    /// Nobody was passed over for a workspace with more at work.
    pub(super) fn check_fair(&self, claims: &[Claim], most: usize) {
        let now = Param::Int(self.world.now.millis());
        let busy = |workspace: &str| {
            self.world.number(
                "SELECT COUNT(*) FROM runs WHERE status IN ('running', 'paused_limit_exceeded') AND workspace_id = $1 AND due_at > $2",
                &[Param::Text(workspace), now],
            )
        };
        let left = self
            .world
            .store
            .read_now(|session| {
                session.query(
                    "SELECT DISTINCT workspace_id FROM runs WHERE status IN ('running', 'paused_limit_exceeded') AND due_at <= $1
                        AND deadline_at > $1 AND cancel_requested = 0 AND (lease_owner IS NULL OR crashes < 4)",
                    &[now],
                )
            })
            .unwrap();
        let stuck = "SELECT COUNT(*) FROM runs WHERE status IN ('running', 'paused_limit_exceeded') AND due_at <= $1
            AND (deadline_at <= $1 OR cancel_requested = 1 OR (lease_owner IS NOT NULL AND crashes >= 4))";
        let stuck = self.world.number(stuck, &[now]);
        for row in left {
            let passed_over = row.text(0).unwrap();
            assert!(
                claims.len() == most || stuck > 0,
                "{passed_over} has runs that nobody took"
            );
            for claim in claims {
                let chosen = claim.lease.workspace.to_string();
                assert!(
                    stuck > 0 || busy(passed_over) >= busy(&chosen) - 1,
                    "{passed_over} was passed over for {chosen}"
                );
            }
        }
    }
}
