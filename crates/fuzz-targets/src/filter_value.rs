//! Any JSON values, one a line, as values of every filter type.

use purvey_odp::decode::{Bounds, decode};
use purvey_odp::value::{Scalar, ScalarType};
use serde_json::Value;
use std::cmp::Ordering;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

/// Most values that are compared with each other.
const VALUES: usize = 6;

/// Equality and order are those of mathematics, the calendar or the text; one value has one canonical spelling and one key.
pub fn holds(input: &[u8]) {
    let lines = input.split(|b| *b == b'\n');
    let decoded = lines.filter_map(|line| decode(line, Bounds::REQUEST).ok());
    let values: Vec<Value> = decoded.take(VALUES).collect();
    for scalar_type in ScalarType::ALL {
        let scalars = values
            .iter()
            .filter_map(|value| Some((value, scalar_type.scalar(value)?)));
        let scalars: Vec<(&Value, Scalar)> = scalars.collect();
        for (value, scalar) in &scalars {
            canonical(scalar_type, value, scalar);
            for (other_value, other) in &scalars {
                pair(scalar, other);
                spelt(scalar_type, (value, other_value), scalar.cmp(other));
                for (_, third) in &scalars {
                    let chain = scalar <= other && other <= third;
                    assert!(!chain || scalar <= third);
                }
            }
        }
    }
}

fn canonical(scalar_type: ScalarType, value: &Value, scalar: &Scalar) {
    assert_eq!(scalar.scalar_type(), scalar_type);
    let text = scalar.to_value().to_string();
    let again = decode(text.as_bytes(), Bounds::REQUEST);
    let again = scalar_type.scalar(&again.expect("a canonical value is JSON"));
    assert_eq!(again.as_ref(), Some(scalar), "{value} became {text}");
}

fn pair(a: &Scalar, b: &Scalar) {
    let order = a.cmp(b);
    assert_eq!(order.reverse(), b.cmp(a));
    assert_eq!(order == Ordering::Equal, a == b);
    let (mut key_a, mut key_b) = (Vec::new(), Vec::new());
    a.order_key(&mut key_a);
    b.order_key(&mut key_b);
    assert_eq!(key_a.cmp(&key_b), order, "{a:?} {b:?}");
    if a == b {
        assert_eq!(a.to_value().to_string(), b.to_value().to_string());
        let hasher = BuildHasherDefault::<DefaultHasher>::new();
        assert_eq!(hasher.hash_one(a), hasher.hash_one(b));
    } else {
        assert!(!key_b.starts_with(&key_a));
    }
}

/// The order by another way, where there is a simple one.
fn spelt(scalar_type: ScalarType, (a, b): (&Value, &Value), order: Ordering) {
    let texts = (a.as_str(), b.as_str());
    match (scalar_type, texts) {
        (ScalarType::String, (Some(a), Some(b))) => assert_eq!(a.chars().cmp(b.chars()), order),
        // Four digits of year, two of month, two of day.
        (ScalarType::Date, (Some(a), Some(b))) => assert_eq!(a.cmp(b), order),
        (ScalarType::Decimal, (Some(a), Some(b))) => rounded(a, b, order),
        (ScalarType::Integer | ScalarType::Number, _) => {
            rounded(&a.to_string(), &b.to_string(), order);
        }
        _ => {}
    }
}

/// Rounding never turns an order round.
fn rounded(a: &str, b: &str, order: Ordering) {
    let (a, b): (f64, f64) = (a.parse().expect("a number"), b.parse().expect("a number"));
    if let Some(rounded @ (Ordering::Less | Ordering::Greater)) = a.partial_cmp(&b) {
        assert_eq!(rounded, order, "{a} {b}");
    }
}
