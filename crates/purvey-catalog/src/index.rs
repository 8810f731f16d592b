//! The indexer: committed changes become generations.
