//! The Agent on the command line: reads any ODP Service.

mod action;
mod capabilities;
mod connect;
mod explain;
mod fault;
mod filter;
mod get;
mod inspect;
mod invoke;
mod list;
mod listing;
mod notes;
mod origin;
mod progress;
mod row;
mod search;
mod tree;
mod unknown;

pub(crate) use origin::parse as parse_origin;

use crate::{failure::Failure, interrupt::interruptible};
use clap::Subcommand;
use std::process::ExitCode;

/// Exit codes of these commands, for their help.
const AFTER_HELP: &str = "\
ORIGIN is a host, such as market.example, or an origin, such as https://market.example:8443.
Exit codes: 0 done, 1 failed, 2 wrong usage, or a request that the Service refuses, 3 done but for some Services,
4 there is no such thing, 5 not permitted: authentication or payment, 6 not reachable, or not now,
7 the answer is not to be trusted: it breaks the protocol or passes a limit, 130 interrupted.";

/// What can be done with a Service.
#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// Show what a Service is and can do
    #[command(after_help = AFTER_HELP)]
    Inspect(inspect::Inspect),
    /// List a Service's Collections, or search them
    #[command(after_help = AFTER_HELP)]
    Collections(list::Collections),
    /// List a Service's Offerings
    #[command(after_help = AFTER_HELP)]
    Offerings(list::Offerings),
    /// Search for Offerings, at one Service or at several
    #[command(after_help = AFTER_HELP)]
    Search(search::Search),
    /// Show one Offering or Collection in full
    #[command(after_help = AFTER_HELP)]
    Get(get::Get),
    /// Show by what a search can filter, sort and refine
    #[command(after_help = AFTER_HELP)]
    Capabilities(capabilities::Show),
    /// List what can be done about an Offering
    #[command(after_help = AFTER_HELP)]
    Actions(action::Actions),
    /// Do one of the things that `actions` lists
    #[command(after_help = AFTER_HELP)]
    Invoke(Box<invoke::Invoke>),
}

/// Does it.
pub(crate) fn run(command: AgentCommand) -> Result<ExitCode, Failure> {
    interruptible("interrupted", dispatch(command))
}

async fn dispatch(command: AgentCommand) -> Result<ExitCode, Failure> {
    match command {
        AgentCommand::Inspect(inspect) => inspect.run().await,
        AgentCommand::Collections(collections) => collections.run().await,
        AgentCommand::Offerings(offerings) => offerings.run().await,
        AgentCommand::Search(search) => search.run().await,
        AgentCommand::Get(get) => get.run().await,
        AgentCommand::Capabilities(show) => show.run().await,
        AgentCommand::Actions(actions) => actions.run().await,
        AgentCommand::Invoke(invoke) => invoke.run().await,
    }
}
