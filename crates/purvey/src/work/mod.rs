//! The run platform on the command line: a client of any server's Work API.

mod agent;
mod artifact;
mod connect;
mod fault;
mod input;
mod limits;
mod people;
mod run;
mod show;
mod thread;
mod token;
mod transfer;
mod trigger;
mod watch;
mod workspace;

use crate::{failure::Failure, interrupt::interruptible};
use clap::Subcommand;
use std::process::ExitCode;

/// Exit codes of these commands, for their help.
const AFTER_HELP: &str = "\
The server is named by --server or PURVEY_SERVER, the token by --token-file, PURVEY_TOKEN_FILE or PURVEY_TOKEN.
Exit codes: 0 done, 1 failed, 2 wrong usage or a request that breaks rules, 4 there is no such thing, 5 not permitted,
6 not reachable, or not now (limits, budgets), 8 the run failed or was cancelled, 9 it conflicts with the present state, 130 interrupted.";

/// What can be done with runs and what belongs to them.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkCommand {
    /// Create, change and list agents
    #[command(subcommand, after_help = AFTER_HELP)]
    Agent(agent::AgentCommand),
    /// Start, watch, list and cancel runs
    #[command(subcommand, after_help = AFTER_HELP)]
    Run(run::RunCommand),
    /// Upload, download, list and delete artifacts
    #[command(subcommand, after_help = AFTER_HELP)]
    Artifact(artifact::ArtifactCommand),
    /// Hold conversations with an agent
    #[command(subcommand, after_help = AFTER_HELP)]
    Thread(thread::ThreadCommand),
    /// Start runs by the clock or by a webhook
    #[command(subcommand, after_help = AFTER_HELP)]
    Trigger(trigger::TriggerCommand),
    /// Make, list and revoke tokens
    #[command(subcommand, after_help = AFTER_HELP)]
    Token(token::TokenCommand),
    /// Workspaces, their members and limits
    #[command(subcommand, after_help = AFTER_HELP)]
    Workspace(workspace::WorkspaceCommand),
    /// Users (for the operator)
    #[command(subcommand, after_help = AFTER_HELP)]
    User(people::UserCommand),
    /// Organizations (for the operator)
    #[command(subcommand, after_help = AFTER_HELP)]
    Organization(people::OrganizationCommand),
    /// The platform's daily limits and the stop of all spending (for the operator)
    #[command(subcommand, after_help = AFTER_HELP)]
    Limits(limits::LimitsCommand),
}

/// Does it.
pub(crate) fn run(command: WorkCommand) -> Result<ExitCode, Failure> {
    interruptible(
        "interrupted; what was started goes on at the server",
        dispatch(command),
    )
}

async fn dispatch(command: WorkCommand) -> Result<ExitCode, Failure> {
    match command {
        WorkCommand::Agent(command) => command.run().await,
        WorkCommand::Run(command) => command.run().await,
        WorkCommand::Artifact(command) => command.run().await,
        WorkCommand::Thread(command) => command.run().await,
        WorkCommand::Trigger(command) => command.run().await,
        WorkCommand::Token(command) => command.run().await,
        WorkCommand::Workspace(command) => command.run().await,
        WorkCommand::User(command) => command.run().await,
        WorkCommand::Organization(command) => command.run().await,
        WorkCommand::Limits(command) => command.run().await,
    }
}
