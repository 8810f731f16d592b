//! Sealed continuations.
