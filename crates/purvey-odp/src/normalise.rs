//! What an Agent drops from newer documents before validating.
