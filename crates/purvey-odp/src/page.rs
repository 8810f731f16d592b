//! Page envelopes.
