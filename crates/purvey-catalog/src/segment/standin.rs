//! A stand-in until the protocol crate has it.

/// How much of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Representation {
    /// The short one.
    Terse,
    /// All of it.
    Full,
}
