//! The Offering Discovery Protocol 1.0 as types: no I/O, no clock, no async.
//!
//! A document passes three steps, each of its own name: bounded [`decode`] (bytes, depth, duplicate keys), then, on the
//! Agent's side, [`normalise`] (what newer Services may add is dropped), then `validate` on the type that it becomes, which
//! cannot hold an invalid value. Both roles use the same types.
#![forbid(unsafe_code)]

pub mod action;
pub mod capability;
pub mod collection;
pub mod decode;
pub mod detail;
pub mod filter;
pub mod hierarchy;
pub mod identity;
pub mod image;
pub mod keywords;
pub mod language;
pub mod limits;
pub mod media;
pub mod normalise;
pub mod offering;
pub mod page;
pub mod pointer;
pub mod price;
pub mod problem;
pub mod reference;
pub mod refinement;
pub mod report;
pub mod request;
pub mod service;
pub mod shape;
pub mod sort;
pub mod text;
pub mod value;
pub mod version;
