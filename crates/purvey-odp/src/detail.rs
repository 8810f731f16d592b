//! detail_fields: what Full adds over Terse.
