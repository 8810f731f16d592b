//! The Agent role of ODP 1.0: discover and read any Service, and not be hurt by one.
//!
//! [`transport`] is the only way out: every address is checked before it is connected to, every byte and second is bounded, and
//! a response is a 2xx within its limits or a typed [`Error`].
#![forbid(unsafe_code)]

pub mod cache;
pub mod challenge;
mod error;
pub mod transport;

pub use error::{Code, Error};
