//! The Service Document (ODP §2).

mod authentication;

pub use authentication::Authentication;
