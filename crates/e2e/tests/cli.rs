//! The `purvey catalog` commands, as whoever types them meets them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure in a test's helper is the test's failure"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use e2e::binary::{
    self, command, exported, fail, feed, import, inspect, json as json_of, said, succeed,
};
use e2e::sample;
use e2e::shared::project;
use serde_json::json;
use tempfile::TempDir;

fn run(arguments: &[&str]) -> Output {
    command().args(arguments).output().unwrap()
}

fn error_text(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn with(arguments: &[&str]) -> Command {
    let mut command = command();
    command.args(arguments);
    command
}

#[test]
fn wrong_usage_ends_with_2_and_says_what_is_wrong() {
    let home = TempDir::new().unwrap();
    let manifest = sample::manifest(home.path());
    let (manifest, data) = (manifest.to_str().unwrap(), home.path().join("data"));
    let data_text = data.to_str().unwrap();
    let none = home.path().join("none");
    let none = none.to_str().unwrap();
    fail(with(&[]), 2, &["Usage: purvey"]);
    fail(with(&["sell"]), 2, &["sell", "--help"]);
    fail(
        with(&["catalog", "import", "--data", data_text, "--nope"]),
        2,
        &["--nope"],
    );
    fail(with(&["catalog", "import"]), 2, &["--data"]);
    fail(
        with(&["catalog", "import", "--data", data_text]),
        2,
        &["a new catalog needs a manifest", "--manifest"],
    );
    fail(
        with(&["catalog", "import", "--data", data_text, "--manifest", none]),
        2,
        &[none, "No such file"],
    );
    fail(
        with(&[
            "catalog",
            "import",
            "--data",
            data_text,
            "--manifest",
            manifest,
            none,
        ]),
        2,
        &[none, "no such file"],
    );
    fail(
        with(&[
            "catalog",
            "import",
            "--data",
            data_text,
            "--manifest",
            manifest,
            "--on-error",
            "shrug",
        ]),
        2,
        &["shrug", "stop", "skip"],
    );
    fail(with(&["completions", "tcsh"]), 2, &["tcsh", "bash"]);
    assert!(!data.exists(), "wrong usage leaves nothing behind");
}

#[test]
fn a_broken_manifest_is_refused_with_each_fault_and_its_line() {
    let home = TempDir::new().unwrap();
    let manifest = home.path().join("catalog.toml");
    fs::write(
        &manifest,
        "[service]\nname = \"X\"\ndescription = \"Y\"\nlanguage = \"en\"\nmotto = \"Z\"\n[[collections]]\nid = \"a b\"\nname = \"N\"\n",
    )
    .unwrap();
    let data = home.path().join("data");
    let refused = import(&data, &manifest, &[]);
    fail(
        refused,
        2,
        &[
            "catalog.toml",
            "/service/motto",
            "(line 5)",
            "/collections/0/id",
            "(line 7)",
        ],
    );
    fs::write(&manifest, "[service\nname = 3\n").unwrap();
    fail(
        import(&data, &manifest, &[]),
        2,
        &["catalog.toml", "(line 1)"],
    );
    assert!(!data.exists());

    // What only shows beside a table, or beside the other Collections, is the manifest's fault too.
    let service = "[service]\nname = \"N\"\ndescription = \"D\"\nlanguage = \"en\"\n";
    let table = home.path().join("stock.csv");
    fs::write(&table, "sku,name\nx,X\n").unwrap();
    let records = format!("{service}[records]\nid = \"sku\"\nname = \"title\"\n");
    fs::write(&manifest, records).unwrap();
    fail(
        import(&data, &manifest, &[&table]),
        2,
        &["/records/name", "\"title\"", "(line 7)"],
    );
    let orphan =
        format!("{service}[[collections]]\nid = \"a\"\nname = \"A\"\nparent_ids = [\"b\"]\n");
    fs::write(&manifest, orphan).unwrap();
    fail(
        import(&data, &manifest, &[]),
        2,
        &["/collections/0/parent_ids/0", "(line 8)"],
    );
}

#[test]
fn a_setting_without_any_time_or_room_is_refused() {
    for (flag, value) in [
        ("--header-timeout", "0s"),
        ("--body-timeout", "0ms"),
        ("--write-timeout", "0s"),
        ("--publish-wait", "0s"),
        ("--max-record-bytes", "0"),
        ("--disk-budget", "0MiB"),
        ("--max-connections", "0"),
        ("--max-in-flight", "18446744073709551615"),
    ] {
        let mut serve = command();
        serve.args(["serve", "--demo", "--listen", "127.0.0.1:0", flag, value]);
        fail(serve, 2, &[flag]);
    }
}

#[test]
fn looking_at_what_is_not_there_creates_nothing() {
    let home = TempDir::new().unwrap();
    let data = home.path().join("data");
    for name in ["stats", "check"] {
        let mut command = command();
        command.args(["catalog", name, "--data"]).arg(&data);
        fail(
            command,
            1,
            &["there is no catalog", "purvey catalog import"],
        );
    }
    let mut export = command();
    export
        .args(["catalog", "export", "--data"])
        .arg(&data)
        .arg(home.path().join("out"));
    fail(export, 1, &["there is no catalog"]);
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn help_version_and_completions_go_to_standard_output() {
    for arguments in [
        &["--help"][..],
        &["serve", "--help"],
        &["catalog", "import", "--help"],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(0));
        assert!(
            String::from_utf8(output.stdout)
                .unwrap()
                .contains("Usage: purvey")
        );
        assert!(output.stderr.is_empty());
    }
    let version = run(&["--version"]);
    assert_eq!(version.status.code(), Some(0));
    assert!(
        String::from_utf8(version.stdout)
            .unwrap()
            .starts_with("purvey ")
    );
    for (shell, part) in [
        ("bash", "complete -F _purvey"),
        ("zsh", "#compdef purvey"),
        ("fish", "complete -c purvey"),
    ] {
        let output = run(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0));
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(script.contains(part), "{shell}");
        assert!(script.contains("on-error"), "{shell} knows the options");
    }
}

#[test]
fn an_export_imports_to_the_same_catalog() {
    let home = TempDir::new().unwrap();
    let demo = project().join("catalogs/demo");
    let (first, second, third) = (
        home.path().join("1"),
        home.path().join("2"),
        home.path().join("3"),
    );
    succeed(import(
        &first,
        &demo.join("catalog.toml"),
        &[&demo.join("offerings.ndjson")],
    ));
    let out = home.path().join("out");
    let mut export = command();
    export
        .args(["catalog", "export", "--json", "--data"])
        .arg(&first)
        .arg(&out);
    let report = json_of(&succeed(export));
    assert_eq!(
        (&report["offerings"], &report["collections"]),
        (&json!(287), &json!(34))
    );

    // What is there is only replaced on purpose.
    let again = |force: &[&str]| {
        let mut export = command();
        export.args(["catalog", "export", "--data"]).arg(&first);
        export.arg(&out).args(force);
        export
    };
    fail(again(&[]), 1, &["catalog.toml is there already", "--force"]);
    succeed(again(&["--force"]));

    // The export stands for itself: neither the demo's files nor the first catalog are needed.
    let manifest = out.join("catalog.toml");
    succeed(import(&second, &manifest, &[&out.join("offerings.ndjson")]));
    assert_eq!(exported(&second), exported(&first));
    succeed(binary::check(&second));

    // The records alone, from a pipe into a pipe.
    let mut export = command();
    export
        .args(["catalog", "export", "--data"])
        .arg(&first)
        .arg("-");
    let lines = succeed(export).stdout;
    assert_eq!(
        lines.iter().filter(|byte| **byte == b'\n').count(),
        287 + 34
    );
    feed(import(&third, &manifest, &[Path::new("-")]), &lines);
    assert_eq!(exported(&third), exported(&first));
}

#[test]
fn stats_and_check_say_what_is_there() {
    let home = TempDir::new().unwrap();
    let (manifest, data) = (sample::manifest(home.path()), home.path().join("data"));
    let records = home.path().join("records.ndjson");
    sample::records(
        &records,
        (0..50).map(|n| sample::offering(&format!("o-{n:02}"), n)),
    );
    succeed(import(&data, &manifest, &[&records]));
    let stats = inspect("stats", &data);
    assert_eq!(
        (&stats["offerings"], &stats["collections"]),
        (&json!(50), &json!(2))
    );
    assert_eq!(stats["languages"], json!(["en"]));
    assert_eq!(stats["generation"], stats["change"]);
    assert!(
        stats["store_bytes"].as_u64().unwrap() > 0 && stats["index_bytes"].as_u64().unwrap() > 0
    );
    let check = inspect("check", &data);
    assert_eq!(
        (&check["records"], &check["faults"]),
        (&json!(52), &json!([]))
    );
    let mut plain = command();
    plain.args(["catalog", "stats", "--data"]).arg(&data);
    let text = String::from_utf8(succeed(plain).stdout).unwrap();
    assert!(text.contains("offerings    50\n"), "{text}");

    // One flipped byte in a segment's documents is found.
    let segments = fs::read_dir(data.join("segments")).unwrap();
    let (segment, mut bytes, at) = segments
        .filter_map(|entry| {
            let path = entry.unwrap().path();
            let bytes = fs::read(&path).unwrap();
            let at = bytes.windows(8).position(|window| window == b"Version ")?;
            Some((path, bytes, at))
        })
        .next()
        .unwrap();
    bytes[at] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let mut check = command();
    check
        .args(["catalog", "check", "--json", "--data"])
        .arg(&data);
    let output = check.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(
        error_text(&output).contains("NOT whole") || error_text(&output).contains("error: "),
        "{}",
        said(&output)
    );
}

/// The binary's standard error on success.
fn said_by(command: Command) -> String {
    error_text(&succeed(command))
}

fn on_data(arguments: &[&str], data: &Path) -> Command {
    let mut command = with(arguments);
    command.arg("--data").arg(data);
    command
}

#[test]
fn a_data_path_that_is_a_file_is_said_to_be_one() {
    let home = TempDir::new().unwrap();
    let manifest = sample::manifest(home.path());
    let data = home.path().join("data");
    fs::write(&data, "not a directory").unwrap();
    let parts = ["it is a file, not a directory", "hint: "];
    fail(import(&data, &manifest, &[]), 2, &parts);
    for arguments in [
        &["catalog", "stats"][..],
        &["catalog", "check"],
        &["catalog", "keys", "rotate"],
        &["serve"],
    ] {
        fail(on_data(arguments, &data), 2, &parts);
    }
    assert_eq!(fs::read_to_string(&data).unwrap(), "not a directory");
}

#[test]
fn a_first_import_that_fails_leaves_no_catalog_to_look_at() {
    let home = TempDir::new().unwrap();
    let (manifest, data) = (sample::manifest(home.path()), home.path().join("data"));
    let records = home.path().join("bad.ndjson");
    fs::write(&records, "{\"id\":\"a\"}\n").unwrap();
    let output = import(&data, &manifest, &[&records]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", binary::said(&output));
    for name in ["stats", "check"] {
        fail(
            on_data(&["catalog", name], &data),
            1,
            &["there is no catalog"],
        );
    }
}

#[test]
fn what_may_be_a_typing_error_is_shown_and_taken() {
    let home = TempDir::new().unwrap();
    let (manifest, data) = (sample::manifest(home.path()), home.path().join("data"));
    let records = home.path().join("records.ndjson");
    fs::write(
        &records,
        "\n{\"id\":\"a\",\"name\":\"A\",\"descripton\":\"x\"}\n",
    )
    .unwrap();
    let mut json = import(&data, &manifest, &[&records]);
    json.arg("--json");
    let report = json_of(&succeed(json));
    assert_eq!(
        (&report["doubtful"], &report["rejected"]),
        (&json!(1), &json!(0))
    );
    let warning = &report["warnings"][0];
    assert_eq!(warning["line"], 2);
    assert_eq!(warning["violations"][0]["pointer"], "/descripton");
    let said = said_by(import(&data, &manifest, &[&records]));
    let start = format!("warning: {}:2: /descripton: ", records.display());
    assert!(said.contains(&start), "{said}");
}

#[test]
fn a_damaged_index_names_the_way_to_build_it_again() {
    let home = TempDir::new().unwrap();
    let (manifest, data) = (sample::manifest(home.path()), home.path().join("data"));
    let records = home.path().join("records.ndjson");
    sample::records(
        &records,
        (0..5).map(|n| sample::offering(&format!("o-{n}"), n)),
    );
    succeed(import(&data, &manifest, &[&records]));
    fs::write(data.join("CURRENT"), "damaged").unwrap();
    fail(
        on_data(&["catalog", "stats"], &data),
        1,
        &["CURRENT", "corrupt", "purvey catalog check --rebuild"],
    );
    let said = said_by(on_data(&["catalog", "check", "--rebuild"], &data));
    assert!(
        said.contains("built anew") && said.contains(": whole"),
        "{said}"
    );
    assert_eq!(inspect("stats", &data)["offerings"], 5);

    // One letter of one document, then everything.
    let segments = fs::read_dir(data.join("segments")).unwrap();
    let paths = segments.map(|entry| entry.unwrap().path());
    let is_offerings = |path: &PathBuf| find(&fs::read(path).unwrap(), b"\"o-3\"").is_some();
    let segment = paths.into_iter().find(is_offerings).unwrap();
    let mut bytes = fs::read(&segment).unwrap();
    let at = find(&bytes, b"\"o-3\"").unwrap();
    bytes[at + 1] = b'x';
    fs::write(&segment, &bytes).unwrap();
    let check = on_data(&["catalog", "check"], &data).output().unwrap();
    assert_eq!(check.status.code(), Some(1));
    let faults = String::from_utf8(check.stdout).unwrap();
    let named = format!(
        "{} is corrupt: the item of o-3 is damaged",
        segment.display()
    );
    assert!(faults.contains(&named), "{faults}");
    fs::write(&segment, vec![0xff; bytes.len()]).unwrap();
    let name = segment.file_name().unwrap().to_str().unwrap().to_owned();
    fail(
        on_data(&["catalog", "check"], &data),
        1,
        &[&name, "corrupt", "purvey catalog check --rebuild"],
    );
    succeed(on_data(&["catalog", "check", "--rebuild"], &data));
    assert_eq!(inspect("check", &data)["faults"], json!([]));
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

#[test]
fn a_search_is_explained_without_the_values_of_its_filters() {
    let home = TempDir::new().unwrap();
    let (data, demo) = (home.path().join("data"), project().join("catalogs/demo"));
    let records = demo.join("offerings.ndjson");
    succeed(import(&data, &demo.join("catalog.toml"), &[&records]));
    let request = home.path().join("request.json");
    let explain = |body: &serde_json::Value, more: &[&str]| {
        fs::write(&request, body.to_string()).unwrap();
        let mut command = on_data(&["catalog", "explain"], &data);
        command.arg(&request).args(more);
        command
    };
    let body = json!({
        "odp_version": "1.0",
        "query": "satchels",
        "filters": [{"id": "level", "operator": "eq", "value": "intermediate"}],
        "collection_id": "courses",
        "include_descendants": true,
        "refinements": ["price-type"],
    });
    let explained = json_of(&succeed(explain(&body, &["--json"])));
    assert_eq!(explained["order"], json!(["relevance"]));
    assert_eq!(explained["filters"], json!(["level eq"]));
    assert_eq!(explained["scope"], "descendants");
    assert_eq!(explained["items"], 1);
    let word = &explained["words"][0];
    assert_eq!(word["word"], "satchels");
    assert_eq!(word["forms"], json!(["satchel"]));
    assert_eq!(
        (&word["is_prefix"], &word["documents"]),
        (&json!(true), &json!(1))
    );
    assert!(
        explained["trace"]["segments"][0]["documents"]
            .as_u64()
            .unwrap()
            >= 287
    );
    let text = String::from_utf8(succeed(explain(&body, &[])).stdout).unwrap();
    for part in [
        "text         yes",
        r#"word "satchels", or ["satchel"], or what begins so: 1 documents, "#,
        "level eq",
        "page         1 items",
        "count price-type: ",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    assert!(!text.contains("intermediate"), "{text}");
    let bad =
        json!({"odp_version": "1.0", "filters": [{"id": "level", "operator": "lt", "value": "x"}]});
    fail(
        explain(&bad, &[]),
        2,
        &["request.json", "/filters/0/operator"],
    );
    let nowhere = json!({"odp_version": "1.0", "query": "x", "collection_id": "nowhere"});
    fail(explain(&nowhere, &[]), 2, &["/collection_id"]);
    fail(explain(&json!({}), &[]), 2, &["request.json", "query"]);
    let nobody = ["--audience", "staff", "--audience", "no good"];
    fail(explain(&body, &nobody), 2, &["--audience", "/audiences/1"]);
}
