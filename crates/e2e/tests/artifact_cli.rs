//! Artifacts as whoever types the commands meets them, also when the commands are interrupted.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failure in a test's helper is the test's failure"
)]

use e2e::{
    binary,
    home::{Home, text},
};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

/// A program that ends once a file is there.
fn gate(home: &Path) -> String {
    let script = format!(
        "cat > /dev/null; while [ ! -e {}/open ]; do sleep 0.05; done; echo 1",
        home.display()
    );
    format!(
        "max_artifact_bytes = \"1GiB\"\n[providers.gate]\nkind = \"command\"\ncommand = [\"/bin/sh\", \"-c\", \"{script}\"]\nenvironment = [\"PATH\"]\n"
    )
}

fn home() -> (Home, tempfile::TempDir) {
    let files = tempfile::tempdir().unwrap();
    (Home::start(&gate(files.path())), files)
}

fn write(directory: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn listed(home: &Home, more: &[&str]) -> Vec<Value> {
    let arguments = [&["artifact", "list", "--json"], more].concat();
    let output = binary::succeed(home.owner(&arguments));
    let lines = String::from_utf8(output.stdout).unwrap();
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn begin(home: &Home, arguments: &[&str]) -> Child {
    let mut command = home.owner(arguments);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

#[test]
fn artifacts_are_uploaded_listed_shown_downloaded_and_deleted() {
    let (home, files) = home();
    let one = write(files.path(), "one é.txt", b"the first");
    let two = write(files.path(), "two.txt", b"the second");
    let (one, two) = (one.to_str().unwrap(), two.to_str().unwrap());
    let made = home.json(&["artifact", "upload", one, "--description", "It counts."]);
    let id = text(&made["id"]);
    assert_eq!(made["filename"], "one é.txt");
    assert_eq!(made["description"], "It counts.");
    assert_eq!(
        (&made["size"], &made["status"]),
        (&json!(9), &json!("ready"))
    );
    // The same again is the same.
    let again = ["artifact", "upload", one, "--description", "It counts."];
    assert_eq!(home.json(&again)["id"], made["id"]);
    let both = binary::said(&binary::succeed(home.owner(&[
        "artifact",
        "upload",
        one,
        two,
        "--parallel",
        "2",
    ])));
    assert!(both.contains(one) && both.contains(two), "{both}");
    let names: Vec<_> = listed(&home, &[])
        .iter()
        .map(|it| text(&it["filename"]))
        .collect();
    assert_eq!(names.len(), 3);
    assert_eq!(home.json(&["artifact", "show", &id]), made);

    let to = files.path().join("got");
    let to = to.to_str().unwrap();
    let got = home.json(&["artifact", "download", &id, "-o", to]);
    assert_eq!(got["size"], 9);
    assert_eq!(got["path"], to);
    assert_eq!(fs::read(to).unwrap(), b"the first");
    let taken = ["artifact", "download", &id, "-o", to];
    binary::fail(home.owner(&taken), 2, &["it is there already", "--force"]);
    fs::write(to, "mine").unwrap();
    binary::succeed(home.owner(&["artifact", "download", &id, "-o", to, "--force"]));
    assert_eq!(fs::read(to).unwrap(), b"the first");
    // Into a directory, and where the command is run, under its own name.
    let directory = files.path().join("directory");
    fs::create_dir(&directory).unwrap();
    binary::succeed(home.owner(&[
        "artifact",
        "download",
        &id,
        "-o",
        directory.to_str().unwrap(),
    ]));
    let mut here = home.owner(&["artifact", "download", &id]);
    here.current_dir(&directory);
    binary::fail(here, 2, &["one é.txt", "it is there already"]);
    assert_eq!(fs::read(directory.join("one é.txt")).unwrap(), b"the first");

    binary::succeed(home.owner(&["artifact", "delete", &id]));
    assert_eq!(home.json(&["artifact", "show", &id])["status"], "deleted");
    assert_eq!(listed(&home, &["--status", "ready"]).len(), 2);
    binary::fail(
        home.owner(&["artifact", "download", &id, "-o", "x"]),
        9,
        &["artifact.deleted"],
    );
    // What was deleted can be uploaded anew.
    let anew = home.json(&again);
    assert_ne!(anew["id"], made["id"]);
    assert_eq!(home.json(&again)["id"], anew["id"]);
}

#[test]
fn failures_say_what_to_do() {
    let (home, files) = home();
    let one = write(files.path(), "one.txt", b"the first");
    let two = write(files.path(), "two.txt", b"the second");
    let (one, two) = (one.to_str().unwrap(), two.to_str().unwrap());
    let absent = files.path().join("absent");
    let absent = absent.to_str().unwrap();
    binary::fail(
        home.owner(&["artifact", "upload", absent]),
        2,
        &["absent: No such file"],
    );
    let directory = files.path().to_str().unwrap();
    binary::fail(
        home.owner(&["artifact", "upload", directory]),
        2,
        &["only a regular file"],
    );
    binary::fail(
        home.owner(&["artifact", "upload", one, two, "--key", "k"]),
        2,
        &["--key", "single file"],
    );
    // One that fails keeps back no other.
    let output = home
        .owner(&["artifact", "upload", absent, one])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .ends_with("one.txt\n")
    );
    assert!(String::from_utf8(output.stderr).unwrap().contains("absent"));
    assert_eq!(listed(&home, &["--status", "ready"]).len(), 1);
    binary::succeed(home.owner(&["artifact", "upload", one, "--key", "k"]));
    binary::fail(
        home.owner(&["artifact", "upload", two, "--key", "k"]),
        9,
        &["two.txt", "artifact.metadata_mismatch", "another --key"],
    );
    let large = files.path().join("large");
    fs::File::create(&large)
        .unwrap()
        .set_len((1 << 30) + 1)
        .unwrap();
    binary::fail(
        home.owner(&["artifact", "upload", large.to_str().unwrap()]),
        2,
        &["request.too_large"],
    );
    let nobody = "art_00000000000070008000000000000000";
    binary::fail(
        home.owner(&["artifact", "download", nobody]),
        4,
        &["resource.not_found"],
    );
    binary::fail(
        home.owner(&["artifact", "download", "../x"]),
        4,
        &["resource.not_found"],
    );
    binary::fail(
        home.owner(&["artifact", "list", "--status", "big"]),
        2,
        &["status", "uploading"],
    );
}

#[test]
fn an_interrupted_upload_made_again_is_one_artifact() {
    let (home, files) = home();
    let path = files.path().join("large");
    fs::File::create(&path).unwrap().set_len(500 << 20).unwrap();
    let arguments = ["artifact", "upload", path.to_str().unwrap()];
    let mut first = begin(&home, &arguments);
    until("the upload begins", || {
        assert_eq!(
            listed(&home, &["--status", "ready"]),
            [Value::Null; 0],
            "it was too fast"
        );
        !listed(&home, &["--status", "uploading"]).is_empty()
    });
    first.kill().unwrap();
    first.wait().unwrap();
    let made = home.json(&arguments);
    assert_eq!(made["status"], "ready");
    assert_eq!(home.json(&arguments)["id"], made["id"]);
    let ready = listed(&home, &["--status", "ready"]);
    assert_eq!(ready, [made]);
}

#[test]
fn an_interrupted_start_with_files_made_again_is_one_run() {
    let (home, files) = home();
    let one = write(files.path(), "one.txt", b"the first");
    let two = write(files.path(), "two.txt", b"the second");
    let agent = home.agent("Gate", "gate", &[]);
    let (one, two) = (one.to_str().unwrap(), two.to_str().unwrap());
    let start = [
        "run", "start", &agent, "--file", one, "--file", two, "--key", "k-1", "--wait", "--json",
    ];
    let mut first = begin(&home, &start);
    until("the run begins", || {
        let listed = binary::succeed(home.owner(&["run", "list", "--status", "running", "--json"]));
        !listed.stdout.is_empty()
    });
    first.kill().unwrap();
    first.wait().unwrap();
    fs::write(files.path().join("open"), "").unwrap();
    let run = binary::json(&binary::succeed(home.owner(&start)));
    assert_eq!(run["status"], "succeeded");
    let made = listed(&home, &[]);
    assert_eq!(made.len(), 2);
    // In the order of the command, which is not that of the list.
    let id = |name: &str| made.iter().find(|it| it["filename"] == name).unwrap()["id"].clone();
    assert_eq!(run["artifacts"], json!([id("one.txt"), id("two.txt")]));
    let runs = binary::succeed(home.owner(&["run", "list", "--json"]));
    assert_eq!(String::from_utf8(runs.stdout).unwrap().lines().count(), 1);
}
