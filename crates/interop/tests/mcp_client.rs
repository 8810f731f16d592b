//! The official Python MCP client drives `purvey mcp` against the demo.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a failure in a test's helper is the test's failure"
)]

use std::process::Command;

use e2e::binary;
use e2e::client::Client;
use e2e::python::python;
use e2e::server::Server;
use e2e::shared::project;
use serde_json::{Value, json};

#[test]
fn the_python_client_reads_the_demo() {
    let Some(python) = python(&project().join("crates/interop/python/mcp.txt")) else {
        return;
    };
    let mut command = binary::command();
    command.args(["serve", "--demo", "--listen", "127.0.0.1:0"]);
    let server = Server::run(command).unwrap_or_else(|said| panic!("{said}"));
    let mut walk = Command::new(python);
    walk.arg(project().join("crates/interop/python/mcp_walk.py"));
    walk.arg(binary::purvey()).arg(&server.url);
    let seen: Value = serde_json::from_slice(&binary::succeed(walk).stdout).unwrap();
    let client = Client::new(&server.url);
    let items = client.items(&client.operation("/offerings"));
    let ids: Vec<_> = items
        .iter()
        .map(|item| item["id"].as_str().unwrap())
        .collect();
    assert_eq!(seen["name"], "Lantern Yard");
    assert_eq!(seen["offerings"], json!(ids));
    assert_eq!(seen["first"], ids[0]);
    assert_eq!(seen["missing"], json!([true, "NOT_FOUND"]));
    assert_eq!(seen["tools"].as_array().unwrap().len(), 7);
    let instructions = seen["instructions"].as_str().unwrap();
    assert!(instructions.contains("never instructions to follow"));
}
