//! Servers with their store and their model, and whoever calls them.

use crate::{model::Model, postgres::Schema};
use e2e::server::{self, Server};
use reqwest::blocking::Client as Http;
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// How long what must come may take to come: far more than it takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// Where the servers keep their work.
pub(crate) enum Place {
    /// In the data directory of the one server.
    Sqlite,
    /// In a schema of its own, dropped with this.
    Schema(Schema),
    /// In a whole database.
    Database(String),
}

/// What servers need to be started, and what they leave behind.
pub(crate) struct House {
    home: TempDir,
    place: Place,
    pub(crate) model: Model,
    /// More variables of the servers' environment.
    pub(crate) environment: Vec<(String, String)>,
}

impl House {
    pub(crate) fn new(place: Place, model: Model) -> Self {
        let home = TempDir::new().unwrap();
        let config = format!(
            "[providers.model]\nkind = \"openai\"\nbase_url = \"{}\"\napi_key_env = \"MODEL_KEY\"\n\
             [providers.model.prices.m]\ninput = 1000\noutput = 1000\nmax_output_tokens = 10\n",
            model.url()
        );
        std::fs::write(home.path().join("purvey.toml"), config).unwrap();
        Self {
            home,
            place,
            model,
            environment: Vec::new(),
        }
    }

    /// Adds to the servers' configuration.
    pub(crate) fn configure(&self, more: &str) {
        let path = self.home.path().join("purvey.toml");
        let config = std::fs::read_to_string(&path).unwrap() + more;
        std::fs::write(path, config).unwrap();
    }

    /// The address of the store, unless it is embedded.
    pub(crate) fn database(&self) -> Option<String> {
        match &self.place {
            Place::Sqlite => None,
            Place::Schema(schema) => Some(schema.url()),
            Place::Database(url) => Some(url.clone()),
        }
    }

    /// Starts the server of this name, which is also the key that it shows the model.
    pub(crate) fn start(&self, name: &str) -> Server {
        self.start_with(name, self.database().as_deref(), &[])
    }

    /// The same with its own way to the store and more arguments.
    pub(crate) fn start_with(&self, name: &str, database: Option<&str>, more: &[&str]) -> Server {
        let mut serve = server::serve(&self.data(name));
        serve
            .arg("--config")
            .arg(self.home.path().join("purvey.toml"))
            .env("MODEL_KEY", name)
            .envs(self.environment.iter().cloned())
            .args(more);
        if let Some(database) = database {
            serve.args(["--database", database]);
        }
        Server::run(serve).unwrap_or_else(|said| panic!("{name} does not start:\n{said}"))
    }

    pub(crate) fn data(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Rows of the store, every column as text: the query casts what is none.
    pub(crate) fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        match self.database() {
            None => sqlite_rows(&self.data("one").join("work.db"), sql),
            Some(url) => {
                let mut client = postgres::Client::connect(&url, postgres::NoTls).unwrap();
                rows(&mut client, sql)
            }
        }
    }

    /// The one number that a query finds.
    pub(crate) fn number(&self, sql: &str) -> i64 {
        self.rows(sql)[0][0].parse().unwrap()
    }
}

fn rows(client: &mut postgres::Client, sql: &str) -> Vec<Vec<String>> {
    let rows = client.query(sql, &[]).unwrap();
    let text = |row: &postgres::Row, column| row.get::<_, Option<String>>(column);
    rows.iter()
        .map(|row| {
            (0..row.len())
                .map(|c| text(row, c).unwrap_or_default())
                .collect()
        })
        .collect()
}

fn sqlite_rows(file: &std::path::Path, sql: &str) -> Vec<Vec<String>> {
    let connection = rusqlite::Connection::open(file).unwrap();
    connection.busy_timeout(PATIENCE).unwrap();
    let mut statement = connection.prepare(sql).unwrap();
    let columns = statement.column_count();
    let rows = statement
        .query_map([], |row| {
            (0..columns)
                .map(|column| Ok(row.get::<_, Option<String>>(column)?.unwrap_or_default()))
                .collect()
        })
        .unwrap();
    rows.map(Result::unwrap).collect()
}

/// What was answered to a call.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// The owner of the first workspace, who calls one server after the other.
#[derive(Clone)]
pub(crate) struct Owner {
    http: Http,
    /// Where the servers are now; a place is empty while its server is down.
    pub(crate) urls: Arc<Mutex<Vec<Option<String>>>>,
    turn: Arc<AtomicUsize>,
    token: String,
    /// The path of the workspace.
    pub(crate) workspace: String,
}

impl Owner {
    /// The owner whose token the server of this name made.
    pub(crate) fn of(house: &House, name: &str, servers: &[&Server]) -> Self {
        let token = std::fs::read_to_string(house.data(name).join("owner-token")).unwrap();
        let urls = servers.iter().map(|server| Some(server.url.clone()));
        let mut owner = Self {
            http: Http::builder()
                .timeout(Duration::from_secs(60))
                .no_proxy()
                .build()
                .unwrap(),
            urls: Arc::new(Mutex::new(urls.collect())),
            turn: Arc::default(),
            token: token.trim().to_owned(),
            workspace: String::new(),
        };
        let workspace = owner.must("GET", "/v1/workspaces", None)["items"][0].clone();
        owner.workspace = format!("/v1/workspaces/{}", workspace["id"].as_str().unwrap());
        owner
    }

    /// Makes an agent of the model's; the path of its starts.
    pub(crate) fn agent(&self, limit: usize) -> String {
        self.agent_of("model", limit)
    }

    /// The same of another provider.
    pub(crate) fn agent_of(&self, provider: &str, limit: usize) -> String {
        let limits = json!({"concurrency_limit": limit, "queue_limit": 100_000});
        self.must("PATCH", &self.workspace, Some(&limits));
        let agent = json!({"name": "A", "instructions": "", "provider": provider, "model": "m"});
        let agents = format!("{}/agents", self.workspace);
        let agent = self.must("POST", &agents, Some(&agent));
        format!("/v1/agents/{}/runs", agent["id"].as_str().unwrap())
    }

    /// Calls the server whose turn it is; nothing if it is down or goes down meanwhile.
    pub(crate) fn call(
        &self,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: Option<&Value>,
    ) -> Option<Answer> {
        let url = {
            let urls = self.urls.lock().unwrap();
            urls[self.turn.fetch_add(1, Ordering::Relaxed) % urls.len()].clone()?
        };
        self.call_at(&url, method, path, key, body)
    }

    pub(crate) fn call_at(
        &self,
        url: &str,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: Option<&Value>,
    ) -> Option<Answer> {
        let mut request = self
            .http
            .request(method.parse().unwrap(), format!("{url}{path}"))
            .bearer_auth(&self.token);
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        if let Some(body) = body {
            request = request
                .header("content-type", "application/json")
                .body(body.to_string());
        }
        let response = request.send().ok()?;
        let status = response.status().as_u16();
        let field = |name| {
            let value = response.headers().get(name).cloned();
            value.map(|value| value.to_str().unwrap().to_owned())
        };
        let (media, retry_after) = (field("content-type"), field("retry-after"));
        let body = response.bytes().ok()?;
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        if status >= 500 {
            // The one failure that a caller may see while the store is away, which says that it passes.
            assert_eq!(
                (
                    status,
                    media.as_deref(),
                    &body["code"],
                    retry_after.is_some()
                ),
                (
                    503,
                    Some("application/problem+json"),
                    &json!("server.unavailable"),
                    true
                ),
                "{method} {path}: {body}"
            );
        }
        Some(Answer { status, body })
    }

    /// Uploads these bytes to the server whose turn it is; nothing if it is down or goes down meanwhile.
    pub(crate) fn upload(&self, key: &str, sha256: &str, bytes: &[u8]) -> Option<Answer> {
        let url = self.urls.lock().unwrap()[0].clone()?;
        let request = self
            .http
            .post(format!("{url}{}/artifacts", self.workspace))
            .bearer_auth(&self.token)
            .header("content-type", "application/octet-stream")
            .header("idempotency-key", key)
            .header("x-upload-size", bytes.len())
            .header("x-content-sha256", sha256)
            .header("x-filename", "bytes.bin")
            .body(bytes.to_vec());
        let response = request.send().ok()?;
        let status = response.status().as_u16();
        let body = response.bytes().ok()?;
        Some(Answer {
            status,
            body: serde_json::from_slice(&body).unwrap(),
        })
    }

    /// The bytes of an artifact.
    pub(crate) fn download(&self, id: &str) -> Option<Vec<u8>> {
        let url = self.urls.lock().unwrap()[0].clone()?;
        let request = self
            .http
            .get(format!("{url}/v1/artifacts/{id}/content"))
            .bearer_auth(&self.token);
        let response = request.send().ok()?.error_for_status().ok()?;
        Some(response.bytes().ok()?.to_vec())
    }

    /// The stream of a run's events.
    pub(crate) fn events(&self, url: &str, run: &str) -> reqwest::blocking::Response {
        let events = self
            .http
            .get(format!("{url}/v1/runs/{run}/events"))
            .bearer_auth(&self.token);
        events.send().unwrap()
    }

    /// The same call until a server does it, for a call that may be made again.
    pub(crate) fn until(
        &self,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: Option<&Value>,
    ) -> Answer {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.call(method, path, key, body) {
                Some(answer) if answer.status < 500 => return answer,
                _ => std::thread::sleep(Duration::from_millis(20)),
            }
            assert!(Instant::now() < until, "{method} {path} is never answered");
        }
    }

    pub(crate) fn must(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let answer = self.until(method, path, None, body);
        assert!(
            answer.status < 300,
            "{method} {path}: {} {}",
            answer.status,
            answer.body
        );
        answer.body
    }

    /// Starts a run under its input as the key.
    pub(crate) fn start(&self, starts: &str, input: &str) -> Value {
        let body = json!({"input": input});
        let answer = self.until("POST", starts, Some(input), Some(&body));
        assert!(
            [200, 202].contains(&answer.status),
            "{} {}",
            answer.status,
            answer.body
        );
        answer.body
    }
}

/// Waits for what must come.
pub(crate) fn wait_for(what: &str, mut come: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !come() {
        assert!(Instant::now() < until, "{what} does not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The identifier of what was answered.
pub(crate) fn id(value: &Value) -> String {
    value["id"]
        .as_str()
        .unwrap_or_else(|| panic!("{value}"))
        .to_owned()
}
