//! The run platform without HTTP: idempotent starts, exact concurrency, budgets, provider pauses, output contracts, threads and triggers.
//!
//! Everything that is decided is decided inside one transaction of the [store](crate::Store); time and chance are passed in, so that a
//! simulation can drive the same code through thousands of histories.
#![forbid(unsafe_code)]

pub mod access;
mod agents;
mod artifacts;
mod body;
mod budget;
mod clock;
mod code;
pub mod config;
pub mod contract;
pub mod engine;
mod error;
pub mod id;
mod idempotency;
mod identity;
pub mod model;
mod paging;
mod platform;
pub mod provider;
mod runs;
mod sql;
#[cfg(test)]
mod stage;
mod threads;
mod triggers;

pub use access::{Actor, Principal};
pub use artifacts::{Blobs, Bytewise, Piece, UploadHead, UploadLimits};
pub use clock::{Chance, Clock, Day, SystemChance, SystemClock, Timestamp};
pub use code::Code;
pub use error::{Error, Fault, LimitDetail, Place, Refusal};
pub use identity::tokens::NewToken;
pub use paging::{Listing, PageRequest};
pub use platform::{
    Bootstrapped, Platform, PlatformOptions, RunFilter, Sent, Started, Uploaded, Watched,
};
pub use sql::{Hub, Store, Watch};
pub use triggers::NewTrigger;
