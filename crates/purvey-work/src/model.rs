//! The things of the run platform in their wire form (Work §1, §11).

use crate::{
    clock::Timestamp,
    code::Code,
    error::LimitDetail,
    id::{
        AgentId, ArtifactId, OrganizationId, RunId, ThreadId, TokenId, TriggerId, TurnId, UserId,
        WorkspaceId,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Enums that are kept and sent as lower-case words.
macro_rules! words {
    ($(#[$doc:meta] $name:ident { $($(#[$variant_doc:meta])* $variant:ident $text:literal),* $(,)? })*) => {$(
        #[$doc]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$variant_doc])* #[serde(rename = $text)] $variant),* }

        impl $name {
            /// Every one, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Its word.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }
        }

        impl std::str::FromStr for $name {
            type Err = ();

            fn from_str(text: &str) -> Result<Self, ()> {
                match text { $($text => Ok(Self::$variant),)* _ => Err(()) }
            }
        }
    )*};
}

words! {
    /// What a user may do at all.
    UserState {
        /// May work.
        Active "active",
        /// Switched off by an administrator.
        Deactivated "deactivated",
        /// Locked, for example after an incident.
        Locked "locked",
        /// Gone; the record stays because things name it.
        Deleted "deleted",
    }
    /// A member's role in a workspace, each containing the one before it.
    Role {
        /// Reads.
        Viewer "viewer",
        /// Starts runs, uploads, owns agents.
        Member "member",
        /// Manages members, limits and triggers.
        Admin "admin",
        /// Budgets too.
        Owner "owner",
    }
    /// What a token may be used for; its user's role must allow it too.
    Scope {
        /// Read runs, steps and events.
        RunsRead "runs:read",
        /// Start and cancel runs.
        RunsWrite "runs:write",
        /// Read agents.
        AgentsRead "agents:read",
        /// Create and change agents.
        AgentsWrite "agents:write",
        /// Read artifacts.
        ArtifactsRead "artifacts:read",
        /// Upload and delete artifacts.
        ArtifactsWrite "artifacts:write",
        /// Read threads.
        ThreadsRead "threads:read",
        /// Open, use and close threads.
        ThreadsWrite "threads:write",
        /// Read triggers.
        TriggersRead "triggers:read",
        /// Create and change triggers.
        TriggersWrite "triggers:write",
        /// Read workspaces, members and tokens.
        WorkspacesRead "workspaces:read",
        /// Change workspaces, members and tokens.
        WorkspacesWrite "workspaces:write",
        /// Write the catalog.
        CatalogWrite "catalog:write",
    }
    /// Who may see and start an agent.
    Visibility {
        /// Its owner, who it is shared with, and the workspace's admins.
        Private "private",
        /// The workspace's members.
        Workspace "workspace",
        /// Everyone in the organization.
        Organization "organization",
    }
    /// Where a run stands (Work §3).
    RunStatus {
        /// Accepted, waiting for a slot.
        Pending "pending",
        /// Holds a slot and is, or is about to be, worked on.
        Running "running",
        /// Holds a slot and waits for its provider's limit to pass.
        Paused "paused_limit_exceeded",
        /// Done.
        Succeeded "succeeded",
        /// Ended without success; `error_code` says why.
        Failed "failed",
        /// Cancelled by a caller.
        Cancelled "cancelled",
    }
    /// Where an artifact stands (Work §7).
    ArtifactStatus {
        /// Its bytes are being received.
        Uploading "uploading",
        /// Whole, verified and durable.
        Ready "ready",
        /// It never became whole; nothing of it is kept.
        Failed "failed",
        /// Its bytes were deleted.
        Deleted "deleted",
    }
    /// How a run's output stands to its contract (Work §6).
    VerificationStatus {
        /// The agent has no contract.
        NotRequired "not_required",
        /// There is no output yet.
        Pending "pending",
        /// The output fits.
        Verified "verified",
        /// It does not; `verification_errors` says where.
        Failed "verification_failed",
    }
    /// Where a thread stands.
    ThreadState {
        /// Takes turns.
        Open "open",
        /// Its turns wait.
        Paused "paused",
        /// Takes no more turns.
        Closed "closed",
    }
    /// Where a turn stands.
    TurnState {
        /// Its run has not ended, or waits to be made.
        Waiting "waiting",
        /// Its run succeeded.
        Answered "answered",
        /// Its run failed or was cancelled, or the thread was closed.
        Failed "failed",
    }
    /// A tool that a model may use.
    ToolName {
        /// Search an ODP Service.
        OdpSearch "odp_search",
        /// Read one Offering of an ODP Service.
        OdpGet "odp_get",
        /// Invoke an Action of an Offering: acts, so must be allowed by name.
        OdpInvoke "odp_invoke",
    }
    /// How a trigger fires.
    TriggerKind {
        /// By the clock.
        Schedule "schedule",
        /// By a request with its token.
        Webhook "webhook",
    }
}

impl RunStatus {
    /// Whether nothing changes any more.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }

    /// Whether the run counts against its workspace's concurrency limit.
    #[must_use]
    pub const fn holds_slot(self) -> bool {
        matches!(self, Self::Running | Self::Paused)
    }
}

/// A tenant: what lies in another one looks absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Organization {
    /// Identifier.
    pub id: OrganizationId,
    /// 1 to 200 characters.
    pub name: String,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A person, or what acts as one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct User {
    /// Identifier.
    pub id: UserId,
    /// Their tenant.
    pub organization_id: OrganizationId,
    /// 1 to 200 characters.
    pub display_name: String,
    /// What they may do at all.
    pub state: UserState,
    /// Whether an operator has approved the account (Work §4).
    pub approved: bool,
    /// Who invited them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invited_by: Option<UserId>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// Where agents live and runs count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workspace {
    /// Identifier.
    pub id: WorkspaceId,
    /// Its tenant.
    pub organization_id: OrganizationId,
    /// 1 to 200 characters.
    pub name: String,
    /// Whose free allowance its runs draw on.
    pub owner_id: UserId,
    /// Most runs that hold a slot at once, 1 to 10,000.
    pub concurrency_limit: u32,
    /// Most runs that wait, 0 to 1,000,000.
    pub queue_limit: u32,
    /// Most cents a day; none means no limit.
    pub daily_cost_cents: Option<i64>,
    /// Runs that hold a slot now.
    pub running: u32,
    /// Runs that wait now.
    pub queued: u32,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A user's place in a workspace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// The user.
    pub user_id: UserId,
    /// What they may do there.
    pub role: Role,
}

/// A bearer token without its secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Token {
    /// Identifier; not the secret.
    pub id: TokenId,
    /// Whose it is.
    pub user_id: UserId,
    /// What it may be used for.
    pub scopes: Vec<Scope>,
    /// When it stops working by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// What an agent is and does: a run takes a copy of it at admission (Work §3).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    /// 1 to 200 characters.
    pub name: String,
    /// What the model is told, at most 100,000 characters.
    pub instructions: String,
    /// A provider of the server's configuration, or `echo`.
    pub provider: String,
    /// The provider's name of a model; empty for providers without models.
    pub model: String,
    /// What input must fit (JSON Schema Draft 2020-12).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// What output must fit: the output contract.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// What the model may use; nothing unless named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolName>,
    /// Seconds from the first start to the end, pauses included; 1 to 86,400. Default 3,600.
    #[serde(default = "default_time_limit")]
    pub time_limit_seconds: u32,
}

const fn default_time_limit() -> u32 {
    3_600
}

/// An agent of a workspace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Agent {
    /// Identifier.
    pub id: AgentId,
    /// Where it lives.
    pub workspace_id: WorkspaceId,
    /// Who made it.
    pub owner_id: UserId,
    /// What it is and does.
    #[serde(flatten)]
    pub definition: Definition,
    /// Who may see and start it.
    pub visibility: Visibility,
    /// Users it is shared with whatever its visibility.
    pub shared_with: Vec<UserId>,
    /// Whether starts are refused.
    pub paused: bool,
    /// Whether it is an Offering of the catalog.
    pub published: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// Why a pending run waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingFor {
    /// What it waits for.
    pub reason: WaitingReason,
    /// How many would go before it, plus one.
    pub position: u64,
}

words! {
    /// What a pending run waits for.
    WaitingReason {
        /// A slot of the workspace.
        Concurrency "concurrency",
        /// The turn before it in its thread.
        Thread "thread",
    }
}

/// One broken rule of an output contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerificationError {
    /// JSON Pointer into the output.
    pub instance: String,
    /// JSON Pointer into the contract.
    pub keyword: String,
    /// What is wrong.
    pub reason: String,
}

/// A run (Work §11).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Identifier.
    pub id: RunId,
    /// Where it counts.
    pub workspace_id: WorkspaceId,
    /// What it runs.
    pub agent_id: AgentId,
    /// Where it stands.
    pub status: RunStatus,
    /// Since when it has waited, if it was admitted at the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_since: Option<Timestamp>,
    /// Why it waits, while it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<WaitingFor>,
    /// When it got its slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// What it was given.
    pub input: Value,
    /// What it made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Why it failed or is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<Code>,
    /// The same in words, without anyone's secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_detail: Option<String>,
    /// The limit that it met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_detail: Option<LimitDetail>,
    /// How its output stands to the contract.
    pub verification_status: VerificationStatus,
    /// Where it breaks it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verification_errors: Vec<VerificationError>,
    /// Spent so far, in cents, rounded up.
    pub cost_cents: i64,
    /// How often a worker has taken it up.
    pub attempt: u32,
    /// The trigger that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_id: Option<TriggerId>,
    /// The turn that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    /// Who it acts for.
    pub started_by: UserId,
    /// What it may read.
    pub artifacts: Vec<ArtifactId>,
    /// What it has made, once it has succeeded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub produced: Vec<ArtifactId>,
    /// When it was admitted.
    pub created_at: Timestamp,
}

/// Bytes that are whole or absent, and what is known of them (Work §7, §11).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// Its identifier.
    pub id: ArtifactId,
    /// Where it belongs.
    pub workspace_id: WorkspaceId,
    /// What its uploader calls it; data, never a path.
    pub filename: String,
    /// What its uploader says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Bytes, as declared and, once ready, as received.
    pub size: u64,
    /// SHA-256 of the bytes in lower-case hexadecimal, as declared and, once ready, as computed.
    pub sha256: String,
    /// Whether it can be used.
    pub status: ArtifactStatus,
    /// When its upload began.
    pub created_at: Timestamp,
}

words! {
    /// What a step did.
    StepKind {
        /// One call of the provider.
        Provider "provider",
        /// One use of a tool.
        Tool "tool",
    }
    /// Where a step stands.
    StepState {
        /// Begun; a later attempt makes it again.
        Started "started",
        /// Stopped by the provider's limit.
        Paused "paused",
        /// Its result is kept and is never made or paid again.
        Done "done",
    }
}

/// One step of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its number within the run, from 1.
    pub seq: u32,
    /// The attempt that did it.
    pub attempt: u32,
    /// What it did.
    pub kind: StepKind,
    /// The tool's or the model's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where it stands.
    pub state: StepState,
    /// Tokens sent.
    pub input_tokens: u64,
    /// Tokens received.
    pub output_tokens: u64,
    /// Spent, in cents, rounded up.
    pub cost_cents: i64,
    /// What came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
}

/// A conversation with an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// Identifier.
    pub id: ThreadId,
    /// Where its runs count.
    pub workspace_id: WorkspaceId,
    /// Who answers.
    pub agent_id: AgentId,
    /// Where it stands.
    pub state: ThreadState,
    /// Who opened it.
    pub created_by: UserId,
    /// When.
    pub created_at: Timestamp,
}

/// One request of a thread and its answer (Work §10).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Identifier.
    pub id: TurnId,
    /// Its thread.
    pub thread_id: ThreadId,
    /// Who sent the request.
    pub requester: UserId,
    /// What was asked.
    pub input: Value,
    /// Where it stands.
    pub state: TurnState,
    /// The run that answers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// When it was sent.
    pub created_at: Timestamp,
}

/// What starts runs without a person present.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trigger {
    /// Identifier.
    pub id: TriggerId,
    /// Where its runs count.
    pub workspace_id: WorkspaceId,
    /// What it starts.
    pub agent_id: AgentId,
    /// How it fires.
    pub kind: TriggerKind,
    /// The input of its runs; a webhook adds `event`.
    pub input: Value,
    /// When a schedule fires: five fields, minute to day of week.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// Where its clock hangs: a name of the IANA time zone database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// Whether it fires.
    pub enabled: bool,
    /// Who it acts for.
    pub created_by: UserId,
    /// When it will fire next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_fire_at: Option<Timestamp>,
    /// When it last fired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_fired_at: Option<Timestamp>,
    /// What came of it: the run, or the refusal's code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_outcome: Option<FiringOutcome>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// What came of a firing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FiringOutcome {
    /// It started this run.
    Started {
        /// The run.
        run_id: RunId,
    },
    /// It was refused; a schedule tries again until its next firing.
    Refused {
        /// Why.
        code: Code,
    },
}

/// The operator's limits (Work §4); none means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Most cents a day for the whole platform.
    pub platform_daily_cents: Option<i64>,
    /// Most cents a day for all workspaces of one owner.
    pub allowance_daily_cents: Option<i64>,
    /// Whether all spending is stopped.
    pub budget_stop: bool,
}
