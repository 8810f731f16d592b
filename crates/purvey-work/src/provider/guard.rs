//! Ends the programs of a process that was killed and could not end them itself.
//!
//! A shell, started with the first program, is told of each process group when it begins and when it has ended. When nobody can tell it any
//! more, however this process came to its end, it kills the groups that are left.

use parking_lot::Mutex;
use rustix::process::Pid;
use std::{
    io::{self, Write},
    os::unix::process::CommandExt,
    process::{Child, ChildStdin, Command, Stdio},
};

/// `+ GROUP` has begun, `- GROUP` has ended. Only what is built into any shell.
const SCRIPT: &str = r#"
groups=
while read -r what group; do
    left=
    for known in $groups; do
        [ "$known" = "$group" ] || left="$left $known"
    done
    groups=$left
    [ "$what" = - ] || groups="$groups $group"
done
for group in $groups; do
    kill -s KILL -- "-$group"
done
"#;

static GUARD: Mutex<Option<Guard>> = Mutex::new(None);

struct Guard {
    shell: Child,
    told: ChildStdin,
}

/// Makes sure that there is a guard, so that the next group is not left alone while one is started.
pub(super) fn ready() {
    let mut guard = GUARD.lock();
    if guard.is_none() {
        *guard = start();
    }
}

/// A group has begun.
pub(super) fn begun(group: Pid) {
    tell('+', group);
}

/// A group has ended: from now on its number may be another's.
pub(super) fn ended(group: Pid) {
    tell('-', group);
}

fn tell(what: char, group: Pid) {
    let mut guard = GUARD.lock();
    let line = format!("{what} {}\n", group.as_raw_nonzero());
    let Some(there) = &mut *guard else { return };
    if there.told.write_all(line.as_bytes()).is_err() {
        // Somebody has ended it. The next program has another one.
        let _ = there.shell.kill();
        let _ = there.shell.wait();
        *guard = None;
    }
}

fn start() -> Option<Guard> {
    let started = || {
        let mut shell = Command::new("/bin/sh")
            .args(["-c", SCRIPT])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // What a terminal sends to this process is not for it.
            .process_group(0)
            .spawn()?;
        let missing = || io::Error::other("a pipe is missing");
        let told = shell.stdin.take().ok_or_else(missing)?;
        Ok(Guard { shell, told })
    };
    started()
        .map_err(|error: io::Error| {
            tracing::warn!(%error, "programs will outlive this process if it is killed: /bin/sh cannot be started");
        })
        .ok()
}
