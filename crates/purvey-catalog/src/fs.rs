//! Durable files.
