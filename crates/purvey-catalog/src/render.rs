//! Records to representations.
