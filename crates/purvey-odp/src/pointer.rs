//! JSON Pointers.
