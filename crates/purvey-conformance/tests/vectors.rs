//! Both roles against the vectors, when they are beside the project (`../shared/odp/test-vectors` from its root).
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "helpers of tests may fail loudly and say what they skip"
)]

use purvey_conformance::adapter::{Role, Status, judge};
use purvey_conformance::deviation;
use purvey_conformance::run::run;
use purvey_conformance::subject::expectation;
use purvey_conformance::vectors::{Vector, load};
use serde_json::{Map, Value};
use std::path::Path;

/// The vectors; nothing when they are not there, which continuous integration does not let pass.
fn vectors() -> Option<Vec<Vector>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .find(|directory| directory.join("Cargo.lock").is_file())
        .expect("the crate is in its workspace");
    let directory = root.join("../shared/odp/test-vectors");
    if directory.join("index.json").is_file() {
        return Some(load(&directory).expect("the vectors can be read"));
    }
    let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(!ci, "{} is missing", directory.display());
    println!("skipped: {} is missing", directory.display());
    None
}

/// Vector and case of what is skipped in both roles.
const SKIPPED: &[(&str, &[&str])] = &[
    (
        "action-contract",
        &[
            "openapi-operation-resolves-once",
            "openapi-operation-inherits-service-document-url",
            "openapi-operation-requires-a-document-url",
            "openapi-operation-is-missing",
            "openapi-operation-is-ambiguous",
            "openapi-version-must-be-3-1",
        ],
    ),
    ("attribute-schema-retrieval", &["schema-failure-is-narrow"]),
    (
        "collection-search-contract",
        &[
            "query-and-parent-use-logical-and",
            "null-parent-selects-roots-and-preserves-service-order",
        ],
    ),
    (
        "composition-contract",
        &[
            "successful-request-does-not-trigger-advertised-protocols",
            "aep-live-challenge",
            "mpp-live-challenge",
            "x402-live-challenge",
            "both-payment-challenges",
            "unadvertised-live-protocol-remains-authoritative",
            "public-operation-succeeds-without-challenge",
            "payment-only-operation-challenges-directly",
            "aep-only-operation-authenticates-directly",
            "aep-precedes-mpp",
            "aep-precedes-x402",
            "payment-must-not-precede-required-aep",
        ],
    ),
    (
        "errors-limits-contract",
        &[
            "page-failure-preserves-prior-items",
            "retry-after-within-budget",
            "retry-after-exceeds-budget",
            "retry-count-exhausted",
            "continuation-expiration-is-not-retried",
        ],
    ),
    (
        "offering-search-contract",
        &[
            "direct-scope-does-not-inherit-child-membership",
            "descendant-expansion-deduplicates-and-preserves-service-order",
            "missing-collection-is-not-found",
        ],
    ),
    (
        "security-contract",
        &[
            "explicit-cross-origin-public-https",
            "private-ipv4-is-rejected",
            "link-local-ipv4-is-rejected",
            "unique-local-ipv6-is-rejected",
            "mixed-public-private-resolution-is-rejected",
            "dns-rebinding-peer-is-rejected",
            "localhost-requires-development-mode",
            "literal-localhost-development-exception",
            "localhost-alias-does-not-qualify",
            "same-origin-redirect",
            "cross-origin-redirect-is-rejected",
            "supporting-document-retrieval-is-anonymous",
            "cross-origin-action-does-not-copy-service-credentials",
            "same-origin-action-can-use-scoped-credentials",
            "advertised-action-is-not-automatically-invoked",
            "unknown-action-needs-explicit-selection",
            "price-preview-does-not-authorize-payment",
            "live-challenge-still-needs-caller-policy",
            "live-challenge-and-policy-authorize-payment",
            "private-response-is-not-publicly-reusable",
            "fully-scoped-cache-entry-is-reusable",
        ],
    ),
];

/// What is skipped beyond that in the Agent's role: it takes an Agent.
const SKIPPED_BY_AGENT: &[(&str, &[&str])] = &[
    (
        "attribute-schema-retrieval",
        &[
            "schema-response",
            "wrong-response-media-type",
            "wrong-json-schema-dialect",
            "external-ref-to-recursive-schema",
            "external-dynamic-ref-is-unsupported",
            "relative-cross-document-dynamic-ref-is-unsupported",
            "non-string-dynamic-ref-is-unsupported",
            "full-attributes-validate",
            "terse-attributes-are-partial",
        ],
    ),
    (
        "conformance-baseline",
        &["minimum-agent-behavior", "agent-missing-pagination"],
    ),
    ("errors-limits-contract", &["schema-graph-limit-exceeded"]),
    ("pagination-contract", &["conditional-get-not-modified"]),
];

fn all_pass_but_the_deviation(role: Role, count: usize, skipped: &[&[(&str, &[&str])]]) {
    let Some(vectors) = vectors() else { return };
    let report = run(&vectors, role);
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.cases().count(), count);

    let deviations: Vec<_> = report
        .cases()
        .filter(|(_, case)| case.deviation.is_some())
        .map(|(vector, case)| (vector, case.case.as_str()))
        .collect();
    assert_eq!(deviations, [("protocol-version", "newer-compatible-minor")]);

    let mut found: Vec<_> = report
        .cases()
        .filter(|(_, case)| case.status == Status::Skipped)
        .map(|(vector, case)| (vector, case.case.as_str()))
        .collect();
    let mut known: Vec<_> = skipped
        .iter()
        .flat_map(|list| list.iter())
        .flat_map(|(vector, cases)| cases.iter().map(|case| (*vector, *case)))
        .collect();
    found.sort_unstable();
    known.sort_unstable();
    assert_eq!(found, known);
}

#[test]
fn the_service_passes() {
    all_pass_but_the_deviation(Role::Service, 288, &[SKIPPED]);
}

#[test]
fn the_agent_passes() {
    all_pass_but_the_deviation(Role::Agent, 293, &[SKIPPED, SKIPPED_BY_AGENT]);
}

/// Something else than `value`, of the same kind.
fn other(value: &Value) -> Value {
    match value {
        Value::Bool(is) => Value::Bool(!is),
        Value::Number(number) => (number.as_u64().expect("a small number") + 1).into(),
        Value::String(text) => format!("{text}!").into(),
        Value::Array(items) if items.is_empty() => vec!["more"].into(),
        Value::Array(items) => items[1..].into(),
        Value::Object(map) => {
            let mut map = map.clone();
            match map.iter_mut().next_back() {
                Some((_, last)) => *last = other(last),
                None => drop(map.insert("more".to_owned(), true.into())),
            }
            Value::Object(map)
        }
        Value::Null => true.into(),
    }
}

/// Every member that a case expects, turned round alone, makes the case fail: so what passes passes by what was done.
fn nothing_passes_by_accident(role: Role) {
    let Some(vectors) = vectors() else { return };
    let mut turned = 0;
    for vector in &vectors {
        for case in vector.cases(role) {
            let name = case["name"].as_str().expect("a name");
            let (status, _) = judge(role, &vector.info.subject, case.clone());
            if status == Status::Skipped || deviation::of(&vector.info.id, name).is_some() {
                continue;
            }
            let operation = case
                .get("operation")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let mut members = 0;
            for member in expectation(&vector.info.subject, operation) {
                let Some(expected) = case.get(*member) else {
                    continue;
                };
                let mut inverted: Map<String, Value> = case.clone();
                inverted.insert((*member).to_owned(), other(expected));
                let (status, message) = judge(role, &vector.info.subject, inverted);
                let message = message.unwrap_or_default();
                assert_eq!(
                    status,
                    Status::Failed,
                    "{}/{name}: {member}",
                    vector.info.id
                );
                assert!(
                    message.starts_with(&format!("{member} is ")),
                    "{}/{name}: {message}",
                    vector.info.id
                );
                members += 1;
            }
            assert!(members > 0, "{}/{name} expects nothing", vector.info.id);
            turned += 1;
        }
    }
    assert!(turned > 200, "{turned}");
}

#[test]
fn nothing_passes_by_accident_in_the_service_role() {
    nothing_passes_by_accident(Role::Service);
}

#[test]
fn nothing_passes_by_accident_in_the_agent_role() {
    nothing_passes_by_accident(Role::Agent);
}
