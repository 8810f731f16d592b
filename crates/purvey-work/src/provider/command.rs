//! `command`: a program of the operator's, started once for each call.
//!
//! The program reads one JSON object `{input, instructions, model}` from its standard input and writes one JSON value, the output, to its
//! standard output. One that works on files is started in a directory of its own: `in/` holds the run's artifacts, which `artifacts` of the
//! object describes, and what it leaves in `out/` becomes artifacts of the run. Exit code 0 is success, 75 (`EX_TEMPFAIL`) a failure that is tried again, anything else a failure. Its environment
//! holds what the configuration names and nothing else. It leads a process group of its own, which is killed when the call is given
//! up, when the program has ended, and when this process is killed; what leaves that group on purpose is out of reach.

use super::{
    CallError, Content, FileLimits, OUTPUT_BYTES, Provider, Reply, Request, Retry, Usage, echo,
    guard,
};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use serde_json::json;
use std::{
    ffi::OsString,
    io,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ExitStatus, Stdio},
    sync::Arc,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{ChildStderr, ChildStdin, ChildStdout},
    sync::oneshot,
};

/// The exit code that asks for another attempt.
const TEMPORARY: i32 = 75;
/// Bytes of the end of standard error that are kept for the detail.
const STDERR_TAIL: usize = 2_048;

/// A program as a provider.
#[derive(Clone, Debug)]
pub struct Command {
    /// The program's file.
    pub program: PathBuf,
    /// What it is started with.
    pub arguments: Vec<String>,
    /// Its whole environment.
    pub environment: Vec<(String, OsString)>,
    /// What it may leave in files, if it works on files.
    pub files: Option<FileLimits>,
}

impl Provider for Command {
    fn call<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(self.run(request))
    }

    fn files(&self) -> Option<FileLimits> {
        self.files
    }

    fn most_input_tokens(&self, _: &Request) -> u64 {
        0
    }
}

impl Command {
    async fn run(&self, request: &Request) -> Result<Reply, CallError> {
        let mut given = json!({
            "input": echo::input(request),
            "instructions": request.instructions,
            "model": request.model,
        });
        if let Some(place) = &request.place {
            given["artifacts"] = json!(place.given);
        }
        let directory = request.place.as_ref().map(|place| &*place.directory);
        let unable =
            |error: io::Error| failed(format!("The command cannot be started: {}.", error.kind()));
        let (group, pipes) = Group::start(self, directory).map_err(unable)?;
        let Pipes {
            mut stdin,
            stdout,
            stderr,
        } = pipes;
        let write = async {
            // A program need not read what it is given.
            let _ = stdin.write_all(given.to_string().as_bytes()).await;
            drop(stdin);
        };
        let (output, tail, ()) =
            tokio::join!(read_output(stdout, &group), read_tail(stderr), write);
        let status = group.ended().await;
        let output = output?;
        let Some(status) = status else {
            return Err(failed("The command's end was not seen.".to_owned()));
        };
        if !status.success() {
            return Err(unsuccessful(status, &tail));
        }
        let output = serde_json::from_slice(&output).map_err(|error| {
            failed(format!(
                "The command's output is not one JSON value: at line {} column {}.{}",
                error.line(),
                error.column(),
                said(&tail)
            ))
        })?;
        Ok(Reply {
            content: Content::Json(output),
            tool_calls: Vec::new(),
            usage: Some(Usage::default()),
            cut: false,
        })
    }
}

/// A command that runs, with everything it started; dropping this kills them.
struct Group {
    leader: Pid,
    /// Nothing once the leader was waited for: from then on its number may be another's.
    alive: Arc<Mutex<bool>>,
    ended: Mutex<Option<oneshot::Receiver<ExitStatus>>>,
}

struct Pipes {
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: ChildStderr,
}

impl Group {
    fn start(command: &Command, directory: Option<&Path>) -> io::Result<(Self, Pipes)> {
        guard::ready();
        let mut child = std::process::Command::new(&command.program);
        if let Some(directory) = directory {
            child.current_dir(directory);
        }
        let mut child = child
            .args(&command.arguments)
            .env_clear()
            .envs(
                command
                    .environment
                    .iter()
                    .map(|(name, value)| (name, value)),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let leader = Pid::from_child(&child);
        guard::begun(leader);
        let pipes = child
            .stdin
            .take()
            .zip(child.stdout.take())
            .zip(child.stderr.take());
        let alive = Arc::new(Mutex::new(true));
        let (sender, ended) = oneshot::channel();
        let watched = alive.clone();
        // The guard is there before anything else can fail.
        let group = Self {
            leader,
            alive,
            ended: Mutex::new(Some(ended)),
        };
        tokio::task::spawn_blocking(move || {
            if let Some(status) = reap(child, leader, &watched) {
                // Nobody listens any more when the call was given up.
                let _ = sender.send(status);
            }
        });
        let missing = || io::Error::other("a pipe is missing");
        let ((stdin, stdout), stderr) = pipes.ok_or_else(missing)?;
        let pipes = Pipes {
            stdin: ChildStdin::from_std(stdin)?,
            stdout: ChildStdout::from_std(stdout)?,
            stderr: ChildStderr::from_std(stderr)?,
        };
        Ok((group, pipes))
    }

    fn kill(&self) {
        let alive = self.alive.lock();
        if *alive {
            // It may have ended by itself at this moment.
            let _ = kill_process_group(self.leader, Signal::KILL);
        }
    }

    /// Waits for the end of the command.
    async fn ended(&self) -> Option<ExitStatus> {
        let ended = self.ended.lock().take();
        ended?.await.ok()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Waits until the leader has ended, kills what it left behind while its number is still its own, and lets it go.
fn reap(mut child: Child, leader: Pid, alive: &Mutex<bool>) -> Option<ExitStatus> {
    let seen = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while matches!(
        waitid(WaitId::Pid(leader), seen),
        Err(rustix::io::Errno::INTR)
    ) {}
    let mut alive = alive.lock();
    let _ = kill_process_group(leader, Signal::KILL);
    guard::ended(leader);
    let status = child.wait().ok();
    *alive = false;
    status
}

/// The whole of standard output; a command that writes too much is killed.
async fn read_output(stdout: ChildStdout, group: &Group) -> Result<Vec<u8>, CallError> {
    let mut output = Vec::new();
    let most = u64::try_from(OUTPUT_BYTES).unwrap_or(u64::MAX);
    let read = stdout.take(most + 1).read_to_end(&mut output).await;
    if read.is_err() || output.len() > OUTPUT_BYTES {
        group.kill();
        return Err(failed(format!(
            "The command's output has more than {OUTPUT_BYTES} bytes, or cannot be read."
        )));
    }
    Ok(output)
}

/// The end of standard error.
async fn read_tail(mut stderr: ChildStderr) -> Vec<u8> {
    let mut tail = Vec::new();
    let mut piece = vec![0; 8_192];
    while let Ok(read) = stderr.read(&mut piece).await {
        if read == 0 {
            break;
        }
        tail.extend_from_slice(piece.get(..read).unwrap_or_default());
        let surplus = tail.len().saturating_sub(STDERR_TAIL);
        tail.drain(..surplus);
    }
    tail
}

fn unsuccessful(status: ExitStatus, tail: &[u8]) -> CallError {
    use std::os::unix::process::ExitStatusExt;
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended without success".to_owned(),
    };
    let detail = format!("The command {how}.{}", said(tail));
    match status.code() {
        Some(TEMPORARY) => CallError::Failed {
            detail,
            retry: Retry::Backoff,
            charged: false,
        },
        _ => failed(detail),
    }
}

/// The end of standard error as a part of a sentence, its control characters made visible.
fn said(tail: &[u8]) -> String {
    let tail = String::from_utf8_lossy(tail);
    let tail = tail.trim();
    if tail.is_empty() {
        return String::new();
    }
    let mut shown = String::from(" It said: ");
    for c in tail.chars() {
        match c {
            '\n' => shown.push('\n'),
            c if c.is_control() => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}

fn failed(detail: String) -> CallError {
    CallError::Failed {
        detail,
        retry: Retry::Never,
        charged: false,
    }
}
