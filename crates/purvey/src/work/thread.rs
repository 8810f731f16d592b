//! `purvey thread`

use super::{
    connect::{Connect, InWorkspace, Part, escaped},
    fault,
    input::Input,
    show, watch,
};
use crate::failure::{Failure, say};
use clap::Subcommand;
use http::Method;
use serde_json::{Value, json};
use std::process::ExitCode;

/// What can be done with threads.
#[derive(Debug, Subcommand)]
pub(crate) enum ThreadCommand {
    /// Open a thread with an agent
    Open(Open),
    /// List threads, the newest first
    List(List),
    /// Show a thread
    Show(One),
    /// Send a request to the thread
    Say(Say),
    /// List the turns of a thread
    Turns(Turns),
    /// Let its requests wait
    Pause(One),
    /// Go on with requests that wait
    Resume(One),
    /// End it; requests that wait fail
    Close(One),
}

/// A thread to open.
#[derive(Debug, clap::Args)]
pub(crate) struct Open {
    /// The agent that answers
    #[arg(value_name = "AGENT")]
    agent: String,
    #[command(flatten)]
    workspace: InWorkspace,
    #[command(flatten)]
    connect: Connect,
}

/// Which threads.
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    workspace: InWorkspace,
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    connect: Connect,
}

/// One thread.
#[derive(Debug, clap::Args)]
pub(crate) struct One {
    /// The thread
    #[arg(value_name = "THREAD")]
    thread: String,
    #[command(flatten)]
    connect: Connect,
}

/// Its turns.
#[derive(Debug, clap::Args)]
pub(crate) struct Turns {
    /// The thread
    #[arg(value_name = "THREAD")]
    thread: String,
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    connect: Connect,
}

/// A request.
#[derive(Debug, clap::Args)]
pub(crate) struct Say {
    /// The thread
    #[arg(value_name = "THREAD")]
    thread: String,
    #[command(flatten)]
    input: Input,
    /// Idempotency key: 1 to 255 visible ASCII characters [default: a new one]
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Wait for the answer
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    connect: Connect,
}

impl ThreadCommand {
    pub(super) async fn run(self) -> Result<ExitCode, Failure> {
        match self {
            Self::Open(open) => {
                let workspace = open.workspace.id(&open.connect).await?;
                let path = format!("/v1/workspaces/{workspace}/threads");
                let body = json!({ "agent_id": open.agent });
                let thread = open.connect.send(Method::POST, &path, Some(&body)).await?;
                show::one(&thread, open.connect.json)?;
            }
            Self::List(list) => {
                let workspace = list.workspace.id(&list.connect).await?;
                let path = format!("/v1/workspaces/{workspace}/threads");
                let listed = list.connect.list(&path, &list.part).await?;
                let columns = [
                    ("ID", "id"),
                    ("AGENT", "agent_id"),
                    ("STATE", "state"),
                    ("CREATED", "created_at"),
                ];
                show::list(&listed, &columns, list.connect.json)?;
            }
            Self::Show(one) => {
                let thread = one.connect.get(&path(&one.thread, "")).await?;
                show::one(&thread, one.connect.json)?;
            }
            Self::Say(say) => return say.run().await,
            Self::Turns(turns) => {
                let path = path(&turns.thread, "/turns");
                let listed = turns.connect.list(&path, &turns.part).await?;
                let columns = [
                    ("ID", "id"),
                    ("STATE", "state"),
                    ("RUN", "run_id"),
                    ("REQUESTER", "requester"),
                    ("INPUT", "input"),
                ];
                show::list(&listed, &columns, turns.connect.json)?;
            }
            Self::Pause(one) => one.become_("/pause").await?,
            Self::Resume(one) => one.become_("/resume").await?,
            Self::Close(one) => one.become_("/close").await?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl One {
    async fn become_(&self, state: &str) -> Result<(), Failure> {
        let path = path(&self.thread, state);
        let thread = self.connect.send(Method::POST, &path, None).await?;
        show::one(&thread, self.connect.json)
    }
}

impl Say {
    async fn run(self) -> Result<ExitCode, Failure> {
        let client = self.connect.client()?;
        let body = json!({ "input": self.input.value()? });
        let path = path(&self.thread, "/turns");
        let started = client
            .start::<Value>(&path, &body, self.key.as_deref())
            .await;
        let started = started.map_err(|error| fault::failure(&error))?;
        if !self.connect.json {
            say(format_args!("key {}", started.key));
        }
        if !self.wait {
            show::one(&started.run, self.connect.json)?;
            return Ok(ExitCode::SUCCESS);
        }
        let id = started.run["run"]["id"].as_str().unwrap_or_default();
        let path = format!("/v1/runs/{}", escaped(id));
        let ended = client.wait::<Value>(&path, None, watch::ended).await;
        let run = ended.map_err(|error| fault::failure(&error))?;
        show::one(&run, self.connect.json)?;
        Ok(watch::exit(&run))
    }
}

fn path(thread: &str, rest: &str) -> String {
    format!("/v1/threads/{}{rest}", escaped(thread))
}
