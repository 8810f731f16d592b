//! Providers, their configuration and contracts, through the crate's public surface.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod anthropic;
mod command;
mod config;
mod contract;
mod openai;
mod real;
mod refusals;
mod server;
mod tools;
