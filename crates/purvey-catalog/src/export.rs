//! Export: NDJSON and manifest.
