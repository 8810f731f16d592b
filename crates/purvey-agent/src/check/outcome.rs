//! What a check found.

use super::Rule;
use serde::Serialize;
use std::collections::BTreeMap;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; no rule is broken.
    Note,
    /// What other Agents or people will stumble over.
    Warning,
    /// A rule of the protocol is broken.
    Error,
}

impl Severity {
    /// `note`, `warning` or `error`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One place where a rule is broken. All but the rule may quote the Service: data, and to be escaped before it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// The request whose response shows it: method, URL, what of header and body matters.
    pub request: String,
    /// JSON Pointer into the response's document; empty for the response as a whole.
    pub pointer: String,
    /// What was seen.
    pub seen: String,
}

/// All that a check found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The Service's identity, once its document was read; before that the origin that was asked.
    pub origin: String,
    /// The findings, at most [`Outcome::PER_RULE`] of each rule, in the order of the check.
    pub findings: Vec<Finding>,
    /// By rule, how many more findings there were.
    pub omitted: BTreeMap<&'static str, usize>,
    /// By rule, how many times it was looked at.
    pub exercised: BTreeMap<&'static str, usize>,
    /// What was not looked at, and why.
    pub skipped: Vec<String>,
    /// Requests that were sent.
    pub requests: usize,
}

impl Outcome {
    /// Most findings of one rule that are kept.
    pub const PER_RULE: usize = 10;
    /// Most bytes of [`Finding::seen`] and [`Finding::request`].
    const TEXT: usize = 600;

    pub(super) fn new(origin: &str) -> Self {
        Self {
            origin: origin.to_owned(),
            findings: Vec::new(),
            omitted: BTreeMap::new(),
            exercised: BTreeMap::new(),
            skipped: Vec::new(),
            requests: 0,
        }
    }

    /// The number of findings of a severity, those that were not kept included.
    pub fn count(&self, severity: Severity) -> usize {
        let kept = self.findings.iter().filter(|f| f.rule.severity == severity);
        let omitted = super::rules()
            .iter()
            .filter(|rule| rule.severity == severity)
            .filter_map(|rule| self.omitted.get(rule.id));
        kept.count() + omitted.sum::<usize>()
    }

    /// The worst severity among the findings.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|f| f.rule.severity).max()
    }

    pub(super) fn exercise(&mut self, rule: &'static Rule) {
        *self.exercised.entry(rule.id).or_default() += 1;
    }

    pub(super) fn find(
        &mut self,
        rule: &'static Rule,
        request: &str,
        pointer: &str,
        seen: impl Into<String>,
    ) {
        let of_rule = self.findings.iter().filter(|f| f.rule == rule).count();
        if of_rule >= Self::PER_RULE {
            *self.omitted.entry(rule.id).or_default() += 1;
            return;
        }
        self.findings.push(Finding {
            rule,
            request: shortened(request.to_owned()),
            pointer: shortened(pointer.to_owned()),
            seen: shortened(seen.into()),
        });
    }
}

/// At most so much of a text, and a sign when it is not all.
fn shortened(mut text: String) -> String {
    if text.len() > Outcome::TEXT {
        text.truncate(text.floor_char_boundary(Outcome::TEXT));
        text.push('…');
    }
    text
}
