//! The filter value model: typed scalars.
