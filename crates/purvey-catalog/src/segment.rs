//! Segments: immutable sorted files of rendered documents.
