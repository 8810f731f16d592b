//! `purvey-conformance`: an adapter for the vector harness on standard input and output, or with `run` a harness of its own.
#![forbid(unsafe_code)]

use purvey_conformance::adapter::Role;
use purvey_conformance::{adapter, run, vectors};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str =
    "usage: purvey-conformance                 answers one JSON request a line on standard input
       purvey-conformance run VECTORS_DIR --role service|agent [--json]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match parse(&arguments) {
        Some(Command::Adapt) => {
            adapter::serve(io::stdin().lock(), io::stdout().lock(), io::stderr().lock())
                .map(|()| ExitCode::SUCCESS)
        }
        Some(Command::Run(directory, role, json)) => check(&directory, role, json),
        None => {
            // Nothing helps if standard error is gone.
            let _ = writeln!(io::stderr(), "{USAGE}");
            return ExitCode::from(2);
        }
    };
    result.unwrap_or_else(|error| {
        let _ = writeln!(io::stderr(), "purvey-conformance: {error}");
        ExitCode::from(2)
    })
}

enum Command {
    Adapt,
    Run(PathBuf, Role, bool),
}

fn parse(arguments: &[String]) -> Option<Command> {
    let mut arguments = arguments.iter().map(String::as_str);
    match arguments.next() {
        None => return Some(Command::Adapt),
        Some("run") => {}
        Some(_) => return None,
    }
    let (mut directory, mut role, mut json) = (None, None, false);
    while let Some(argument) = arguments.next() {
        match argument {
            "--role" => role = Some(Role::parse(arguments.next()?)?),
            "--json" => json = true,
            path if !path.starts_with('-') && directory.is_none() => {
                directory = Some(PathBuf::from(path));
            }
            _ => return None,
        }
    }
    Some(Command::Run(directory?, role?, json))
}

fn check(directory: &std::path::Path, role: Role, json: bool) -> io::Result<ExitCode> {
    let report = run::run(&vectors::load(directory)?, role);
    let mut out = io::stdout().lock();
    if json {
        serde_json::to_writer_pretty(&mut out, &report)?;
        writeln!(out)?;
    } else {
        write!(out, "{report}")?;
    }
    Ok(ExitCode::from(u8::from(!report.is_clean())))
}
