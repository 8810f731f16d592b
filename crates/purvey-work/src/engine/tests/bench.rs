//! A workspace with one agent, an engine, and what tests need to script them.

use crate::{
    artifacts::{Blobs, UploadLimits},
    clock::{Chance, Clock, Timestamp},
    engine::{Engine, EngineParts, EngineSettings, Sleeper, ToolUse, Tools},
    id::{AgentId, OrganizationId, RunId, ThreadId, TurnId, UserId, WorkspaceId},
    model::Definition,
    provider::{
        CallError, Content, Priced, Prices, Provider, Providers, Reply, Request, ToolCall, Usage,
    },
    sql::{Param, Session, Store},
    stage::postgres::Schema,
};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::{
    cell::RefCell,
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::oneshot;

/// 2026-01-01T12:00:00Z.
pub(super) const NOON: Timestamp = Timestamp::from_millis(1_767_268_800_000);
/// Tasks of an engine that wait for a second at most: they keep leases, sweep, and, unless it is stopping, look for runs.
const TASKS: usize = 3;

pub(super) fn after(millis: u64) -> Timestamp {
    NOON.after(Duration::from_millis(millis))
}

/// A clock that stands still until a test moves it.
pub(super) struct Scripted {
    now: Mutex<Timestamp>,
    pub(super) tasks: AtomicUsize,
    sleepers: Mutex<Vec<(Timestamp, oneshot::Sender<()>)>>,
}

impl Clock for Scripted {
    fn now(&self) -> Timestamp {
        *self.now.lock()
    }
}

impl Sleeper for Scripted {
    fn sleep_until(&self, moment: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let (sender, receiver) = oneshot::channel();
            if moment > self.now() {
                self.sleepers.lock().push((moment, sender));
                let _ = receiver.await;
            }
        })
    }
}

impl Scripted {
    fn set(&self, now: Timestamp) {
        *self.now.lock() = now;
        let mut sleepers = self.sleepers.lock();
        for (_, sleeper) in sleepers.extract_if(.., |(moment, _)| *moment <= now) {
            let _ = sleeper.send(());
        }
    }

    /// Whether every task of the engine waits for time to pass.
    fn is_quiet(&self) -> bool {
        let soon = self.now().after(Duration::from_secs(1));
        let mut sleepers = self.sleepers.lock();
        sleepers.retain(|(_, sleeper)| !sleeper.is_closed());
        sleepers
            .iter()
            .filter(|(moment, _)| *moment <= soon)
            .count()
            >= self.tasks.load(Ordering::Relaxed)
    }
}

struct Counting(AtomicU64);

impl Chance for Counting {
    fn fill(&self, bytes: &mut [u8]) {
        for byte in bytes {
            // Any sequence will do, as long as identifiers differ.
            let next = self
                .0
                .fetch_add(1, Ordering::Relaxed)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15);
            *byte = next.to_be_bytes()[0];
        }
    }
}

/// What the scripted provider does next.
pub(super) enum Act {
    Reply(Reply),
    Fail(CallError),
    /// Never answers.
    Hang,
    Panic,
}

/// A provider that does what it was told, in order.
#[derive(Default)]
pub(super) struct Script {
    acts: Mutex<VecDeque<Act>>,
    pub(super) calls: Mutex<Vec<(Timestamp, Request)>>,
    /// Calls that were given up.
    pub(super) dropped: AtomicUsize,
}

struct Scripting(Arc<Script>, Arc<Scripted>);

struct Dropped(Arc<Script>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

impl Provider for Scripting {
    fn call<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(async move {
            self.0.calls.lock().push((self.1.now(), request.clone()));
            let act = self.0.acts.lock().pop_front();
            match act {
                Some(Act::Reply(reply)) => Ok(reply),
                Some(Act::Fail(error)) => Err(error),
                Some(Act::Hang) => {
                    let _dropped = Dropped(self.0.clone());
                    std::future::pending().await
                }
                Some(Act::Panic) => panic!("a provider that panics"),
                None => panic!("a call that was not scripted"),
            }
        })
    }

    fn most_input_tokens(&self, _: &Request) -> u64 {
        1_000
    }
}

/// Tools that answer with what they were asked.
#[derive(Default)]
pub(super) struct Toolbox {
    pub(super) uses: Mutex<Vec<ToolUse>>,
}

impl Tools for Toolbox {
    fn use_tool(&self, tool_use: ToolUse) -> BoxFuture<'_, Value> {
        let result = json!({"asked": tool_use.arguments});
        self.uses.lock().push(tool_use);
        Box::pin(std::future::ready(result))
    }
}

thread_local! {
    /// Where the runs of this test are kept, if not on disk. A test and its runtime have one thread.
    static POSTGRES: RefCell<Option<Schema>> = const { RefCell::new(None) };
}

/// Runs a test whose runs are kept in PostgreSQL, if there is a server.
pub(super) async fn on_postgres(test: impl Future<Output = ()>) {
    if let Some(schema) = apart(Schema::fresh) {
        POSTGRES.set(Some(schema));
        test.await;
        POSTGRES.set(None);
    }
}

/// On a thread of its own: PostgreSQL's client cannot be used on one that serves a runtime.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap())
}

pub(super) struct Bench {
    pub(super) store: Store,
    pub(super) time: Arc<Scripted>,
    pub(super) script: Arc<Script>,
    pub(super) tools: Arc<Toolbox>,
    chance: Arc<Counting>,
    settings: EngineSettings,
    organization: OrganizationId,
    pub(super) workspace: WorkspaceId,
    user: UserId,
    pub(super) agent: AgentId,
    _directory: tempfile::TempDir,
}

impl Bench {
    pub(super) fn new(acts: impl IntoIterator<Item = Act>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = POSTGRES.with_borrow(|schema| match schema {
            Some(schema) => Store::postgres(&schema.url()).unwrap(),
            None => Store::sqlite(&directory.path().join("work.db")).unwrap(),
        });
        let chance = Arc::new(Counting(AtomicU64::new(1)));
        let bench = Self {
            store,
            time: Arc::new(Scripted {
                now: Mutex::new(NOON),
                tasks: AtomicUsize::new(TASKS),
                sleepers: Mutex::default(),
            }),
            script: Arc::new(Script {
                acts: Mutex::new(acts.into_iter().collect()),
                ..Script::default()
            }),
            tools: Arc::default(),
            settings: EngineSettings::default(),
            organization: OrganizationId::new(NOON, &*chance),
            workspace: WorkspaceId::new(NOON, &*chance),
            user: UserId::new(NOON, &*chance),
            agent: AgentId::new(NOON, &*chance),
            chance,
            _directory: directory,
        };
        let organization = bench.organization.to_string();
        let (workspace, user, agent) = (
            bench.workspace.to_string(),
            bench.user.to_string(),
            bench.agent.to_string(),
        );
        bench.sql(
            "INSERT INTO organizations (id, name, created_at) VALUES ($1, 'o', 0)",
            &[Param::Text(&organization)],
        );
        bench.sql(
            "INSERT INTO users (id, organization_id, display_name, state, approved, created_at) VALUES ($1, $2, 'u', 'active', 1, 0)",
            &[Param::Text(&user), Param::Text(&organization)],
        );
        bench.sql(
            "INSERT INTO workspaces (id, organization_id, name, owner_id, concurrency_limit, queue_limit, running, queued, next_position, created_at)
             VALUES ($1, $2, 'w', $3, 100, 100, 0, 0, 1, 0)",
            &[Param::Text(&workspace), Param::Text(&organization), Param::Text(&user)],
        );
        bench.sql(
            "INSERT INTO agents (id, organization_id, workspace_id, owner_id, definition, visibility, shared_with, paused, published,
                revision, unfinished, created_at, updated_at) VALUES ($1, $2, $3, $4, '{}', 'workspace', '[]', 0, 0, 1, 0, 0, 0)",
            &[
                Param::Text(&agent),
                Param::Text(&organization),
                Param::Text(&workspace),
                Param::Text(&user),
            ],
        );
        bench
    }

    pub(super) fn steps(mut self, steps: u32) -> Self {
        self.settings.steps = steps;
        self
    }

    pub(super) fn alone(mut self) -> Self {
        self.settings.alone = true;
        self
    }

    /// An engine of a new process.
    pub(super) fn engine(&self) -> Engine {
        // Micro-cents a token: a call is reserved with 1,000 × 10 + 50 × 40 = 12,000.
        let prices = Prices {
            input: 10,
            output: 40,
            max_output_tokens: 50,
        };
        let scripting = Scripting(self.script.clone(), self.time.clone());
        let provider = Priced::new(scripting, BTreeMap::from([("m".to_owned(), prices)]));
        Engine::start(EngineParts {
            blobs: Blobs::nowhere(),
            uploads: UploadLimits::default(),
            store: self.store.clone(),
            providers: Providers::default().with("script", provider),
            tools: self.tools.clone(),
            time: self.time.clone(),
            chance: self.chance.clone(),
            settings: self.settings,
        })
    }

    /// A run that holds a slot, as admission leaves it.
    pub(super) fn run(&self, definition: &Value, input: &Value) -> RunId {
        self.run_of(definition, input, None)
    }

    pub(super) fn run_of(
        &self,
        definition: &Value,
        input: &Value,
        turn: Option<(ThreadId, TurnId)>,
    ) -> RunId {
        let definition: Definition = serde_json::from_value(definition.clone()).unwrap();
        let run = RunId::new(self.time.now(), &*self.chance);
        let now = self.time.now();
        let deadline = now.after(Duration::from_secs(definition.time_limit_seconds.into()));
        let verification = match definition.output_schema {
            Some(_) => "pending",
            None => "not_required",
        };
        let (thread, turn) = turn
            .map(|(thread, turn)| (thread.to_string(), turn.to_string()))
            .unwrap_or_default();
        self.sql(
            "INSERT INTO runs (id, organization_id, workspace_id, agent_id, definition, time_limit_seconds, status, blocked, started_at,
                input, verification_status, cost_micros, attempt, crashes, due_at, deadline_at, cancel_requested, thread_id, turn_id,
                started_by, artifacts, created_at)
             VALUES ($1, $2, $3, $4, $5, $6, 'running', 0, $7, $8, $9, 0, 0, 0, $7, $10, 0, NULLIF($11, ''), NULLIF($12, ''), $13, '[]', $7)",
            &[
                Param::Text(&run.to_string()),
                Param::Text(&self.organization.to_string()),
                Param::Text(&self.workspace.to_string()),
                Param::Text(&self.agent.to_string()),
                Param::Text(&serde_json::to_string(&definition).unwrap()),
                Param::Int(definition.time_limit_seconds.into()),
                Param::Int(now.millis()),
                Param::Text(&input.to_string()),
                Param::Text(verification),
                Param::Int(deadline.millis()),
                Param::Text(&thread),
                Param::Text(&turn),
                Param::Text(&self.user.to_string()),
            ],
        );
        self.sql("UPDATE workspaces SET running = running + 1", &[]);
        self.sql("UPDATE agents SET unfinished = unfinished + 1", &[]);
        run
    }

    /// A thread with turns that were answered.
    pub(super) fn thread(&self, answered: &[(Value, Value)], asked: &Value) -> (ThreadId, TurnId) {
        let thread = ThreadId::new(NOON, &*self.chance);
        self.sql(
            "INSERT INTO threads (id, workspace_id, agent_id, state, next_seq, created_by, created_at) VALUES ($1, $2, $3, 'open', 9, $4, 0)",
            &[
                Param::Text(&thread.to_string()),
                Param::Text(&self.workspace.to_string()),
                Param::Text(&self.agent.to_string()),
                Param::Text(&self.user.to_string()),
            ],
        );
        let turn = |seq: usize, input: &Value, state: &str, run: &str| {
            let turn = TurnId::new(NOON, &*self.chance);
            self.sql(
                "INSERT INTO turns (id, thread_id, seq, requester, input, state, run_id, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, 0)",
                &[
                    Param::Text(&turn.to_string()),
                    Param::Text(&thread.to_string()),
                    Param::Int(i64::try_from(seq).unwrap()),
                    Param::Text(&self.user.to_string()),
                    Param::Text(&input.to_string()),
                    Param::Text(state),
                    Param::Text(run),
                ],
            );
            turn
        };
        for (seq, (input, output)) in (1..).zip(answered) {
            let run = self.run(&echo(), input);
            self.sql(
                "UPDATE runs SET status = 'succeeded', finished_at = 0, due_at = NULL, output = $2 WHERE id = $1",
                &[Param::Text(&run.to_string()), Param::Text(&output.to_string())],
            );
            turn(seq, input, "answered", &run.to_string());
        }
        (thread, turn(answered.len() + 1, asked, "waiting", ""))
    }

    pub(super) fn sql(&self, sql: &str, params: &[Param<'_>]) {
        let execute = |session: &mut dyn Session| session.execute(sql, params);
        apart(|| self.store.write_now(execute)).unwrap();
    }

    /// Columns of the run, as JSON: numbers and texts as they are, structured values as their text.
    pub(super) fn read(&self, run: RunId, columns: &str) -> Value {
        self.query(&format!("SELECT {columns} FROM runs WHERE id = '{run}'"))[0].clone()
    }

    /// The rows of a query.
    pub(super) fn query(&self, sql: &str) -> Vec<Value> {
        let query = |session: &mut dyn Session| {
            let rows = session.query(sql, &[])?;
            let columns = sql.split(" FROM ").next().unwrap().split(',').count();
            Ok(rows
                .iter()
                .map(|row| {
                    (0..columns)
                        .map(|column| match row.opt_int(column) {
                            Ok(Some(number)) => number.into(),
                            Ok(None) => Value::Null,
                            Err(_) => row.text(column).unwrap().into(),
                        })
                        .collect()
                })
                .collect())
        };
        apart(|| self.store.read_now(query)).unwrap()
    }

    pub(super) fn status(&self, run: RunId) -> String {
        self.read(run, "status")[0].as_str().unwrap().to_owned()
    }

    /// Waits, while the clock stands still, until the run has this status.
    pub(super) async fn reaches(&self, run: RunId, status: &str) {
        self.when(|| {
            let found = self.status(run);
            let ended = ["succeeded", "failed", "cancelled"].contains(&found.as_str());
            assert!(
                found == status || !ended,
                "{}",
                self.read(run, "status, error_code, error_detail")
            );
            found == status
        })
        .await;
    }

    /// Waits, while the clock stands still.
    pub(super) async fn when(&self, mut fulfilled: impl FnMut() -> bool) {
        while !fulfilled() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Waits, while the clock stands still, until the provider was called so often.
    pub(super) async fn called(&self, times: usize) {
        self.when(|| self.script.calls.lock().len() >= times).await;
    }

    /// Moves the clock on until the provider was called so often.
    pub(super) async fn until_called(&self, times: usize) {
        let is_called = || self.script.calls.lock().len() >= times;
        loop {
            // An engine that stops after the call is never quiet again.
            self.when(|| is_called() || self.time.is_quiet()).await;
            if is_called() {
                return;
            }
            self.jump(250);
        }
    }

    /// Moves the clock on, and lets the engine do everything that is due on the way.
    pub(super) async fn pass(&self, millis: u64) {
        let end = self.time.now().after(Duration::from_millis(millis));
        loop {
            self.when(|| self.time.is_quiet()).await;
            let now = self.time.now();
            if now >= end {
                return;
            }
            self.time
                .set(now.after(Duration::from_millis(250)).min(end));
        }
    }

    /// Moves the clock at once, as when no engine is there.
    pub(super) fn jump(&self, millis: u64) {
        self.time
            .set(self.time.now().after(Duration::from_millis(millis)));
    }

    pub(super) fn calls(&self) -> Vec<Timestamp> {
        self.script.calls.lock().iter().map(|(at, _)| *at).collect()
    }
}

pub(super) fn echo() -> Value {
    json!({"name": "a", "instructions": "", "provider": "echo", "model": ""})
}

/// An agent of the scripted provider, whose model has prices.
pub(super) fn scripted() -> Value {
    json!({"name": "a", "instructions": "Be brief.", "provider": "script", "model": "m"})
}

/// A reply of ten tokens to a hundred: 100 × 10 + 10 × 40 = 1,400 micro-cents.
pub(super) fn says(text: &str) -> Reply {
    Reply {
        content: Content::Text(text.to_owned()),
        tool_calls: Vec::new(),
        usage: Some(Usage {
            input_tokens: 100,
            output_tokens: 10,
        }),
        cut: false,
    }
}

/// The same with uses of tools.
pub(super) fn wants(calls: &[(&str, &str)]) -> Reply {
    let calls = calls.iter().map(|(id, name)| ToolCall {
        id: (*id).to_owned(),
        name: (*name).to_owned(),
        arguments: json!({"for": id}),
    });
    Reply {
        tool_calls: calls.collect(),
        ..says("")
    }
}

pub(super) fn limited(seconds: Option<u64>) -> Act {
    Act::Fail(CallError::Limited {
        wait: seconds.map(Duration::from_secs),
        detail: "The provider answered 429".into(),
    })
}
