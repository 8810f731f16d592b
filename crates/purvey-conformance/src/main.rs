//! Adapter that lets the protocol's test vectors drive Purvey.
fn main() {}
