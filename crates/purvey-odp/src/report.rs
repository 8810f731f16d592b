//! What is wrong with a document: where, and why.

use std::fmt;

/// One broken rule: a JSON Pointer (RFC 6901, `""` for the whole document) and a reason for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// JSON Pointer of the member that breaks the rule; of the object that lacks it when a member is missing.
    pub pointer: String,
    /// What the rule asks for, as a sentence.
    pub reason: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.pointer.is_empty() {
            "document"
        } else {
            &self.pointer
        };
        write!(f, "{place}: {}", self.reason)
    }
}

/// A document that broke at least one rule; holds at most [`Report::CAPACITY`] violations, in document order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid(Vec<Violation>);

impl Invalid {
    /// A single violation.
    pub fn one(pointer: impl Into<String>, reason: impl Into<String>) -> Self {
        Self(vec![Violation {
            pointer: pointer.into(),
            reason: reason.into(),
        }])
    }

    /// The violations; never empty.
    pub fn violations(&self) -> &[Violation] {
        &self.0
    }

    /// The violations, owned; never empty.
    pub fn into_violations(self) -> Vec<Violation> {
        self.0
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, violation) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("; ")?;
            }
            violation.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Invalid {}

/// The place being validated: a linked path, so that nothing is allocated until a rule breaks.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    token: Token<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Token<'a> {
    Root,
    Key(&'a str),
    Index(usize),
}

impl<'a> Place<'a> {
    /// The whole document.
    pub const ROOT: Place<'static> = Place {
        parent: None,
        token: Token::Root,
    };

    /// The member `name` of this place.
    pub fn key(&'a self, name: &'a str) -> Place<'a> {
        Place {
            parent: Some(self),
            token: Token::Key(name),
        }
    }

    /// The element `index` of this place.
    pub fn index(&'a self, index: usize) -> Place<'a> {
        Place {
            parent: Some(self),
            token: Token::Index(index),
        }
    }

    /// The JSON Pointer of this place.
    pub fn pointer(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        if let Some(parent) = self.parent {
            parent.write(out);
        }
        match self.token {
            Token::Root => {}
            Token::Key(name) => {
                out.push('/');
                for c in name.chars() {
                    match c {
                        '~' => out.push_str("~0"),
                        '/' => out.push_str("~1"),
                        c => out.push(c),
                    }
                }
            }
            Token::Index(index) => {
                out.push('/');
                out.push_str(&index.to_string());
            }
        }
    }
}

/// Collects violations while a document is validated.
#[derive(Debug, Default)]
pub struct Report {
    violations: Vec<Violation>,
}

impl Report {
    /// Most violations kept; what comes after is dropped, since nobody reads on.
    pub const CAPACITY: usize = 64;

    /// An empty report.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes that the rule `reason` is broken at `place`.
    pub fn add(&mut self, place: &Place<'_>, reason: impl Into<String>) {
        if self.violations.len() < Self::CAPACITY {
            self.violations.push(Violation {
                pointer: place.pointer(),
                reason: reason.into(),
            });
        }
    }

    /// Whether nothing has been noted.
    pub fn is_empty(&self) -> bool {
        self.violations.is_empty()
    }

    /// How many violations have been noted; lets a caller see whether a step added any.
    pub fn len(&self) -> usize {
        self.violations.len()
    }

    /// `value` when nothing was noted (and there is one), the violations otherwise.
    ///
    /// # Errors
    /// The violations noted so far; a missing value without any violation reads as "is not valid".
    pub fn finish<T>(self, value: Option<T>) -> Result<T, Invalid> {
        match value {
            Some(value) if self.violations.is_empty() => Ok(value),
            _ if self.violations.is_empty() => Err(Invalid::one("", "Is not valid.")),
            _ => Err(Invalid(self.violations)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_an_escaped_json_pointer() {
        let root = Place::ROOT;
        assert_eq!(root.pointer(), "");
        let filters = root.key("filters");
        let third = filters.index(3);
        assert_eq!(third.key("a/b~c").pointer(), "/filters/3/a~1b~0c");
    }

    #[test]
    fn a_report_is_bounded_and_decides() {
        let mut report = Report::new();
        for _ in 0..200 {
            report.add(&Place::ROOT, "no");
        }
        assert_eq!(report.finish(Some(())).unwrap_err().violations().len(), 64);
        assert_eq!(Report::new().finish(Some(1)), Ok(1));
        assert!(Report::new().finish::<()>(None).is_err());
    }
}
