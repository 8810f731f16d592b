//! The client.

use crate::{
    attempt::{Answer, Body, Call, Caller, Repeat},
    error::Error,
    events::{self, Event},
    redacted::Redacted,
    time::{SystemTimes, Time},
};
use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header::CONTENT_TYPE};
use rustls_platform_verifier::ConfigVerifierExt;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use url::Url;

pub(crate) const KEY: HeaderName = HeaderName::from_static("idempotency-key");
pub(crate) const REPLAYED: &str = "idempotent-replayed";
/// Longest wait for an answer that does not itself wait.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Longest that the server is asked to hold an answer back (Work §11).
const LONG_POLL: Duration = Duration::from_secs(60);

/// A client of one server's Work API. Clones share connections.
#[derive(Clone)]
pub struct Client(pub(crate) Arc<Caller>);

/// How a [`Client`] is made.
pub struct Builder {
    origin: String,
    token: Option<Redacted<String>>,
    attempts: u32,
    deadline: Duration,
    time: Arc<dyn Time>,
}

/// A run that a start made, or had made before.
#[derive(Clone, Debug, PartialEq)]
pub struct Started<T> {
    /// The run as it is now.
    pub run: T,
    /// Whether an earlier start under the same key made it.
    pub replayed: bool,
    /// The key; the same start may be sent again under it.
    pub key: String,
}

impl Builder {
    /// The bearer token sent with every request.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(Redacted::new(token.into()));
        self
    }

    /// Most attempts of one call, at least 1. Default 5.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.max(1);
        self
    }

    /// How long one call may go on, waits included. Default 60 s.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Another clock, for tests.
    #[must_use]
    pub fn time(mut self, time: Arc<dyn Time>) -> Self {
        self.time = time;
        self
    }

    /// The client.
    ///
    /// # Errors
    /// [`Error::Usage`] when the origin is no `http` or `https` URL without path, or the token is not visible ASCII.
    pub fn build(self) -> Result<Client, Error> {
        let usage = |text: String| Error::Usage(text);
        let origin = Url::parse(&self.origin)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.host().is_some())
            .filter(|url| url.path() == "/" && url.query().is_none() && url.username().is_empty())
            .ok_or_else(|| {
                usage(format!(
                    "{:?} is no server: give an origin like http://127.0.0.1:8080",
                    self.origin
                ))
            })?;
        let token = self
            .token
            .map(|token| {
                let text = token.expose().trim();
                let visible = text.bytes().all(|byte| byte.is_ascii_graphic());
                let value = HeaderValue::try_from(format!("Bearer {text}")).ok();
                value.filter(|_| visible).ok_or_else(|| {
                    usage("a token is visible ASCII characters without blanks".into())
                })
            })
            .transpose()?
            .map(|mut value| {
                value.set_sensitive(true);
                Redacted::new(value)
            });
        let _ = rustls::crypto::ring::default_provider().install_default();
        let tls = rustls::ClientConfig::with_platform_verifier()
            .map_err(|error| usage(format!("no certificates can be verified: {error}")))?;
        let http = reqwest::Client::builder()
            .use_preconfigured_tls(tls)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .connect_timeout(Duration::from_secs(10))
            .user_agent(concat!("purvey/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| usage(error.to_string()))?;
        Ok(Client(Arc::new(Caller {
            http,
            origin,
            token,
            attempts: self.attempts,
            deadline: self.deadline,
            time: self.time,
        })))
    }
}

impl Client {
    /// Begins a client of the server at `origin`.
    pub fn builder(origin: impl Into<String>) -> Builder {
        Builder {
            origin: origin.into(),
            token: None,
            attempts: 5,
            deadline: Duration::from_secs(60),
            time: Arc::new(SystemTimes),
        }
    }

    /// Reads `path` (with its query).
    ///
    /// # Errors
    /// Any [`Error`].
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        let call = call(Method::GET, path, None, Repeat::Safe);
        read(&call, &self.0.call(&call).await?)
    }

    /// Sends `body`, which changes state, without a key.
    ///
    /// # Errors
    /// Any [`Error`]; a lost answer is [`Error::Connection`] with `ambiguous`.
    pub async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<T, Error> {
        let call = call(method, path, json(body)?, Repeat::Unsafe);
        let answer = self.0.call(&call).await?;
        read(&call, &answer)
    }

    /// [`Self::send`] under an idempotency key: it may be sent again whatever becomes of it. Without one a key is made.
    ///
    /// # Errors
    /// Any [`Error`].
    pub async fn start<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        key: Option<&str>,
    ) -> Result<Started<T>, Error> {
        let key = key.map_or_else(|| uuid::Uuid::now_v7().to_string(), str::to_owned);
        let value = key_value(&key)?;
        let mut call = call(Method::POST, path, json(Some(body))?, Repeat::Safe);
        call.headers.insert(KEY, value);
        let answer = self.0.call(&call).await?;
        Ok(Started {
            run: read(&call, &answer)?,
            replayed: answer.headers.get(REPLAYED).is_some_and(|v| v == "true"),
            key,
        })
    }

    /// Reads the run at `path` until `done` says so, over lost connections and for as long as `patience` (for ever without).
    ///
    /// # Errors
    /// [`Error::Waited`] when it takes longer, otherwise what reading it fails with.
    pub async fn wait<T: DeserializeOwned>(
        &self,
        path: &str,
        patience: Option<Duration>,
        done: impl Fn(&T) -> bool,
    ) -> Result<T, Error> {
        let start = self.0.time.now();
        loop {
            let gone = self.0.time.now().duration_since(start).unwrap_or_default();
            let left = patience.map(|patience| patience.saturating_sub(gone));
            let hold = left.map_or(LONG_POLL, |left| left.min(LONG_POLL));
            let mut call = call(
                Method::GET,
                &format!("{path}?wait={}", hold.as_secs()),
                None,
                Repeat::Safe,
            );
            call.patience = PATIENCE + hold;
            let run: T = read(&call, &self.0.call(&call).await?)?;
            if done(&run) {
                return Ok(run);
            }
            if let Some(patience) = patience
                && left.is_some_and(|left| left.as_secs() == 0)
            {
                return Err(Error::Waited(patience));
            }
        }
    }

    /// Starts a run at `path` and waits until it has ended, for as long as `patience` (for ever without). The same call with the same key
    /// makes no second run and waits on, whatever became of this one: after a lost connection, an error or a process that was ended.
    ///
    /// # Errors
    /// [`Error::Waited`] when it takes longer; any other [`Error`].
    pub async fn start_and_wait<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        key: &str,
        patience: Option<Duration>,
    ) -> Result<Started<T>, Error> {
        let ended = |run: &Value| run.get("finished_at").is_some_and(|at| !at.is_null());
        let unread = |detail: String| Error::Answer {
            endpoint: format!("POST {path}"),
            detail,
        };
        let started = self.start::<Value>(path, body, Some(key)).await?;
        let mut run = started.run;
        if !ended(&run) {
            let id = run.get("id").and_then(Value::as_str);
            let id = id.ok_or_else(|| unread("the run has no id".into()))?;
            run = self
                .wait(&format!("/v1/runs/{id}"), patience, ended)
                .await?;
        }
        Ok(Started {
            run: serde_json::from_value(run).map_err(|error| unread(error.to_string()))?,
            replayed: started.replayed,
            key: started.key,
        })
    }

    /// The events at `path`, each once and in order, over lost connections; it ends when the server ends it.
    pub fn events(&self, path: &str) -> impl Stream<Item = Result<Event, Error>> + use<> {
        events::follow(Arc::clone(&self.0), path.to_owned())
    }
}

pub(crate) fn call(method: Method, path: &str, body: Option<Bytes>, repeat: Repeat) -> Call {
    let mut headers = HeaderMap::new();
    if body.is_some() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    Call {
        method,
        path: path.to_owned(),
        headers,
        body: body.map_or(Body::None, Body::Bytes),
        repeat,
        patience: PATIENCE,
        more_time: Duration::ZERO,
        sink: None,
    }
}

pub(crate) fn key_value(key: &str) -> Result<HeaderValue, Error> {
    HeaderValue::from_str(key)
        .ok()
        .filter(|_| (1..=255).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_graphic()))
        .ok_or_else(|| Error::Usage("a key is 1 to 255 visible ASCII characters".into()))
}

fn json(body: Option<&impl Serialize>) -> Result<Option<Bytes>, Error> {
    body.map(|body| serde_json::to_vec(body).map(Bytes::from))
        .transpose()
        .map_err(|error| Error::Usage(error.to_string()))
}

pub(crate) fn read<T: DeserializeOwned>(call: &Call, answer: &Answer) -> Result<T, Error> {
    let body: &[u8] = if answer.body.is_empty() {
        b"null"
    } else {
        &answer.body
    };
    serde_json::from_slice(body).map_err(|error| Error::Answer {
        endpoint: call.endpoint(),
        detail: error.to_string(),
    })
}
