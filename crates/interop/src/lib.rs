//! The official SDKs as peers, the loads that measure both, and the Agents beside each other.
#![forbid(unsafe_code)]

pub mod agents;
pub mod load;
pub mod walk;
