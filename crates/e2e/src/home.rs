//! A server with its first owner, as whoever types commands meets it.

use crate::{
    binary,
    server::{self, ADMIN_TOKEN, Server},
};
use serde_json::Value;
use std::{path::PathBuf, process::Command};
use tempfile::TempDir;

/// A server, and the token of its first owner.
#[derive(Debug)]
pub struct Home {
    /// It runs until this goes, and goes before its files.
    pub server: Server,
    /// Where the first owner's token is.
    pub token_file: PathBuf,
    /// The server's files.
    pub directory: TempDir,
}

impl Home {
    /// Starts a server with this configuration.
    #[must_use]
    pub fn start(config: &str) -> Self {
        let directory = TempDir::new().unwrap();
        let data = directory.path().join("data");
        let file = directory.path().join("purvey.toml");
        std::fs::write(&file, config).unwrap();
        let mut serve = server::serve(&data);
        serve.arg("--config").arg(&file);
        Self {
            server: Server::run(serve).unwrap(),
            token_file: data.join("owner-token"),
            directory,
        }
    }

    /// A command as the first owner.
    #[must_use]
    pub fn owner(&self, arguments: &[&str]) -> Command {
        let mut command = binary::command();
        command
            .args(arguments)
            .args(["--server", &self.server.url, "--token-file"])
            .arg(&self.token_file);
        command
    }

    /// A command as the operator.
    #[must_use]
    pub fn operator(&self, arguments: &[&str]) -> Command {
        let mut command = binary::command();
        command
            .args(arguments)
            .args(["--server", &self.server.url])
            .env("PURVEY_TOKEN", ADMIN_TOKEN);
        command
    }

    /// What a command of the first owner prints with `--json`.
    #[allow(
        clippy::must_use_candidate,
        reason = "it is also asked for what it does"
    )]
    pub fn json(&self, arguments: &[&str]) -> Value {
        let arguments = [arguments, &["--json"]].concat();
        binary::json(&binary::succeed(self.owner(&arguments)))
    }

    /// A new agent.
    #[must_use]
    pub fn agent(&self, name: &str, provider: &str, more: &[&str]) -> String {
        let arguments = [&["agent", "create", name, "--provider", provider], more].concat();
        text(&self.json(&arguments)["id"])
    }
}

/// A text.
#[must_use]
pub fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value}"))
        .to_owned()
}
