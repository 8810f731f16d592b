//! How a command fails: what is wrong, what to do, and the exit code.

use crate::output;
use std::{fmt, path::Path, process::ExitCode};

/// Exit code when the work failed.
pub(crate) const FAILED: u8 = 1;
/// Exit code when the command line or the configuration is wrong.
pub(crate) const USAGE: u8 = 2;
/// Exit code when the work is done, but for some records or Services.
pub(crate) const IN_PART: u8 = 3;

/// A failure to be shown.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    details: Vec<String>,
    hint: Option<String>,
    code: u8,
}

impl Failure {
    /// The work failed.
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self {
            message: message.to_string(),
            details: Vec::new(),
            hint: None,
            code: FAILED,
        }
    }

    /// What was asked for cannot be asked.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self::new(message).exit_code(USAGE)
    }

    /// The same with this exit code.
    pub(crate) fn exit_code(self, code: u8) -> Self {
        Self { code, ..self }
    }

    /// The same, with what it is about.
    pub(crate) fn about(self, what: &str) -> Self {
        Self {
            message: format!("{what}: {}", self.message),
            ..self
        }
    }

    /// Adds a line of what is known about it.
    pub(crate) fn detail(mut self, detail: impl fmt::Display) -> Self {
        self.details.push(detail.to_string());
        self
    }

    /// Adds what to do about it.
    pub(crate) fn hint(self, hint: impl fmt::Display) -> Self {
        Self {
            hint: Some(hint.to_string()),
            ..self
        }
    }

    /// What is wrong, without what to do about it.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn print(&self) {
        say(format_args!("error: {}", self.message));
        for detail in &self.details {
            say(format_args!("  {detail}"));
        }
        if let Some(hint) = &self.hint {
            say(format_args!("  hint: {hint}"));
        }
    }

    pub(crate) fn code(&self) -> u8 {
        self.code
    }

    pub(crate) fn exit(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl From<purvey_catalog::Error> for Failure {
    fn from(error: purvey_catalog::Error) -> Self {
        use purvey_catalog::Error;
        let failure = Self::new(&error);
        match error {
            Error::Manifest(_) => failure.exit_code(USAGE),
            Error::Busy { .. } => failure.hint("wait for the import or server write that is running, then try again"),
            Error::Corrupt { path, .. } => match path.file_name().and_then(|name| name.to_str()) {
                Some(purvey_catalog::store::FILE) => {
                    failure.hint("restore the directory from a backup, or import into a fresh one")
                }
                Some("cursor") => failure
                    .hint("delete that file: a new key is made, and continuations under way end"),
                _ => failure.hint(
                    "the index can be built again from the records: `purvey catalog check --rebuild --data DIR`",
                ),
            },
            Error::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
                failure.hint("the user running purvey must be able to read and write the data directory")
            }
            _ => failure,
        }
    }
}

/// A data directory that is there is a directory.
pub(crate) fn must_be_directory(data: &Path) -> Result<(), Failure> {
    if !data.exists() || data.is_dir() {
        return Ok(());
    }
    let message = format_args!("--data {}: it is a file, not a directory", data.display());
    Err(Failure::usage(message).hint("name the directory that holds, or is to hold, the catalog"))
}

/// One line on standard error; nobody reading it is no reason to fail.
pub(crate) fn say(line: fmt::Arguments<'_>) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// One line of data on standard output.
pub(crate) fn print(line: fmt::Arguments<'_>) -> Result<(), Failure> {
    output::write(format!("{line}\n")).map(|_| ())
}
