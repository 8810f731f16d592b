//! Keywords of a Service.

use crate::report::{Invalid, Place, Report};
use crate::text::Text;
use crate::{limits, shape};
use serde_json::Value;
use std::collections::HashSet;

/// A keyword: 1 through 64 code points.
pub type Keyword = Text<{ limits::KEYWORD_CHARS }>;

/// At most 32 distinct keywords of 1 through 64 code points, 1,024 together, none with white space at either end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keywords(Vec<Keyword>);

impl Keywords {
    /// The keywords `keywords`.
    ///
    /// # Errors
    /// Every keyword that breaks a rule, at its index.
    pub fn new(keywords: Vec<String>) -> Result<Self, Invalid> {
        let mut report = Report::new();
        let value = keywords.into_iter().map(Value::String).collect();
        let keywords = Self::read(&mut report, &Place::ROOT, value);
        report.finish(keywords)
    }

    /// The keywords in their order.
    pub fn as_slice(&self) -> &[Keyword] {
        &self.0
    }

    /// Reads the array and notes every rule that it breaks.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let keywords = shape::list(
            report,
            place,
            value,
            0..=limits::KEYWORDS,
            |report, place, value| {
                let keyword = Keyword::read(report, place, value)?;
                if keyword.as_str().starts_with(is_space) || keyword.as_str().ends_with(is_space) {
                    report.add(
                        place,
                        "Must begin and end with something other than white space.",
                    );
                }
                Some(keyword)
            },
        )?;
        let before = report.len();
        let mut seen = HashSet::with_capacity(keywords.len());
        for (i, keyword) in keywords.iter().enumerate() {
            if !seen.insert(keyword.as_str()) {
                report.add(&place.index(i), "Must not be listed twice.");
            }
        }
        let chars: usize = keywords
            .iter()
            .map(|keyword| keyword.as_str().chars().count())
            .sum();
        if chars > limits::KEYWORDS_CHARS {
            report.add(
                place,
                "Must have at most 1024 Unicode code points together.",
            );
        }
        (report.len() == before).then_some(Self(keywords))
    }
}

/// White space as Unicode has it, and the byte order mark, which regular expressions count among it.
fn is_space(c: char) -> bool {
    c.is_whitespace() || c == '\u{feff}'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(keywords: &[&str]) -> bool {
        Keywords::new(keywords.iter().map(|&k| k.to_owned()).collect()).is_ok()
    }

    #[test]
    fn keywords_are_trimmed_distinct_and_bounded() {
        assert!(check(&["GPU", "gpu", "two words", "日本語"]));
        assert!(check(&[]));
        for bad in [
            "",
            " compute",
            "compute ",
            "\u{a0}x",
            "x\u{3000}",
            "\u{feff}x",
            "x\n",
        ] {
            assert!(!check(&[bad]), "{bad:?}");
        }
        assert!(!check(&["a", "b", "a"]));
        assert!(check(&["é".repeat(64).as_str()]));
        assert!(!check(&["é".repeat(65).as_str()]));
    }

    #[test]
    fn their_count_and_sum_are_bounded() {
        let keywords = |count: usize, chars: usize| -> Vec<String> {
            (0..count).map(|i| format!("{i:0>chars$}")).collect()
        };
        assert!(Keywords::new(keywords(32, 32)).is_ok());
        assert!(Keywords::new(keywords(33, 2)).is_err());
        let over = Keywords::new(keywords(31, 34)).unwrap_err();
        assert_eq!(over.violations()[0].pointer, "");
    }
}
