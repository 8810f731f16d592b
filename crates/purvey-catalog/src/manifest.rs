//! The manifest: catalog.toml.
