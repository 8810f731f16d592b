//! `purvey check`

mod print;

use crate::failure::{FAILED, Failure, IN_PART, say};
use crate::reach::Reach;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use purvey_agent::check::{Extent, Progress, Severity, check};
use std::{io::IsTerminal, process::ExitCode, sync::Arc};

/// What `--help` ends with.
pub(crate) const AFTER_HELP: &str = "Every advertised operation is exercised, and what it has to refuse. Nothing is written and no \
    Action is invoked.\nExit codes: 0 nothing worse than notes, 1 an error was found or the check could not be made, 2 wrong usage, \
    3 warnings but no error.\ndocs/check.md lists the rules.";

/// Checks a deployed Service.
#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    /// The Service: a host such as market.example, or an origin with its scheme
    #[arg(value_name = "ORIGIN")]
    origin: String,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
    /// Most requests in all
    #[arg(long, value_name = "N", default_value_t = Extent::default().requests, value_parser = positive)]
    max_requests: usize,
    /// Most pages of one list or search
    #[arg(long, value_name = "N", default_value_t = Extent::default().pages, value_parser = positive)]
    max_pages: usize,
    /// How many resources of each kind, and how many filters and sorts, are looked at closely
    #[arg(long, value_name = "N", default_value_t = Extent::default().samples, value_parser = positive)]
    samples: usize,
}

fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err("must be a number, at least 1".to_owned()),
    }
}

impl Check {
    pub(crate) fn run(&self) -> Result<ExitCode, Failure> {
        let origin = self.reach.origin(&self.origin)?;
        let transport = self.reach.transport(Some(&origin))?;
        let transport = Arc::new(transport.build().map_err(Failure::new)?);
        let extent = Extent {
            requests: self.max_requests,
            pages: self.max_pages,
            samples: self.samples,
        };
        let bar = bar();
        let mut watch = |Progress { step, requests, .. }: Progress| {
            bar.set_message(format!("{requests} requests, {step}"));
        };
        let outcome = runtime()?.block_on(check(transport, origin.as_str(), extent, &mut watch));
        bar.finish_and_clear();
        let outcome = outcome.map_err(Failure::usage)?;
        if self.json {
            print::json(&outcome)?;
        } else {
            print::lines(&outcome)?;
        }
        let count = |severity| outcome.count(severity);
        say(format_args!(
            "{} requests, {} of {} rules looked at: {} errors, {} warnings, {} notes",
            outcome.requests,
            outcome.exercised.len(),
            purvey_agent::check::rules().len(),
            count(Severity::Error),
            count(Severity::Warning),
            count(Severity::Note),
        ));
        Ok(match outcome.worst() {
            Some(Severity::Error) => ExitCode::from(FAILED),
            Some(Severity::Warning) => ExitCode::from(IN_PART),
            Some(Severity::Note) | None => ExitCode::SUCCESS,
        })
    }
}

/// Threads for a command that talks to Services.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format_args!("cannot start threads: {error}")))
}

/// What is being looked at, on standard error; nothing when that is no terminal.
fn bar() -> ProgressBar {
    let bar = ProgressBar::hidden();
    if std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(8));
        if let Ok(style) = ProgressStyle::with_template("{spinner}  {msg}") {
            bar.set_style(style);
        }
    }
    bar
}
