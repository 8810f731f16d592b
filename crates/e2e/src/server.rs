//! A running `purvey serve`.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::binary;

/// The operator's token of every server started here.
pub const ADMIN_TOKEN: &str = "an-operator-token-of-the-tests-0123456789";

const START_LIMIT: Duration = Duration::from_secs(30);
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// A server process of ours. It is killed when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// Where it answers, like `http://127.0.0.1:40321`.
    pub url: String,
    lines: Arc<Mutex<Vec<String>>>,
    reader: Option<JoinHandle<()>>,
}

/// `purvey serve` over a data directory on a port of the system's choice, with [`ADMIN_TOKEN`].
#[must_use]
pub fn serve(data: &Path) -> Command {
    let mut command = binary::command();
    command
        .arg("serve")
        .arg("--data")
        .arg(data)
        .args(["--listen", "127.0.0.1:0"])
        .env("PURVEY_ADMIN_TOKEN", ADMIN_TOKEN);
    command
}

impl Server {
    /// Starts a server over a data directory and waits until it is ready.
    #[must_use]
    pub fn start(data: &Path) -> Self {
        Self::run(serve(data)).unwrap_or_else(|said| panic!("the server does not start:\n{said}"))
    }

    /// Runs a `serve` command and waits until it says that it is ready.
    ///
    /// # Errors
    /// What the process said, when it ended or was not ready within 30 seconds.
    pub fn run(mut command: Command) -> Result<Self, String> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("cannot run {command:?}: {e}"));
        let stderr = child.stderr.take().expect("a pipe");
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (found, address) = mpsc::channel();
        let reader = std::thread::spawn({
            let lines = Arc::clone(&lines);
            move || {
                for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
                    let line = String::from_utf8_lossy(&line).into_owned();
                    if let Some(url) = line.trim().strip_prefix("listening on ") {
                        let _ = found.send(url.to_owned());
                    }
                    lines.lock().expect("no panic while held").push(line);
                }
            }
        });
        let mut server = Self {
            child,
            url: String::new(),
            lines,
            reader: Some(reader),
        };
        match address.recv_timeout(START_LIMIT) {
            Ok(url) => {
                server.url = url;
                Ok(server)
            }
            Err(RecvTimeoutError::Disconnected) => {
                let status = server.child.wait().expect("a status");
                Err(format!("ended with {status}:\n{}", server.said()))
            }
            Err(RecvTimeoutError::Timeout) => Err(format!("not ready in time:\n{}", server.said())),
        }
    }

    /// What it has written to standard error so far.
    #[must_use]
    pub fn said(&self) -> String {
        self.lines.lock().expect("no panic while held").join("\n")
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills it at once (SIGKILL) and waits for its end.
    pub fn kill(mut self) {
        self.end();
    }

    /// Asks it to stop (SIGTERM) and waits for its end.
    pub fn terminate(self) -> ExitStatus {
        self.ask_to_stop();
        self.wait()
    }

    /// Asks it to stop (SIGTERM).
    pub fn ask_to_stop(&self) {
        self.signal("TERM");
    }

    /// Kills it (SIGKILL) while others still talk to it; [`Server::kill`] or dropping it then waits for its end.
    pub fn kill_now(&self) {
        self.signal("KILL");
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args(["-s", name, &self.id().to_string()])
            .status()
            .expect("kill runs");
        assert!(
            status.success(),
            "the server had ended already:\n{}",
            self.said()
        );
    }

    /// Waits for its end.
    pub fn wait(mut self) -> ExitStatus {
        let deadline = Instant::now() + STOP_LIMIT;
        loop {
            if let Some(status) = self.child.try_wait().expect("a status") {
                return status;
            }
            assert!(
                Instant::now() < deadline,
                "the server does not stop:\n{}",
                self.said()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
        if std::thread::panicking() {
            eprintln!("the server said:\n{}", self.said());
        }
    }
}
