//! A crawl over the demo catalog: every response is held to the protocol's published schemas, and to what the demo's records say.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a failure in a test's helper is the test's failure"
)]

mod codings;
mod collections;
mod offerings;
mod problems;
mod published;
mod search;
mod service;
mod support;
