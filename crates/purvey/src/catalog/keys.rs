//! `purvey catalog keys`

use super::{must_exist, print_json};
use crate::failure::{Failure, say};
use clap::Subcommand;
use purvey_catalog::{
    clock::{Clock, SystemClock},
    cursor::CursorKeys,
    fs::Durability,
};
use std::{path::PathBuf, process::ExitCode};

/// What can be done with the keys.
#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Seal continuations with a new key; those handed out go on until they expire, then their key is dropped
    Rotate(Rotate),
}

/// Whose keys.
#[derive(Debug, clap::Args)]
pub(crate) struct Rotate {
    /// Directory of the catalog
    #[arg(long, value_name = "DIR", env = "PURVEY_DATA")]
    data: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Does it.
pub(super) fn run(command: &KeysCommand) -> Result<ExitCode, Failure> {
    let KeysCommand::Rotate(rotate) = command;
    must_exist(&rotate.data)?;
    let keys = CursorKeys::open(&rotate.data, &Durability::default())?;
    keys.rotate(SystemClock.now())?;
    if rotate.json {
        print_json(&serde_json::json!({ "keys": keys.count() }))?;
    }
    say(format_args!(
        "a new key seals continuations; {} keys are kept for those handed out before",
        keys.count() - 1
    ));
    Ok(ExitCode::SUCCESS)
}
