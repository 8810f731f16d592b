//! The official SDKs as peers, and the Agents beside each other.
#![forbid(unsafe_code)]

pub mod agents;
pub mod walk;
