//! The Service Document.
