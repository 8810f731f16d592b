//! Problem Details.
