//! Offerings.
