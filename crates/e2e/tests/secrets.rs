//! Secrets that are planted everywhere and must come out nowhere: no log line at any level, no problem document, nothing that a command
//! says on standard error.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failure in a test's helper is the test's failure"
)]

use e2e::{
    binary,
    server::{self, ADMIN_TOKEN, Server},
};
use reqwest::blocking::{Client as Http, RequestBuilder};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    time::Duration,
};
use tempfile::TempDir;

/// What runs are given, files hold, agents are told and providers are shown.
const PLANTED: [&str; 7] = [
    "planted-input-5a1e",
    "planted-bytes-77c0",
    "planted-instructions-19fd",
    "planted-provider-key-c3aa",
    "planted-event-04be",
    "planted-stranger-token-90d2",
    "planted-program-variable-6b1f",
];

/// A model that answers everything with a failure that says all it was told.
fn telltale() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.set_read_timeout(Some(Duration::from_millis(300)));
            let mut told = Vec::new();
            let _ = stream.read_to_end(&mut told);
            let told = String::from_utf8_lossy(&told).into_owned();
            assert!(told.contains("planted-provider-key"), "the key is sent");
            let body = json!({"error": {"message": told, "code": told}}).to_string();
            let answer = format!(
                "HTTP/1.1 400 Bad Request\r\nx-request-id: r1\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    url
}

struct House {
    server: Server,
    directory: TempDir,
    http: Http,
    /// Everything that was said, besides what the server logs.
    said: Vec<String>,
    secrets: Vec<String>,
}

impl House {
    fn new(form: &str) -> Self {
        let directory = TempDir::new().unwrap();
        let config = directory.path().join("purvey.toml");
        let telltale = telltale();
        fs::write(
            &config,
            format!(
                "log = \"trace\"\nlog_format = \"{form}\"\nmax_artifact_bytes = \"1MiB\"\n\
                 [providers.tells]\nkind = \"openai\"\nbase_url = \"{telltale}\"\napi_key_env = \"TELLS_KEY\"\n\
                 [providers.breaks]\nkind = \"command\"\ncommand = [\"/bin/sh\", \"-c\", \"exit 3\"]\nenvironment = [\"OF_PROGRAMS\"]\n"
            ),
        )
        .unwrap();
        let mut serve = server::serve(&directory.path().join("data"));
        serve
            .arg("--config")
            .arg(&config)
            .env("TELLS_KEY", PLANTED[3])
            .env("OF_PROGRAMS", PLANTED[6]);
        let server = Server::run(serve).unwrap();
        let token = fs::read_to_string(directory.path().join("data/owner-token")).unwrap();
        let mut secrets: Vec<String> = PLANTED.map(str::to_owned).to_vec();
        secrets.push(ADMIN_TOKEN.to_owned());
        secrets.push(token.trim().to_owned());
        Self {
            directory,
            server,
            http: Http::new(),
            said: Vec::new(),
            secrets,
        }
    }

    fn owner(&self) -> &str {
        &self.secrets[8]
    }

    fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let url = format!("{}{path}", self.server.url);
        let method = method.parse().unwrap();
        self.http.request(method, url).bearer_auth(self.owner())
    }

    /// Sends it; what is a failure is kept.
    fn send(&mut self, request: RequestBuilder) -> (u16, Value) {
        let answer = request.send().unwrap();
        let status = answer.status().as_u16();
        let head = format!("{:?}", answer.headers());
        let text = answer.text().unwrap();
        if status >= 400 {
            self.said.push(head);
            self.said.push(text.clone());
        }
        (status, serde_json::from_str(&text).unwrap_or_default())
    }

    fn post(&mut self, path: &str, body: &Value) -> Value {
        let (status, answer) = self.send(self.request("POST", path).json(body));
        assert!(status < 300, "{path}: {status} {answer}");
        answer
    }

    /// Runs a command as the owner; what it says on standard error is kept.
    fn command(&mut self, arguments: &[&str], server: &str) {
        let mut command = binary::command();
        command
            .args(arguments)
            .args(["--server", server, "--timeout", "2s"])
            .env("PURVEY_TOKEN", self.owner())
            .env("RUST_LOG", "trace");
        let output = command.output().unwrap();
        self.said
            .push(String::from_utf8_lossy(&output.stderr).into_owned());
    }

    /// Waits for the end of a run.
    fn end(&mut self, run: &Value) -> Value {
        let path = format!("/v1/runs/{}?wait=30", run["id"].as_str().unwrap());
        let (_, run) = self.send(self.request("GET", &path));
        run
    }

    fn upload(&self, path: &str, sha256: &str) -> RequestBuilder {
        self.request("POST", path)
            .header("content-type", "application/octet-stream")
            .header("idempotency-key", sha256)
            .header("x-upload-size", PLANTED[1].len())
            .header("x-content-sha256", sha256)
            .header("x-filename", "f")
            .body(PLANTED[1])
    }

    /// Nothing of it anywhere.
    fn check(&self) {
        let log = self.server.said();
        for (what, text) in [("the log", &log)]
            .into_iter()
            .chain(self.said.iter().map(|said| ("an answer or command", said)))
        {
            for secret in &self.secrets {
                if let Some(at) = text.find(secret.as_str()) {
                    let around: String = text[..at].chars().rev().take(300).collect();
                    let around: String = around.chars().rev().collect();
                    panic!("{what} shows {secret} after: {around}");
                }
            }
        }
        // It was not silent.
        for part in ["TRACE", "/v1/workspaces/", "artifacts", "/v1/hooks/"] {
            assert!(log.contains(part), "the log lacks {part}");
        }
        assert!(self.said.len() > 20, "{}", self.said.len());
    }
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn a_whole_day(form: &str) {
    let mut house = House::new(form);
    let (_, listed) = house.send(house.request("GET", "/v1/workspaces"));
    let workspace = format!(
        "/v1/workspaces/{}",
        listed["items"][0]["id"].as_str().unwrap()
    );

    // Runs that succeed, that their provider refuses, and that break.
    let mut agents = Vec::new();
    for provider in ["echo", "tells", "breaks"] {
        let agent = json!({"name": provider, "provider": provider, "model": "", "instructions": PLANTED[2]});
        let agent = house.post(&format!("{workspace}/agents"), &agent);
        let path = format!("/v1/agents/{}/runs", agent["id"].as_str().unwrap());
        let run = house.post(&path, &json!({"input": {"text": PLANTED[0]}}));
        let ended = house.end(&run);
        let status = if provider == "echo" {
            "succeeded"
        } else {
            "failed"
        };
        assert_eq!(ended["status"], status, "{ended}");
        for member in ["error_code", "error_detail"] {
            house.said.push(ended[member].to_string());
        }
        agents.push((agent["id"].as_str().unwrap().to_owned(), path));
    }
    let (agent, start) = agents.remove(0);

    // What breaks rules, with the secret where it breaks them.
    for body in [
        format!("{{\"input\": \"{}\"", PLANTED[0]),
        json!({"input": 1, "more": PLANTED[0]}).to_string(),
        json!({"input": 1, "artifacts": PLANTED[0]}).to_string(),
    ] {
        let request = house.request("POST", &start);
        let request = request
            .header("content-type", "application/json")
            .body(body);
        assert!(house.send(request).0 >= 400);
    }
    // Strangers.
    for token in [PLANTED[5], "pvy_planted-stranger-token-90d2"] {
        let url = format!("{}{start}", house.server.url);
        let request = house
            .http
            .post(url)
            .bearer_auth(token)
            .json(&json!({"input": 1}));
        assert_eq!(house.send(request).0, 401);
    }

    // Webhooks: made, called right and wrong.
    let hook = json!({"agent_id": agent, "kind": "webhook", "input": {}});
    let hook = house.post(&format!("{workspace}/triggers"), &hook);
    let token = hook["token"]
        .as_str()
        .expect("a webhook's token")
        .to_owned();
    house.secrets.push(token.clone());
    let url = format!(
        "{}/v1/hooks/{}",
        house.server.url,
        hook["id"].as_str().unwrap()
    );
    for (token, body) in [
        (token.as_str(), json!({"text": PLANTED[4]}).to_string()),
        (token.as_str(), format!("{{\"text\": \"{}", PLANTED[4])),
        (PLANTED[5], json!({"text": PLANTED[4]}).to_string()),
    ] {
        let request = house.http.post(&url).bearer_auth(token);
        let request = request
            .header("content-type", "application/json")
            .body(body);
        house.send(request);
    }

    // Tokens: made, used where they may not be, revoked.
    let made = house.post(
        "/v1/tokens",
        &json!({"user_id": listed["items"][0]["owner_id"], "scopes": ["runs:read"]}),
    );
    let token = made["token"].as_str().unwrap().to_owned();
    house.secrets.push(token.clone());
    let url = format!("{}{start}", house.server.url);
    let request = house
        .http
        .post(url)
        .bearer_auth(&token)
        .json(&json!({"input": PLANTED[0]}));
    assert_eq!(house.send(request).0, 403);

    // Uploads: whole, wrong, too large, cut off.
    let artifacts = format!("{workspace}/artifacts");
    let whole = house.upload(&artifacts, &hex(PLANTED[1].as_bytes()));
    assert_eq!(house.send(whole).0, 201);
    let wrong = house.upload(&artifacts, &hex(b"other"));
    assert_eq!(house.send(wrong).0, 400);
    let address = house.server.url.strip_prefix("http://").unwrap();
    let mut cut = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST {artifacts} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/octet-stream\r\nidempotency-key: cut\r\n\
         x-upload-size: 1000\r\ncontent-length: 1000\r\nx-filename: f\r\nx-content-sha256: {}\r\n\r\n{}",
        house.owner(),
        hex(b"cut"),
        PLANTED[1]
    );
    cut.write_all(head.as_bytes()).unwrap();
    drop(cut);

    // Commands that succeed and fail, and find nobody.
    let path = house.directory.path().join("file");
    fs::write(&path, PLANTED[1].repeat(70_000)).unwrap();
    let path = path.to_str().unwrap().to_owned();
    let small = house.directory.path().join("small");
    fs::write(&small, PLANTED[1]).unwrap();
    let small = small.to_str().unwrap().to_owned();
    let url = house.server.url.clone();
    for arguments in [
        &["artifact", "upload", &path][..],
        &["artifact", "upload", &small, "--key", "k"],
        &[
            "run", "start", &agent, "--text", PLANTED[0], "--file", &small, "--wait",
        ],
        &["run", "start", "agt_absent", "--text", PLANTED[0]],
        &[
            "run",
            "start",
            &agent,
            "--artifact",
            "absent",
            "--text",
            PLANTED[0],
        ],
        &["token", "list"],
    ] {
        house.command(arguments, &url);
        house.command(arguments, "http://127.0.0.1:9");
    }
    std::thread::sleep(Duration::from_millis(300));
    house.check();
}

#[test]
fn nothing_planted_comes_out_in_lines_for_people() {
    a_whole_day("text");
}

#[test]
fn nothing_planted_comes_out_in_lines_of_json() {
    a_whole_day("json");
}

/// What the test above would find.
#[test]
fn the_search_finds_what_is_there() {
    let mut house = House::new("text");
    let (_, listed) = house.send(house.request("GET", "/v1/workspaces"));
    assert!(listed["items"][0]["id"].is_string());
    house.said.push(format!("a line with {} in it", PLANTED[0]));
    let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| house.check()));
    let panicked = checked.unwrap_err();
    let why = panicked.downcast_ref::<String>().unwrap();
    assert!(why.contains(PLANTED[0]), "{why}");
}
