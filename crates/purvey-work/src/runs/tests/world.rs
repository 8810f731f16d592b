//! An organization in a store of its own, with a clock and a chance that tests set.

use crate::{
    access::Actor,
    clock::{Chance, Cx, Timestamp},
    code::Code,
    error::{Error, Refusal},
    id::{AgentId, OrganizationId, RunId, ThreadId, TokenId, TriggerId, UserId, WorkspaceId},
    idempotency::Key,
    model::{Definition, Role, Run, RunStatus, Scope, StepKind, UserState},
    runs::{self, Admission, Begun, By, CallOf, Claim, Lease, Outcome, Start, StepDone, Target},
    sql::{Param, Session, Store},
    stage::postgres::Schema,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::cell::RefCell;

/// A generator with a seed (SplitMix64): small, and the same everywhere.
pub(super) struct Seeded(Mutex<u64>);

impl Seeded {
    pub(super) fn new(seed: u64) -> Self {
        Self(Mutex::new(seed))
    }

    pub(super) fn next(&self) -> u64 {
        let mut state = self.0.lock();
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub(super) fn below(&self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(super) fn pick<'a, T>(&self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

impl Chance for Seeded {
    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
    }
}

thread_local! {
    /// Where the worlds of this test are kept, if not in memory.
    static POSTGRES: RefCell<Option<Schema>> = const { RefCell::new(None) };
}

/// Runs a test whose world is kept in PostgreSQL, if there is a server.
pub(super) fn on_postgres(test: fn()) {
    if let Some(schema) = Schema::fresh() {
        POSTGRES.set(Some(schema));
        test();
        POSTGRES.set(None);
    }
}

pub(super) struct World {
    pub(super) store: Store,
    pub(super) now: Timestamp,
    pub(super) chance: Seeded,
    pub(super) organization: OrganizationId,
}

/// 2026-01-01T12:00:00Z.
pub(super) const NOON: i64 = 1_767_268_800_000;

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let store = POSTGRES.with_borrow_mut(|schema| match schema {
            // A test may make several worlds; each has a schema of its own.
            Some(schema) => {
                *schema = Schema::fresh().unwrap();
                Store::postgres(&schema.url()).unwrap()
            }
            None => Store::in_memory().unwrap(),
        });
        let chance = Seeded::new(seed);
        let now = Timestamp::from_millis(NOON);
        let organization = OrganizationId::new(now, &chance);
        let world = Self {
            store,
            now,
            chance,
            organization,
        };
        world.sql(
            "INSERT INTO organizations (id, name, created_at) VALUES ($1, 'o', 0)",
            &[Param::Text(&organization.to_string())],
        );
        world
    }

    /// Runs `job` in a transaction at the present moment.
    pub(super) fn at<T>(
        &self,
        mut job: impl FnMut(&mut dyn Session, Cx<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let cx = Cx {
            now: self.now,
            chance: &self.chance,
        };
        self.store.write_now(|session| job(session, cx))
    }

    pub(super) fn sql(&self, sql: &str, params: &[Param<'_>]) {
        self.store
            .write_now(|session| session.execute(sql, params))
            .unwrap();
    }

    /// The numbers of a query, row by row.
    pub(super) fn numbers(&self, sql: &str, params: &[Param<'_>]) -> Vec<Vec<i64>> {
        self.store
            .read_now(|session| {
                session
                    .query(sql, params)?
                    .iter()
                    .map(|row| {
                        (0..)
                            .map_while(|column| row.int(column).ok())
                            .map(Ok)
                            .collect()
                    })
                    .collect()
            })
            .unwrap()
    }

    pub(super) fn number(&self, sql: &str, params: &[Param<'_>]) -> i64 {
        self.numbers(sql, params)[0][0]
    }

    pub(super) fn pass(&mut self, millis: i64) {
        self.now = Timestamp::from_millis(self.now.millis() + millis);
    }

    pub(super) fn user(&self) -> UserId {
        let user = UserId::new(self.now, &self.chance);
        self.sql(
            "INSERT INTO users (id, organization_id, display_name, state, approved, created_at) VALUES ($1, $2, 'u', 'active', 0, 0)",
            &[
                Param::Text(&user.to_string()),
                Param::Text(&self.organization.to_string()),
            ],
        );
        user
    }

    /// A workspace whose owner is its only member.
    pub(super) fn workspace(&self, owner: UserId, limit: i64, queue: i64) -> WorkspaceId {
        let workspace = WorkspaceId::new(self.now, &self.chance);
        self.sql(
            "INSERT INTO workspaces (id, organization_id, name, owner_id, concurrency_limit, queue_limit, running, queued, next_position, created_at)
             VALUES ($1, $2, 'w', $3, $4, $5, 0, 0, 1, 0)",
            &[
                Param::Text(&workspace.to_string()),
                Param::Text(&self.organization.to_string()),
                Param::Text(&owner.to_string()),
                Param::Int(limit),
                Param::Int(queue),
            ],
        );
        self.member(workspace, owner, Some(Role::Owner));
        workspace
    }

    pub(super) fn member(&self, workspace: WorkspaceId, user: UserId, role: Option<Role>) {
        let (workspace, user) = (workspace.to_string(), user.to_string());
        self.sql(
            "DELETE FROM members WHERE workspace_id = $1 AND user_id = $2",
            &[Param::Text(&workspace), Param::Text(&user)],
        );
        if let Some(role) = role {
            self.sql(
                "INSERT INTO members (workspace_id, user_id, role, created_at) VALUES ($1, $2, $3, 0)",
                &[
                    Param::Text(&workspace),
                    Param::Text(&user),
                    Param::Text(role.text()),
                ],
            );
        }
    }

    pub(super) fn state(&self, user: UserId, state: UserState) {
        self.sql(
            "UPDATE users SET state = $2 WHERE id = $1",
            &[Param::Text(&user.to_string()), Param::Text(state.text())],
        );
    }

    pub(super) fn limit(&self, workspace: WorkspaceId, limit: i64) {
        self.at(|session, cx| {
            session.execute(
                "UPDATE workspaces SET concurrency_limit = $2 WHERE id = $1",
                &[Param::Text(&workspace.to_string()), Param::Int(limit)],
            )?;
            runs::promote_waiting(session, cx, workspace)
        })
        .unwrap();
    }

    pub(super) fn definition() -> Definition {
        Definition {
            name: "a".into(),
            instructions: String::new(),
            provider: "echo".into(),
            model: String::new(),
            input_schema: None,
            output_schema: None,
            tools: Vec::new(),
            time_limit_seconds: 3_600,
        }
    }

    pub(super) fn agent(&self, workspace: WorkspaceId, owner: UserId) -> AgentId {
        self.agent_of(workspace, owner, &Self::definition(), "workspace")
    }

    pub(super) fn agent_of(
        &self,
        workspace: WorkspaceId,
        owner: UserId,
        definition: &Definition,
        visibility: &str,
    ) -> AgentId {
        let agent = AgentId::new(self.now, &self.chance);
        self.sql(
            "INSERT INTO agents (id, organization_id, workspace_id, owner_id, definition, visibility, shared_with, paused, published,
                revision, unfinished, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, '[]', 0, 0, 1, 0, 0, 0)",
            &[
                Param::Text(&agent.to_string()),
                Param::Text(&self.organization.to_string()),
                Param::Text(&workspace.to_string()),
                Param::Text(&owner.to_string()),
                Param::Text(&serde_json::to_string(definition).unwrap()),
                Param::Text(visibility),
            ],
        );
        agent
    }

    pub(super) fn pause_agent(&self, agent: AgentId, paused: bool) {
        self.sql(
            "UPDATE agents SET paused = $2 WHERE id = $1",
            &[Param::Text(&agent.to_string()), Param::Int(paused.into())],
        );
    }

    pub(super) fn thread(&self, workspace: WorkspaceId, agent: AgentId, by: UserId) -> ThreadId {
        let thread = ThreadId::new(self.now, &self.chance);
        self.sql(
            "INSERT INTO threads (id, workspace_id, agent_id, state, next_seq, created_by, created_at) VALUES ($1, $2, $3, 'open', 1, $4, 0)",
            &[
                Param::Text(&thread.to_string()),
                Param::Text(&workspace.to_string()),
                Param::Text(&agent.to_string()),
                Param::Text(&by.to_string()),
            ],
        );
        thread
    }

    pub(super) fn thread_state(&self, thread: ThreadId, state: &str) {
        self.sql(
            "UPDATE threads SET state = $2 WHERE id = $1",
            &[Param::Text(&thread.to_string()), Param::Text(state)],
        );
    }

    pub(super) fn trigger(&self, workspace: WorkspaceId, agent: AgentId, by: UserId) -> TriggerId {
        let trigger = TriggerId::new(self.now, &self.chance);
        self.sql(
            "INSERT INTO triggers (id, workspace_id, agent_id, kind, input, enabled, created_by, created_at)
             VALUES ($1, $2, $3, 'webhook', '{}', 1, $4, 0)",
            &[
                Param::Text(&trigger.to_string()),
                Param::Text(&workspace.to_string()),
                Param::Text(&agent.to_string()),
                Param::Text(&by.to_string()),
            ],
        );
        trigger
    }

    pub(super) fn enable(&self, trigger: TriggerId, enabled: bool) {
        self.sql(
            "UPDATE triggers SET enabled = $2 WHERE id = $1",
            &[
                Param::Text(&trigger.to_string()),
                Param::Int(enabled.into()),
            ],
        );
    }

    /// A user with every scope.
    pub(super) fn by(&self, user: UserId) -> By {
        By::User(Actor {
            user,
            organization: self.organization,
            state: UserState::Active,
            scopes: Scope::ALL.to_vec(),
            token: TokenId::new(self.now, &self.chance),
        })
    }

    pub(super) fn start(&self, by: By, target: Target, key: Option<&str>) -> Start {
        let input = json!({"n": 1});
        let key = key.map(|key| Key::new(key, &format!("{target:?}"), &input).unwrap());
        Start {
            by,
            target,
            input,
            artifacts: Vec::new(),
            key,
        }
    }

    pub(super) fn admit(&self, start: &Start) -> Result<Admission, Error> {
        self.at(|session, cx| runs::admit(session, cx, std::slice::from_ref(start)))
            .unwrap()
            .pop()
            .unwrap()
    }

    /// An accepted start of an agent without a key.
    pub(super) fn run(&self, agent: AgentId, user: UserId) -> Run {
        let start = self.start(self.by(user), Target::Agent(agent), None);
        self.admit(&start).unwrap().run
    }

    pub(super) fn read(&self, run: RunId) -> Run {
        self.at(|session, _| runs::run(session, run))
            .unwrap()
            .unwrap()
    }

    pub(super) fn status(&self, run: RunId) -> RunStatus {
        self.read(run).status
    }

    pub(super) fn failed(&self, run: RunId) -> Code {
        let run = self.read(run);
        assert_eq!(run.status, RunStatus::Failed);
        assert_eq!(
            run.error_detail.as_deref(),
            run.error_code.map(Code::detail)
        );
        run.error_code.unwrap()
    }

    pub(super) fn claim(&self, node: &str, most: usize) -> Vec<Claim> {
        self.at(|session, cx| runs::claim(session, cx, node, most))
            .unwrap()
    }

    /// Claims the one run that can be claimed.
    pub(super) fn claim_one(&self, run: RunId) -> Claim {
        let mut claims = self.claim("node", 64);
        assert_eq!(claims.len(), 1);
        let claim = claims.pop().unwrap();
        assert_eq!(claim.lease.run, run);
        claim
    }

    pub(super) fn finish(&self, lease: &Lease, outcome: &Outcome) -> Result<RunStatus, Error> {
        self.at(|session, cx| runs::finish(session, cx, lease, outcome))
    }

    pub(super) fn succeed(&self, lease: &Lease) {
        let outcome = Outcome::Succeeded {
            output: json!("done"),
            verified: false,
        };
        assert_eq!(self.finish(lease, &outcome).unwrap(), RunStatus::Succeeded);
    }

    /// Begins a step and a call of it that can cost so much.
    pub(super) fn call(&self, lease: &Lease, seq: u32, most: i64) -> Result<Begun, Error> {
        self.at(|session, cx| {
            runs::begin_step(session, cx, lease, seq, StepKind::Provider, Some("m"))?;
            runs::begin_call(session, cx, lease, CallOf { seq, call: 1 }, most)
        })
    }

    /// Settles the call of a step and keeps its result.
    pub(super) fn settle(&self, lease: &Lease, seq: u32, micros: i64) -> Result<(), Error> {
        self.at(|session, cx| {
            runs::settle_call(session, lease, CallOf { seq, call: 1 }, micros)?;
            let result = Value::from(seq);
            let done = StepDone {
                seq,
                request: None,
                result: &result,
                input_tokens: 3,
                output_tokens: 4,
            };
            runs::checkpoint(session, cx, lease, &done)
        })
    }

    /// Sweeps until there is nothing left to do.
    pub(super) fn sweep(&self) {
        for workspace in self.at(runs::to_sweep).unwrap() {
            while self
                .at(|session, cx| runs::sweep(session, cx, workspace))
                .unwrap()
            {}
        }
    }
}

/// The refusal of a start.
pub(super) fn refusal<T>(answer: Result<T, Error>) -> Refusal {
    match answer {
        Err(Error::Refused(refusal)) => *refusal,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("accepted"),
    }
}

pub(super) fn code<T>(answer: Result<T, Error>) -> Code {
    refusal(answer).code
}
