//! Requests, and what holds for every response.

use super::{Extent, Outcome, Rule, rules};
use crate::transport::{
    Clock, Exchange, Fetch, Fetched, Guarded, Operation as Budget, Redirects, SystemClock,
    Transport,
};
use crate::{Agent, Code, Error, Service};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use purvey_odp::identity::{LocalDevelopment, ServiceOrigin};
use purvey_odp::{limits, media};
use purvey_retry::{Decision, Failure, Policy};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;
use url::Url;

/// How far a check has come.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// What is being looked at.
    pub step: &'static str,
    /// Requests sent so far.
    pub requests: usize,
}

/// The bound on requests was reached.
#[derive(Debug)]
pub(super) struct Exhausted;

/// Asks the Service, and notes what is wrong.
pub(super) struct Probe<'a> {
    pub(super) origin: ServiceOrigin,
    pub(super) extent: Extent,
    pub(super) outcome: Outcome,
    guarded: Arc<Guarded>,
    sent: Arc<AtomicUsize>,
    step: &'static str,
    watch: &'a mut (dyn FnMut(Progress) + Send),
}

/// A request to be sent.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    method: Method,
    pub(super) url: Url,
    headers: HeaderMap,
    body: Option<Bytes>,
    byte_limit: usize,
    anonymous: bool,
    /// What of header and body tells this request from others.
    remark: String,
}

impl Ask {
    pub(super) fn get(url: Url) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static(media::ODP));
        Self {
            method: Method::GET,
            url,
            headers,
            body: None,
            byte_limit: limits::PAGE_BYTES,
            anonymous: false,
            remark: String::new(),
        }
    }

    /// The `POST` of a search.
    pub(super) fn search(url: Url, body: &Value) -> Self {
        Self::bytes(url, body.to_string())
    }

    /// The `POST` of whatever bytes as a search.
    pub(super) fn bytes(url: Url, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        let text = String::from_utf8_lossy(body.get(..200).unwrap_or(&body)).into_owned();
        let more = if body.len() > 200 { "…" } else { "" };
        let mut ask = Self::get(url).field(header::CONTENT_TYPE, media::ODP);
        ask.method = Method::POST;
        ask.remark = format!(" {text}{more}");
        ask.body = Some(body);
        ask
    }

    pub(super) fn method(mut self, method: Method) -> Self {
        self.method = method;
        self
    }

    pub(super) fn query(mut self, query: &str) -> Self {
        self.url.set_query(Some(query));
        self
    }

    /// A field that the request is about.
    pub(super) fn header(mut self, name: HeaderName, value: &str) -> Self {
        self.remark = format!(" ({name}: {value}){}", self.remark);
        self.field(name, value)
    }

    fn field(mut self, name: HeaderName, value: &str) -> Self {
        // What is not a field value came from the Service; without it the request says less, and that will show.
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }

    pub(super) fn byte_limit(mut self, bytes: usize) -> Self {
        self.byte_limit = bytes;
        self
    }

    pub(super) fn anonymous(mut self) -> Self {
        self.anonymous = true;
        self
    }
}

/// A response.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    /// The request, for people.
    pub(super) request: String,
    /// The URL that answered.
    pub(super) url: Url,
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// Whether the body is all that was sent.
    pub(super) whole: bool,
    /// Whether it was too large.
    pub(super) too_large: bool,
}

impl Reply {
    pub(super) fn header(&self, name: HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The media type, for people.
    pub(super) fn media_type(&self) -> String {
        crate::error::content_type(&self.headers).unwrap_or_else(|| "none".to_owned())
    }
}

impl<'a> Probe<'a> {
    pub(super) fn new(
        guarded: Arc<Guarded>,
        origin: ServiceOrigin,
        extent: Extent,
        watch: &'a mut (dyn FnMut(Progress) + Send),
    ) -> Self {
        Self {
            outcome: Outcome::new(origin.as_str()),
            origin,
            extent,
            guarded,
            sent: Arc::new(AtomicUsize::new(0)),
            step: "Service Document",
            watch,
        }
    }

    pub(super) fn finish(self) -> Outcome {
        Outcome {
            origin: self.origin.as_str().to_owned(),
            requests: self.sent.load(Ordering::Relaxed),
            ..self.outcome
        }
    }

    pub(super) fn exhausted(&mut self) {
        let seen = format!(
            "{} requests were sent; what comes after {} was not looked at.",
            self.extent.requests, self.step
        );
        self.outcome.find(&rules::CHECK_INCOMPLETE, "", "", seen);
    }

    pub(super) fn local(&self) -> LocalDevelopment {
        self.guarded.local_development()
    }

    /// Whether requests carry credentials.
    pub(super) fn is_authenticated(&self) -> bool {
        self.guarded.is_authenticated(self.origin.as_url())
    }

    /// What is looked at from now on.
    pub(super) fn step(&mut self, step: &'static str) {
        self.step = step;
    }

    pub(super) fn skip(&mut self, what: impl Into<String>) {
        self.outcome.skipped.push(what.into());
    }

    /// Looks at a rule; broken, it becomes a finding.
    pub(super) fn hold(
        &mut self,
        rule: &'static Rule,
        at: &Reply,
        kept: bool,
        seen: impl FnOnce() -> String,
    ) -> bool {
        self.hold_at(rule, &at.request, "", kept, seen)
    }

    pub(super) fn hold_at(
        &mut self,
        rule: &'static Rule,
        request: &str,
        pointer: &str,
        kept: bool,
        seen: impl FnOnce() -> String,
    ) -> bool {
        self.outcome.exercise(rule);
        if !kept {
            self.outcome.find(rule, request, pointer, seen());
        }
        kept
    }

    /// Sends a request, waits and sends it again when the Service asks for patience, and follows the redirects of a `GET`.
    /// Nothing when no response came, which is a finding.
    pub(super) async fn ask(&mut self, mut ask: Ask) -> Result<Option<Reply>, Exhausted> {
        let mut redirects = Redirects::new(&ask.url);
        loop {
            let Some(reply) = self.patiently(&ask).await? else {
                return Ok(None);
            };
            let to = redirects.follow(&ask.method, reply.status, &reply.headers);
            let kept = to.is_ok();
            let why = to.as_ref().err().map(Error::message).unwrap_or_default();
            if reply.status.is_redirection() && reply.status != StatusCode::NOT_MODIFIED {
                self.hold(&rules::HTTP_REDIRECT, &reply, kept, || why.to_owned());
            }
            match to {
                Ok(Some(url)) => ask.url = url,
                _ => return Ok(Some(reply)),
            }
        }
    }

    async fn patiently(&mut self, ask: &Ask) -> Result<Option<Reply>, Exhausted> {
        let budget = Budget::new(&Policy::default());
        loop {
            let Some(reply) = self.send(ask).await? else {
                return Ok(None);
            };
            let status = reply.status.as_u16();
            let told = crate::error::retry_after(&reply.headers);
            if status == 429 {
                self.hold(&rules::HTTP_RETRY_AFTER, &reply, told.is_some(), || {
                    "A 429 without Retry-After.".to_owned()
                });
            }
            let now = SystemTime::now();
            match budget.decide(Failure::Status(status), told, SystemClock.chance(), now) {
                Decision::Wait(wait) => SystemClock.sleep(wait).await,
                Decision::GiveUp(_) => return Ok(Some(self.judged(reply))),
            }
        }
    }

    /// No request that is sent here may make a Service fail.
    fn judged(&mut self, reply: Reply) -> Reply {
        let fine = !reply.status.is_server_error() || reply.status == StatusCode::NOT_IMPLEMENTED;
        self.hold(&rules::HTTP_SERVER_ERROR, &reply, fine, || {
            format!("The status {}.", reply.status)
        });
        reply
    }

    async fn send(&mut self, ask: &Ask) -> Result<Option<Reply>, Exhausted> {
        let requests = self.sent.fetch_add(1, Ordering::Relaxed);
        if requests >= self.extent.requests {
            self.sent.fetch_sub(1, Ordering::Relaxed);
            return Err(Exhausted);
        }
        (self.watch)(Progress {
            step: self.step,
            requests: requests + 1,
        });
        let request = format!("{} {}{}", ask.method, ask.url, ask.remark);
        let exchange = Exchange {
            method: ask.method.clone(),
            url: ask.url.clone(),
            headers: ask.headers.clone(),
            body: ask.body.clone(),
            byte_limit: ask.byte_limit,
            anonymous: ask.anonymous,
        };
        let exchanged = self.guarded.exchange(exchange).await;
        let failed = match &exchanged {
            Ok(exchanged) => exchanged.body.as_ref().err(),
            Err(error) => Some(error),
        };
        let too_large = matches!((failed, &exchanged), (Some(error), Ok(_)) if *error.code() == Code::ResponseLimitExceeded);
        // A body that is too large is judged by those who know what it should be.
        let kept = failed.is_none() || too_large;
        self.hold_at(&rules::HTTP_RESPONSE, &request, "", kept, || {
            failed.map(ToString::to_string).unwrap_or_default()
        });
        let Ok(exchanged) = exchanged else {
            return Ok(None);
        };
        Ok(Some(Reply {
            request,
            url: ask.url.clone(),
            status: exchanged.status,
            headers: exchanged.headers,
            whole: exchanged.body.is_ok(),
            body: exchanged.body.unwrap_or_default(),
            too_large,
        }))
    }

    /// The Service as an Agent sees it; its requests count like all others.
    pub(super) async fn agent(&mut self) -> Result<Option<Service>, Exhausted> {
        let transport = Counted {
            guarded: self.guarded.clone(),
            sent: self.sent.clone(),
            most: self.extent.requests,
        };
        let agent = Agent::builder()
            .transport(transport)
            .local_development(self.local() == LocalDevelopment::Allowed)
            .max_pages(self.extent.pages)
            .build();
        let opened = match agent {
            Ok(agent) => agent.service(self.origin.as_str()).await,
            Err(error) => Err(error),
        };
        self.is_left()?;
        let request = format!("GET {}/.well-known/odp", self.origin.as_str());
        let why = opened.as_ref().err().map(ToString::to_string);
        self.hold_at(&rules::AGENT_READS, &request, "", why.is_none(), || {
            why.unwrap_or_default()
        });
        Ok(opened.ok())
    }

    /// After requests of the Agent: whether its failure may be the bound's.
    pub(super) fn is_left(&self) -> Result<(), Exhausted> {
        match self.sent.load(Ordering::Relaxed) >= self.extent.requests {
            true => Err(Exhausted),
            false => Ok(()),
        }
    }
}

/// Counts what an Agent sends.
struct Counted {
    guarded: Arc<Guarded>,
    sent: Arc<AtomicUsize>,
    most: usize,
}

impl Transport for Counted {
    fn fetch<'a>(
        &'a self,
        operation: &'a Budget,
        fetch: Fetch,
    ) -> BoxFuture<'a, Result<Fetched, Error>> {
        if self.sent.fetch_add(1, Ordering::Relaxed) >= self.most {
            self.sent.fetch_sub(1, Ordering::Relaxed);
            let why = "The bound on requests is reached.";
            return Box::pin(async move { Err(Error::new(Code::InvalidConfiguration, why)) });
        }
        self.guarded.fetch(operation, fetch)
    }
}
