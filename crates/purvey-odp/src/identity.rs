//! Origins, identifiers, Resource Identity.
