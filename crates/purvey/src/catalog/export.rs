//! `purvey catalog export`

use super::{must_exist, print_json};
use crate::failure::{Failure, say};
use purvey_catalog::{
    Error,
    catalog::Options,
    export::{export, export_records},
};
use std::{
    io::{BufWriter, ErrorKind},
    path::PathBuf,
    process::ExitCode,
};

/// Where from and where to.
#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    /// Directory of the catalog
    #[arg(long, value_name = "DIR", env = "PURVEY_DATA")]
    data: PathBuf,
    /// Directory to write to, created if missing; - writes the records alone to standard output
    #[arg(value_name = "OUT")]
    out: PathBuf,
    /// Replace the files of an earlier export
    #[arg(long)]
    force: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

impl Export {
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        must_exist(&self.data)?;
        let report = if self.out.as_os_str() == "-" {
            let mut out = BufWriter::new(std::io::stdout().lock());
            match export_records(&self.data, &mut out) {
                // Whoever reads us has seen enough.
                Err(Error::Io { source, .. }) if source.kind() == ErrorKind::BrokenPipe => {
                    return Ok(ExitCode::SUCCESS);
                }
                result => result?,
            }
        } else {
            let report = match export(&self.data, &self.out, self.force, &Options::default()) {
                Err(error @ Error::Conflict { .. }) => {
                    return Err(Failure::new(error)
                        .hint("name another directory, or replace what is there with --force"));
                }
                result => result?,
            };
            if self.json {
                print_json(&report)?;
            }
            report
        };
        say(format_args!(
            "exported {} offerings and {} collections to {}",
            report.offerings,
            report.collections,
            self.out.display()
        ));
        Ok(ExitCode::SUCCESS)
    }
}
