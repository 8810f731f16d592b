//! Rejected records: as they came in one file, why in another beside it.

use crate::error::Error;
use crate::reader::{Header, Raw};
use purvey_odp::report::Violation;
use serde::Serialize;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A record that was rejected, or taken with doubts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rejected {
    /// The source: a file, or `-` for standard input.
    pub source: PathBuf,
    /// Line on which it starts, from 1.
    pub line: u64,
    /// What is wrong with it, or in doubt; never empty.
    pub violations: Vec<Reason>,
}

/// One broken rule, or one doubt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// JSON Pointer of the member that it is about; `""` for the whole record.
    pub pointer: String,
    /// What the rule asks for, or what the doubt is.
    pub reason: String,
}

impl Rejected {
    pub(super) fn new(source: &Path, line: u64, violations: Vec<Violation>) -> Self {
        Self {
            source: source.to_owned(),
            line,
            violations: violations.into_iter().map(Reason::from).collect(),
        }
    }
}

impl From<Violation> for Reason {
    fn from(Violation { pointer, reason }: Violation) -> Self {
        Self { pointer, reason }
    }
}

/// Writes both files; they come into being with the first rejected record.
pub(super) struct Rejects {
    records: PathBuf,
    reasons: PathBuf,
    files: Option<(BufWriter<File>, BufWriter<File>)>,
    /// The header that the rejected rows stand below.
    header: Option<Arc<Header>>,
}

impl Rejects {
    /// Takes away what an earlier import left there.
    pub(super) fn new(records: &Path) -> Result<Self, Error> {
        let reasons = crate::fs::beside(records, "report.ndjson");
        for path in [records, &reasons] {
            match std::fs::remove_file(path) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::io(path)(e));
                }
                _ => {}
            }
        }
        Ok(Self {
            records: records.to_owned(),
            reasons,
            files: None,
            header: None,
        })
    }

    /// Adds a record, below its table's header, so that the file can be mended and imported.
    pub(super) fn add(&mut self, raw: &Raw, rejected: &Rejected) -> Result<(), Error> {
        let (records, reasons) = match &mut self.files {
            Some(files) => files,
            None => {
                let create = |path: &Path| {
                    let file = File::create(path).map_err(Error::io(path))?;
                    Ok::<_, Error>(BufWriter::new(file))
                };
                self.files
                    .insert((create(&self.records)?, create(&self.reasons)?))
            }
        };
        let mut reason = serde_json::to_vec(rejected)
            .map_err(|e| Error::io(&self.reasons)(std::io::Error::other(e)))?;
        reason.push(b'\n');
        reasons
            .write_all(&reason)
            .map_err(Error::io(&self.reasons))?;
        let mut lines = Vec::with_capacity(2);
        if let Some(header) = raw.header()
            && self
                .header
                .as_ref()
                .is_none_or(|known| known.text() != header.text())
        {
            lines.push(header.text().as_bytes());
            self.header = Some(Arc::clone(header));
        }
        lines.push(&raw.bytes);
        lines
            .into_iter()
            .try_for_each(|line| {
                records
                    .write_all(line)
                    .and_then(|()| records.write_all(b"\n"))
            })
            .map_err(Error::io(&self.records))
    }

    pub(super) fn finish(&mut self) -> Result<(), Error> {
        if let Some((records, reasons)) = &mut self.files {
            records.flush().map_err(Error::io(&self.records))?;
            reasons.flush().map_err(Error::io(&self.reasons))?;
        }
        Ok(())
    }
}
