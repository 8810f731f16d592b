//! Running processes on top of the file layer, and setting marks in what it writes.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use tempfile::TempDir;

use super::disk::Disk;
use super::log::Log;

/// Something the test noted in the log; what it means is the test's own table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mark(pub u64);

/// The compiled layer, built once per run of a test program with the system's C compiler (`CC`, else `cc`).
pub fn layer() -> &'static Path {
    static LAYER: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = LAYER.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("shim/record.c");
        let directory = TempDir::new().expect("a temporary directory");
        let library = directory.path().join("record.so");
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let status = Command::new(&compiler)
            .args(["-O1", "-Wall", "-shared", "-fPIC", "-pthread", "-o"])
            .arg(&library)
            .arg(&source)
            .status()
            .unwrap_or_else(|e| {
                panic!(
                    "the fault tests need a C compiler ({}): {e}",
                    compiler.display()
                )
            });
        assert!(status.success(), "{} does not compile", source.display());
        (directory, library)
    });
    path
}

/// One recorded run over a directory.
#[derive(Debug)]
pub struct Recorder {
    root: PathBuf,
    log_path: PathBuf,
    log: File,
    slowness: Duration,
    start: Disk,
    _home: TempDir,
}

impl Recorder {
    /// Records what happens below `root` from now on. What is there already counts as durable.
    #[must_use]
    pub fn start(root: &Path) -> Self {
        let root = root.canonicalize().expect("the directory to record exists");
        let home = TempDir::new().expect("a temporary directory");
        let log_path = home.path().join("log");
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log_path)
            .expect("a log");
        Self {
            start: Disk::of(&root),
            root,
            log_path,
            log,
            slowness: Duration::ZERO,
            _home: home,
        }
    }

    /// Makes each `fsync` take up to this long, as on a real disk: time in which others run ahead, or somebody is killed.
    #[must_use]
    pub fn slow(self, slowness: Duration) -> Self {
        Self { slowness, ..self }
    }

    /// Makes this command run on top of the layer. Several may, one after another or at once.
    pub fn attach(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", layer())
            .env("FAULT_ROOT", &self.root)
            .env("FAULT_SYNC_MICROS", self.slowness.as_micros().to_string())
            .env("FAULT_LOG", &self.log_path);
    }

    /// Notes in the log that something has happened by now: all changes recorded before the mark were made before it.
    pub fn mark(&self, mark: Mark) {
        let mut record = [0_u8; 32];
        record[0] = 11;
        record[16..24].copy_from_slice(&mark.0.to_le_bytes());
        // The layer holds the same lock around each change and its record.
        self.log.lock().expect("the log's lock");
        (&self.log).write_all(&record).expect("a mark in the log");
        self.log.unlock().expect("the log's lock");
    }

    /// Runs `kill` while every change that was made is written down: killed in between, a process would leave a change that others
    /// read and no image has.
    pub fn killing<T>(&self, kill: impl FnOnce() -> T) -> T {
        self.log.lock().expect("the log's lock");
        let killed = kill();
        self.log.unlock().expect("the log's lock");
        killed
    }

    /// Ends the recording; the processes must have ended. The directory as the log says it must now be equals the real
    /// one, or something has written past the layer: that panics, since no replay could be trusted.
    #[must_use]
    pub fn finish(self) -> (Disk, Log) {
        let log = Log::read(&self.log_path);
        let mut whole = self.start.clone();
        whole.replay(&log, log.steps.len());
        whole.assert_is(&self.root);
        (self.start, log)
    }
}

/// Makes a command's `fsync`s cost nothing: for work on a directory that only needs to survive the process.
pub fn without_sync(command: &mut Command) {
    command
        .env("LD_PRELOAD", layer())
        .env_remove("FAULT_ROOT")
        .env_remove("FAULT_LOG");
}
