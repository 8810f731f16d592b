//! Records: a resource with its translations.
