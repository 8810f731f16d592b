//! Import: files to records to a generation.
