//! Outcomes for people and for programs.

use crate::failure::{Failure, print};
use purvey_agent::check::{Finding, Outcome, Severity};
use serde_json::{Value, json};
use std::fmt::Write;

/// Three lines for each finding, the worst first.
pub(super) fn text(outcome: &Outcome) -> Result<(), Failure> {
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
        let mut place = safe(&finding.request);
        if !finding.pointer.is_empty() {
            place.push_str("  at ");
            place.push_str(&safe(&finding.pointer));
        }
        if !place.is_empty() {
            print(format_args!("        {place}"))?;
        }
        print(format_args!("        {}", safe(&finding.seen)))?;
    }
    for (rule, more) in &outcome.omitted {
        print(format_args!("        {more} more of {rule}"))?;
    }
    for skipped in &outcome.skipped {
        print(format_args!("skipped {}", safe(skipped)))?;
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
    print(format_args!("{}", escaped(&document.to_string())))
}

/// A section, with the document's name when it is the protocol's.
fn section(section: &str) -> String {
    match section.starts_with('§') {
        true => format!("ODP {section}"),
        false => section.to_owned(),
    }
}

/// Text of a Service as it may be shown: one line, and nothing that a terminal obeys or that turns the direction of reading.
pub(crate) fn safe(text: &str) -> String {
    escape(text, |out, c| {
        let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
    })
}

/// The same within a JSON document, whose strings can hold such characters in no other place.
pub(crate) fn escaped(json: &str) -> String {
    escape(json, |out, c| {
        let mut units = [0; 2];
        for unit in c.encode_utf16(&mut units) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    })
}

fn escape(text: &str, write: impl Fn(&mut String, char)) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match is_obeyed(c) {
            true => write(&mut out, c),
            false => out.push(c),
        }
    }
    out
}

/// Controls, line and paragraph separators, marks and overrides of direction, invisible characters.
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(
            u32::from(c),
            0x061C
                | 0x200B..=0x200F
                | 0x2028..=0x202E
                | 0x2060..=0x206F
                | 0xFEFF
                | 0xFFF9..=0xFFFB
                | 0xE0000..=0xE007F
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        assert_eq!(safe("a\u{1b}[31mb\nc"), "a\\u{1b}[31mb\\u{a}c");
        assert_eq!(safe("x\u{202e}y\u{9b}z"), "x\\u{202e}y\\u{9b}z");
        assert_eq!(safe("Größe 漢字 😀"), "Größe 漢字 😀");
        assert_eq!(
            escaped("\"\u{202e}\u{e0041}\""),
            "\"\\u202e\\udb40\\udc41\""
        );
    }
}
