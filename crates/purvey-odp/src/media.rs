//! Media types and Accept.
