//! A server killed at random while runs are started, worked on and finished: every accepted start is one run, and every run ends.
//!
//! `PURVEY_FAULT_ROUNDS=25` makes 200 kills.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failure in a test's helper is the test's failure"
)]

use e2e::{
    random,
    server::{self, Server},
};
use reqwest::blocking::Client as Http;
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Most runs at once.
const LIMIT: u64 = 4;
const CALLERS: usize = 6;
/// How long all that was started may take to end once nothing is killed any more.
const PATIENCE: Duration = Duration::from_secs(120);

fn start(data: &Path, config: &Path) -> Server {
    let mut serve = server::serve(data);
    serve.arg("--config").arg(config);
    Server::run(serve).unwrap_or_else(|said| panic!("the server does not start again:\n{said}"))
}

fn config(home: &Path) -> PathBuf {
    let path = home.join("purvey.toml");
    let provider = "[providers.sh]\nkind = \"command\"\nenvironment = [\"PATH\"]\n\
        command = [\"/bin/sh\", \"-c\", \"cat > /dev/null; sleep 0.05; echo 1\"]\n";
    std::fs::write(&path, provider).unwrap();
    path
}

/// The server's address now, and the owner's token.
#[derive(Clone)]
struct Owner {
    http: Http,
    url: Arc<Mutex<String>>,
    token: String,
}

impl Owner {
    fn call(
        &self,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: Option<&Value>,
    ) -> Option<(u16, Value)> {
        let url = format!("{}{path}", self.url.lock().unwrap());
        let mut request = self
            .http
            .request(method.parse().unwrap(), url)
            .bearer_auth(&self.token);
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        if let Some(body) = body {
            let body = serde_json::to_vec(body).unwrap();
            request = request
                .header("content-type", "application/json")
                .body(body);
        }
        let response = request.send().ok()?;
        let status = response.status().as_u16();
        let bytes = response.bytes().ok()?;
        let value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Some((status, value))
    }

    fn must(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let (status, value) = self.call(method, path, None, body).expect("an answer");
        assert!(
            (200..300).contains(&status),
            "{method} {path}: {status} {value}"
        );
        value
    }
}

#[test]
fn killed_while_runs_are_started_and_worked_on() {
    let seed = random::seed();
    let mut random = seed.random();
    let rounds = random::rounds(8);
    let home = TempDir::new().unwrap();
    let (data, config) = (home.path().join("data"), config(home.path()));
    let mut server = start(&data, &config);
    let token = std::fs::read_to_string(data.join("owner-token")).unwrap();
    let owner = Owner {
        http: Http::builder()
            .timeout(Duration::from_secs(20))
            .build()
            .unwrap(),
        url: Arc::new(Mutex::new(server.url.clone())),
        token: token.trim().to_owned(),
    };
    let workspace = owner.must("GET", "/v1/workspaces", None)["items"][0].clone();
    let workspace = format!("/v1/workspaces/{}", workspace["id"].as_str().unwrap());
    owner.must(
        "PATCH",
        &workspace,
        Some(&json!({"concurrency_limit": LIMIT, "queue_limit": 100_000})),
    );
    let agents = format!("{workspace}/agents");
    let agent = json!({"name": "A", "instructions": "", "provider": "sh", "model": ""});
    let agent = owner.must("POST", &agents, Some(&agent));
    let starts = format!("/v1/agents/{}/runs", agent["id"].as_str().unwrap());

    let stop = Arc::new(AtomicBool::new(false));
    let next = Arc::new(AtomicUsize::new(0));
    let accepted: Arc<Mutex<HashMap<String, String>>> = Arc::default();
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let (owner, starts) = (owner.clone(), starts.clone());
            let (stop, next, accepted) = (stop.clone(), next.clone(), accepted.clone());
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let key = format!("key-{}", next.fetch_add(1, Ordering::Relaxed));
                    let body = json!({"input": key});
                    // The same start under the same key until it is accepted, whatever happens to the server meanwhile.
                    let run = loop {
                        match owner.call("POST", &starts, Some(&key), Some(&body)) {
                            Some((200 | 202, run)) => break run,
                            Some((status, answer)) if status < 500 => panic!("{status} {answer}"),
                            _ => std::thread::sleep(Duration::from_millis(20)),
                        }
                    };
                    let id = run["id"].as_str().unwrap().to_owned();
                    accepted.lock().unwrap().insert(key, id);
                    std::thread::sleep(Duration::from_millis(10));
                }
            })
        })
        .collect();
    for _ in 0..rounds {
        std::thread::sleep(Duration::from_millis(150) + random.below(Duration::from_millis(600)));
        server.kill();
        server = start(&data, &config);
        owner.url.lock().unwrap().clone_from(&server.url);
        let seen = owner.must("GET", &workspace, None);
        assert!(seen["running"].as_u64().unwrap() <= LIMIT, "{seen}");
    }
    stop.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.join().unwrap();
    }

    let deadline = Instant::now() + PATIENCE;
    loop {
        let seen = owner.must("GET", &workspace, None);
        assert!(seen["running"].as_u64().unwrap() <= LIMIT, "{seen}");
        if seen["running"] == 0 && seen["queued"] == 0 {
            break;
        }
        assert!(Instant::now() < deadline, "stuck: {seen}");
        std::thread::sleep(Duration::from_millis(100));
    }
    let accepted = accepted.lock().unwrap();
    assert_eq!(
        accepted.len(),
        next.load(Ordering::Relaxed),
        "every start was accepted"
    );
    let mut runs = HashMap::new();
    let mut cursor = String::new();
    loop {
        let page = owner.must("GET", &format!("{workspace}/runs?limit=100{cursor}"), None);
        for run in page["items"].as_array().unwrap() {
            let input = run["input"].as_str().unwrap().to_owned();
            let id = run["id"].as_str().unwrap().to_owned();
            // A command that was under way at a kill is run again; it fails only if that happened too often.
            let ended = run["status"].as_str().unwrap();
            assert!(
                ended == "succeeded" || run["error_code"] == "run.crashed",
                "{run}"
            );
            assert_eq!(runs.insert(input, id), None, "one run for a key");
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(runs, *accepted, "exactly the runs that were accepted");
    println!("{rounds} kills, {} runs", runs.len());
    assert!(!runs.is_empty());
}
