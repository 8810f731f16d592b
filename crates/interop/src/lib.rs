//! The official SDKs as peers, and the loads that measure both.
#![forbid(unsafe_code)]

pub mod load;
pub mod walk;
