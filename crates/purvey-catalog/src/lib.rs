//! The Service role without HTTP: records in, generations out, pages and documents from one generation.
#![forbid(unsafe_code)]

pub mod access;
pub mod catalog;
pub mod clock;
pub mod cursor;
pub mod error;
pub mod export;
pub mod fs;
pub mod generation;
pub mod import;
pub mod index;
pub mod manifest;
pub mod page;
mod pipeline;
pub mod reader;
pub mod record;
pub mod render;
pub mod schema;
pub mod search;
pub mod segment;
pub mod store;
pub mod text;
pub mod tokens;

pub use access::Access;
pub use error::Error;
