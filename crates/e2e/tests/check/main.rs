//! `purvey check`: a Service that keeps the rules passes, and each broken rule is found where it is broken.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test's helper is the test's failure"
)]

mod clean;
mod command;
mod fake;
mod faults;

use e2e::binary;
use serde_json::Value;
use std::process::Output;

/// Runs the check of a Service on this machine.
fn run(origin: &str, arguments: &[&str]) -> Output {
    let mut command = binary::command();
    command
        .args(["check", "--local"])
        .args(arguments)
        .arg(origin);
    command.output().unwrap()
}

/// What the check says as JSON.
fn outcome(origin: &str) -> (Option<i32>, Value) {
    let output = run(origin, &["--json"]);
    (output.status.code(), binary::json(&output))
}

/// The findings, a line for each, for people.
fn findings(outcome: &Value) -> Vec<String> {
    let findings = outcome["findings"].as_array().unwrap();
    findings
        .iter()
        .map(|finding| {
            let part = |name: &str| finding[name].as_str().unwrap();
            let (rule, request) = (part("rule"), part("request"));
            format!("{rule} [{request}] {} {}", part("pointer"), part("seen"))
        })
        .collect()
}

/// The ids in the table of rules.
fn documented() -> Vec<String> {
    let page = e2e::shared::project().join("docs/check.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let ids = rows.filter_map(|row| Some(row.split_once('`')?.0.to_owned()));
    let ids: Vec<_> = ids.filter(|id| id.contains('.')).collect();
    assert!(ids.len() > 60, "{ids:?}");
    ids
}
