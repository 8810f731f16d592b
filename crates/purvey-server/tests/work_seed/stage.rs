//! A server with its store and its workers, asked as a caller asks.

use crate::{model::Model, objects::Objects, postgres::Schema, time::Time};
use axum::{Router, body::Body};
use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use http_body_util::BodyExt;
use purvey_catalog::{
    catalog::{Catalog, Options},
    manifest::Manifest,
};
use purvey_server::{AdminToken, ServerConfig, Surfaces};
use purvey_work::{
    Clock, Platform, PlatformOptions, Store, SystemChance, UploadLimits, config,
    engine::{Engine, EngineParts, EngineSettings, NoTools},
};
use serde_json::{Value, json};
use std::{path::PathBuf, sync::Arc, time::Duration};
use tempfile::TempDir;
use tower::ServiceExt;

/// The operator's token.
pub(crate) const OPERATOR: &str = "0123456789abcdef-operator";
/// Every scope.
pub(crate) const SCOPES: [&str; 13] = [
    "runs:read",
    "runs:write",
    "agents:read",
    "agents:write",
    "artifacts:read",
    "artifacts:write",
    "threads:read",
    "threads:write",
    "triggers:read",
    "triggers:write",
    "workspaces:read",
    "workspaces:write",
    "catalog:write",
];
/// Looks before a test says that what it waits for does not come.
const LOOKS: u32 = 6_000;
const MANIFEST: &str = r#"
[service]
name = "Work"
description = "Work to be had."
language = "en"
"#;

pub(crate) fn on_sqlite<F: Future<Output = ()>>(test: fn(Stage) -> F) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("work.db");
    let store = Store::sqlite(&path).unwrap();
    run(
        store,
        Place::Sqlite(path),
        Objects::directory(),
        uploads(),
        test,
    );
}

/// With the bytes of artifacts in an S3-speaking store.
pub(crate) fn on_s3<F: Future<Output = ()>>(test: fn(Stage) -> F) {
    on_objects(uploads(), test);
}

/// The same with other bounds.
pub(crate) fn on_objects<F: Future<Output = ()>>(limits: UploadLimits, test: fn(Stage) -> F) {
    let Some(objects) = Objects::bucket() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("work.db");
    let store = Store::sqlite(&path).unwrap();
    run(store, Place::Sqlite(path), objects, limits, test);
}

pub(crate) fn on_postgres<F: Future<Output = ()>>(test: fn(Stage) -> F) {
    let Some(schema) = Schema::fresh() else {
        return;
    };
    let schema = Arc::new(schema);
    let store = Store::postgres(&schema.url()).unwrap();
    let place = Place::Postgres(Arc::clone(&schema));
    run(store, place, Objects::directory(), uploads(), test);
}

fn run<F: Future<Output = ()>>(
    store: Store,
    place: Place,
    objects: Objects,
    limits: UploadLimits,
    test: fn(Stage) -> F,
) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async { test(Stage::new(store, place, objects, limits).await).await });
}

enum Place {
    Sqlite(PathBuf),
    Postgres(Arc<Schema>),
}

/// A user and a token of theirs with every scope.
#[derive(Clone)]
pub(crate) struct Person {
    pub(crate) id: String,
    pub(crate) token: String,
}

pub(crate) struct Stage {
    router: Router,
    engine: Engine,
    place: Place,
    pub(crate) platform: Platform,
    pub(crate) catalog: Catalog,
    pub(crate) time: Time,
    pub(crate) model: Model,
    pub(crate) organization: String,
    /// Owns the workspace.
    pub(crate) owner: Person,
    pub(crate) workspace: String,
    pub(crate) objects: Objects,
    directory: TempDir,
}

pub(crate) fn config() -> ServerConfig {
    let mut config = ServerConfig::default();
    config.listen = ([127, 0, 0, 1], 0).into();
    config.admin_token = Some(AdminToken::new(OPERATOR).unwrap());
    // A burst of a test is larger than a server takes at once unless told to.
    config.max_in_flight = 10_000;
    config
}

/// The providers besides `echo`: `model`; `gate`, which ends once its file is there; programs that fail, say half a value, and say 42.
fn providers(model: &Model, gate: &std::path::Path) -> config::ProviderConfigs {
    let shell = |script: &str| json!({ "kind": "command", "command": ["/bin/sh", "-c", script, gate], "environment": ["PATH"] });
    let files = |script: &str| {
        let mut provider = shell(script);
        provider["files"] = json!({ "most": 2, "bytes": 1_500_000 });
        provider
    };
    let price = json!({ "input": 1_000_000, "output": 1_000_000, "max_output_tokens": 10 });
    serde_json::from_value(json!({
        "model": { "kind": "openai", "base_url": model.url(), "prices": { "dear": price } },
        "gate": shell(r#"while [ ! -e "$0" ]; do sleep 0.02; done; echo '"through"'"#),
        "fails": shell("echo out of ink >&2; exit 3"),
        "half": shell(r#"echo '{"half":'"#),
        "number": shell("echo 42"),
        "copies": files(r#"cat in/* > out/all; ls in > out/names; cat > out/../said; grep -q '"path":"in/000-a_b.txt"' said && echo '"copied"'"#),
        "litters": files("echo left > out/left; exit 3"),
        "again": files(r#"if [ -e "$0" ]; then echo new > out/new; echo 1; else touch "$0"; echo old > out/old; exit 75; fi"#),
        "many": files("touch out/1 out/2 out/3; echo 1"),
        "large": files("head -c 1500001 /dev/zero > out/large; echo 1"),
        "nested": files("mkdir out/inner; echo 1"),
        "linked": files("ln -s /etc/passwd out/passwd; echo 1"),
        "fits": files("head -c 900000 /dev/zero > out/fits; echo 1"),
    }))
    .unwrap()
}

/// Bounds that a test can reach.
pub(crate) fn uploads() -> UploadLimits {
    let mut limits = UploadLimits::default();
    limits.bytes = 1_000_000;
    limits.organization_bytes = 2_500_000;
    limits.at_once = 3;
    limits.per_minute = 20;
    limits.patience = Duration::from_secs(2);
    limits
}

impl Stage {
    async fn new(store: Store, place: Place, objects: Objects, limits: UploadLimits) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let time = Time::noon();
        let clock: Arc<dyn Clock> = Arc::new(time.clone());
        let model = Model::start().await;
        let configs = providers(&model, &directory.path().join("gate"));
        let environment = |name: &str| std::env::var_os(name);
        let providers = config::providers(&configs, &environment, &clock).unwrap();
        let mut options = PlatformOptions::default();
        options.clock = clock;
        options
            .providers
            .extend(providers.names().map(str::to_owned));
        let blobs = objects.blobs().await;
        options.blobs = blobs.clone();
        options.uploads = limits.clone();
        let platform = Platform::new(store.clone(), options);
        let engine = Engine::start(EngineParts {
            blobs,
            uploads: limits,
            store,
            providers,
            tools: Arc::new(NoTools),
            time: Arc::new(time.clone()),
            chance: Arc::new(SystemChance),
            settings: EngineSettings::default(),
        });
        let catalog = Catalog::open(&directory.path().join("catalog"), Options::default()).unwrap();
        catalog
            .set_manifest(&Manifest::parse_embedded(MANIFEST, &[]).unwrap())
            .unwrap();
        catalog.publish().unwrap();
        let mut stage = Self {
            router: Router::new(),
            engine,
            place,
            platform,
            catalog,
            time,
            model,
            organization: String::new(),
            owner: Person {
                id: String::new(),
                token: String::new(),
            },
            workspace: String::new(),
            objects,
            directory,
        };
        stage.router = stage.router_with(config());
        stage.organization = stage.new_organization().await;
        stage.owner = stage.person().await;
        stage.workspace = stage.new_workspace(&stage.owner).await;
        stage
    }

    pub(crate) fn surfaces(&self) -> Surfaces {
        Surfaces::from(self.catalog.clone()).with_work(self.platform.clone())
    }

    /// Another server over the same store.
    pub(crate) fn router_with(&self, config: ServerConfig) -> Router {
        purvey_server::router(self.surfaces(), config)
    }

    pub(crate) fn router(&self) -> Router {
        self.router.clone()
    }

    /// Lets the runs of the provider `gate` end.
    pub(crate) fn open_gate(&self) {
        std::fs::write(self.directory.path().join("gate"), "").unwrap();
    }

    /// Hands everything over, and works on nothing any more.
    pub(crate) async fn stop_working(self) {
        self.engine.shutdown(Duration::ZERO).await;
    }

    /// Makes every look at an agent fail.
    pub(crate) fn break_store(&self) {
        let sql = "ALTER TABLE agents RENAME TO elsewhere";
        match &self.place {
            Place::Sqlite(path) => {
                let other = rusqlite::Connection::open(path).unwrap();
                other.busy_timeout(Duration::from_secs(30)).unwrap();
                other.execute_batch(sql).unwrap();
            }
            Place::Postgres(schema) => {
                let schema = Arc::clone(schema);
                let sql = format!("SET search_path TO {}; {sql}", schema.name());
                // Its client cannot be used inside a runtime.
                std::thread::spawn(move || schema.execute(&sql))
                    .join()
                    .unwrap();
            }
        }
    }

    pub(crate) async fn new_organization(&self) -> String {
        let body = json!({ "name": "Organization" });
        let made = self.post("/v1/admin/organizations", OPERATOR, &body).await;
        made.ok(201)["id"].as_str().unwrap().to_owned()
    }

    /// A new user of the organization.
    pub(crate) async fn person(&self) -> Person {
        self.person_of(&self.organization, None).await
    }

    pub(crate) async fn person_of(&self, organization: &str, inviter: Option<&Person>) -> Person {
        let mut body = json!({ "organization_id": organization, "display_name": "Somebody" });
        if let Some(inviter) = inviter {
            body["invited_by"] = inviter.id.as_str().into();
        }
        let made = self.post("/v1/admin/users", OPERATOR, &body).await.ok(201);
        let id = made["id"].as_str().unwrap().to_owned();
        let token = self.token(&id, &SCOPES).await;
        Person { id, token }
    }

    pub(crate) async fn token(&self, user: &str, scopes: &[&str]) -> String {
        let body = json!({ "user_id": user, "scopes": scopes });
        let made = self.post("/v1/tokens", OPERATOR, &body).await.ok(201);
        made["token"].as_str().unwrap().to_owned()
    }

    /// A new workspace in its owner's organization.
    pub(crate) async fn new_workspace(&self, owner: &Person) -> String {
        self.new_workspace_in(&self.organization, owner).await
    }

    pub(crate) async fn new_workspace_in(&self, organization: &str, owner: &Person) -> String {
        let body = json!({ "organization_id": organization, "name": "W", "owner_id": owner.id });
        let made = self.post("/v1/workspaces", OPERATOR, &body).await.ok(201);
        made["id"].as_str().unwrap().to_owned()
    }

    /// A new user who is a member of the workspace.
    pub(crate) async fn member(&self, role: &str) -> Person {
        let person = self.person().await;
        self.set_role(&self.workspace, &person, Some(role)).await;
        person
    }

    /// What `person` may do in a workspace; nothing removes them.
    pub(crate) async fn set_role(&self, workspace: &str, person: &Person, role: Option<&str>) {
        let path = format!("/v1/workspaces/{workspace}/members/{}", person.id);
        match role {
            Some(role) => drop(
                self.put(&path, OPERATOR, &json!({ "role": role }))
                    .await
                    .ok(200),
            ),
            None => {
                let removed = self.delete(&path, OPERATOR).await;
                assert_eq!(removed.status, 204);
            }
        }
    }

    /// Sets limits of the workspace.
    pub(crate) async fn limits(&self, limits: &Value) {
        let path = format!("/v1/workspaces/{}", self.workspace);
        self.patch(&path, OPERATOR, limits).await.ok(200);
    }

    /// An agent of the owner's: `echo` unless said otherwise.
    pub(crate) async fn agent(&self, with: Value) -> String {
        self.agent_in(&self.workspace, &self.owner, with).await
    }

    pub(crate) async fn agent_in(&self, workspace: &str, owner: &Person, with: Value) -> String {
        let mut body = json!({ "name": "Agent", "instructions": "Keep this to yourself.", "provider": "echo", "model": "" });
        body.as_object_mut()
            .unwrap()
            .extend(with.as_object().unwrap().clone());
        let path = format!("/v1/workspaces/{workspace}/agents");
        let made = self.post(&path, &owner.token, &body).await.ok(201);
        made["id"].as_str().unwrap().to_owned()
    }

    /// Asks for a run with the input "x".
    pub(crate) async fn start(&self, who: &Person, agent: &str, key: Option<&str>) -> Answer {
        let path = format!("/v1/agents/{agent}/runs");
        let key = key.map(|key| ("idempotency-key", key));
        let fields: Vec<_> = key.into_iter().collect();
        self.send(
            "POST",
            &path,
            &who.token,
            Some(&json!({ "input": "x" })),
            &fields,
        )
        .await
    }

    /// A run that was accepted.
    pub(crate) async fn run(&self, who: &Person, agent: &str) -> Value {
        self.start(who, agent, None).await.ok(202)
    }

    /// A run as it is now.
    pub(crate) async fn read(&self, run: &Value) -> Value {
        let path = format!("/v1/runs/{}", run["id"].as_str().unwrap());
        self.get(&path, OPERATOR).await.ok(200)
    }

    /// A run once it has ended.
    pub(crate) async fn ended(&self, run: &Value) -> Value {
        let path = format!("/v1/runs/{}?wait=30", run["id"].as_str().unwrap());
        for _ in 0..8 {
            let run = self.get(&path, OPERATOR).await.ok(200);
            if !run["finished_at"].is_null() {
                return run;
            }
        }
        panic!("the run does not end: {run}");
    }

    /// A run once it has this status.
    pub(crate) async fn reaches(&self, run: &Value, status: &str) -> Value {
        for _ in 0..LOOKS {
            let run = self.read(run).await;
            if run["status"] == status {
                return run;
            }
            assert!(run["finished_at"].is_null(), "{run}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the run does not become {status}: {}", self.read(run).await);
    }

    /// Waits until something holds.
    pub(crate) async fn until(&self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        for _ in 0..LOOKS {
            if holds().await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("it does not come about: {what}");
    }

    /// Every run of the workspace with this status.
    pub(crate) async fn runs(&self, status: &str) -> Vec<Value> {
        let mut runs = Vec::new();
        let first = format!(
            "/v1/workspaces/{}/runs?limit=100&status={status}",
            self.workspace
        );
        let mut path = first.clone();
        loop {
            let page = self.get(&path, OPERATOR).await.ok(200);
            runs.extend(page["items"].as_array().unwrap().clone());
            let Some(cursor) = page["next_cursor"].as_str() else {
                return runs;
            };
            path = format!("{first}&cursor={cursor}");
        }
    }

    pub(crate) async fn get(&self, path: &str, token: &str) -> Answer {
        self.send("GET", path, token, None, &[]).await
    }

    pub(crate) async fn delete(&self, path: &str, token: &str) -> Answer {
        self.send("DELETE", path, token, None, &[]).await
    }

    pub(crate) async fn post(&self, path: &str, token: &str, body: &Value) -> Answer {
        self.send("POST", path, token, Some(body), &[]).await
    }

    pub(crate) async fn put(&self, path: &str, token: &str, body: &Value) -> Answer {
        self.send("PUT", path, token, Some(body), &[]).await
    }

    pub(crate) async fn patch(&self, path: &str, token: &str, body: &Value) -> Answer {
        self.send("PATCH", path, token, Some(body), &[]).await
    }

    /// A request with a bearer token and a JSON body.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        token: &str,
        body: Option<&Value>,
        fields: &[(&str, &str)],
    ) -> Answer {
        let mut request = Request::builder()
            .method(Method::from_bytes(method.as_bytes()).unwrap())
            .uri(path)
            .header("authorization", format!("Bearer {token}"));
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        self.raw(request.body(body).unwrap()).await
    }

    pub(crate) async fn raw(&self, request: Request<Body>) -> Answer {
        Answer::of(self.router(), request).await
    }
}

/// A response, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) async fn of(router: Router, request: Request<Body>) -> Self {
        let (parts, body) = router.oneshot(request).await.unwrap().into_parts();
        Self {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: body.collect().await.unwrap().to_bytes(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        Some(self.headers.get(name)?.to_str().unwrap())
    }

    /// The JSON body of an answer with this status.
    pub(crate) fn ok(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{:?}", self.body);
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The problem of a refusal with this status and code, checked for what each has.
    pub(crate) fn refused(&self, status: u16, code: &str) -> Value {
        let body = self.ok(status);
        assert_eq!(body["code"], code, "{body}");
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json")
        );
        assert_eq!(body["status"], status);
        assert_eq!(body["type"], format!("/v1/problems/{code}"));
        assert_eq!(body["request_id"].as_str(), self.header("x-request-id"));
        assert!(!body["title"].as_str().unwrap().is_empty());
        assert!(!body["detail"].as_str().unwrap().is_empty());
        assert_eq!(self.header("location"), None);
        assert_eq!(body["errors"].is_array(), status == 422, "{body}");
        assert_eq!(body["limit_detail"].is_object(), status == 429, "{body}");
        body
    }

    /// The places of a 422: pointers into the body, names of parameters and fields.
    pub(crate) fn places(&self) -> Vec<String> {
        let body = self.refused(422, "request.invalid");
        let errors = body["errors"].as_array().unwrap();
        assert!(errors.iter().all(|error| error["reason"].is_string()));
        let place = |error: &Value| {
            let place = error["pointer"]
                .as_str()
                .or(error["name"].as_str())
                .unwrap();
            format!("{} {place}", error["in"].as_str().unwrap())
        };
        errors.iter().map(place).collect()
    }
}
