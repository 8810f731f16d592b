//! The client against a scripted server on a real socket, in simulated time.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod calls;
mod script;
mod transfers;
