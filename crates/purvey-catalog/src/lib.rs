//! The Service role without HTTP: records, store, generations, pages, cursors.
