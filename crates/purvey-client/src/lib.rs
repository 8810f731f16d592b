//! A client of the Work API: it retries what another attempt can help, and nothing else (Work §8).
//!
//! Every attempt of one start carries the same idempotency key, so a lost answer never makes a second run. A request that changes state
//! without a key is not sent again once its outcome is unknown. Answers are typed by the caller: [`Client::get`] and its kin read them
//! into whatever `T` is asked for.
#![forbid(unsafe_code)]

mod attempt;
mod client;
mod error;
mod events;
mod redacted;
mod time;

pub use client::{Builder, Client, Started};
pub use error::{Error, Fault, Problem};
pub use events::Event;
pub use redacted::Redacted;
pub use time::{SystemTimes, Time};
