//! What is stored, for whom, and for how long.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail loudly"
)]

mod confirmation;
mod directory;
mod freshness;
mod memory;
mod stored;
#[path = "../transport_support/mod.rs"]
mod transport_support;

use http::{HeaderName, HeaderValue};
use purvey_agent::cache::Cache;
use purvey_agent::transport::{Fetch, Guarded};
use purvey_odp::identity::{LocalDevelopment, ServiceOrigin};
use std::fs;
use std::path::Path;
use std::time::Duration;
use transport_support::{ODP, Server, Step, TestClock, fetch, head, local, response};

/// A server that answers with these fields and a body that tells the number of the request.
async fn counting(fields: &'static [(&'static str, &'static str)]) -> Server {
    Server::start(move |number, _| {
        let mut all = vec![ODP];
        all.extend(fields);
        response("200 OK", &all, format!("{{\"n\":{number}}}").as_bytes())
    })
    .await
}

fn transport(clock: &TestClock, cache: &Cache) -> Guarded {
    local()
        .clock(clock.clone())
        .cache(cache.clone())
        .build()
        .unwrap()
}

async fn body(transport: &Guarded, request: Fetch) -> String {
    let fetched = fetch(transport, request).await.unwrap();
    String::from_utf8(fetched.body.to_vec()).unwrap()
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A server with one state for each tag, that honours validators.
async fn validating(
    tags: &'static [&'static str],
    more: &'static [(&'static str, &'static str)],
) -> Server {
    Server::start(move |number, seen| {
        let tag = tags[number.min(tags.len() - 1)];
        let mut fields = vec![("ETag", tag), ("X-Number", "x")];
        fields.extend(more);
        if seen.field("if-none-match") == Some(tag) {
            return vec![Step::Send(head("304 Not Modified", &fields))];
        }
        fields.push(ODP);
        response("200 OK", &fields, tag.as_bytes())
    })
    .await
}

fn credential(
    builder: purvey_agent::transport::GuardedBuilder,
    server: &Server,
    value: &'static str,
) -> Guarded {
    let origin = ServiceOrigin::from_url(&server.url("/"), LocalDevelopment::Allowed).unwrap();
    let name = HeaderName::from_static("authorization");
    builder
        .credential(origin, name, HeaderValue::from_static(value))
        .build()
        .unwrap()
}

/// A server whose documents have 1,000 bytes.
async fn bulky() -> Server {
    Server::start(|_, _| {
        response(
            "200 OK",
            &[ODP, ("Cache-Control", "max-age=100")],
            &[b' '; 1_000],
        )
    })
    .await
}

fn files(path: &Path) -> Vec<std::path::PathBuf> {
    fs::read_dir(path)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect()
}
