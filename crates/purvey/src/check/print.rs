//! Outcomes for people and for programs.

use crate::{
    failure::{Failure, print},
    text::{self, harmless},
};
use purvey_agent::check::{Finding, Outcome, Severity};
use serde_json::{Value, json};

/// Three lines for each finding, the worst first.
pub(super) fn lines(outcome: &Outcome) -> Result<(), Failure> {
    let mut findings: Vec<&Finding> = outcome.findings.iter().collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.rule.severity));
    for finding in findings {
        let rule = finding.rule;
        let severity = rule.severity.as_str();
        let section = section(rule.section);
        print(format_args!(
            "{severity:7} {}  {} ({section})",
            rule.id, rule.statement
        ))?;
        let mut place = harmless(&finding.request);
        if !finding.pointer.is_empty() {
            place.push_str("  at ");
            place.push_str(&harmless(&finding.pointer));
        }
        if !place.is_empty() {
            print(format_args!("        {place}"))?;
        }
        print(format_args!("        {}", harmless(&finding.seen)))?;
    }
    for (rule, more) in &outcome.omitted {
        print(format_args!("        {more} more of {rule}"))?;
    }
    for skipped in &outcome.skipped {
        print(format_args!("skipped {}", harmless(skipped)))?;
    }
    Ok(())
}

/// One document with everything.
pub(super) fn json(outcome: &Outcome) -> Result<(), Failure> {
    let findings: Vec<Value> = outcome
        .findings
        .iter()
        .map(|finding| {
            json!({
                "rule": finding.rule.id,
                "severity": finding.rule.severity,
                "section": section(finding.rule.section),
                "statement": finding.rule.statement,
                "request": finding.request,
                "pointer": finding.pointer,
                "seen": finding.seen,
            })
        })
        .collect();
    let document = json!({
        "origin": outcome.origin,
        "requests": outcome.requests,
        "errors": outcome.count(Severity::Error),
        "warnings": outcome.count(Severity::Warning),
        "notes": outcome.count(Severity::Note),
        "findings": findings,
        "omitted": outcome.omitted,
        "exercised": outcome.exercised,
        "skipped": outcome.skipped,
    });
    // Terminals have control characters beyond those that JSON escapes.
    print(format_args!("{}", text::json(&document.to_string())))
}

/// A section, with the document's name when it is the protocol's.
fn section(section: &str) -> String {
    match section.starts_with('§') {
        true => format!("ODP {section}"),
        false => section.to_owned(),
    }
}
