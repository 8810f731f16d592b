//! Whether to try again, and when. Pure: time and chance are passed in, waiting is the caller's.
//!
//! A [`Policy`] says what is transient and how much may be spent, a [`Budget`] what one operation has spent so far, and
//! [`Policy::decide`] answers with a [`Decision`]. The default policy is that of ODP reads (ODP §8).
#![forbid(unsafe_code)]

mod budget;
mod policy;
mod retry_after;

pub use budget::Budget;
pub use policy::{Backoff, Decision, Failure, Policy, Reason, Rule};
pub use retry_after::retry_after;
