//! Refinement groups.
