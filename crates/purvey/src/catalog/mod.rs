//! `purvey catalog`

mod explain;
mod export;
mod import;
mod keys;
mod progress;
mod token;

use crate::failure::{FAILED, Failure, must_be_directory, print, say};
use clap::Subcommand;
use purvey_catalog::{
    catalog::{Catalog, Options, Stats},
    index::Indexer,
    store::Store,
};
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

/// What can be done with a catalog.
#[derive(Debug, Subcommand)]
pub(crate) enum CatalogCommand {
    /// Read records into a catalog
    #[command(after_help = import::AFTER_HELP)]
    Import(import::Import),
    /// Write a catalog's records and manifest to a directory; importing them gives the same catalog
    Export(export::Export),
    /// Show what a catalog holds
    Stats(Inspect),
    /// Verify a catalog: checksums, and every record against what is served
    Check(Check),
    /// Show how a search is planned and where its time goes
    Explain(explain::Explain),
    /// The keys that seal continuations
    #[command(subcommand)]
    Keys(keys::KeysCommand),
    /// Make, list and revoke the tokens of those who may see records with an audience
    #[command(subcommand)]
    Token(token::TokenCommand),
}

/// Which catalog, and how to say it.
#[derive(Debug, clap::Args)]
pub(crate) struct Inspect {
    /// Directory of the catalog
    #[arg(long, value_name = "DIR", env = "PURVEY_DATA")]
    data: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Which catalog to check.
#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    #[command(flatten)]
    inspect: Inspect,
    /// Build the index anew from the records first, for example when a file of it is damaged; servers may go on running
    #[arg(long)]
    rebuild: bool,
}

/// Does it.
pub(crate) fn run(command: CatalogCommand) -> Result<ExitCode, Failure> {
    match command {
        CatalogCommand::Import(import) => import.run(),
        CatalogCommand::Export(export) => export.run(),
        CatalogCommand::Stats(inspect) => stats(&inspect),
        CatalogCommand::Check(command) => check(&command),
        CatalogCommand::Explain(explain) => explain.run(),
        CatalogCommand::Keys(command) => keys::run(&command),
        CatalogCommand::Token(command) => command.run(),
    }
}

/// Looking at a catalog creates none.
fn must_exist(data: &Path) -> Result<(), Failure> {
    must_be_directory(data)?;
    if Store::open_existing(data)?.is_some() {
        return Ok(());
    }
    let message = format_args!("--data {}: there is no catalog", data.display());
    Err(Failure::new(message).hint("`purvey catalog import` and `purvey serve` make one"))
}

fn open(data: &Path) -> Result<Catalog, Failure> {
    must_exist(data)?;
    Ok(Catalog::open(data, Options::default())?)
}

fn stats(inspect: &Inspect) -> Result<ExitCode, Failure> {
    let stats = open(&inspect.data)?.stats()?;
    if inspect.json {
        print_json(&stats)?;
    } else {
        let Stats {
            offerings,
            collections,
            languages,
            generation,
            change,
            generations,
            store_bytes,
            index_bytes,
        } = &stats;
        print(format_args!("offerings    {offerings}"))?;
        print(format_args!("collections  {collections}"))?;
        print(format_args!("languages    {}", languages.join(", ")))?;
        print(format_args!("generation   {generation} of {change}"))?;
        print(format_args!(
            "kept         {} generations",
            generations.len()
        ))?;
        print(format_args!(
            "records      {}",
            indicatif::HumanBytes(*store_bytes)
        ))?;
        print(format_args!(
            "index        {}",
            indicatif::HumanBytes(*index_bytes)
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn check(command: &Check) -> Result<ExitCode, Failure> {
    let inspect = &command.inspect;
    if command.rebuild {
        must_exist(&inspect.data)?;
        let generation = Indexer::rebuild(&inspect.data, &Options::default())?;
        say(format_args!(
            "the index was built anew: generation {}",
            generation.number()
        ));
    }
    let report = open(&inspect.data)?.check()?;
    if inspect.json {
        print_json(&report)?;
    } else {
        for fault in &report.faults {
            print(format_args!("{fault}"))?;
        }
    }
    say(format_args!(
        "{} records and {} segments checked, {} changes still to be indexed: {}",
        report.records,
        report.segments,
        report.unindexed,
        if report.faults.is_empty() {
            "whole"
        } else {
            "NOT whole"
        }
    ));
    if report.faults.is_empty() {
        Ok(ExitCode::SUCCESS)
    } else {
        Ok(ExitCode::from(FAILED))
    }
}

fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(Failure::new)?;
    print(format_args!("{text}"))
}
