//! What holds for any input, as functions that take bytes and panic when it does not.
//!
//! libFuzzer drives them (`fuzz/`), and so does an ordinary test that replays the committed corpora and deterministic mutations
//! of them.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a target says what it found by panicking"
)]

pub mod cursor;
pub mod decode;
pub mod filter_value;
pub mod mutate;
pub mod reference;
pub mod retry_after;
pub mod schema_graph;

/// A target: panics when the bytes show that a property does not hold.
pub type Target = fn(&[u8]);

/// Every target under the name of its corpus and of its libFuzzer program.
pub const TARGETS: [(&str, Target); 6] = [
    ("cursor", cursor::holds),
    ("decode", decode::holds),
    ("filter_value", filter_value::holds),
    ("reference", reference::holds),
    ("retry_after", retry_after::holds),
    ("schema_graph", schema_graph::holds),
];
