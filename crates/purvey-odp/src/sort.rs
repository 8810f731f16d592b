//! Sort Definitions and keys.
