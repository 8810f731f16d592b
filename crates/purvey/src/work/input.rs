//! JSON that is given on the command line.

use crate::failure::Failure;
use serde_json::Value;
use std::{io::Read, path::PathBuf};

/// The input of a run.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
pub(super) struct Input {
    /// Input as JSON, for example '{"question": "…"}' or '"text"'
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// Input as plain text: it becomes a JSON string
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// File that holds the input as JSON; - is standard input
    #[arg(long, value_name = "FILE")]
    input_file: Option<PathBuf>,
}

impl Input {
    /// The input that is meant; nothing given is `null`.
    pub(super) fn value(&self) -> Result<Value, Failure> {
        if let Some(text) = &self.text {
            return Ok(Value::String(text.clone()));
        }
        if let Some(text) = &self.input {
            return json("--input", text);
        }
        match &self.input_file {
            Some(path) => file("--input-file", path),
            None => Ok(Value::Null),
        }
    }
}

/// JSON text.
pub(super) fn json(what: &str, text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| {
        Failure::usage(format_args!("{what} is not JSON: {error}"))
            .hint("a string needs its own quotes: '\"text\"'")
    })
}

/// JSON in a file.
pub(super) fn file(what: &str, path: &std::path::Path) -> Result<Value, Failure> {
    let shown = path.display();
    let read = if path.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    let text = read.map_err(|error| Failure::usage(format_args!("{what} {shown}: {error}")))?;
    json(&format!("{what} {shown}"), &text)
}
