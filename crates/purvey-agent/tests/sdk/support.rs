//! A Service in memory.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use purvey_agent::transport::{Class, Fetch, Fetched, Operation, Transport};
use purvey_agent::{Agent, Code, Error, Service};
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;
use url::Url;

pub(crate) const ORIGIN: &str = "https://market.example";

/// What the Service answers once.
#[derive(Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    pub(crate) fn new(status: u16, body: impl Into<Bytes>) -> Self {
        Self {
            status,
            headers: HeaderMap::new(),
            body: body.into(),
        }
    }

    pub(crate) fn json(value: &Value) -> Self {
        Self::new(200, value.to_string())
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers
            .append(name, HeaderValue::from_str(value).unwrap());
        self
    }

    /// A problem that has this code and status.
    pub(crate) fn problem(status: u16, code: &str) -> Self {
        let class = code.to_lowercase().replace('_', "-");
        let body = json!({
            "type": format!("https://offeringprotocol.org/problems/{class}"),
            "title": "No", "status": status, "code": code,
        });
        Self::new(status, body.to_string()).with("content-type", "application/problem+json")
    }
}

/// A script: for each method and URL the replies in their order, the last of which stays.
#[derive(Clone, Default)]
pub(crate) struct Fake {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    replies: HashMap<String, VecDeque<Reply>>,
    log: Vec<Fetch>,
    open: usize,
    most_open: usize,
}

impl Fake {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// A fake with this Service Document.
    pub(crate) fn serving(document: &Value) -> Self {
        let fake = Self::new();
        fake.on("GET /.well-known/odp", document);
        fake
    }

    /// Adds a reply: `GET /path?query`, at the usual origin, or with a whole URL.
    pub(crate) fn reply(&self, route: &str, reply: Reply) {
        let mut state = self.state.lock().unwrap();
        state
            .replies
            .entry(key(route))
            .or_default()
            .push_back(reply);
    }

    pub(crate) fn on(&self, route: &str, body: &Value) {
        self.reply(route, Reply::json(body));
    }

    /// Everything that was asked for, but the Service Document.
    pub(crate) fn fetches(&self) -> Vec<Fetch> {
        let state = self.state.lock().unwrap();
        let log = state.log.iter();
        log.filter(|fetch| fetch.class != Class::ServiceDocument)
            .cloned()
            .collect()
    }

    /// The same in short: `GET /path`, the usual origin left out.
    pub(crate) fn log(&self) -> Vec<String> {
        let fetches = self.fetches();
        let log = fetches.iter().map(|fetch| {
            let url = fetch.url.as_str();
            format!(
                "{} {}",
                fetch.method,
                url.strip_prefix(ORIGIN).unwrap_or(url)
            )
        });
        log.collect()
    }

    /// Most requests that were open at the same time.
    pub(crate) fn most_open(&self) -> usize {
        self.state.lock().unwrap().most_open
    }

    pub(crate) fn agent(&self) -> Agent {
        Agent::builder().transport(self.clone()).build().unwrap()
    }

    pub(crate) async fn service(&self) -> Service {
        self.agent().service(ORIGIN).await.unwrap()
    }

    fn answer(&self, fetch: &Fetch) -> Reply {
        let mut state = self.state.lock().unwrap();
        state.log.push(fetch.clone());
        let replies = state
            .replies
            .get_mut(&format!("{} {}", fetch.method, fetch.url));
        match replies {
            None => Reply::problem(404, "NOT_FOUND"),
            Some(replies) if replies.len() > 1 => replies.pop_front().unwrap(),
            Some(replies) => replies.front().unwrap().clone(),
        }
    }
}

fn key(route: &str) -> String {
    let (method, url) = route.split_once(' ').unwrap();
    let base = Url::parse(ORIGIN).unwrap();
    format!("{method} {}", base.join(url).unwrap())
}

impl Transport for Fake {
    fn fetch<'a>(
        &'a self,
        _: &'a Operation,
        fetch: Fetch,
    ) -> BoxFuture<'a, Result<Fetched, Error>> {
        Box::pin(async move {
            {
                let mut state = self.state.lock().unwrap();
                state.open += 1;
                state.most_open = state.most_open.max(state.open);
            }
            // Others get a turn while this request is open.
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
            self.state.lock().unwrap().open -= 1;
            answered(&fetch, self.answer(&fetch))
        })
    }
}

/// The reply as the real transport would give it: held to the limit and the media types of its class.
fn answered(fetch: &Fetch, mut reply: Reply) -> Result<Fetched, Error> {
    let status = StatusCode::from_u16(reply.status).unwrap();
    if !status.is_success() {
        let now = SystemTime::UNIX_EPOCH;
        return Err(Error::from_response(
            status,
            &reply.headers,
            Some(&reply.body),
            now,
        ));
    }
    if !reply.headers.contains_key(header::CONTENT_TYPE) {
        let usual = match fetch.class {
            Class::AttributeSchema => "application/schema+json",
            Class::OpenApi | Class::Invoke => "application/json",
            _ => "application/odp+json",
        };
        reply = reply.with("content-type", usual);
    }
    if reply.body.len() > fetch.class.byte_limit() {
        return Err(Error::new(
            Code::ResponseLimitExceeded,
            "The response is too large.",
        ));
    }
    if !fetch.class.accepts(&reply.headers) {
        return Err(Error::new(
            Code::UnexpectedMediaType,
            "Not what was asked for.",
        ));
    }
    Ok(Fetched {
        status,
        headers: reply.headers,
        body: reply.body,
        url: fetch.url.clone(),
        from_cache: false,
    })
}

/// A Service Document that advertises every operation, without authentication.
pub(crate) fn document() -> Value {
    let operations = [
        "get-collection",
        "get-offering",
        "list-collection-offerings",
        "list-collections",
        "list-offerings",
        "search-collections",
        "search-offerings",
    ];
    let operations = operations.map(|name| json!({"name": name, "authentication": "not-required"}));
    json!({
        "odp_version": "1.0", "name": "Market", "description": "Everything.", "language": "en",
        "localizations": ["en"], "operations": operations, "http": {"endpoint_base": "/odp"},
    })
}

/// `document` with another member.
pub(crate) fn with(mut document: Value, member: &str, value: Value) -> Value {
    document[member] = value;
    document
}

/// A page of items that have just an id and a name.
pub(crate) fn page(ids: &[&str], next: Option<&str>) -> Value {
    let items: Vec<Value> = ids.iter().map(|id| json!({"id": id, "name": id})).collect();
    let mut page = json!({"odp_version": "1.0", "items": items});
    if let Some(next) = next {
        page["next"] = next.into();
    }
    page
}

/// An Offering with further members.
pub(crate) fn offering(id: &str, more: &Value) -> Value {
    let mut value = json!({"odp_version": "1.0", "id": id, "name": id});
    for (name, member) in more.as_object().unwrap() {
        value[name] = member.clone();
    }
    value
}

/// A fake whose Service has the Offering `item` with these members.
pub(crate) fn with_offering(document: &Value, more: &Value) -> Fake {
    let fake = Fake::serving(document);
    fake.on("GET /odp/offerings/item", &offering("item", more));
    fake
}

/// Code and message of what went wrong.
pub(crate) fn code(error: &Error) -> &str {
    error.code().as_str()
}
