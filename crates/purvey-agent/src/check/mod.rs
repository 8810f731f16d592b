//! Validation of a deployed Service.
