//! `purvey run`

use super::{
    artifact,
    connect::{Connect, InWorkspace, Part, escaped},
    fault,
    input::Input,
    show,
    transfer::Bars,
    watch,
};
use crate::{
    failure::{Failure, say},
    units::Time,
};
use clap::Subcommand;
use futures_util::{StreamExt, TryStreamExt, stream};
use http::Method;
use purvey_client::{Client, Started, Upload};
use serde_json::{Value, json};
use std::{path::PathBuf, process::ExitCode};

/// What can be done with runs.
#[derive(Debug, Subcommand)]
pub(crate) enum RunCommand {
    /// Start a run of an agent
    #[command(
        after_help = "Sending the same start again under the same --key never makes a second run. With --wait the command \
        ends when the run does; interrupted, the run goes on, and the same command with the same --key waits for it again. \
        Files are uploaded once, however often the command is run."
    )]
    Start(Start),
    /// List runs, the newest first
    List(List),
    /// Show a run
    Show(One),
    /// List the steps of a run
    Steps(One),
    /// Follow a run until it ends
    Watch(One),
    /// Cancel a run
    Cancel(One),
}

/// A run to start.
#[derive(Debug, clap::Args)]
pub(crate) struct Start {
    /// The agent
    #[arg(value_name = "AGENT")]
    agent: String,
    #[command(flatten)]
    input: Input,
    /// Artifact that the run may read; may be repeated
    #[arg(long = "artifact", value_name = "ID")]
    artifacts: Vec<String>,
    /// File that the run may read: it is uploaded to the agent's workspace first; may be repeated
    #[arg(long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Idempotency key: 1 to 255 visible ASCII characters [default: a new one]
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Wait until the run has ended, for so long if a time is given
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true)]
    wait: Option<Option<Time>>,
    #[command(flatten)]
    connect: Connect,
}

/// Which runs.
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    workspace: InWorkspace,
    /// Only runs with this status
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,
    /// Only runs of this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    connect: Connect,
}

/// One run.
#[derive(Debug, clap::Args)]
pub(crate) struct One {
    /// The run
    #[arg(value_name = "RUN")]
    run: String,
    #[command(flatten)]
    connect: Connect,
}

impl RunCommand {
    pub(super) async fn run(self) -> Result<ExitCode, Failure> {
        match self {
            Self::Start(start) => return start.run().await,
            Self::List(list) => list.run().await?,
            Self::Show(one) => {
                let run = one.connect.get(&one.path("")).await?;
                show::one(&run, one.connect.json)?;
            }
            Self::Steps(one) => one.steps().await?,
            Self::Watch(one) => return watch::run(&one.path(""), &one.connect).await,
            Self::Cancel(one) => {
                let path = one.path("/cancel");
                let run = one.connect.send(Method::POST, &path, None).await?;
                show::one(&run, one.connect.json)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl One {
    fn path(&self, rest: &str) -> String {
        format!("/v1/runs/{}{rest}", escaped(&self.run))
    }

    async fn steps(&self) -> Result<(), Failure> {
        let steps = self.connect.get(&self.path("/steps")).await?;
        let listed = super::connect::Listed {
            items: steps["items"].as_array().cloned().unwrap_or_default(),
            more: false,
        };
        let columns = [
            ("STEP", "seq"),
            ("KIND", "kind"),
            ("NAME", "name"),
            ("STATE", "state"),
            ("IN", "input_tokens"),
            ("OUT", "output_tokens"),
            ("CENTS", "cost_cents"),
            ("STARTED", "started_at"),
            ("FINISHED", "finished_at"),
        ];
        show::list(&listed, &columns, self.connect.json)
    }
}

impl List {
    async fn run(&self) -> Result<(), Failure> {
        let workspace = self.workspace.id(&self.connect).await?;
        let mut path = format!("/v1/workspaces/{workspace}/runs");
        let filters = [("status", &self.status), ("agent_id", &self.agent)];
        let mut joined = '?';
        for (name, value) in filters {
            if let Some(value) = value {
                path += &format!("{joined}{name}={}", escaped(value));
                joined = '&';
            }
        }
        let listed = self.connect.list(&path, &self.part).await?;
        let columns = [
            ("ID", "id"),
            ("STATUS", "status"),
            ("AGENT", "agent_id"),
            ("CREATED", "created_at"),
            ("CENTS", "cost_cents"),
            ("ERROR", "error_code"),
        ];
        show::list(&listed, &columns, self.connect.json)
    }
}

impl Start {
    /// Uploads the files; the same files make the same artifacts.
    async fn upload(&self, client: &Client) -> Result<Vec<String>, Failure> {
        if self.files.is_empty() {
            return Ok(Vec::new());
        }
        let agent = format!("/v1/agents/{}", escaped(&self.agent));
        let agent: Value = client
            .get(&agent)
            .await
            .map_err(|error| fault::failure(&error))?;
        let workspace = agent["workspace_id"].as_str().unwrap_or_default();
        let bars = Bars::new();
        let uploads = self.files.iter().map(|file| {
            let what = Upload {
                path: file.clone(),
                ..Upload::default()
            };
            artifact::upload(client, workspace, &bars, what)
        });
        let uploaded: Vec<_> = stream::iter(uploads).buffered(4).try_collect().await?;
        let ids = uploaded.iter().map(|uploaded| &uploaded.artifact["id"]);
        Ok(ids.filter_map(Value::as_str).map(str::to_owned).collect())
    }

    async fn run(self) -> Result<ExitCode, Failure> {
        let client = self.connect.client()?;
        let mut body = json!({ "input": self.input.value()? });
        let mut artifacts = self.artifacts.clone();
        artifacts.extend(self.upload(&client).await?);
        if !artifacts.is_empty() {
            body["artifacts"] = json!(artifacts);
        }
        let path = format!("/v1/agents/{}/runs", escaped(&self.agent));
        let started = client
            .start::<Value>(&path, &body, self.key.as_deref())
            .await;
        let Started { run, replayed, key } = started.map_err(|error| fault::failure(&error))?;
        let id = run["id"].as_str().unwrap_or_default().to_owned();
        if !self.connect.json {
            let again = if replayed {
                "was started before"
            } else {
                "started"
            };
            say(format_args!("{id} {again}, key {key}"));
        }
        let Some(wait) = self.wait else {
            show::one(&run, self.connect.json)?;
            return Ok(ExitCode::SUCCESS);
        };
        let patience = wait.map(|Time(time)| time);
        let path = format!("/v1/runs/{}", escaped(&id));
        let ended = client.wait::<Value>(&path, patience, watch::ended).await;
        let run = ended.map_err(|error| {
            let failure = fault::failure(&error);
            failure.hint(format_args!("`purvey run watch {id}` follows it on"))
        })?;
        show::one(&run, self.connect.json)?;
        Ok(watch::exit(&run))
    }
}
