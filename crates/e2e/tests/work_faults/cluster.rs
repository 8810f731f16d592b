//! A PostgreSQL server of the test's own, which it may stop and crash.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};
use tempfile::TempDir;

/// The server; stopped and removed with this.
pub(crate) struct Cluster {
    directory: TempDir,
    programs: PathBuf,
    port: u16,
}

impl Cluster {
    /// A new one that runs; none where PostgreSQL's own programs are not installed, which the test says and ends. With `CI=true` that is a
    /// failure instead.
    pub(crate) fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            assert!(
                std::env::var_os("CI").is_none_or(|ci| ci != "true"),
                "initdb and pg_ctl are not installed"
            );
            eprintln!("skipped: initdb and pg_ctl are not installed");
            return None;
        };
        let directory = TempDir::new().unwrap();
        if is_root() {
            run(Command::new("chown").arg("postgres").arg(directory.path()));
        }
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let cluster = Self {
            directory,
            programs,
            port,
        };
        run(cluster
            .program("initdb")
            .args(["--auth=trust", "--username=purvey", "--no-sync", "--pgdata"])
            .arg(cluster.data()));
        cluster.up();
        Some(cluster)
    }

    /// The address of a database in it.
    pub(crate) fn url(&self) -> String {
        format!(
            "postgres://purvey@127.0.0.1:{}/postgres?sslmode=disable",
            self.port
        )
    }

    /// Ends every connection and the server with them: in order, or like a crash.
    pub(crate) fn down(&self, crash: bool) {
        let mode = if crash { "immediate" } else { "fast" };
        run(self.control("stop").args(["-m", mode]));
    }

    /// Starts the server again; back when it can be used.
    pub(crate) fn up(&self) {
        let options = format!(
            "-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories=",
            self.port
        );
        run(self
            .control("start")
            .args(["-o", &options, "-l"])
            .arg(self.directory.path().join("log")));
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn control(&self, what: &str) -> Command {
        let mut command = self.program("pg_ctl");
        command.args([what, "-w", "-D"]).arg(self.data());
        command
    }

    /// A program of PostgreSQL's, which does not run as root.
    fn program(&self, name: &str) -> Command {
        let program = self.programs.join(name);
        if !is_root() {
            return Command::new(program);
        }
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--"]).arg(program);
        command
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let mut stop = self.control("stop");
        stop.args(["-m", "immediate"]);
        // It may be down already.
        let _ = quiet(&mut stop).status();
    }
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    id.stdout.trim_ascii() == b"0"
}

/// What pg_ctl starts would keep a pipe of ours open.
fn quiet(command: &mut Command) -> &mut Command {
    command
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
}

fn run(command: &mut Command) {
    let status = quiet(command).status().unwrap();
    assert!(status.success(), "{command:?}: {status}");
}

/// Where initdb and pg_ctl are.
fn programs() -> Option<PathBuf> {
    let both =
        |directory: &Path| directory.join("initdb").exists() && directory.join("pg_ctl").exists();
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let mut installed: Vec<_> = versions
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .collect();
    installed.sort_unstable();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path);
    installed
        .into_iter()
        .rev()
        .chain(on_path)
        .find(|directory| both(directory))
}
