//! Purvey's HTTP surfaces.
