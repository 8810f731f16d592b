//! Standard output, and how it looks on a terminal.

use crate::{failure::Failure, text};
use serde_json::Value;
use std::{
    io::{ErrorKind, IsTerminal, Write},
    ops::ControlFlow,
};

/// Writes to standard output, at once. Whoever reads us may have seen enough: then it says to stop, which is no failure.
pub(crate) fn write(bytes: impl AsRef<[u8]>) -> Result<ControlFlow<()>, Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes.as_ref()).and_then(|()| out.flush()) {
        Ok(()) => Ok(ControlFlow::Continue(())),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
        Err(error) => Err(Failure::new(format_args!("standard output: {error}"))),
    }
}

/// One JSON document on one line, without anything that could steer a terminal.
pub(crate) fn json_line(value: &Value) -> String {
    text::json(&value.to_string()) + "\n"
}

/// A document as it came, byte for byte, unless it goes to a terminal.
pub(crate) fn as_received(document: &[u8]) -> Vec<u8> {
    match std::io::stdout().is_terminal() {
        true => (text::json_as_received(document) + "\n").into_bytes(),
        false => document.to_vec(),
    }
}

/// Width of the terminal behind standard output; nothing when there is none.
pub(crate) fn width() -> Option<u16> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    terminal_size::terminal_size().map(|(width, _)| width.0)
}

/// Emphasis on standard output: only on a terminal, and not when `NO_COLOR` is set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style(bool);

impl Style {
    pub(crate) fn detect() -> Self {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self(std::io::stdout().is_terminal() && !set("NO_COLOR") && !dumb)
    }

    pub(crate) fn bold(self, text: &str) -> String {
        match self.0 {
            true => format!("\x1b[1m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }
}
