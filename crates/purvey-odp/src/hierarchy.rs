//! The Collection hierarchy.
