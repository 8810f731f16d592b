//! Bounded decoding: bytes to JSON, or nothing.
