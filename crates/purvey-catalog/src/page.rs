//! Page bodies.
