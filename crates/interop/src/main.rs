//! The official SDKs as peers: they must read our Service, and we are measured beside them; never shipped.
fn main() {}
