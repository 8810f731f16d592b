//! Which texts of a document are searched, and how they get beside a segment.

use crate::text::{Analyzer, Prepared, TextConfig};
use purvey_odp::pointer::Pointer;
use serde_json::Value;

/// The text fields of one kind of resource. What an Offering or Collection says there in its own language is searched, in the Full form.
pub struct TextPlan {
    config: TextConfig,
    fields: Vec<Pointer>,
    analyzer: Analyzer,
}

impl TextPlan {
    /// Fields and how they are indexed; the configuration has a weight for each.
    pub fn new(config: TextConfig, fields: Vec<Pointer>) -> Self {
        Self {
            analyzer: Analyzer::new(&config),
            config,
            fields,
        }
    }

    /// How the texts are indexed.
    pub fn config(&self) -> &TextConfig {
        &self.config
    }

    /// The texts of a document in its Full form, analyzed. Takes most of the time of indexing; any thread can do it.
    pub fn prepare(&self, full: &Value) -> Prepared {
        let texts = |field: &Pointer| {
            let values = field.values(full).into_iter();
            values.filter_map(Value::as_str).collect()
        };
        let fields: Vec<Vec<&str>> = self.fields.iter().map(texts).collect();
        self.analyzer.prepare(&fields)
    }
}

impl std::fmt::Debug for TextPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextPlan")
            .field("config", &self.config)
            .field("fields", &self.fields)
            .finish_non_exhaustive()
    }
}
