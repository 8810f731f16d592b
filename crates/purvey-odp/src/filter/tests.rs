#![allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]

use super::*;
use crate::value::Scalar;
use proptest::prelude::*;

fn definition(value: Value) -> FilterDefinition {
    FilterDefinition::validate(value).unwrap()
}

fn faults<T: std::fmt::Debug>(result: Result<T, Invalid>) -> Vec<String> {
    match result {
        Ok(_) => Vec::new(),
        Err(invalid) => invalid
            .into_violations()
            .into_iter()
            .map(|v| v.pointer)
            .collect(),
    }
}

/// A definition of `scalar_type` with every operator that applies.
fn of_type(scalar_type: ScalarType) -> FilterDefinition {
    let operators: Vec<_> = Operator::ALL
        .into_iter()
        .filter(|o| o.is_compatible(scalar_type))
        .map(Operator::as_str)
        .collect();
    definition(
        json!({"id": "f", "title": "F", "description": "F.", "type": scalar_type.as_str(), "operators": operators}),
    )
}

fn matches(scalar_type: ScalarType, operator: &str, operand: Value, values: &[Value]) -> bool {
    let expression = json!({"id": "f", "operator": operator, "value": operand});
    let expression = FilterExpression::validate(expression, &of_type(scalar_type)).unwrap();
    let values: Vec<Scalar> = values
        .iter()
        .map(|v| scalar_type.scalar(v).unwrap())
        .collect();
    // What goes over the wire means the same.
    let again = FilterExpression::validate(expression.to_value(), &of_type(scalar_type)).unwrap();
    assert_eq!(again, expression);
    expression.matches(&values)
}

#[test]
fn a_definition_comes_back_as_it_was() {
    for value in [
        json!({"id": "processing_days", "title": "Processing time", "description": "Days before shipping.", "type": "integer",
            "operators": ["gte", "lte", "exists"], "unit": {"system": "ucum", "code": "d"}}),
        json!({"id": "rental_quantity", "title": "Rental quantity", "description": "In GPU hours.", "type": "decimal",
            "operators": ["gte", "lte"], "unit": {"system": "service", "code": "gpu-hour", "title": "GPU hour"}}),
        json!({"id": "material", "title": "Material", "description": "Primary materials.", "type": "string",
            "operators": ["in", "eq"], "refinable": true}),
    ] {
        assert_eq!(definition(value.clone()).to_value(), value);
    }
}

#[test]
fn every_fault_of_a_definition_is_noted_where_it_is() {
    let base = json!({"id": "f", "title": "F", "description": "F.", "type": "string", "operators": ["eq"]});
    for (member, value, pointers) in [
        ("id", json!("a/b"), vec!["/id"]),
        ("id", json!("x".repeat(65)), vec!["/id"]),
        ("title", json!(""), vec!["/title"]),
        ("title", json!("x".repeat(129)), vec!["/title"]),
        ("description", json!("x".repeat(1025)), vec!["/description"]),
        ("type", json!("text"), vec!["/type"]),
        ("operators", json!([]), vec!["/operators"]),
        ("operators", json!(["gte"]), vec!["/operators/0"]),
        (
            "operators",
            json!(["eq", "lt", "exists", "gt"]),
            vec!["/operators/1", "/operators/3"],
        ),
        ("operators", json!(["eq", "ne"]), vec!["/operators/1"]),
        ("operators", json!(["eq", "in", "eq"]), vec!["/operators/2"]),
        (
            "unit",
            json!({"system": "ucum", "code": "d"}),
            vec!["/unit"],
        ),
        ("refinable", json!(false), vec!["/refinable"]),
        ("odp_version", json!("1.0"), vec!["/odp_version"]),
    ] {
        let mut changed = base.clone();
        changed[member] = value;
        assert_eq!(
            faults(FilterDefinition::validate(changed.clone())),
            pointers,
            "{changed}"
        );
    }
    assert_eq!(
        faults(FilterDefinition::validate(json!({}))),
        ["", "", "", "", ""]
    );
    assert_eq!(faults(FilterDefinition::validate(json!([]))), [""]);
    let mut extended = base;
    extended["future"] = json!({"a": 1});
    assert_eq!(faults(FilterDefinition::validate(extended)), [""; 0]);
}

#[test]
fn only_equality_makes_a_filter_refinable() {
    for (operators, good) in [
        (json!(["eq"]), true),
        (json!(["in"]), true),
        (json!(["lte"]), false),
        (json!(["exists"]), false),
    ] {
        let value = json!({"id": "f", "title": "F", "description": "F.", "type": "integer", "operators": operators, "refinable": true});
        let expected = if good { vec![] } else { vec!["/refinable"] };
        assert_eq!(faults(FilterDefinition::validate(value)), expected);
    }
}

#[test]
fn units_are_of_two_systems() {
    let with = |unit: Value| json!({"id": "f", "title": "F", "description": "F.", "type": "number", "operators": ["lt"], "unit": unit});
    for (unit, pointers) in [
        (json!({"system": "ucum", "code": "1"}), vec![]),
        (
            json!({"system": "ucum", "code": "days"}),
            vec!["/unit/code"],
        ),
        (json!({"system": "ucum"}), vec!["/unit"]),
        (
            json!({"system": "service", "code": "gpu hour", "title": ""}),
            vec!["/unit/code", "/unit/title"],
        ),
        (
            json!({"system": "service", "code": "gpu-hour"}),
            vec!["/unit"],
        ),
        (json!({"system": "si", "code": "m"}), vec!["/unit/system"]),
        (json!("d"), vec!["/unit"]),
    ] {
        assert_eq!(
            faults(FilterDefinition::validate(with(unit.clone()))),
            pointers,
            "{unit}"
        );
    }
}

#[test]
fn operators_do_as_they_say() {
    use ScalarType as T;
    let walnut_steel = [json!("steel"), json!("walnut")];
    assert!(matches(
        T::String,
        "in",
        json!(["walnut", "oak"]),
        &walnut_steel
    ));
    assert!(!matches(
        T::String,
        "in",
        json!(["Walnut", "oak"]),
        &walnut_steel
    ));
    assert!(!matches(T::String, "eq", json!("e\u{301}"), &[json!("é")]));
    assert!(matches(T::String, "exists", json!(false), &[]));
    assert!(!matches(T::String, "exists", json!(true), &[]));
    assert!(matches(T::Boolean, "exists", json!(true), &[json!(false)]));
    assert!(matches(T::Decimal, "eq", json!("1.00"), &[json!("1.0")]));
    assert!(matches(T::Decimal, "eq", json!("-0"), &[json!("0.00")]));
    assert!(matches(
        T::Boolean,
        "eq",
        json!(false),
        &[json!(true), json!(false)]
    ));
    assert!(matches(
        T::Date,
        "lt",
        json!("2024-03-01"),
        &[json!("2024-02-29")]
    ));
    assert!(matches(
        T::DateTime,
        "lte",
        json!("2024-01-01T00:00:00Z"),
        &[json!("2024-01-01T02:00:00+02:00")]
    ));
    // Every operator on both sides of its bound and at it.
    for (operator, below, at, above) in [
        ("eq", false, true, false),
        ("lt", true, false, false),
        ("lte", true, true, false),
        ("gt", false, false, true),
        ("gte", false, true, true),
    ] {
        let bound = json!(9_007_199_254_740_993_u64);
        for (value, expected) in [
            (json!(9_007_199_254_740_992_u64), below),
            (json!(9_007_199_254_740_993_u64), at),
            (json!(9_007_199_254_740_994_u64), above),
        ] {
            assert_eq!(
                matches(T::Integer, operator, bound.clone(), &[value]),
                expected,
                "{operator}"
            );
        }
        assert!(!matches(T::Integer, operator, bound, &[]));
    }
    // One value within and another without: any of them satisfies a comparison.
    assert!(matches(T::Integer, "lt", json!(5), &[json!(9), json!(1)]));
    assert!(!Condition::Lt(Scalar::Boolean(true)).matches(&[Scalar::String(String::new())]));
}

#[test]
fn every_fault_of_an_expression_is_noted_where_it_is() {
    let check = |scalar_type, operator: &str, operand: Value| {
        let value = json!({"id": "f", "operator": operator, "value": operand, "note": "ignored"});
        faults(FilterExpression::validate(value, &of_type(scalar_type)))
    };
    use ScalarType as T;
    assert_eq!(check(T::String, "like", json!("a")), ["/operator"]);
    assert_eq!(check(T::String, "lt", json!("a")), ["/operator"]);
    assert_eq!(check(T::Boolean, "gt", json!("a")), ["/operator", "/value"]);
    assert_eq!(check(T::Integer, "eq", json!("1")), ["/value"]);
    assert_eq!(check(T::Integer, "eq", json!([1])), ["/value"]);
    assert_eq!(check(T::Integer, "eq", json!(null)), ["/value"]);
    assert_eq!(check(T::Integer, "in", json!(1)), ["/value"]);
    assert_eq!(check(T::Integer, "in", json!([])), ["/value"]);
    assert_eq!(
        check(T::Integer, "in", json!([1, "2", 3, 4.5])),
        ["/value/1", "/value/3"]
    );
    assert_eq!(
        check(T::Integer, "in", json!([1, null, [2], {}])),
        ["/value/1", "/value/2", "/value/3"]
    );
    assert_eq!(check(T::Integer, "exists", json!(1)), ["/value"]);
    assert_eq!(check(T::Integer, "in", (0..100).collect()), [""; 0]);
    assert_eq!(check(T::Integer, "in", (0..101).collect()), ["/value"]);
    let value = json!({"id": "g", "operator": "eq", "value": 1});
    assert_eq!(
        faults(FilterExpression::validate(value, &of_type(T::Integer))),
        ["/id"]
    );
    assert_eq!(
        faults(FilterExpression::validate(json!({}), &of_type(T::Integer))),
        ["", "", ""]
    );
}

#[test]
fn repetitions_are_found_by_the_equality_of_the_type() {
    use ScalarType as T;
    for (scalar_type, values, pointers) in [
        (T::String, r#"["a", "b", "a", "A"]"#, vec!["/value/2"]),
        (
            T::Number,
            r#"[1, 1.0, 1e0, 10e-1, 2]"#,
            vec!["/value/1", "/value/2", "/value/3"],
        ),
        (T::Integer, "[9007199254740992, 9007199254740993]", vec![]),
        (T::Integer, "[0, -0]", vec!["/value/1"]),
        (
            T::Decimal,
            r#"["1.0", "2", "1.00", "-0", "0"]"#,
            vec!["/value/2", "/value/4"],
        ),
        (T::String, r#"["1.0", "1.00"]"#, vec![]),
        (T::Boolean, "[true, false, true]", vec!["/value/2"]),
        (
            T::DateTime,
            r#"["2024-01-01T00:00:00Z", "2024-01-01T01:00:00+01:00"]"#,
            vec!["/value/1"],
        ),
    ] {
        let operand: Value = serde_json::from_str(values).unwrap();
        let value = json!({"id": "f", "operator": "in", "value": operand});
        assert_eq!(
            faults(FilterExpression::validate(value, &of_type(scalar_type))),
            pointers,
            "{values}"
        );
    }
}

proptest! {
    #[test]
    fn in_is_eq_to_any(bounds in prop::collection::hash_set(-9i64..9, 1..8), values in prop::collection::vec(-9i64..9, 0..5)) {
        let scalars: Vec<_> = values.iter().map(|v| json!(v)).collect();
        let expected = bounds.iter().any(|bound| matches(ScalarType::Integer, "eq", json!(bound), &scalars));
        let operand = bounds.iter().map(|v| json!(v)).collect();
        prop_assert_eq!(matches(ScalarType::Integer, "in", operand, &scalars), expected);
    }

    #[test]
    fn comparisons_agree_with_integers(bound in -9i64..9, values in prop::collection::vec(-9i64..9, 0..5)) {
        let scalars: Vec<_> = values.iter().map(|v| json!(v)).collect();
        let check = |operator, expected: bool| {
            assert_eq!(matches(ScalarType::Integer, operator, json!(bound), &scalars), expected, "{operator}");
        };
        check("lt", values.iter().any(|v| *v < bound));
        check("lte", values.iter().any(|v| *v <= bound));
        check("gt", values.iter().any(|v| *v > bound));
        check("gte", values.iter().any(|v| *v >= bound));
    }
}
