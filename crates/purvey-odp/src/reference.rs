//! Resource References.
