//! Filter Definitions and Filter Expressions.
