//! A client of the Work API: it retries what another attempt can help, and nothing else (Work §8).
//!
//! Every attempt of one start carries the same idempotency key, so a lost answer never makes a second run. A request that changes state
//! without a key is not sent again once its outcome is unknown. Answers are typed by the caller: [`Client::get`] and its kin read them
//! into whatever `T` is asked for.
//!
//! An upload's key is made of what is uploaded, so the same upload, begun again in another process, makes one artifact; a download goes on
//! where an earlier one stopped, and gives a file its name only once its bytes are those that were uploaded.
#![forbid(unsafe_code)]

mod attempt;
mod client;
mod download;
mod error;
mod events;
mod redacted;
mod time;
mod upload;

pub use client::{Builder, Client, Started};
pub use download::{Download, Downloaded};
pub use error::{Error, Fault, Problem};
pub use events::Event;
pub use redacted::Redacted;
pub use time::{SystemTimes, Time};
pub use upload::{Progress, Upload, Uploaded};
