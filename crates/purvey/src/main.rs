//! Publish a catalog, discover any, run the work that is picked.
fn main() {}
