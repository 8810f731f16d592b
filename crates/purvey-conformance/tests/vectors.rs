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

fn all_pass_but_the_deviation(role: Role, passed: usize) {
    let Some(vectors) = vectors() else { return };
    let report = run(&vectors, role);
    let totals = report.totals();
    assert_eq!(
        (
            totals.passed,
            totals.failed,
            totals.skipped,
            totals.deviations
        ),
        (passed, 0, 0, 1),
        "{report}"
    );
    let deviations: Vec<_> = report
        .cases()
        .filter(|(_, case)| case.deviation.is_some())
        .map(|(vector, case)| (vector, case.case.as_str()))
        .collect();
    assert_eq!(deviations, [("protocol-version", "newer-compatible-minor")]);
}

#[test]
fn the_service_passes() {
    all_pass_but_the_deviation(Role::Service, 287);
}

#[test]
fn the_agent_passes() {
    all_pass_but_the_deviation(Role::Agent, 292);
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
fn nothing_passes_by_accident(role: Role, cases: usize) {
    let Some(vectors) = vectors() else { return };
    let mut turned = 0;
    for vector in &vectors {
        for case in vector.cases(role) {
            let name = case["name"].as_str().expect("a name");
            if deviation::of(&vector.info.id, name).is_some() {
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
    assert_eq!(turned, cases);
}

#[test]
fn nothing_passes_by_accident_in_the_service_role() {
    nothing_passes_by_accident(Role::Service, 287);
}

#[test]
fn nothing_passes_by_accident_in_the_agent_role() {
    nothing_passes_by_accident(Role::Agent, 292);
}
