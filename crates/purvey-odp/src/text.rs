//! Bounded texts.

use crate::report::{Place, Report};
use crate::{limits, shape};
use serde::Serialize;
use serde_json::Value;
use std::fmt;

/// A non-empty text of at most `MAX` Unicode code points.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Text<const MAX: usize>(String);

/// `name` and `title`: 1 through 128 code points.
pub type Name = Text<{ limits::NAME_CHARS }>;
/// `description` and `alt`: 1 through 1,024 code points.
pub type Description = Text<{ limits::DESCRIPTION_CHARS }>;

impl<const MAX: usize> Text<MAX> {
    /// The text, when it is within its bounds.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        Self::fits(&text).then_some(Self(text))
    }

    fn fits(text: &str) -> bool {
        // A text of at most MAX bytes has at most MAX code points: most texts need no counting.
        !text.is_empty() && (text.len() <= MAX || text.chars().count() <= MAX)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads a JSON string; notes what breaks the bounds.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let text = shape::string(report, place, value)?;
        if Self::fits(&text) {
            return Some(Self(text));
        }
        report.add(
            place,
            format!(
                "Must have from 1 through {MAX} Unicode code points, not {}.",
                text.chars().count()
            ),
        );
        None
    }
}

impl<const MAX: usize> fmt::Display for Text<MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<const MAX: usize> AsRef<str> for Text<MAX> {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_count_code_points() {
        assert!(Name::new("").is_none());
        assert!(Name::new("é".repeat(128)).is_some());
        assert!(Name::new("é".repeat(129)).is_none());
    }
}
