//! Hostile schemas: what explodes is refused before it does.

use crate::schemas::{get, hostile, item, schema};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// Definitions `d0` to `d{levels}`, each made of the next by `make`.
fn levels(levels: usize, make: impl Fn(Value) -> Value) -> Value {
    let mut definitions = json!({});
    for level in 0..levels {
        definitions[format!("d{level}")] = make(json!({"$ref": format!("#/$defs/d{}", level + 1)}));
    }
    definitions[format!("d{levels}")] = json!({"type": ["object", "integer", "string", "array"]});
    schema(json!({"$ref": "#/$defs/d0", "$defs": definitions}))
}

#[tokio::test]
async fn a_schema_that_explodes_is_refused_before_it_does() {
    let one = json!({"a": 1});
    let twice = |keyword: &'static str| move |next: Value| json!({keyword: [next, next]});
    for (name, schema) in [
        ("allOf", levels(40, twice("allOf"))),
        ("anyOf", levels(40, twice("anyOf"))),
        ("oneOf", levels(40, twice("oneOf"))),
        (
            "not",
            levels(40, |next| json!({"not": next, "allOf": [next]})),
        ),
        (
            "if",
            levels(40, |next| json!({"if": next, "then": next, "else": next})),
        ),
        (
            "dependent",
            levels(
                40,
                |next| json!({"dependentSchemas": {"a": next, "b": next}}),
            ),
        ),
        (
            "unevaluated",
            levels(
                40,
                |next| json!({"allOf": [next], "unevaluatedProperties": true}),
            ),
        ),
        (
            "unevaluated items",
            levels(
                40,
                |next| json!({"anyOf": [next], "unevaluatedItems": true}),
            ),
        ),
        ("itself", schema(json!({"$ref": "#"}))),
        (
            "itself, longer",
            schema(
                json!({"allOf": [{"$ref": "#/$defs/x"}], "$defs": {"x": {"anyOf": [{"type": "string"}, {"$ref": "#"}]}}}),
            ),
        ),
        (
            "itself, dynamically",
            schema(json!({"$dynamicAnchor": "x", "not": {"$dynamicRef": "#x"}})),
        ),
        (
            "itself, conditionally",
            schema(json!({"if": {"$ref": "#"}})),
        ),
        ("a long chain", levels(5_000, |next| next)),
        (
            "a long chain before unevaluated",
            levels(
                1_900,
                |next| json!({"allOf": [next], "unevaluatedProperties": false}),
            ),
        ),
        ("a chain of 300", levels(300, |next| next)),
    ] {
        assert_eq!(hostile(&schema, &one).await, "TOO_COSTLY", "{name}");
    }
}

#[tokio::test]
async fn a_value_that_explodes_with_its_schema_is_refused() {
    let many: Vec<Value> = (0..20_000).map(|i| json!(i)).collect();
    let wide: Value = (0..5_000)
        .map(|i| (format!("m{i}"), json!(i)))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let alternatives: Vec<Value> = (0..2_000)
        .map(|i| json!({"const": format!("x{i}")}))
        .collect();
    let patterns: serde_json::Map<String, Value> = (0..200)
        .map(|i| (format!("^x{i}"), json!({"type": "string"})))
        .collect();
    let options: Vec<Value> = (0..20_000).map(|i| json!(i * 2)).collect();
    for (name, rules, attributes) in [
        (
            "many items, many alternatives",
            json!({"properties": {"a": {"items": {"anyOf": alternatives}}}}),
            json!({"a": many}),
        ),
        (
            "many items, many options",
            json!({"properties": {"a": {"items": {"enum": options}}}}),
            json!({"a": many}),
        ),
        (
            "many members, many patterns",
            json!({"patternProperties": patterns}),
            wide.clone(),
        ),
        (
            "many items, looked around in",
            json!({"properties": {"a": {"items": {"pattern": "^(?=a)(?!b)"}}}}),
            json!({"a": many}),
        ),
        (
            "exact division",
            json!({"properties": {"a": {"multipleOf": 1e-300}}}),
            json!({"a": serde_json::from_str::<Value>("1e300000000").unwrap()}),
        ),
        (
            "long division",
            json!({"properties": {"a": {"multipleOf": 3}}}),
            json!({"a": serde_json::from_str::<Value>(&"7".repeat(100_000)).unwrap()}),
        ),
    ] {
        assert_eq!(
            hostile(&schema(rules), &attributes).await,
            "TOO_COSTLY",
            "{name}"
        );
    }
}

#[tokio::test]
async fn regular_expressions_are_bounded() {
    let attributes = json!({"a": format!("{}!", "a".repeat(5_000))});
    let rule = |pattern: &str| schema(json!({"properties": {"a": {"pattern": pattern}}}));
    for (pattern, expected) in [
        // Linear, however it looks.
        ("^(a+)+$", "MISMATCH"),
        ("^(a|aa)+$", "MISMATCH"),
        ("(.*)*x", "MISMATCH"),
        // These have to go back and forth, and are stopped.
        (r"^(a|a)*\1b", "MISMATCH"),
        (r"^(?=(a+)+$)(a+)+b", "MISMATCH"),
        // These would be large.
        (r"(\w{100}){100}", "INVALID"),
        ("((a{1000}){1000}){1000}", "INVALID"),
    ] {
        assert_eq!(
            hostile(&rule(pattern), &attributes).await,
            expected,
            "{pattern}"
        );
    }
    let many: serde_json::Map<String, Value> =
        (0..257).map(|i| (format!("p{i}"), json!(true))).collect();
    assert_eq!(
        hostile(&schema(json!({"patternProperties": many})), &attributes).await,
        "TOO_COSTLY"
    );
    let mut long = String::new();
    for i in 0..3_000 {
        write!(long, "x{i}|").unwrap();
    }
    assert_eq!(hostile(&rule(&long), &attributes).await, "TOO_COSTLY");
}

#[tokio::test]
async fn large_and_honest_is_fine() {
    let members: serde_json::Map<String, Value> = (0..400)
        .map(|i| (format!("m{i}"), json!({"$ref": "#/$defs/measure"})))
        .collect();
    let rules = schema(json!({
        "type": "object", "properties": members, "unevaluatedProperties": false,
        "$defs": {"measure": {"type": "object", "required": ["value", "unit"], "allOf": [{"$ref": "#/$defs/valued"}], "unevaluatedProperties": false,
            "properties": {"unit": {"enum": ["mm", "cm", "m"]}}},
            "valued": {"properties": {"value": {"type": "number", "multipleOf": 0.01, "exclusiveMinimum": 0}}}},
    }));
    let attributes: Value = (0..400)
        .map(|i| {
            (
                format!("m{i}"),
                json!({"value": f64::from(i) + 0.25, "unit": "cm"}),
            )
        })
        .collect::<serde_json::Map<_, _>>()
        .into();
    let fake = item(&attributes);
    fake.on("GET /schema.json", &rules);
    let found = get(&fake).await;
    assert!(found.issues.is_empty(), "{:?}", found.issues);
    // Doubling is fine while there is little of it.
    let fake = item(&json!({"a": 1}));
    fake.on(
        "GET /schema.json",
        &levels(10, |next| json!({"allOf": [next, next]})),
    );
    assert!(get(&fake).await.issues.is_empty());
}

#[tokio::test]
async fn what_no_value_reaches_is_compiled_within_bounds_too() {
    const COSTLY: Option<&str> = Some("TOO_COSTLY");
    let twice = |next: &Value, more: Value| {
        let mut level = json!({"allOf": [next, next]});
        level
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        level
    };
    for (name, rules, expected) in [
        ("doubling", levels(40, |next| twice(&next, json!({}))), None),
        (
            "doubling, unevaluated",
            levels(40, |next| {
                twice(&next, json!({"unevaluatedProperties": false}))
            }),
            COSTLY,
        ),
        (
            "doubling, unevaluated items",
            levels(40, |next| twice(&next, json!({"unevaluatedItems": false}))),
            COSTLY,
        ),
        (
            "doubling, once unevaluated",
            levels(40, |next| {
                twice(
                    &next,
                    json!({"contains": {"unevaluatedItems": false, "$ref": next["$ref"]}}),
                )
            }),
            COSTLY,
        ),
        (
            "a little, unevaluated",
            levels(6, |next| {
                twice(&next, json!({"unevaluatedProperties": false}))
            }),
            None,
        ),
        (
            "conditions, unevaluated",
            levels(
                40,
                |next| json!({"if": next, "then": next, "else": next, "unevaluatedProperties": false}),
            ),
            COSTLY,
        ),
        ("a chain", levels(1_900, |next| next), None),
        (
            "a ladder",
            levels(1_900, |next| json!({"properties": {"x": next}})),
            None,
        ),
        (
            "a chain, unevaluated",
            levels(
                1_900,
                |next| json!({"allOf": [next], "unevaluatedProperties": false}),
            ),
            COSTLY,
        ),
        (
            "a short chain, unevaluated",
            levels(
                100,
                |next| json!({"allOf": [next], "unevaluatedProperties": false}),
            ),
            None,
        ),
        (
            "a circle, unevaluated",
            json!({"$ref": "#/$defs/d0", "$defs": {"d0": {"$ref": "#/$defs/d0", "unevaluatedProperties": false}}}),
            COSTLY,
        ),
    ] {
        let fake = item(&json!({"a": 1}));
        let unreached = json!({"b": {"$ref": rules["$ref"]}});
        fake.on(
            "GET /schema.json",
            &schema(json!({"properties": unreached, "$defs": rules["$defs"]})),
        );
        let begun = Instant::now();
        let found = get(&fake).await;
        assert!(begun.elapsed() < Duration::from_secs(30), "{name}");
        let codes: Vec<_> = found
            .issues
            .iter()
            .map(|issue| issue.code.as_str())
            .collect();
        assert_eq!(codes, expected.into_iter().collect::<Vec<_>>(), "{name}");
    }
}
