//! A Python for tests of programs that are not ours.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::binary;

/// A Python with what a file requires: a virtual environment below the target directory, one for each file name, kept from
/// run to run as long as it is of the same requirements. `None`, said aloud, where there is no Python; in CI (`CI=true`) that is a failure.
#[must_use]
pub fn python(requirements: &Path) -> Option<PathBuf> {
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
    let name = requirements.file_stem().unwrap().display();
    let target = test.ancestors().nth(3).unwrap();
    let environment = target.join(format!("python-venv-{name}"));
    let python = environment.join("bin/python");
    let stamp = environment.join("requirements.txt");
    let wanted = fs::read_to_string(requirements).unwrap();
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Some(python);
    }
    let mut create = Command::new("python3");
    create.args(["-m", "venv", "--clear"]).arg(&environment);
    binary::succeed(create);
    let mut install = Command::new(&python);
    install
        .args(["-m", "pip", "install", "--quiet"])
        .args(["--disable-pip-version-check", "--requirement"])
        .arg(requirements);
    binary::succeed(install);
    // Last: an installation that was cut off is made anew.
    fs::write(&stamp, wanted).unwrap();
    Some(python)
}
