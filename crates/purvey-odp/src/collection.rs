//! Collections.
