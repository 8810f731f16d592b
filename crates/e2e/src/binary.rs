//! The `purvey` binary and its commands.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// The binary under test: `PURVEY_BIN` if set, else the one of the same profile as the running test, built first (which
/// costs little when it is fresh; cargo's own lock keeps builds apart).
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
    let binary = profile_directory.join("purvey");
    assert!(binary.exists(), "no binary at {}", binary.display());
    binary
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

/// What a command wrote, both streams, for a person.
#[must_use]
pub fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
