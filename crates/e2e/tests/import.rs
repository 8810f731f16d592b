//! `purvey catalog import`: bad records, dry runs, replacement.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test's helper is the test's failure"
)]

use std::fs;
use std::path::Path;

use e2e::binary::{self, exported, import, inspect, json as json_of, offerings, said, succeed};
use e2e::sample;
use serde_json::{Value, json};
use tempfile::TempDir;

fn error_text(output: &std::process::Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Eight lines: three good Offerings among five bad records, each bad in its own way.
const MIXED: &str = concat!(
    "{\"id\":\"a\",\"name\":\"A\",\"collection_ids\":[\"odd\"]}\n",
    "{\"id\":\"b c\",\"name\":\"\"}\n",
    "{\"id\":\"d\",\"name\":\n",
    "{\"id\":\"e\",\"name\":\"E\"}\n",
    "{\"id\":\"a\",\"name\":\"A again\"}\n",
    "{\"id\":\"f\",\"name\":\"F\",\"collection_ids\":[\"odd\",\"prime\"]}\n",
    "{\"id\":\"g\",\"name\":\"G\",\"actions\":[]}\n",
    "{\"id\":\"h\",\"name\":\"H\"}\n",
);

/// Line and pointers of each bad record of [`MIXED`].
fn mixed_faults() -> Vec<(u64, Vec<&'static str>)> {
    vec![
        (2, vec!["/id", "/name"]),
        (3, vec![""]),
        (5, vec!["/id"]),
        (6, vec!["/collection_ids/1"]),
        (7, vec!["/actions"]),
    ]
}

fn faults_of(report: &Value) -> Vec<(u64, Vec<&str>)> {
    let faults = report["faults"].as_array().unwrap().iter().map(|fault| {
        let violations = fault["violations"].as_array().unwrap();
        for violation in violations {
            assert!(!violation["reason"].as_str().unwrap().is_empty());
        }
        let mut pointers: Vec<&str> = violations
            .iter()
            .map(|v| v["pointer"].as_str().unwrap())
            .collect();
        pointers.sort_unstable();
        (fault["line"].as_u64().unwrap(), pointers)
    });
    faults.collect()
}

#[test]
fn bad_records_stop_an_import_or_are_left_out() {
    let home = TempDir::new().unwrap();
    let (manifest, data) = (sample::manifest(home.path()), home.path().join("data"));
    let records = home.path().join("mixed.ndjson");
    fs::write(&records, MIXED).unwrap();
    let old = home.path().join("old.ndjson");
    sample::records(&old, [sample::offering("old", 1)]);
    succeed(import(&data, &manifest, &[&old]));

    // Stop is what happens by default: the first bad record ends it and nothing is imported.
    let mut stop = import(&data, &manifest, &[&records]);
    stop.arg("--json");
    let output = stop.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let report = json_of(&output);
    assert_eq!(
        (&report["committed"], &report["rejected"]),
        (&json!(false), &json!(1))
    );
    assert_eq!(report["generation"], Value::Null);
    assert_eq!(faults_of(&report), [(2, vec!["/id", "/name"])]);
    let text = error_text(&output);
    assert!(text.contains("mixed.ndjson:2: /id: "), "{text}");
    assert!(text.contains("--on-error skip"), "{text}");
    assert_eq!(offerings(&data), [sample::offering("old", 1)]);

    // Skip imports the others and ends with 3.
    let rejects = home.path().join("rejects.ndjson");
    let mut skip = import(&data, &manifest, &[&records]);
    skip.args(["--on-error", "skip", "--json", "--rejects"])
        .arg(&rejects);
    let output = skip.output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let report = json_of(&output);
    assert_eq!(report["committed"], true);
    assert_eq!(
        (&report["read"], &report["offerings"], &report["rejected"]),
        (&json!(8), &json!(3), &json!(5))
    );
    assert_eq!(faults_of(&report), mixed_faults());
    assert!(report["generation"].as_u64().is_some() && report["seconds"].as_f64().is_some());
    assert!(
        report["faults"][0]["source"]
            .as_str()
            .unwrap()
            .ends_with("mixed.ndjson")
    );
    let ids: Vec<Value> = offerings(&data)
        .iter()
        .map(|offering| offering["id"].clone())
        .collect();
    assert_eq!(ids, ["a", "e", "h", "old"]);

    // The rejects are kept as they came; beside them, why.
    let lines: Vec<&str> = MIXED.lines().collect();
    let kept = fs::read_to_string(&rejects).unwrap();
    assert_eq!(
        kept.lines().collect::<Vec<_>>(),
        [lines[1], lines[2], lines[4], lines[5], lines[6]]
    );
    let reasons = fs::read_to_string(home.path().join("rejects.ndjson.report.ndjson")).unwrap();
    let reasons: Vec<Value> = reasons
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(Value::from(reasons), report["faults"]);

    // Mended and imported again, the rejects are in as well, and no rejects file is left from before.
    fs::write(&records, "{\"id\":\"d\",\"name\":\"D\"}\n").unwrap();
    let mut again = import(&data, &manifest, &[&records]);
    again
        .args(["--on-error", "skip", "--rejects"])
        .arg(&rejects);
    assert_eq!(succeed(again).status.code(), Some(0));
    assert!(!rejects.exists());
    assert_eq!(offerings(&data).len(), 5);
}

#[test]
fn without_rejects_they_are_kept_in_the_data_directory() {
    let home = TempDir::new().unwrap();
    let (manifest, data) = (sample::manifest(home.path()), home.path().join("data"));
    let records = home.path().join("mixed.ndjson");
    fs::write(&records, MIXED).unwrap();
    let mut skip = import(&data, &manifest, &[&records]);
    skip.args(["--on-error", "skip"]);
    let output = skip.output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(output.stdout.is_empty());
    let text = error_text(&output);
    for part in [
        "mixed.ndjson:3: record: ",
        "mixed.ndjson:6: /collection_ids/1: ",
        "rejected 5",
        "3 offerings",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    assert_eq!(
        fs::read_to_string(data.join("rejects"))
            .unwrap()
            .lines()
            .count(),
        5
    );
    assert_eq!(
        fs::read_to_string(data.join("rejects.report.ndjson"))
            .unwrap()
            .lines()
            .count(),
        5
    );
}

#[test]
fn a_dry_run_says_what_would_happen_and_writes_nothing() {
    let home = TempDir::new().unwrap();
    let (manifest, data) = (sample::manifest(home.path()), home.path().join("data"));
    let records = home.path().join("mixed.ndjson");
    fs::write(&records, MIXED).unwrap();
    let dry = |extra: &[&str]| {
        let mut command = import(&data, &manifest, &[&records]);
        command.args(["--dry-run", "--json"]).args(extra);
        command.output().unwrap()
    };
    let output = dry(&["--on-error", "skip"]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let report = json_of(&output);
    assert_eq!(report["committed"], false);
    assert_eq!(
        (
            &report["offerings"],
            &report["collections"],
            &report["rejected"]
        ),
        (&json!(3), &json!(2), &json!(5))
    );
    assert_eq!(faults_of(&report), mixed_faults());
    fs::write(&records, "{\"id\":\"a\",\"name\":\"A\"}\n").unwrap();
    assert_eq!(dry(&[]).status.code(), Some(0));
    assert!(!data.exists(), "a dry run made the data directory");
    let mut names: Vec<_> = fs::read_dir(home.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["catalog.toml", "mixed.ndjson"]);

    // Beside a catalog that is there it changes nothing either, --replace or not.
    succeed(import(&data, &manifest, &[&records]));
    let before = (exported(&data), inspect("stats", &data));
    fs::write(&records, "{\"id\":\"b\",\"name\":\"B\"}\n").unwrap();
    assert_eq!(dry(&["--replace"]).status.code(), Some(0));
    assert_eq!((exported(&data), inspect("stats", &data)), before);

    // Everything is said at once: the bad record, and what is stored and would no longer fit.
    let tight = home.path().join("tight.toml");
    let with = |most: u32| {
        let dialect = "https://json-schema.org/draft/2020-12/schema";
        let schema = format!(r#"{{"$schema":"{dialect}","maxProperties":{most}}}"#);
        let text = fs::read_to_string(&manifest).unwrap();
        let schemas = format!("[schemas]\n\"/s.json\" = {{ inline = '{schema}' }}\n");
        fs::write(&tight, format!("{text}\n{schemas}")).unwrap();
    };
    with(9);
    let stored = r#"{"id":"w","name":"W","schema":{"url":"/s.json"},"attributes":{"a":1,"b":2}}"#;
    fs::write(&records, stored).unwrap();
    succeed(import(&data, &tight, &[&records]));
    with(1);
    fs::write(&records, "{\"id\":\"b\"}\n").unwrap();
    let mut dry = import(&data, &tight, &[&records]);
    dry.args(["--dry-run", "--json"]);
    let output = dry.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let report = json_of(&output);
    assert_eq!(report["rejected"], 1);
    assert_eq!(report["unfit"][0]["pointer"], "/offerings/w/attributes");
    assert!(said(&output).contains("stored: /offerings/w/attributes: "));
}

#[test]
fn replace_swaps_the_whole_catalog_and_import_adds_to_it() {
    let home = TempDir::new().unwrap();
    let (manifest, data) = (sample::manifest(home.path()), home.path().join("data"));
    let records = home.path().join("records.ndjson");
    let ids = |data: &Path| -> Vec<String> {
        offerings(data)
            .iter()
            .map(|offering| offering["id"].as_str().unwrap().to_owned())
            .collect()
    };
    sample::records(
        &records,
        [sample::offering("a", 1), sample::offering("b", 1)],
    );
    succeed(import(&data, &manifest, &[&records]));
    sample::records(
        &records,
        [sample::offering("b", 2), sample::offering("c", 1)],
    );
    succeed(import(&data, &manifest, &[&records]));
    assert_eq!(ids(&data), ["a", "b", "c"]);
    assert_eq!(offerings(&data)[1], sample::offering("b", 2));
    sample::records(&records, [sample::offering("d", 1)]);
    let mut replace = import(&data, &manifest, &[&records]);
    replace.arg("--replace");
    succeed(replace);
    assert_eq!(ids(&data), ["d"]);
    succeed(binary::check(&data));
}
