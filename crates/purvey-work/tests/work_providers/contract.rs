//! Schemas of agents, and values held to them.

use purvey_work::{
    Error, Place,
    contract::{ERRORS, SCHEMA_BYTES, check_input, check_schema, verify},
    model::VerificationError,
};
use serde_json::{Value, json};

fn broken(instance: &str, keyword: &str, reason: &str) -> VerificationError {
    VerificationError {
        instance: instance.into(),
        keyword: keyword.into(),
        reason: reason.into(),
    }
}

fn refused(schema: &Value) -> (String, String) {
    let fault = check_schema(schema, "/output_schema").unwrap_err();
    let Place::Body(pointer) = fault.place else {
        panic!("{fault:?}");
    };
    (pointer, fault.reason.into_owned())
}

#[test]
fn output_that_fits_breaks_nothing() {
    let contract = json!({"type": "object", "required": ["total"], "properties": {"total": {"type": "integer", "minimum": 0}}});
    assert_eq!(verify(&contract, &json!({"total": 3, "note": "x"})), []);
    assert_eq!(verify(&json!(true), &json!([1])), []);
    assert_eq!(verify(&json!({}), &json!(null)), []);
}

#[test]
fn every_broken_rule_is_told_with_both_places() {
    let contract = json!({"type": "object", "required": ["total"], "properties":
        {"lines": {"items": {"$ref": "#/$defs/line"}}}, "$defs": {"line": {"type": "string", "maxLength": 3}}});
    let output = json!({"lines": ["abc", 7, "abcd"]});
    let expected = [
        broken("", "/required", "\"total\" is a required property"),
        broken(
            "/lines/1",
            "/properties/lines/items/$ref/type",
            "value is not of type \"string\"",
        ),
        broken(
            "/lines/2",
            "/properties/lines/items/$ref/maxLength",
            "value is longer than 3 characters",
        ),
    ];
    let mut told = verify(&contract, &output);
    told.sort_by(|a, b| a.instance.cmp(&b.instance));
    assert_eq!(told, expected);
}

#[test]
fn the_whole_list_is_bounded() {
    let output: Vec<_> = (0..1_000).collect();
    let told = verify(&json!({"items": {"type": "string"}}), &json!(output));
    assert_eq!(told.len(), ERRORS);
    let names: Vec<_> = (0..5_000).map(|n| format!("name-{n}")).collect();
    let told = verify(&json!({"enum": names}), &json!(1));
    assert!(told[0].reason.len() <= 303, "{}", told[0].reason.len());
}

#[test]
fn a_reason_never_repeats_the_value() {
    let told = verify(&json!({"type": "integer"}), &json!("private words"));
    assert_eq!(
        told,
        [broken("", "/type", "value is not of type \"integer\"")]
    );
}

#[test]
fn input_is_refused_with_pointers_into_the_body() {
    let schema = json!({"type": "object", "properties": {"a/b": {"type": "string"}}});
    assert!(check_input(&schema, &json!({"a/b": "x"})).is_ok());
    let Err(Error::Refused(refusal)) = check_input(&schema, &json!({"a/b": 1})) else {
        panic!();
    };
    assert_eq!(refusal.code.text(), "request.invalid");
    let [fault] = &refusal.errors[..] else {
        panic!("{refusal:?}");
    };
    assert_eq!(fault.place, Place::Body("/input/a~1b".into()));
    assert_eq!(fault.reason, "value is not of type \"string\"");
}

#[test]
fn a_schema_that_breaks_its_dialect_is_refused_where_it_does() {
    let (pointer, reason) = refused(&json!({"properties": {"a": {"type": "strin"}}}));
    assert_eq!(pointer, "/output_schema/properties/a/type");
    assert!(
        reason.starts_with("It breaks a rule of its dialect: "),
        "{reason}"
    );
    assert_eq!(
        refused(&json!({"minLength": -1})).0,
        "/output_schema/minLength"
    );
    assert_eq!(
        refused(&json!({"pattern": "("})).0,
        "/output_schema/pattern"
    );
    assert_eq!(
        refused(&json!("string")).1,
        "A schema is an object, true or false."
    );
}

#[test]
fn a_schema_refers_to_nothing_but_itself() {
    for elsewhere in [
        "https://example.org/schema",
        "other.json",
        "#/$defs/missing",
        "#missing",
        "https://json-schema.org/draft/2020-12/schema",
    ] {
        assert!(
            check_schema(&json!({"$ref": elsewhere}), "").is_err(),
            "{elsewhere}"
        );
    }
    let own = json!({"$id": "https://example.org/own", "$ref": "own#/$defs/n", "$defs": {"n": {"type": "number"}}});
    assert_eq!(check_schema(&own, ""), Ok(()));
    assert_eq!(verify(&own, &json!("x")).len(), 1);
}

#[test]
fn another_dialect_is_refused() {
    let (pointer, reason) = refused(&json!({"$schema": "http://json-schema.org/draft-07/schema#"}));
    assert_eq!(
        (pointer.as_str(), reason.as_str()),
        (
            "/output_schema",
            "A schema declares a dialect that is not supported."
        )
    );
}

#[test]
fn schemas_that_would_take_too_long_are_refused() {
    assert!(check_schema(&json!({"$ref": "#"}), "").is_err());
    let (_, reason) = refused(&json!({"description": "x".repeat(SCHEMA_BYTES)}));
    assert_eq!(reason, "The schema has more than 262144 bytes.");
    // Each level asks twice for the next: 2⁶⁰ steps.
    let mut definitions = serde_json::Map::new();
    for level in 0..60 {
        let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
        definitions.insert(format!("l{level}"), json!({"allOf": [next, next]}));
    }
    definitions.insert("l60".into(), json!({"type": "string"}));
    assert!(check_schema(&json!({"$ref": "#/$defs/l0", "$defs": definitions}), "").is_err());
}

#[test]
fn output_that_cannot_be_held_to_its_contract_does_not_fit() {
    // Every element against every other one.
    let contract = json!({"items": {"anyOf": [{"pattern": "^(?=a)(b)\\1$"}, {"type": "integer"}]}});
    assert_eq!(check_schema(&contract, ""), Ok(()));
    let output = vec!["a"; 20_000];
    let told = verify(&contract, &json!(output));
    assert_eq!(told.len(), 1);
    assert!(
        told[0].reason.starts_with("cannot be held to the schema: "),
        "{told:?}"
    );
}
