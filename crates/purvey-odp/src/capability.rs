//! Search capabilities: sources, and what is effective after merging.
