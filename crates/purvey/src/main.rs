//! Publish a catalog, discover and search any.
#![forbid(unsafe_code)]

mod agent;
mod catalog;
mod check;
mod cli;
mod demo;
mod failure;
mod interrupt;
mod mcp;
mod output;
mod platform;
mod reach;
mod serve;
mod settings;
mod table;
mod text;
mod units;
mod work;

use clap::Parser;
use std::process::ExitCode;

/// Pages are built from many short-lived buffers on many threads, which the system allocator is slow at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match cli.run() {
        Ok(code) => code,
        Err(failure) => {
            failure.print();
            failure.exit()
        }
    }
}
