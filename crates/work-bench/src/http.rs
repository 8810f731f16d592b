//! Starts over HTTP: a server of ours with the embedded store, and connections that are kept.

use crate::{
    Outcome,
    parts::Bench,
    stage::{body, key},
};
use load::{Connection, run_with};
use serde_json::{Value, json};
use std::{
    io::{self, BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
};
use tokio::runtime::Runtime;

const CONNECTIONS: usize = 32;

/// A server of ours, which ends with this.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// Over a data directory, with more arguments.
    pub(crate) fn start(purvey: &Path, data: &Path, more: &[&str]) -> Outcome<Self> {
        let mut child = Command::new(purvey)
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(data)
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let said = child.stderr.take().ok_or("no standard error")?;
        let mut server = Self {
            child,
            address: ([127, 0, 0, 1], 0).into(),
        };
        let mut lines = BufReader::new(said).lines();
        let mut told = Vec::new();
        for line in lines.by_ref() {
            let line = line?;
            if let Some(url) = line.trim().strip_prefix("listening on http://") {
                server.address = url.parse()?;
                // What it goes on to say must not fill the pipe.
                std::thread::spawn(move || lines.for_each(drop));
                return Ok(server);
            }
            told.push(line);
        }
        Err(format!("the server does not start:\n{}", told.join("\n")).into())
    }

    /// The most memory that it has had so far, in MiB.
    pub(crate) fn peak(&self) -> Outcome<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
        Ok(kib.ok_or("no peak")?.trim().parse::<u64>()? / 1_024)
    }
}

pub(crate) fn run(bench: &Bench, _: &Runtime) -> Outcome<()> {
    let Some(purvey) = &bench.serve else {
        return Ok(());
    };
    let data = bench.work.join("http");
    if data.exists() {
        std::fs::remove_dir_all(&data)?;
    }
    std::fs::create_dir_all(&data)?;
    // Runs that hold their slot for as long as the load lasts: only starts are measured.
    std::fs::write(
        data.join("purvey.toml"),
        "[providers.hold]\nkind = \"command\"\ncommand = [\"/bin/sleep\", \"3600\"]\n",
    )?;
    let config = data.join("purvey.toml");
    let config = config.to_str().ok_or("the directory's name is not UTF-8")?;
    let server = Server::start(purvey, &data, &["--config", config])?;
    let address = server.address;
    let token = std::fs::read_to_string(data.join("owner-token"))?;
    let authorization = format!("Authorization: Bearer {}\r\n", token.trim());
    let mut connection = Connection::open(address)?;
    let mut ask = |method: &str, target: &str, document: &Value| -> Outcome<Value> {
        let text = document.to_string();
        let (status, answer) = connection.json(method, target, &authorization, &text)?;
        match status {
            200 | 201 => Ok(serde_json::from_slice(answer)?),
            _ => Err(format!(
                "{target} answered {status}: {}",
                String::from_utf8_lossy(answer)
            )
            .into()),
        }
    };
    let listed = ask("GET", "/v1/workspaces", &Value::Null)?;
    let workspace = listed.pointer("/items/0/id").and_then(Value::as_str);
    let workspace = format!("/v1/workspaces/{}", workspace.ok_or("no workspace")?);
    let limits = json!({"concurrency_limit": 1, "queue_limit": 1_000_000});
    ask("PATCH", &workspace, &limits)?;
    let agent = ask(
        "POST",
        &format!("{workspace}/agents"),
        &json!({"name": "Greeter", "provider": "hold", "model": "", "instructions": "Answer with what you were told."}),
    )?;
    let agent = agent.get("id").and_then(Value::as_str);
    let target = format!("/v1/agents/{}/runs", agent.ok_or("no agent")?);
    let next = AtomicU64::new(0);
    let measured = run_with(address, CONNECTIONS, bench.time, |connection, _, _| {
        let n = next.fetch_add(1, Ordering::Relaxed);
        let headers = format!("{authorization}Idempotency-Key: {}\r\n", key(n));
        let text = body(n).to_string();
        let (status, answer) = connection.json("POST", &target, &headers, &text)?;
        match status {
            200..=202 => Ok(answer.len()),
            _ => Err(io::Error::other(format!(
                "{target} answered {status}: {}",
                String::from_utf8_lossy(answer)
            ))),
        }
    })?;
    // Killed, so that what is counted is what was durable.
    drop(server);
    let started = next.into_inner();
    let store = rusqlite::Connection::open(data.join("work.db"))?;
    let runs: u64 = store.query_row("SELECT COUNT(*) FROM runs", [], |row| row.get(0))?;
    if runs != started {
        return Err(format!("{started} runs were started, the store has {runs}").into());
    }
    std::fs::remove_dir_all(&data)?;
    println!(
        "\n| over HTTP, SQLite | connections | starts/s | p50 ms | p99 ms |\n|---|---|---|---|---|"
    );
    let millis = |time: std::time::Duration| time.as_secs_f64() * 1e3;
    println!(
        "| POST {{agent}}/runs | {CONNECTIONS} | {:.0} | {:.2} | {:.2} |",
        measured.rate,
        millis(measured.p50),
        millis(measured.p99)
    );
    Ok(())
}
