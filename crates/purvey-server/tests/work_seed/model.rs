//! A model provider that speaks chat completions and answers what the test says.

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::State,
    response::Response,
    routing::post,
};
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::{net::TcpListener, sync::watch};

/// What it says unless told otherwise.
pub(crate) const SAYS: &str = "done";

/// One answer.
pub(crate) struct Reply {
    status: u16,
    fields: Vec<(&'static str, String)>,
    body: Value,
}

impl Reply {
    /// An answer of three tokens to a request of two.
    pub(crate) fn says(text: &str) -> Self {
        Self::message(&json!({ "content": text }))
    }

    /// Asks for a tool.
    pub(crate) fn wants(tool: &str) -> Self {
        let call =
            json!({ "index": 0, "id": "t1", "function": { "name": tool, "arguments": "{}" } });
        Self::message(&json!({ "content": "", "tool_calls": [call] }))
    }

    /// Refuses with this status and these fields.
    pub(crate) fn refuses(status: u16, fields: &[(&'static str, &str)]) -> Self {
        Self {
            status,
            fields: fields
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect(),
            body: json!({ "error": { "type": "refused" } }),
        }
    }

    fn message(message: &Value) -> Self {
        Self {
            status: 200,
            fields: Vec::new(),
            body: json!({
                "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }],
                "usage": { "prompt_tokens": 2, "completion_tokens": 3 },
            }),
        }
    }
}

/// The provider.
#[derive(Clone)]
pub(crate) struct Model(Arc<Inner>);

struct Inner {
    url: String,
    replies: Mutex<VecDeque<Reply>>,
    asked: Mutex<Vec<Value>>,
    now: AtomicUsize,
    most: AtomicUsize,
    open: watch::Sender<bool>,
}

impl Model {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let model = Self(Arc::new(Inner {
            url: format!("http://{}/v1", listener.local_addr().unwrap()),
            replies: Mutex::default(),
            asked: Mutex::default(),
            now: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            open: watch::Sender::new(true),
        }));
        let router = Router::new()
            .route("/v1/chat/completions", post(answer))
            .with_state(model.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        model
    }

    pub(crate) fn url(&self) -> &str {
        &self.0.url
    }

    /// What it answers next; after these what it always says.
    pub(crate) fn replies(&self, replies: impl IntoIterator<Item = Reply>) {
        self.0.replies.lock().unwrap().extend(replies);
    }

    /// The requests so far.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.0.asked.lock().unwrap().clone()
    }

    /// Keeps every caller waiting until [`Self::open`].
    pub(crate) fn close(&self) {
        self.0.open.send_replace(false);
    }

    pub(crate) fn open(&self) {
        self.0.open.send_replace(true);
    }

    /// Callers that are being answered.
    pub(crate) fn callers(&self) -> usize {
        self.0.now.load(Ordering::SeqCst)
    }

    /// The most callers at once so far.
    pub(crate) fn most(&self) -> usize {
        self.0.most.load(Ordering::SeqCst)
    }
}

/// One caller that is being answered, or has gone away.
struct Caller(Model);

impl Drop for Caller {
    fn drop(&mut self) {
        self.0.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn answer(State(model): State<Model>, body: Body) -> Response {
    let now = model.0.now.fetch_add(1, Ordering::SeqCst) + 1;
    let _caller = Caller(model.clone());
    model.0.most.fetch_max(now, Ordering::SeqCst);
    let body = to_bytes(body, 1 << 20).await.unwrap();
    let asked = serde_json::from_slice(&body).unwrap();
    model.0.asked.lock().unwrap().push(asked);
    let mut open = model.0.open.subscribe();
    open.wait_for(|open| *open).await.unwrap();
    let next = model.0.replies.lock().unwrap().pop_front();
    let reply = next.unwrap_or_else(|| Reply::says(SAYS));
    let mut response = Response::builder()
        .status(reply.status)
        .header("content-type", "application/json");
    for (name, value) in reply.fields {
        response = response.header(name, value);
    }
    response.body(Body::from(reply.body.to_string())).unwrap()
}
