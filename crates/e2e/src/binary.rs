//! The `purvey` binary and its commands.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

/// What fails says so within this time.
const FAIL_LIMIT: Duration = Duration::from_secs(30);

/// The binary under test: `PURVEY_BIN` if set, else the one of the same profile as the running test, built first unless it is
/// newer than everything that it is made of (`cargo test --workspace` builds it; cargo's own lock keeps builds apart).
pub fn purvey() -> &'static Path {
    static PURVEY: OnceLock<PathBuf> = OnceLock::new();
    PURVEY.get_or_init(|| std::env::var_os("PURVEY_BIN").map_or_else(build, PathBuf::from))
}

fn build() -> PathBuf {
    // target/<profile>/deps/<test>
    let test = std::env::current_exe().expect("the path of this test");
    let profile_directory = test
        .ancestors()
        .nth(2)
        .expect("a test in target/<profile>/deps");
    let target = profile_directory.parent().expect("a target directory");
    let binary = profile_directory.join("purvey");
    if is_fresh(&binary) {
        return binary;
    }
    let profile = match profile_directory
        .file_name()
        .and_then(|name| name.to_str())
        .expect("a profile")
    {
        "debug" => "dev",
        other => other,
    };
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args([
            "build",
            "--quiet",
            "--package",
            "purvey",
            "--profile",
            profile,
            "--target-dir",
        ])
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .status()
        .expect("cargo runs");
    assert!(status.success(), "purvey does not build");
    assert!(binary.exists(), "no binary at {}", binary.display());
    binary
}

/// Whether the binary is newer than the crates, the catalogs built into it and the locked versions.
fn is_fresh(binary: &Path) -> bool {
    fn newest(path: &Path) -> Option<SystemTime> {
        let metadata = path.metadata().ok()?;
        if !metadata.is_dir() {
            return metadata.modified().ok();
        }
        let entries = path.read_dir().ok()?;
        entries
            .filter_map(|entry| newest(&entry.ok()?.path()))
            .max()
    }
    let Ok(built) = binary.metadata().and_then(|metadata| metadata.modified()) else {
        return false;
    };
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    [
        "purvey",
        "purvey-agent",
        "purvey-catalog",
        "purvey-odp",
        "purvey-client",
        "purvey-retry",
        "purvey-work",
        "purvey-server",
    ]
    .map(|name| format!("crates/{name}/src"))
    .iter()
    .map(String::as_str)
    .chain(["Cargo.toml", "Cargo.lock", "catalogs"])
    .filter_map(|path| newest(&project.join(path)))
    .all(|changed| changed <= built)
}

/// A command of the binary, with nothing of the caller's configuration.
#[must_use]
pub fn command() -> Command {
    let mut command = Command::new(purvey());
    for (name, _) in std::env::vars_os() {
        if name
            .to_str()
            .is_some_and(|name| name.starts_with("PURVEY_"))
        {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null());
    command
}

/// `purvey catalog import` of these records; more arguments can be added.
#[must_use]
pub fn import(data: &Path, manifest: &Path, records: &[&Path]) -> Command {
    let mut command = command();
    command
        .args(["catalog", "import", "--data"])
        .arg(data)
        .arg("--manifest")
        .arg(manifest)
        .args(records);
    command
}

/// `purvey catalog check`.
#[must_use]
pub fn check(data: &Path) -> Command {
    let mut command = command();
    command.args(["catalog", "check", "--data"]).arg(data);
    command
}

/// Runs a command to its end, which must be a success, and gives what it said.
pub fn succeed(mut command: Command) -> Output {
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("cannot run {command:?}: {e}"));
    assert!(
        output.status.success(),
        "{command:?} ended with {}:\n{}",
        output.status,
        said(&output)
    );
    output
}

/// Runs a command that must fail: with this code, saying all of this on standard error, and nothing on standard output.
///
/// A server that starts although it should not is stopped after a while, and is a failure like any other.
pub fn fail(mut command: Command, code: i32, parts: &[&str]) {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .unwrap_or_else(|e| panic!("cannot run {command:?}: {e}"));
    let deadline = Instant::now() + FAIL_LIMIT;
    while child.try_wait().expect("a status").is_none() {
        if Instant::now() > deadline {
            let _ = child.kill();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().expect("an end");
    let all = said(&output);
    assert_eq!(output.status.code(), Some(code), "{command:?}\n{all}");
    assert!(output.stdout.is_empty(), "{command:?}\n{all}");
    for part in parts {
        assert!(all.contains(part), "{command:?}: no {part:?} in\n{all}");
    }
    assert!(!all.contains("panicked"), "{all}");
}

/// Runs a command with this standard input; it must succeed.
pub fn feed(mut command: Command, input: &[u8]) {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .unwrap_or_else(|e| panic!("cannot run {command:?}: {e}"));
    let mut pipe = child.stdin.take().expect("a pipe");
    // A command that ends early says why itself.
    let _ = pipe.write_all(input);
    drop(pipe);
    let output = child.wait_with_output().expect("an end");
    assert!(output.status.success(), "{command:?}\n{}", said(&output));
}

/// The one JSON document that a command wrote to standard output.
#[must_use]
pub fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", said(output)))
}

/// What `purvey catalog stats` or `check` says of a catalog, as JSON.
#[must_use]
pub fn inspect(name: &str, data: &Path) -> Value {
    let mut command = command();
    command
        .args(["catalog", name, "--json", "--data"])
        .arg(data);
    json(&succeed(command))
}

/// What an export of a catalog holds: manifest and Offerings, byte for byte.
#[must_use]
pub fn exported(data: &Path) -> (String, String) {
    let out = tempfile::tempdir().expect("a directory");
    let mut export = command();
    export
        .args(["catalog", "export", "--data"])
        .arg(data)
        .arg(out.path());
    succeed(export);
    let read = |name| std::fs::read_to_string(out.path().join(name)).expect("an export");
    (read("catalog.toml"), read("offerings.ndjson"))
}

/// The Offerings of a catalog, as an export has them.
#[must_use]
pub fn offerings(data: &Path) -> Vec<Value> {
    let (_, lines) = exported(data);
    lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON lines"))
        .collect()
}

/// What a command wrote, both streams, for a person.
#[must_use]
pub fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
