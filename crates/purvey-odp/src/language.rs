//! Language tags and Lookup.
