//! Attribute schemas.
