//! Running the commands.

use std::process::{Command, Output};

use e2e::binary::{command, said};
use e2e::server::Server;
use serde_json::Value;

/// A command of the Agent at a Service on this machine, with no cache of the user's.
pub(crate) fn agent(arguments: &[&str]) -> Command {
    let mut command = command();
    command
        .args(arguments)
        .arg("--local")
        .env_remove("NO_COLOR");
    command
}

/// Runs it to its end.
pub(crate) fn run(arguments: &[&str]) -> Output {
    agent(arguments).output().unwrap()
}

/// Runs it; it must succeed. Gives what it wrote to standard output.
pub(crate) fn ok(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{arguments:?}: {}",
        said(&output)
    );
    stdout(&output)
}

/// Runs it; it must end with this code. Gives what it wrote to standard error.
pub(crate) fn fails(code: i32, arguments: &[&str]) -> String {
    let output = run(arguments);
    assert_eq!(
        output.status.code(),
        Some(code),
        "{arguments:?}: {}",
        said(&output)
    );
    stderr(&output)
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Lines of JSON.
pub(crate) fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The one document that a command prints with `--json`.
pub(crate) fn json(arguments: &[&str]) -> Value {
    let mut documents = lines(&ok(arguments));
    assert_eq!(documents.len(), 1);
    documents.remove(0)
}

/// The demo, served.
pub(crate) fn demo() -> Server {
    let mut command = command();
    command.args(["serve", "--demo", "--listen", "127.0.0.1:0"]);
    Server::run(command).unwrap_or_else(|said| panic!("the demo does not start:\n{said}"))
}
