//! A Python with the packages that a test needs.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use e2e::binary;
use e2e::shared::project;

/// A Python with the packages of `crates/interop/python/{requirements}.txt`: a virtual environment below the target directory,
/// kept from run to run as long as it is of the same requirements. `None`, said aloud, where there is no Python; in CI
/// (`CI=true`) that is a failure.
pub(crate) fn python(requirements: &str) -> Option<PathBuf> {
    let mut probe = Command::new("python3");
    probe.args(["-c", "import venv, ensurepip"]);
    if !probe.output().is_ok_and(|output| output.status.success()) {
        assert!(
            std::env::var_os("CI").is_none_or(|ci| ci != "true"),
            "python3 with its venv module is not there"
        );
        eprintln!("skipped: python3 with its venv module is not there");
        return None;
    }
    // target/<profile>/deps/<test>
    let test = std::env::current_exe().unwrap();
    let target = test.ancestors().nth(3).unwrap();
    let environment = target.join(format!("python-venv-{requirements}"));
    let python = environment.join("bin/python");
    let stamp = environment.join("requirements.txt");
    let file = project().join(format!("crates/interop/python/{requirements}.txt"));
    let wanted = fs::read_to_string(&file).unwrap();
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Some(python);
    }
    let mut create = Command::new("python3");
    create.args(["-m", "venv", "--clear"]).arg(&environment);
    succeed(create);
    let mut install = Command::new(&python);
    install
        .args(["-m", "pip", "install", "--quiet"])
        .args(["--disable-pip-version-check", "--requirement"])
        .arg(file);
    succeed(install);
    // Last: an installation that was cut off is made anew.
    fs::write(&stamp, wanted).unwrap();
    Some(python)
}

/// Runs a command to its end, which must be a success.
pub(crate) fn succeed(mut command: Command) -> Output {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?} ended with {}:\n{}",
        output.status,
        binary::said(&output)
    );
    output
}
