//! Retry decisions.
