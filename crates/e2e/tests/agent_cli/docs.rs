//! Every example in docs/cli.md is run, and prints what stands there.

use std::process::Command;

use e2e::binary::{purvey, said};
use e2e::shared::project;

use super::support::demo;

/// The origin that the document speaks of.
const ORIGIN: &str = "127.0.0.1:8080";

/// A command, and what it prints.
struct Example {
    line: usize,
    command: String,
    printed: Vec<String>,
}

/// The `console` blocks, in which `$ ` begins a command.
fn examples(document: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut inside = false;
    for (i, line) in document.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(language) => inside = language == "console",
            None if !inside => {}
            None => match (line.strip_prefix("$ "), examples.last_mut()) {
                (Some(command), _) => examples.push(Example {
                    line: i + 1,
                    command: command.to_owned(),
                    printed: Vec::new(),
                }),
                (None, Some(example)) => example.printed.push(line.to_owned()),
                (None, None) => panic!("line {} is of no command", i + 1),
            },
        }
    }
    examples
}

/// Columns are as wide as what stands in them, and ports differ.
fn squeezed(line: &str) -> String {
    let columns = line.trim().split("  ").map(str::trim);
    columns
        .filter(|column| !column.is_empty())
        .collect::<Vec<_>>()
        .join("  ")
}

/// Whether the lines are those, where `…` stands for anything within a line, and alone for any number of lines.
fn is_like(lines: &[String], pattern: &[String]) -> bool {
    match pattern.split_first() {
        None => lines.is_empty(),
        Some((first, rest)) if first == "…" => {
            (0..=lines.len()).any(|n| is_like(&lines[n..], rest))
        }
        Some((first, rest)) => lines
            .split_first()
            .is_some_and(|(line, lines)| is_line_like(line, first) && is_like(lines, rest)),
    }
}

fn is_line_like(line: &str, pattern: &str) -> bool {
    match pattern.split_once('…') {
        None => line == pattern,
        Some((begin, end)) => line.starts_with(begin) && line.ends_with(end),
    }
}

#[test]
fn every_example_prints_what_the_document_says() {
    let server = demo();
    let origin = server.url.trim_start_matches("http://");
    let path = project().join("docs/cli.md");
    let document = std::fs::read_to_string(path).unwrap();
    let examples = examples(&document);
    let paths = format!(
        "{}:{}",
        purvey().parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    for Example {
        line,
        command,
        printed,
    } in &examples
    {
        let output = Command::new("sh")
            .args([
                "-c",
                &format!("exec 2>&1\n{}", command.replace(ORIGIN, origin)),
            ])
            .env("PATH", &paths)
            .env_remove("PURVEY_TOKEN")
            .env_remove("PURVEY_CACHE")
            .output()
            .unwrap();
        let text = said(&output).replace(origin, ORIGIN);
        let lines: Vec<String> = text.lines().map(squeezed).collect();
        let pattern: Vec<String> = printed.iter().map(|line| squeezed(line)).collect();
        assert!(
            is_like(&lines, &pattern),
            "docs/cli.md:{line}: {command}\nprints\n{text}\nand not\n{}",
            printed.join("\n")
        );
    }
    for name in [
        "inspect",
        "collections",
        "offerings",
        "search",
        "get",
        "capabilities",
        "actions",
        "invoke",
    ] {
        let command = format!("purvey {name} {ORIGIN}");
        assert!(
            examples
                .iter()
                .any(|example| example.command.starts_with(&command)),
            "{name} has no example"
        );
    }
}
