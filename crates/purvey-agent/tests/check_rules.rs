//! The rules of the check, and the page that lists them.

use purvey_agent::check::{Severity, rules};
use std::collections::HashSet;

#[test]
fn ids_are_unique_and_of_one_form() {
    let mut seen = HashSet::new();
    for rule in rules() {
        assert!(seen.insert(rule.id), "{} is there twice", rule.id);
        let parts: Vec<_> = rule.id.split('.').collect();
        assert!((2..=3).contains(&parts.len()), "{}", rule.id);
        let plain = |c: char| c.is_ascii_lowercase() || c == '-';
        assert!(
            parts
                .iter()
                .all(|part| !part.is_empty() && part.chars().all(plain))
        );
        assert!(rule.statement.ends_with('.'), "{}", rule.id);
    }
    assert!(seen.contains("page.next.own-url"));
}

#[test]
fn the_page_lists_every_rule_as_it_is() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/check.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows: Vec<_> = page
        .lines()
        .filter(|line| line.starts_with("| `") && line.matches('|').count() == 5)
        .collect();
    let expected: Vec<_> = rules()
        .iter()
        .map(|rule| {
            let severity = match rule.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Note => "note",
            };
            let odp = if rule.section.starts_with('§') {
                "ODP "
            } else {
                ""
            };
            format!(
                "| `{}` | {severity} | {odp}{} | {} |",
                rule.id, rule.section, rule.statement
            )
        })
        .collect();
    assert_eq!(rows, expected);
}
