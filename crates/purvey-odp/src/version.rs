//! Protocol versions.
