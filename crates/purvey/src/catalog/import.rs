//! `purvey catalog import`

use super::{print_json, progress::Bar};
use crate::{
    failure::{FAILED, Failure, IN_PART, must_be_directory, say},
    serve::read_manifest,
    text::harmless,
};
use purvey_catalog::{
    catalog::Catalog,
    import::{ImportOptions, ImportReport, OnError, Reason, Rejected, import},
    manifest::Manifest,
    reader::{Format, Source},
    store::Store,
};
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

pub(super) const AFTER_HELP: &str = "\
Everything is imported in one transaction: until it commits, the catalog stays as it was.
Exit codes: 0 imported (or, with --dry-run, all valid), 1 failed and nothing imported (with --dry-run: it would fail), 2 wrong usage
or a faulty manifest, which includes one that maps a column that the table has not,
3 imported but for the rejected records (with --dry-run: some would be rejected).";

/// Rejected records shown on the screen; the report has them all.
const SHOWN: usize = 20;

/// What to import, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct Import {
    /// Directory of the catalog; created if missing
    #[arg(long, value_name = "DIR", env = "PURVEY_DATA")]
    data: PathBuf,
    /// Manifest (catalog.toml); without it the catalog keeps the one it has
    #[arg(long, value_name = "FILE", env = "PURVEY_MANIFEST")]
    manifest: Option<PathBuf>,
    /// Files of records, JSON, NDJSON, CSV or TSV, plain, .gz or .zst; - is standard input
    #[arg(value_name = "RECORDS")]
    records: Vec<PathBuf>,
    /// Format of the records, whatever their names say [default: by name; standard input: ndjson]
    #[arg(long, value_name = "FORMAT")]
    format: Option<RecordFormat>,
    /// Check everything, write nothing
    #[arg(long)]
    dry_run: bool,
    /// The import becomes the whole catalog, in one step; otherwise records are added and replaced by id
    #[arg(long)]
    replace: bool,
    /// What a bad record means: stop and import nothing, or leave it out
    #[arg(long, value_name = "WHAT", default_value = "stop")]
    on_error: OnBad,
    /// Where rejected records are kept; the reasons go beside it, to FILE.report.ndjson [default: rejects in the data directory]
    #[arg(long, value_name = "FILE")]
    rejects: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum RecordFormat {
    Json,
    Ndjson,
    Csv,
    Tsv,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum OnBad {
    Stop,
    Skip,
}

impl Import {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        must_be_directory(&self.data)?;
        let manifest = match &self.manifest {
            Some(path) => Arc::new(read_manifest(path)?),
            None => stored_manifest(&self.data)?,
        };
        for path in self.records.iter().filter(|path| path.as_os_str() != "-") {
            if !path.is_file() && !path.exists() {
                return Err(Failure::usage(format_args!(
                    "{}: there is no such file",
                    path.display()
                )));
            }
            if self.format.is_none() && Format::of(path).is_none() {
                return Err(Failure::usage(format_args!(
                    "{}: its name does not say its format",
                    path.display()
                ))
                .hint("say it with --format json, ndjson, csv or tsv"));
            }
        }
        let sources: Vec<Source> = self.records.iter().map(Source::of).collect();
        let rejects = match &self.rejects {
            Some(path) => Some(path.clone()),
            // A dry run leaves nothing behind, not even a directory.
            None if self.dry_run => None,
            None => Some(self.data.join("rejects")),
        };
        let options = ImportOptions {
            replace: self.replace,
            dry_run: self.dry_run,
            on_error: match self.on_error {
                OnBad::Stop => OnError::Stop,
                OnBad::Skip => OnError::Skip,
            },
            rejects,
            format: self.format.map(|format| match format {
                RecordFormat::Json => Format::Json,
                RecordFormat::Ndjson => Format::Ndjson,
                RecordFormat::Csv => Format::Csv,
                RecordFormat::Tsv => Format::Tsv,
            }),
            ..ImportOptions::default()
        };
        let bar = Bar::new(true);
        let report = import(&self.data, &manifest, &sources, &options, &bar);
        bar.finish();
        let report = report?;
        if self.json {
            print_json(&report)?;
        }
        for line in summary(&report, &options) {
            say(format_args!("{line}"));
        }
        Ok(exit(&report, self.dry_run))
    }
}

/// The manifest of the catalog that is there.
fn stored_manifest(data: &Path) -> Result<Arc<Manifest>, Failure> {
    if Store::open_existing(data)?.is_none() {
        return Err(
            Failure::usage("a new catalog needs a manifest").hint("name it with --manifest FILE")
        );
    }
    let catalog = Catalog::open(data, purvey_catalog::catalog::Options::default())?;
    Ok(catalog.manifest())
}

fn exit(report: &ImportReport, dry_run: bool) -> ExitCode {
    match (report.rejected, report.committed || dry_run) {
        _ if !report.unfit.is_empty() => ExitCode::from(FAILED),
        (0, true) => ExitCode::SUCCESS,
        (_, true) => ExitCode::from(IN_PART),
        (_, false) => ExitCode::from(FAILED),
    }
}

/// What the screen says at the end.
fn summary(report: &ImportReport, options: &ImportOptions) -> Vec<String> {
    let doubts = report.warnings.iter().take(SHOWN).flat_map(reasons);
    let mut lines: Vec<String> = doubts.map(|line| format!("warning: {line}")).collect();
    more(&mut lines, report.doubtful);
    lines.extend(report.faults.iter().take(SHOWN).flat_map(reasons));
    more(&mut lines, report.rejected);
    let unfit = report.unfit.iter();
    lines.extend(unfit.map(|Reason { pointer, reason }| {
        format!("stored: {}: {}", harmless(pointer), harmless(reason))
    }));
    if report.rejected > 0
        && let Some(rejects) = &options.rejects
    {
        let rejects = rejects.display();
        lines.push(format!(
            "rejected records are in {rejects}, the reasons in {rejects}.report.ndjson"
        ));
    }
    let what = match (report.committed, options.dry_run) {
        (true, _) => "imported",
        (false, true) => "valid, nothing written:",
        (false, false) => "nothing imported; valid up to there:",
    };
    let generation = report.generation.map_or_else(String::new, |generation| {
        format!(", generation {generation}")
    });
    lines.push(format!(
        "{what} {} offerings and {} collections, rejected {}, in {:.1} s{generation}",
        report.offerings, report.collections, report.rejected, report.seconds
    ));
    if !report.unfit.is_empty() {
        lines.push(
            "  hint: stored Offerings no longer fit the manifest, so the import would fail: mend the manifest, or bring those Offerings anew"
                .to_owned(),
        );
    }
    if !report.committed && !options.dry_run {
        lines
            .push("  hint: mend the record, or leave bad ones out with --on-error skip".to_owned());
    }
    lines
}

/// Says how many of `count` records were not shown.
fn more(lines: &mut Vec<String>, count: u64) {
    let hidden = count.saturating_sub(SHOWN as u64);
    if hidden > 0 {
        lines.push(format!("… and {hidden} more"));
    }
}

fn reasons(rejected: &Rejected) -> Vec<String> {
    let place = format!("{}:{}", rejected.source.display(), rejected.line);
    let line = |pointer: &str, reason: &str| {
        let pointer = if pointer.is_empty() {
            "record"
        } else {
            pointer
        };
        format!("{place}: {}: {}", harmless(pointer), harmless(reason))
    };
    let violations = rejected.violations.iter();
    violations
        .map(|violation| line(&violation.pointer, &violation.reason))
        .collect()
}
