//! The facade: one catalog in one data directory.
