//! The Agent role.
