//! The Agent above its transport: an in-memory Service answers what the test scripted, and every request is seen.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a failure in a test's helper is the test's failure"
)]

mod support;

mod actions;
mod answering;
mod capabilities;
mod documents;
mod examples;
mod fanout;
mod hierarchy;
mod intents;
mod invoke;
mod lists;
mod parameters;
mod schema_bounds;
mod schemas;
mod searches;
mod wide;
