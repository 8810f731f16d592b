//! Services that mean harm, or are broken, on raw sockets: each gets its typed error in bounded time, and takes no more than its
//! limit.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail loudly"
)]

mod codings;
mod credentials;
mod framing;
mod meaning;
mod memory;
mod network;
mod redirects;
mod retries;
mod sizes;
mod times;
#[path = "../transport_support/mod.rs"]
mod transport_support;

use futures_util::future::join_all;
use http::Method;
use purvey_agent::transport::{Class, Fetch, Guarded};
use purvey_agent::{Code, Error};
use std::collections::HashSet;
use transport_support::{Script, Seen, Server, Step, document, fetch, local};

/// One service, and what a fetch from it must come to.
pub(crate) struct Case {
    name: &'static str,
    class: Class,
    method: Method,
    respond: Box<Script>,
    expected: Expected,
    /// The client throws away what comes, so that time alone is the bound.
    discards: bool,
}

enum Expected {
    Body(Vec<u8>),
    Failure(Code, Option<u16>),
}

/// Most bytes that a client may have taken from a service: the largest limit, and what lies in the buffers of both sides.
const TAKEN: u64 = 32 * 1_048_576;

impl Case {
    pub(crate) fn new(
        name: &'static str,
        respond: impl Fn(usize, &Seen) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            class: Class::Page,
            method: Method::GET,
            respond: Box::new(respond),
            expected: Expected::Failure(Code::InvalidResponse, None),
            discards: false,
        }
    }

    /// The same steps for every request.
    pub(crate) fn steps(name: &'static str, steps: Vec<Step>) -> Self {
        Self::new(name, move |_, _| steps.clone())
    }

    pub(crate) fn class(mut self, class: Class) -> Self {
        self.class = class;
        self
    }

    pub(crate) fn search(mut self) -> Self {
        self.class = Class::Search;
        self.method = Method::POST;
        self
    }

    pub(crate) fn gives(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.expected = Expected::Body(body.into());
        self
    }

    pub(crate) fn fails(mut self, code: Code) -> Self {
        self.expected = Expected::Failure(code, None);
        self
    }

    pub(crate) fn fails_with(mut self, code: Code, status: u16) -> Self {
        self.expected = Expected::Failure(code, Some(status));
        self
    }

    pub(crate) fn discarded(mut self) -> Self {
        self.discards = true;
        self
    }

    async fn run(self, transport: &Guarded) -> Option<String> {
        let server = Server::start(self.respond).await;
        let url = server.url("/start");
        let request = match self.method {
            Method::POST => Fetch::post(url, self.class, "{}".into()),
            _ => Fetch::get(url, self.class),
        };
        let result = fetch(transport, request).await;
        let name = self.name;
        if server.sent() > TAKEN && !self.discards {
            return Some(format!("{name}: {} bytes were taken", server.sent()));
        }
        match (result, self.expected) {
            (Ok(fetched), Expected::Body(body)) if fetched.body == body => None,
            (Ok(fetched), _) => Some(format!("{name}: {} bytes came", fetched.body.len())),
            (Err(error), expected) => told(&error, &expected).map(|why| format!("{name}: {why}")),
        }
    }
}

/// What is wrong with an error.
fn told(error: &Error, expected: &Expected) -> Option<String> {
    let Expected::Failure(code, status) = expected else {
        return Some(format!("failed with {error}"));
    };
    if error.code() != code || (status.is_some() && error.status() != *status) {
        return Some(format!("{error} ({:?})", error.status()));
    }
    if error.message().is_empty() || error.url().is_none() {
        return Some(format!("{error} does not say enough: {error:?}"));
    }
    None
}

/// Every case at once, with one transport: what one service does must not hurt another's fetch.
async fn run(cases: Vec<Case>) {
    let names: HashSet<_> = cases.iter().map(|case| case.name).collect();
    assert_eq!(names.len(), cases.len(), "names are unique");
    let transport = local().build().unwrap();
    let wrong: Vec<_> = join_all(cases.into_iter().map(|case| case.run(&transport)))
        .await
        .into_iter()
        .flatten()
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // The transport is as good as before.
    let server = Server::start(|_, _| document(b"{}")).await;
    let result = fetch(&transport, Fetch::get(server.url("/"), Class::Page)).await;
    assert_eq!(result.unwrap().body, "{}");
}
