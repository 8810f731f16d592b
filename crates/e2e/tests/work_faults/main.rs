//! The run platform while its servers are killed, their way to the store is cut and the store itself goes down: every accepted start is one
//! run, every run ends, no slot is lost or given twice, nothing is paid twice.
//!
//! A short form runs with every test; `PURVEY_FAULT_ROUNDS` makes it longer.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a failure in a test's helper is the test's failure"
)]

mod cluster;
mod cut;
mod house;
mod kill;
mod load;
mod model;
mod orphans;
#[path = "../../../purvey-work/tests/support/postgres.rs"]
mod postgres;
mod produced;
mod proxy;
mod shared;
mod uploads;
