//! `purvey trigger`

use super::{
    connect::{Connect, InWorkspace, Part, escaped},
    input::Input,
    show,
};
use crate::failure::{Failure, say};
use clap::Subcommand;
use http::Method;
use serde_json::{Value, json};
use std::process::ExitCode;

/// What can be done with triggers.
#[derive(Debug, Subcommand)]
pub(crate) enum TriggerCommand {
    /// Start runs by the clock
    Schedule(Schedule),
    /// Start runs by requests that carry the trigger's token; it is shown once
    Webhook(Webhook),
    /// List triggers, the newest first
    List(List),
    /// Show a trigger
    Show(One),
    /// Turn it on
    Enable(One),
    /// Turn it off; runs of it that wait fail
    Disable(One),
    /// Delete it
    Delete(One),
}

/// A schedule to make.
#[derive(Debug, clap::Args)]
pub(crate) struct Schedule {
    /// The agent to start
    #[arg(value_name = "AGENT")]
    agent: String,
    /// When: minute, hour, day of month, month, day of week, as in '0 9 * * 1-5'
    #[arg(long, value_name = "FIELDS")]
    cron: String,
    /// Time zone of the IANA database, such as Europe/Berlin
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    time_zone: String,
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    workspace: InWorkspace,
    #[command(flatten)]
    connect: Connect,
}

/// A webhook to make.
#[derive(Debug, clap::Args)]
pub(crate) struct Webhook {
    /// The agent to start
    #[arg(value_name = "AGENT")]
    agent: String,
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    workspace: InWorkspace,
    #[command(flatten)]
    connect: Connect,
}

/// Which triggers.
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    workspace: InWorkspace,
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    connect: Connect,
}

/// One trigger.
#[derive(Debug, clap::Args)]
pub(crate) struct One {
    /// The trigger
    #[arg(value_name = "TRIGGER")]
    trigger: String,
    #[command(flatten)]
    connect: Connect,
}

impl TriggerCommand {
    pub(super) async fn run(self) -> Result<ExitCode, Failure> {
        match self {
            Self::Schedule(schedule) => {
                let body = json!({
                    "kind": "schedule", "agent_id": schedule.agent, "input": schedule.input.value()?,
                    "cron": schedule.cron, "time_zone": schedule.time_zone,
                });
                make(&schedule.workspace, &schedule.connect, &body).await
            }
            Self::Webhook(webhook) => {
                let input = match webhook.input.value()? {
                    Value::Null => json!({}),
                    input => input,
                };
                let body = json!({ "kind": "webhook", "agent_id": webhook.agent, "input": input });
                make(&webhook.workspace, &webhook.connect, &body).await
            }
            Self::List(list) => {
                let workspace = list.workspace.id(&list.connect).await?;
                let path = format!("/v1/workspaces/{workspace}/triggers");
                let listed = list.connect.list(&path, &list.part).await?;
                let columns = [
                    ("ID", "id"),
                    ("KIND", "kind"),
                    ("AGENT", "agent_id"),
                    ("ENABLED", "enabled"),
                    ("CRON", "cron"),
                    ("ZONE", "time_zone"),
                    ("NEXT", "next_fire_at"),
                    ("LAST", "last_fired_at"),
                ];
                show::list(&listed, &columns, list.connect.json)
            }
            Self::Show(one) => {
                let trigger = one.connect.get(&one.path()).await?;
                show::one(&trigger, one.connect.json)
            }
            Self::Enable(one) => one.enable(true).await,
            Self::Disable(one) => one.enable(false).await,
            Self::Delete(one) => {
                let path = one.path();
                one.connect
                    .send(Method::DELETE, &path, None)
                    .await
                    .map(|_| ())
            }
        }?;
        Ok(ExitCode::SUCCESS)
    }
}

async fn make(workspace: &InWorkspace, connect: &Connect, body: &Value) -> Result<(), Failure> {
    let workspace = workspace.id(connect).await?;
    let path = format!("/v1/workspaces/{workspace}/triggers");
    let trigger = connect.send(Method::POST, &path, Some(body)).await?;
    if !connect.json && trigger["token"].is_string() {
        say(format_args!("the token is not shown again"));
    }
    show::one(&trigger, connect.json)
}

impl One {
    fn path(&self) -> String {
        format!("/v1/triggers/{}", escaped(&self.trigger))
    }

    async fn enable(&self, enabled: bool) -> Result<(), Failure> {
        let body = json!({ "enabled": enabled });
        let trigger = self
            .connect
            .send(Method::PATCH, &self.path(), Some(&body))
            .await?;
        show::one(&trigger, self.connect.json)
    }
}
