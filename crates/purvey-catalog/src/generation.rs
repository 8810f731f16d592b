//! Generations: immutable, numbered snapshots of the index.
