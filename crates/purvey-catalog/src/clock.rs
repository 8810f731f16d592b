//! Time, passed in.
