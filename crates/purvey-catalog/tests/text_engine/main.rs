//! The text engine: what matches, what ranks before what, and that neither depends on how documents lie in files.
#![allow(clippy::unwrap_used, reason = "tests with helpers")]

mod files;
mod prefixes;
mod random;
mod scores;
mod words;

#[path = "../text_common/mod.rs"]
mod text_common;

/// What no stemmer is for.
const PLAIN: &str = "pl";

const NONE: [usize; 0] = [];

fn close(a: f32, b: f64) -> bool {
    (f64::from(a) - b).abs() <= 1e-4 * b.abs().max(1.0)
}
