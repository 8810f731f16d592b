//! `purvey agent`

use super::{
    connect::{Connect, InWorkspace, Part, escaped},
    input, show,
};
use crate::{failure::Failure, units::Time};
use clap::Subcommand;
use http::Method;
use serde_json::{Map, Value, json};
use std::{path::PathBuf, process::ExitCode};

/// What can be done with agents.
#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// Create an agent
    Create(Box<Create>),
    /// List agents, the newest first
    List(List),
    /// Show an agent
    Show(One),
    /// Change an agent; what is not named stays as it is
    Update(Box<Update>),
    /// Refuse new starts, and fail those that wait
    Pause(One),
    /// Take starts again
    Resume(One),
    /// Make it an Offering of the catalog
    Publish(One),
    /// Take it out of the catalog
    Unpublish(One),
    /// Delete an agent that has no unfinished runs
    Delete(One),
}

/// What an agent is.
#[derive(Debug, clap::Args)]
pub(crate) struct Definition {
    /// What the model is told
    #[arg(long, value_name = "TEXT")]
    instructions: Option<String>,
    /// File that holds the instructions
    #[arg(long, value_name = "FILE", conflicts_with = "instructions")]
    instructions_file: Option<PathBuf>,
    /// The provider's name of the model
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// File with the JSON Schema that input must fit
    #[arg(long, value_name = "FILE")]
    input_schema: Option<PathBuf>,
    /// File with the JSON Schema that output must fit: the output contract
    #[arg(long, value_name = "FILE")]
    output_schema: Option<PathBuf>,
    /// Longest time from the start of a run to its end, pauses included [default: 1h]
    #[arg(long, value_name = "TIME")]
    time_limit: Option<Time>,
    /// Tool that the model may use: odp_search, odp_get, odp_invoke; may be repeated
    #[arg(long = "tool", value_name = "TOOL")]
    tools: Vec<String>,
    /// Who may see and start it: private, workspace or organization
    #[arg(long, value_name = "WHO")]
    visibility: Option<String>,
    /// User whom it is shared with whatever its visibility; may be repeated
    #[arg(long = "share", value_name = "USER")]
    shared_with: Vec<String>,
}

/// An agent to create.
#[derive(Debug, clap::Args)]
pub(crate) struct Create {
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,
    /// A provider of the server's configuration, or echo
    #[arg(long, value_name = "PROVIDER")]
    provider: String,
    #[command(flatten)]
    definition: Definition,
    #[command(flatten)]
    workspace: InWorkspace,
    #[command(flatten)]
    connect: Connect,
}

/// A change.
#[derive(Debug, clap::Args)]
pub(crate) struct Update {
    /// The agent
    #[arg(value_name = "AGENT")]
    agent: String,
    /// Its new name
    #[arg(long)]
    name: Option<String>,
    /// A provider of the server's configuration, or echo
    #[arg(long, value_name = "PROVIDER")]
    provider: Option<String>,
    #[command(flatten)]
    definition: Definition,
    #[command(flatten)]
    connect: Connect,
}

/// Which agents.
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    workspace: InWorkspace,
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    connect: Connect,
}

/// One agent.
#[derive(Debug, clap::Args)]
pub(crate) struct One {
    /// The agent
    #[arg(value_name = "AGENT")]
    agent: String,
    #[command(flatten)]
    connect: Connect,
}

impl AgentCommand {
    pub(super) async fn run(self) -> Result<ExitCode, Failure> {
        match self {
            Self::Create(create) => create.run().await,
            Self::List(list) => list.run().await,
            Self::Show(one) => {
                let agent = one.connect.get(&one.path()).await?;
                show::one(&agent, one.connect.json)
            }
            Self::Update(update) => update.run().await,
            Self::Pause(one) => one.set("paused", true).await,
            Self::Resume(one) => one.set("paused", false).await,
            Self::Publish(one) => one.set("published", true).await,
            Self::Unpublish(one) => one.set("published", false).await,
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

impl Definition {
    /// Puts what is given into a body.
    fn fill(&self, body: &mut Map<String, Value>) -> Result<(), Failure> {
        let instructions = match &self.instructions_file {
            Some(path) => Some(std::fs::read_to_string(path).map_err(|error| {
                Failure::usage(format_args!(
                    "--instructions-file {}: {error}",
                    path.display()
                ))
            })?),
            None => self.instructions.clone(),
        };
        let schemas = [
            ("input_schema", "--input-schema", &self.input_schema),
            ("output_schema", "--output-schema", &self.output_schema),
        ];
        for (member, flag, path) in schemas {
            if let Some(path) = path {
                body.insert(member.into(), input::file(flag, path)?);
            }
        }
        let texts = [
            ("instructions", &instructions),
            ("model", &self.model),
            ("visibility", &self.visibility),
        ];
        for (member, text) in texts {
            if let Some(text) = text {
                body.insert(member.into(), json!(text));
            }
        }
        if let Some(Time(limit)) = self.time_limit {
            body.insert("time_limit_seconds".into(), json!(limit.as_secs()));
        }
        for (member, texts) in [("tools", &self.tools), ("shared_with", &self.shared_with)] {
            if !texts.is_empty() {
                body.insert(member.into(), json!(texts));
            }
        }
        Ok(())
    }
}

impl Create {
    async fn run(&self) -> Result<(), Failure> {
        let mut body = Map::new();
        body.insert("name".into(), json!(self.name));
        body.insert("provider".into(), json!(self.provider));
        body.insert("instructions".into(), json!(""));
        body.insert("model".into(), json!(""));
        self.definition.fill(&mut body)?;
        let workspace = self.workspace.id(&self.connect).await?;
        let path = format!("/v1/workspaces/{workspace}/agents");
        let agent = self
            .connect
            .send(Method::POST, &path, Some(&body.into()))
            .await?;
        show::one(&agent, self.connect.json)
    }
}

impl Update {
    async fn run(&self) -> Result<(), Failure> {
        let mut body = Map::new();
        for (member, text) in [("name", &self.name), ("provider", &self.provider)] {
            if let Some(text) = text {
                body.insert(member.into(), json!(text));
            }
        }
        self.definition.fill(&mut body)?;
        let path = format!("/v1/agents/{}", escaped(&self.agent));
        let agent = self
            .connect
            .send(Method::PATCH, &path, Some(&body.into()))
            .await?;
        show::one(&agent, self.connect.json)
    }
}

impl List {
    async fn run(&self) -> Result<(), Failure> {
        let workspace = self.workspace.id(&self.connect).await?;
        let path = format!("/v1/workspaces/{workspace}/agents");
        let listed = self.connect.list(&path, &self.part).await?;
        let columns = [
            ("ID", "id"),
            ("NAME", "name"),
            ("PROVIDER", "provider"),
            ("MODEL", "model"),
            ("VISIBILITY", "visibility"),
            ("PAUSED", "paused"),
            ("PUBLISHED", "published"),
        ];
        show::list(&listed, &columns, self.connect.json)
    }
}

impl One {
    fn path(&self) -> String {
        format!("/v1/agents/{}", escaped(&self.agent))
    }

    async fn set(&self, member: &str, value: bool) -> Result<(), Failure> {
        let body = json!({ member: value });
        let agent = self
            .connect
            .send(Method::PATCH, &self.path(), Some(&body))
            .await?;
        show::one(&agent, self.connect.json)
    }
}
