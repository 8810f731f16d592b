//! The power cut at random points of recorded runs: whatever the disk then holds, nothing acknowledged is lost and nothing half is there.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a failure in a test's helper is the test's failure"
)]

mod artifacts;
mod catalog;
mod cuts;
