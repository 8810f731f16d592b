//! The command line at a catalog of 1.1 million entries: what it shows is what the table says, to the end and in bounded memory.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Output, Stdio};

use e2e::binary::{command, said};
use e2e::server::Server;
use serde_json::{Value, json};

use super::searches::{Package, counts, most_downloaded};

/// Most memory of a command that reads everything, in KiB: identities are remembered, since none may repeat, and nothing else.
const MEMORY_KIB: u64 = 300 * 1024;

fn agent(server: &Server, name: &str, arguments: &[&str]) -> Command {
    let mut command = command();
    command.args([name, &server.url]).args(arguments);
    command.arg("--local");
    command
}

fn run(server: &Server, name: &str, arguments: &[&str]) -> Output {
    let output = agent(server, name, arguments).output().unwrap();
    let shown = format!("{name} {arguments:?}: {}", said(&output));
    assert_eq!(output.status.code(), Some(0), "{shown}");
    output
}

fn lines(server: &Server, name: &str, arguments: &[&str]) -> Vec<Value> {
    let output = run(server, name, arguments);
    let text = std::str::from_utf8(&output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A filter, and its values with their counts.
type Refinement<'a> = (&'a str, Vec<(Value, u64)>);

/// Ids of the Offerings among the lines of a search, and its refinements by filter.
fn found(lines: &[Value]) -> (Vec<&str>, Vec<Refinement<'_>>) {
    let ids = lines
        .iter()
        .filter_map(|line| line["offering"]["id"].as_str());
    let refinements = lines
        .iter()
        .map(|line| &line["refinement"])
        .filter(|r| r.is_object());
    let refinements = refinements.map(|refinement| {
        let values = refinement["values"].as_array().unwrap().iter();
        let values =
            values.map(|bucket| (bucket["value"].clone(), bucket["count"].as_u64().unwrap()));
        (refinement["filter_id"].as_str().unwrap(), values.collect())
    });
    (ids.collect(), refinements.collect())
}

pub(crate) fn shows_what_the_table_says(server: &Server, packages: &[Package]) {
    let inspected = &lines(server, "inspect", &["--json"])[0];
    assert_eq!(inspected["service"], json!(server.url));
    assert_eq!(inspected["document"]["name"], "Registry packages");
    assert_eq!(inspected["issues"], json!([]));
    let capabilities = &lines(server, "capabilities", &["--json"])[0];
    let ids = |kind: &str| -> Vec<String> {
        let definitions = capabilities[kind].as_array().unwrap().iter();
        definitions
            .map(|definition| definition["id"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        ids("filters"),
        [
            "registry",
            "version",
            "major",
            "updated",
            "downloads",
            "download_rank"
        ]
    );
    assert_eq!(
        ids("sorts"),
        ["most-downloaded", "recently-updated", "best-ranked"]
    );
    let collections = lines(server, "collections", &["--json"]);
    let names: Vec<_> = collections
        .iter()
        .map(|collection| &collection["id"])
        .collect();
    assert_eq!(names, ["node", "python"]);

    // Values are typed by their filters: a number, a list of numbers, a date.
    let search = [
        "--filter",
        "registry:eq:node",
        "--filter",
        "downloads:gte:100000",
        "--filter",
        "major:in:1,2,3",
        "--filter",
        "updated:lt:2025-01-01",
        "--sort",
        "most-downloaded",
        "--refine",
        "registry",
        "--refine",
        "major",
        "--limit",
        "150",
        "--json",
    ];
    let lines_found = lines(server, "search", &search);
    let (ids, refinements) = found(&lines_found);
    let common = |p: &&Package| {
        p.downloads.is_some_and(|n| n >= 100_000) && p.updated.as_str() < "2025-01-01"
    };
    let is_major = |p: &&Package| matches!(p.major, Some(1..=3));
    let is_node = |p: &&Package| p.registry == "node";
    let expected = packages
        .iter()
        .filter(common)
        .filter(is_major)
        .filter(is_node);
    let expected = most_downloaded(expected.collect());
    assert!(expected.len() > 150, "several pages: {}", expected.len());
    assert_eq!(ids, expected[..150]);
    let registries = packages
        .iter()
        .filter(common)
        .filter(is_major)
        .map(|p| p.registry.clone());
    let majors = packages
        .iter()
        .filter(common)
        .filter(is_node)
        .filter_map(|p| p.major);
    assert_eq!(
        refinements,
        [("registry", counts(registries)), ("major", counts(majors))]
    );

    let scoped = ["left-pad", "--in", "node", "--limit", "5", "--json"];
    assert_eq!(
        found(&lines(server, "search", &scoped)).0[0],
        "node.left-pad"
    );
    let package = packages.iter().find(|p| p.id == "node.left-pad").unwrap();
    let got = &lines(server, "get", &["node.left-pad", "--json"])[0];
    assert_eq!(got["offering"]["name"], json!(package.name));
    assert_eq!(
        got["offering"]["attributes"]["downloads"],
        json!(package.downloads)
    );
    assert_eq!(
        (&got["issues"], got["schema"].is_object()),
        (&json!([]), true)
    );
    let direct = lines(
        server,
        "offerings",
        &["--in", "python", "--limit", "3", "--json"],
    );
    let mut python: Vec<&str> = packages
        .iter()
        .filter(|p| p.registry == "python")
        .map(|p| p.id.as_str())
        .collect();
    python.sort_unstable();
    let direct: Vec<&str> = direct
        .iter()
        .map(|item| item["id"].as_str().unwrap())
        .collect();
    assert_eq!(direct, python[..3]);
}

/// Everything, while it comes.
pub(crate) fn lists_everything(server: &Server, ids: &[String]) {
    let mut command = agent(server, "offerings", &["--all", "--json"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut count = 0;
    let mut peak = None;
    for line in output.lines().map_while(Result::ok) {
        // The id comes first: reading the whole of it a million times would be the test's time.
        let expected = format!(r#"{{"id":"{}","#, ids[count]);
        assert!(
            line.starts_with(&expected) && line.ends_with('}'),
            "item {count}: {line}"
        );
        count += 1;
        // It cannot have ended while more than its pipe holds is still to come.
        if count == ids.len() - 2_000 {
            peak = peak_kib(&child);
        }
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(count, ids.len());
    if let Some(peak) = peak {
        eprintln!("everything on the command line: {} MiB", peak / 1024);
        assert!(peak < MEMORY_KIB, "{peak} KiB");
    }
}

/// The most memory that a process ever had; nothing where the system does not say.
fn peak_kib(child: &Child) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}
