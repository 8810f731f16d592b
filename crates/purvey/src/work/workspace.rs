//! `purvey workspace`

use super::{
    connect::{Connect, Listed, Part, escaped},
    show,
};
use crate::failure::Failure;
use clap::Subcommand;
use http::Method;
use serde_json::{Map, Value, json};
use std::process::ExitCode;

/// What can be done with workspaces.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkspaceCommand {
    /// Create a workspace
    Create(Create),
    /// List the workspaces that you can see
    List(List),
    /// Show a workspace: its limits, what runs and what waits
    Show(One),
    /// Change its limits
    Update(Update),
    /// List its members
    Members(One),
    /// Add a member, or change a member's role
    AddMember(AddMember),
    /// Remove a member
    RemoveMember(RemoveMember),
}

/// A workspace to create.
#[derive(Debug, clap::Args)]
pub(crate) struct Create {
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,
    /// Its organization
    #[arg(long, value_name = "ID")]
    organization: String,
    /// The user who owns it
    #[arg(long, value_name = "ID")]
    owner: String,
    #[command(flatten)]
    connect: Connect,
}

/// How many.
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    connect: Connect,
}

/// One workspace.
#[derive(Debug, clap::Args)]
pub(crate) struct One {
    /// The workspace
    #[arg(value_name = "WORKSPACE")]
    workspace: String,
    #[command(flatten)]
    connect: Connect,
}

/// Limits.
#[derive(Debug, clap::Args)]
pub(crate) struct Update {
    /// The workspace
    #[arg(value_name = "WORKSPACE")]
    workspace: String,
    /// Most runs at once
    #[arg(long, value_name = "N")]
    concurrency_limit: Option<u32>,
    /// Most runs that wait
    #[arg(long, value_name = "N")]
    queue_limit: Option<u32>,
    /// Most cents a day, or none
    #[arg(long, value_name = "CENTS", value_parser = cents)]
    daily_cost_cents: Option<Cents>,
    #[command(flatten)]
    connect: Connect,
}

/// A member to add.
#[derive(Debug, clap::Args)]
pub(crate) struct AddMember {
    /// The workspace
    #[arg(value_name = "WORKSPACE")]
    workspace: String,
    /// The user
    #[arg(value_name = "USER")]
    user: String,
    /// viewer, member, admin or owner
    #[arg(long, default_value = "member")]
    role: String,
    #[command(flatten)]
    connect: Connect,
}

/// A member to remove.
#[derive(Debug, clap::Args)]
pub(crate) struct RemoveMember {
    /// The workspace
    #[arg(value_name = "WORKSPACE")]
    workspace: String,
    /// The user
    #[arg(value_name = "USER")]
    user: String,
    #[command(flatten)]
    connect: Connect,
}

/// A limit in cents, or none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cents(Option<u64>);

/// Reads a limit.
pub(super) fn cents(text: &str) -> Result<Cents, String> {
    match text {
        "none" => Ok(Cents(None)),
        text => text
            .parse()
            .map(|cents| Cents(Some(cents)))
            .map_err(|_| "must be a number of cents, or none".into()),
    }
}

impl Cents {
    pub(super) fn json(self) -> Value {
        json!(self.0)
    }
}

impl WorkspaceCommand {
    pub(super) async fn run(self) -> Result<ExitCode, Failure> {
        match self {
            Self::Create(create) => {
                let body = json!({
                    "organization_id": create.organization, "name": create.name, "owner_id": create.owner,
                });
                let connect = &create.connect;
                let made = connect
                    .send(Method::POST, "/v1/workspaces", Some(&body))
                    .await?;
                show::one(&made, connect.json)
            }
            Self::List(list) => {
                let listed = list.connect.list("/v1/workspaces", &list.part).await?;
                let columns = [
                    ("ID", "id"),
                    ("NAME", "name"),
                    ("RUNNING", "running"),
                    ("LIMIT", "concurrency_limit"),
                    ("QUEUED", "queued"),
                    ("QUEUE", "queue_limit"),
                ];
                show::list(&listed, &columns, list.connect.json)
            }
            Self::Show(one) => {
                let found = one.connect.get(&path(&one.workspace, "")).await?;
                show::one(&found, one.connect.json)
            }
            Self::Update(update) => update.run().await,
            Self::Members(one) => {
                let members = one.connect.get(&path(&one.workspace, "/members")).await?;
                let listed = Listed {
                    items: members["items"].as_array().cloned().unwrap_or_default(),
                    more: false,
                };
                let columns = [("USER", "user_id"), ("ROLE", "role")];
                show::list(&listed, &columns, one.connect.json)
            }
            Self::AddMember(add) => {
                let rest = format!("/members/{}", escaped(&add.user));
                let path = path(&add.workspace, &rest);
                let body = json!({ "role": add.role });
                let member = add.connect.send(Method::PUT, &path, Some(&body)).await?;
                show::one(&member, add.connect.json)
            }
            Self::RemoveMember(remove) => {
                let rest = format!("/members/{}", escaped(&remove.user));
                let path = path(&remove.workspace, &rest);
                remove
                    .connect
                    .send(Method::DELETE, &path, None)
                    .await
                    .map(|_| ())
            }
        }?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Update {
    async fn run(&self) -> Result<(), Failure> {
        let mut body = Map::new();
        let limits = [
            ("concurrency_limit", self.concurrency_limit),
            ("queue_limit", self.queue_limit),
        ];
        for (member, limit) in limits {
            if let Some(limit) = limit {
                body.insert(member.into(), json!(limit));
            }
        }
        if let Some(cents) = self.daily_cost_cents {
            body.insert("daily_cost_cents".into(), cents.json());
        }
        if body.is_empty() {
            return Err(Failure::usage("there is nothing to change")
                .hint("name --concurrency-limit, --queue-limit or --daily-cost-cents"));
        }
        let path = path(&self.workspace, "");
        let changed = self
            .connect
            .send(Method::PATCH, &path, Some(&body.into()))
            .await?;
        show::one(&changed, self.connect.json)
    }
}

fn path(workspace: &str, rest: &str) -> String {
    format!("/v1/workspaces/{}{rest}", escaped(workspace))
}
