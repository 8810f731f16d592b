//! The command line.

use crate::{
    agent::{self, AgentCommand},
    catalog::{self, CatalogCommand},
    check::{self, Check},
    failure::Failure,
    mcp::Mcp,
    serve,
    settings::Settings,
    work::{self, WorkCommand},
};
use clap::{CommandFactory, Parser, Subcommand};
use std::{path::PathBuf, process::ExitCode};

/// Publish a catalog, discover and search any.
#[derive(Debug, Parser)]
#[command(
    version,
    arg_required_else_help = true,
    after_help = "Data goes to standard output, everything else to standard error.\n\
        Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 done but for some records or Services.\n\
        Commands that read Services have further ones: see their help."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve a catalog as an ODP Service
    #[command(
        after_help = "Every option can also be set by its variable or, under the same name with _ for -, in the \
        file that --config names; a flag wins over a variable, a variable over the file."
    )]
    Serve {
        /// Configuration file, TOML
        #[arg(long, value_name = "FILE", env = "PURVEY_CONFIG")]
        config: Option<PathBuf>,
        #[command(flatten)]
        settings: Box<Settings>,
    },
    /// Import, export and look at catalogs
    #[command(subcommand)]
    Catalog(CatalogCommand),
    #[command(flatten)]
    Discover(AgentCommand),
    #[command(flatten)]
    Work(WorkCommand),
    /// Check a deployed Service against the protocol
    #[command(after_help = check::AFTER_HELP)]
    Check(Check),
    /// Serve the Agent to a model over standard input and output (Model Context Protocol)
    Mcp(Box<Mcp>),
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

impl Cli {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        match self.command {
            Command::Serve { config, settings } => {
                serve::run(&settings.with_file(config.as_deref())?)
            }
            Command::Catalog(command) => catalog::run(command),
            Command::Discover(command) => agent::run(command),
            Command::Work(command) => work::run(command),
            Command::Check(check) => check.run(),
            Command::Mcp(mcp) => mcp.run(),
            Command::Completions { shell } => {
                let mut script = Vec::new();
                clap_complete::generate(shell, &mut Self::command(), "purvey", &mut script);
                use std::io::Write;
                // A reader that has seen enough is no failure.
                let _ = std::io::stdout().lock().write_all(&script);
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
