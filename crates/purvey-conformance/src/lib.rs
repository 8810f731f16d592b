//! Drives Purvey's public behaviour with the protocol's test vectors (ODP §14); never shipped.
//!
//! A case passes through three separate hands: [`case`] takes what it expects out of it, a handler of [`subject`] makes Purvey
//! do what the rest describes and says what happened, and [`adapter`] compares the two. A handler cannot see what is expected.
#![forbid(unsafe_code)]

pub mod adapter;
pub mod agent;
pub mod case;
pub mod deviation;
pub mod peer;
pub mod run;
pub mod service;
pub mod subject;
pub mod vectors;
