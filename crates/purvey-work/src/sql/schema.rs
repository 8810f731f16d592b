//! The tables, and how an older store becomes a newer one.

use super::{Param, Session};
use crate::error::Error;

/// Each entry brings a store from the version before it to its own; never changed once released.
const MIGRATIONS: &[&[&str]] = &[RUNS, ARTIFACTS];

const RUNS: &[&str] = &[
    "CREATE TABLE organizations (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, created_at BIGINT NOT NULL)",
    "CREATE TABLE users (
        id TEXT PRIMARY KEY, organization_id TEXT NOT NULL REFERENCES organizations (id), display_name TEXT NOT NULL,
        state TEXT NOT NULL, approved BIGINT NOT NULL, invited_by TEXT, created_at BIGINT NOT NULL)",
    "CREATE INDEX users_of_organization ON users (organization_id, id)",
    // running, queued and next_position change only under a lock on the row, which is taken before any other.
    "CREATE TABLE workspaces (
        id TEXT PRIMARY KEY, organization_id TEXT NOT NULL REFERENCES organizations (id), name TEXT NOT NULL,
        owner_id TEXT NOT NULL REFERENCES users (id), concurrency_limit BIGINT NOT NULL, queue_limit BIGINT NOT NULL,
        daily_cost_cents BIGINT, running BIGINT NOT NULL, queued BIGINT NOT NULL, next_position BIGINT NOT NULL,
        created_at BIGINT NOT NULL)",
    "CREATE INDEX workspaces_of_organization ON workspaces (organization_id, id)",
    "CREATE INDEX workspaces_waiting ON workspaces (id) WHERE queued > 0",
    "CREATE INDEX workspaces_of_owner ON workspaces (owner_id)",
    "CREATE TABLE members (
        workspace_id TEXT NOT NULL REFERENCES workspaces (id), user_id TEXT NOT NULL REFERENCES users (id), role TEXT NOT NULL,
        created_at BIGINT NOT NULL, PRIMARY KEY (workspace_id, user_id))",
    "CREATE INDEX members_by_user ON members (user_id, workspace_id)",
    // Every pair that ever shared a workspace need not be kept: sharing is judged live (Work §4).
    "CREATE TABLE tokens (
        id TEXT PRIMARY KEY, user_id TEXT NOT NULL REFERENCES users (id), hash BYTEA NOT NULL, scopes TEXT NOT NULL,
        expires_at BIGINT, revoked_at BIGINT, created_at BIGINT NOT NULL)",
    "CREATE UNIQUE INDEX tokens_by_hash ON tokens (hash)",
    "CREATE INDEX tokens_of_user ON tokens (user_id, id)",
    // definition is what a run takes with it (JSON of model::Definition); paused is live.
    "CREATE TABLE agents (
        id TEXT PRIMARY KEY, organization_id TEXT NOT NULL, workspace_id TEXT NOT NULL REFERENCES workspaces (id),
        owner_id TEXT NOT NULL REFERENCES users (id), definition TEXT NOT NULL, visibility TEXT NOT NULL, shared_with TEXT NOT NULL,
        paused BIGINT NOT NULL, published BIGINT NOT NULL, revision BIGINT NOT NULL, unfinished BIGINT NOT NULL,
        created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL, deleted_at BIGINT)",
    "CREATE INDEX agents_of_workspace ON agents (workspace_id, id)",
    "CREATE TABLE threads (
        id TEXT PRIMARY KEY, workspace_id TEXT NOT NULL REFERENCES workspaces (id), agent_id TEXT NOT NULL,
        state TEXT NOT NULL, next_seq BIGINT NOT NULL, created_by TEXT NOT NULL, created_at BIGINT NOT NULL)",
    "CREATE INDEX threads_of_workspace ON threads (workspace_id, id)",
    "CREATE TABLE turns (
        id TEXT PRIMARY KEY, thread_id TEXT NOT NULL REFERENCES threads (id), seq BIGINT NOT NULL, requester TEXT NOT NULL,
        input TEXT NOT NULL, state TEXT NOT NULL, run_id TEXT, created_at BIGINT NOT NULL)",
    "CREATE UNIQUE INDEX turns_of_thread ON turns (thread_id, seq)",
    "CREATE TABLE triggers (
        id TEXT PRIMARY KEY, workspace_id TEXT NOT NULL REFERENCES workspaces (id), agent_id TEXT NOT NULL, kind TEXT NOT NULL,
        input TEXT NOT NULL, cron TEXT, time_zone TEXT, enabled BIGINT NOT NULL, created_by TEXT NOT NULL, hash BYTEA,
        fire_at BIGINT, due_at BIGINT, last_fired_at BIGINT, last_outcome TEXT, created_at BIGINT NOT NULL,
        deleted_at BIGINT)",
    "CREATE INDEX triggers_of_workspace ON triggers (workspace_id, id)",
    // What is deleted stays, so that its token is known to be revoked.
    "CREATE UNIQUE INDEX triggers_by_hash ON triggers (hash) WHERE hash IS NOT NULL",
    "CREATE INDEX triggers_due ON triggers (due_at) WHERE due_at IS NOT NULL",
    // A run holds a slot while its status is running or paused_limit_exceeded; lease_owner is null while nobody works on it. due_at is when
    // a run that holds a slot may be taken up: at once, when its lease runs out, or when its pause is over.
    "CREATE TABLE runs (
        id TEXT PRIMARY KEY, organization_id TEXT NOT NULL, workspace_id TEXT NOT NULL, agent_id TEXT NOT NULL,
        definition TEXT NOT NULL, time_limit_seconds BIGINT NOT NULL, status TEXT NOT NULL, queued_since BIGINT, position BIGINT,
        blocked BIGINT NOT NULL, started_at BIGINT, finished_at BIGINT, input TEXT NOT NULL, output TEXT, error_code TEXT,
        error_detail TEXT, limit_detail TEXT, verification_status TEXT NOT NULL, verification_errors TEXT,
        cost_micros BIGINT NOT NULL, attempt BIGINT NOT NULL, crashes BIGINT NOT NULL, lease_owner TEXT, due_at BIGINT,
        deadline_at BIGINT, cancel_requested BIGINT NOT NULL, key TEXT, trigger_id TEXT, thread_id TEXT, turn_id TEXT,
        started_by TEXT NOT NULL, artifacts TEXT NOT NULL, created_at BIGINT NOT NULL)",
    "CREATE INDEX runs_of_workspace ON runs (workspace_id, id)",
    "CREATE INDEX runs_of_agent ON runs (agent_id, id)",
    "CREATE INDEX runs_queued ON runs (workspace_id, position) WHERE status = 'pending' AND blocked = 0",
    "CREATE INDEX runs_of_thread ON runs (thread_id, position) WHERE thread_id IS NOT NULL AND finished_at IS NULL",
    "CREATE INDEX runs_holding ON runs (workspace_id, due_at) WHERE status IN ('running', 'paused_limit_exceeded')",
    "CREATE INDEX runs_by_deadline ON runs (deadline_at) WHERE status IN ('running', 'paused_limit_exceeded')",
    "CREATE INDEX runs_to_cancel ON runs (id) WHERE cancel_requested = 1 AND finished_at IS NULL",
    "CREATE INDEX runs_crashed ON runs (id) WHERE crashes > 3 AND finished_at IS NULL",
    "CREATE INDEX runs_finished ON runs (finished_at) WHERE finished_at IS NOT NULL",
    "CREATE INDEX runs_finished_of_workspace ON runs (workspace_id, finished_at) WHERE finished_at IS NOT NULL",
    // A step's state is started, done or paused; the result of a done one is what a later attempt goes on from.
    "CREATE TABLE steps (
        run_id TEXT NOT NULL, seq BIGINT NOT NULL, attempt BIGINT NOT NULL, kind TEXT NOT NULL, name TEXT,
        state TEXT NOT NULL, request TEXT, result TEXT, input_tokens BIGINT NOT NULL, output_tokens BIGINT NOT NULL,
        cost_micros BIGINT NOT NULL, limited BIGINT NOT NULL, started_at BIGINT NOT NULL, finished_at BIGINT,
        PRIMARY KEY (run_id, seq))",
    "CREATE TABLE events (
        run_id TEXT NOT NULL, seq BIGINT NOT NULL, kind TEXT NOT NULL, data TEXT NOT NULL, at BIGINT NOT NULL,
        PRIMARY KEY (run_id, seq))",
    // kind is start or upload; released_at is when what the key named was pruned.
    "CREATE TABLE keys (
        workspace_id TEXT NOT NULL, principal TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, fingerprint BYTEA NOT NULL,
        target_id TEXT NOT NULL, created_at BIGINT NOT NULL, released_at BIGINT, PRIMARY KEY (workspace_id, kind, key, principal))",
    "CREATE INDEX keys_released ON keys (released_at) WHERE released_at IS NOT NULL",
    // scope is a workspace's id, an owner's id or 'platform'. Amounts in micro-cents.
    "CREATE TABLE ledger (
        day BIGINT NOT NULL, scope TEXT NOT NULL, settled BIGINT NOT NULL, reserved BIGINT NOT NULL, PRIMARY KEY (day, scope))",
    "CREATE TABLE reservations (
        run_id TEXT NOT NULL, seq BIGINT NOT NULL, call BIGINT NOT NULL, attempt BIGINT NOT NULL, day BIGINT NOT NULL,
        workspace_id TEXT NOT NULL, owner_id TEXT NOT NULL, micros BIGINT NOT NULL, PRIMARY KEY (run_id, seq, call))",
    "CREATE TABLE limits (
        id BIGINT PRIMARY KEY, platform_daily_cents BIGINT, allowance_daily_cents BIGINT, budget_stop BIGINT NOT NULL)",
    "INSERT INTO limits (id, budget_stop) VALUES (1, 0)",
];

const ARTIFACTS: &[&str] = &[
    // An artifact is one attempt to upload it. lease_until is when an uploader of which nothing was heard counts as gone; kept is 1 while
    // bytes may be where bytes are kept; upload is what a store of objects calls parts that are not an object yet.
    "CREATE TABLE artifacts (
        id TEXT PRIMARY KEY, organization_id TEXT NOT NULL, workspace_id TEXT NOT NULL REFERENCES workspaces (id),
        filename TEXT NOT NULL, description TEXT, size BIGINT NOT NULL, sha256 TEXT NOT NULL, status TEXT NOT NULL,
        failure TEXT, created_by TEXT NOT NULL, lease_until BIGINT, kept BIGINT NOT NULL, upload TEXT,
        run_id TEXT, created_at BIGINT NOT NULL, ended_at BIGINT)",
    // What a run makes, which becomes ready as the run ends; the run then says so itself.
    "CREATE INDEX artifacts_of_run ON artifacts (run_id) WHERE run_id IS NOT NULL",
    "ALTER TABLE runs ADD COLUMN produced TEXT",
    "CREATE INDEX artifacts_of_workspace ON artifacts (workspace_id, id)",
    "CREATE INDEX artifacts_of_organization ON artifacts (organization_id, created_at)",
    "CREATE INDEX artifacts_uploading ON artifacts (lease_until) WHERE status = 'uploading'",
    "CREATE INDEX artifacts_to_collect ON artifacts (ended_at) WHERE kept = 1 AND status IN ('failed', 'deleted')",
    // What an organization's artifacts take, in bytes, those still uploading too; and how many are.
    "CREATE TABLE storage (organization_id TEXT PRIMARY KEY, bytes BIGINT NOT NULL, uploads BIGINT NOT NULL)",
];

/// Brings the store to this binary's version.
///
/// # Errors
/// [`Error::Store`] when a newer Purvey has written it.
pub(super) fn migrate(session: &mut dyn Session) -> Result<(), Error> {
    session.execute(
        "CREATE TABLE IF NOT EXISTS migrations (version BIGINT PRIMARY KEY)",
        &[],
    )?;
    let newest = session.row("SELECT COALESCE(MAX(version), 0) FROM migrations", &[])?;
    let done = newest.map_or(Ok(0), |row| row.int(0))?;
    if usize::try_from(done).is_ok_and(|done| done > MIGRATIONS.len()) {
        return Err(Error::Store {
            detail: format!(
                "it is at version {done}, written by a newer Purvey; this one reads up to {}",
                MIGRATIONS.len()
            ),
        });
    }
    for (version, statements) in (1..).zip(MIGRATIONS) {
        if version > done {
            for statement in *statements {
                session.execute(statement, &[])?;
            }
            session.execute(
                "INSERT INTO migrations (version) VALUES ($1)",
                &[Param::Int(version)],
            )?;
        }
    }
    Ok(())
}
