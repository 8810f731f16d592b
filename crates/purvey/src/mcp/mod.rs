//! `purvey mcp`

mod arguments;
mod output;
mod sequences;
mod server;
mod tools;

use crate::check::runtime;
use crate::failure::{Failure, say};
use crate::reach::Reach;
use purvey_agent::{Agent, cache::Cache};
use rmcp::ServiceExt;
use server::{Server, Settings};
use std::{process::ExitCode, time::Duration};
use tracing_subscriber::EnvFilter;

/// Most bytes that are kept of what Services answered.
const CACHE_BYTES: usize = 32 << 20;
/// Longest time for one operation, its retries included.
const DEADLINE: Duration = Duration::from_secs(60);

/// Serves the Agent to a model over standard input and output (Model Context Protocol).
#[derive(Debug, clap::Args)]
pub(crate) struct Mcp {
    #[command(flatten)]
    reach: Reach,
    /// Only these Services can be asked; may be given several times [default: any public one]
    #[arg(long, value_name = "ORIGIN")]
    origin: Vec<String>,
    /// Offer the tool that invokes Actions; it acts in the world, so let a person confirm its calls
    #[arg(long)]
    allow_invoke: bool,
    /// Languages to ask Services for, the preferred one first
    #[arg(long, value_name = "TAG", value_delimiter = ',')]
    lang: Vec<String>,
    /// Most bytes of one result, 2000 or more
    #[arg(long, value_name = "N", default_value_t = 24_000, value_parser = bytes)]
    max_bytes: usize,
    /// What is logged to standard error: off, error, warn, info, debug, trace
    #[arg(long, value_name = "LEVEL", default_value = "warn")]
    log: EnvFilter,
}

fn bytes(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number >= 2_000 => Ok(number),
        _ => Err("must be a number, at least 2000".to_owned()),
    }
}

impl Mcp {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let origins = self.origin.iter().map(|text| self.reach.origin(text));
        let origins = origins.collect::<Result<Vec<_>, _>>()?;
        let only = match origins.as_slice() {
            [only] => Some(only),
            _ => None,
        };
        if self.reach.has_token() && only.is_none() {
            return Err(
                Failure::usage("--token, PURVEY_TOKEN and --token-file need one --origin")
                    .hint("a token is for one Service alone"),
            );
        }
        // Standard output is the protocol's.
        let log = tracing_subscriber::fmt().with_writer(std::io::stderr);
        log.with_ansi(false).with_env_filter(self.log).init();
        let transport = self.reach.transport(only)?;
        let transport = transport.cache(Cache::memory(CACHE_BYTES));
        let agent = Agent::builder()
            .transport(transport.build().map_err(Failure::new)?)
            .local_development(self.reach.local)
            .languages(self.lang)
            .deadline(DEADLINE)
            .build()
            .map_err(Failure::usage)?;
        let server = Server::new(
            agent,
            Settings {
                reach: self.reach,
                origins,
                allow_invoke: self.allow_invoke,
                max_bytes: self.max_bytes,
            },
        );
        let runtime = runtime()?;
        let served = runtime.block_on(async {
            let served = server.serve(rmcp::transport::stdio()).await;
            let running = served.map_err(|error| {
                Failure::new(format_args!(
                    "the client does not speak the protocol: {error}"
                ))
            })?;
            running.waiting().await.map_err(Failure::new)
        });
        // A read of standard input cannot be called off; nobody waits for it.
        runtime.shutdown_background();
        let reason = served?;
        say(format_args!("ended: {reason:?}"));
        Ok(ExitCode::SUCCESS)
    }
}
