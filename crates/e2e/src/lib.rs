//! Drives the real binary over real sockets; never shipped.
//!
//! The support that the tests share:
//! - [`binary`]: finds (and builds) `purvey` and runs its commands;
//! - [`home`]: a server with its first owner, asked by commands;
//! - [`server`]: a running `purvey serve`, to be stopped or killed;
//! - [`client`]: HTTP requests and traversals, with answers kept whole;
//! - [`sample`]: small catalogs;
//! - [`shared`]: material beside the project, which may be absent;
//! - [`history`], [`writer`], [`traversal`]: what was written and read, so that it can be demanded after a crash;
//! - [`verify`]: the demand;
//! - [`fault`]: power cuts: what a process wrote, and what a disk may hold of it afterwards;
//! - [`python`]: an interpreter with what a test asks for;
//! - [`objects`]: an S3-speaking server;
//! - [`random`]: choices that a seed repeats.
//!
//! A failure in here is a failing test, so it panics with what happened.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "test support: a failure here is a failing test"
)]

pub mod binary;
pub mod client;
pub mod fault;
pub mod history;
pub mod home;
pub mod objects;
pub mod python;
pub mod random;
pub mod sample;
pub mod server;
pub mod shared;
pub mod traversal;
pub mod verify;
pub mod writer;
