//! Actions: what can be done with an Offering.
