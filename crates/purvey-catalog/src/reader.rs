//! Reading record files.
