//! The commands that read Services, as whoever types them meets them: against the demo, and against Services that lie, fail
//! and try to steer the terminal.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a failure in a test's helper is the test's failure"
)]

mod demo;
mod docs;
mod failures;
mod fake;
mod hostile;
mod invoke;
mod published;
mod resources;
mod search;
mod support;
mod terminal;
