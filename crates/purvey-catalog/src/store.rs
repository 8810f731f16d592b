//! The record store.
