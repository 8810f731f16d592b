//! Random values and records.

use purvey_odp::value::ScalarType;
use serde_json::{Map, Value, json};

/// A small generator of numbers (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}

/// JSON numbers keep their spelling, so they are written as text here.
fn number(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// A value of the type, often an equal one in another spelling.
pub(crate) fn valid(random: &mut Random, scalar_type: ScalarType) -> Value {
    const STRINGS: &[&str] = &[
        "",
        "a",
        "A",
        "b",
        "\u{e9}",
        "e\u{301}",
        "\u{ffff}",
        "\u{10000}",
        "a\0",
        "a\u{1}",
        "shoes",
        "hats",
        "z z",
    ];
    const INTEGERS: &[&str] = &[
        "0",
        "-0",
        "1",
        "1.0",
        "1e0",
        "10",
        "1e1",
        "-3",
        "-3.00",
        "9007199254740992",
        "9007199254740993",
        "123456789012345678901234567890",
        "123456789012345678901234567891",
        "1e30",
        "-1e30",
        "1E+30",
    ];
    const NUMBERS: &[&str] = &[
        "0",
        "-0.0",
        "0.1",
        "1e-1",
        "0.10",
        "1",
        "1.0",
        "2.5",
        "-2.5",
        "1e400",
        "-1e400",
        "1e-400",
        "0.1000000000000000000000001",
    ];
    const DECIMALS: &[&str] = &[
        "0",
        "-0",
        "0.0",
        "1",
        "1.0",
        "1.00",
        "9",
        "10",
        "0.1",
        "-0.1",
        "99999999999999999999.000000000000000001",
        "99999999999999999999",
        "99999999999999999999.000",
    ];
    const DATES: &[&str] = &[
        "0000-01-01",
        "2023-12-31",
        "2024-01-01",
        "2024-02-29",
        "9999-12-31",
    ];
    const INSTANTS: &[&str] = &[
        "2024-01-01T00:00:00Z",
        "2024-01-01T01:00:00+01:00",
        "2023-12-31T23:59:59Z",
        "2023-12-31T23:59:60Z",
        "2023-12-31t15:59:60-08:00",
        "2024-01-01T00:00:00.000Z",
        "2024-01-01T00:00:00.5z",
        "2024-01-01T00:00:00.50Z",
        "0000-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59-23:59",
    ];
    match scalar_type {
        ScalarType::String => json!(random.pick(STRINGS)),
        ScalarType::Boolean => json!(random.chance(50)),
        // Enough of them for more values than a group holds.
        ScalarType::Integer if random.chance(60) => json!(random.below(60)),
        ScalarType::Integer => number(random.pick(INTEGERS)),
        ScalarType::Number => number(random.pick(NUMBERS)),
        ScalarType::Decimal => json!(random.pick(DECIMALS)),
        ScalarType::Date => json!(random.pick(DATES)),
        ScalarType::DateTime => json!(random.pick(INSTANTS)),
    }
}

/// Something for a member that feeds a filter: nothing, a value, several, or something that is not mapped.
fn member(random: &mut Random, scalar_type: ScalarType, many: bool) -> Option<Value> {
    let other = [
        json!(null),
        json!("1e5"),
        json!(1.5),
        json!({"a": 1}),
        json!([]),
        json!("2023-02-29"),
        json!(true),
        json!("x"),
    ];
    match random.below(10) {
        0 | 1 => None,
        2 => Some(random.pick(&other)),
        3..6 if many => {
            let n = random.below(5);
            let mut items: Vec<Value> = (0..n).map(|_| valid(random, scalar_type)).collect();
            if random.chance(20) {
                items.push(random.pick(&other));
                items.push(json!([valid(random, scalar_type)]));
            }
            Some(Value::Array(items))
        }
        _ => Some(valid(random, scalar_type)),
    }
}

pub(crate) fn record(random: &mut Random, many: bool) -> Value {
    let mut attributes = Map::new();
    let mut put = |random: &mut Random, name: &str, scalar_type, many| {
        if let Some(value) = member(random, scalar_type, many) {
            attributes.insert(name.to_owned(), value);
        }
    };
    put(random, "tags", ScalarType::String, many);
    put(random, "flag", ScalarType::Boolean, false);
    put(random, "count", ScalarType::Integer, many);
    put(random, "ratio", ScalarType::Number, false);
    put(random, "amounts", ScalarType::Decimal, many);
    put(random, "day", ScalarType::Date, many);
    put(random, "at", ScalarType::DateTime, false);
    if random.chance(50) {
        let list = (0..random.below(3)).map(|_| json!({"n": valid(random, ScalarType::Integer)}));
        let list = list.collect();
        attributes.insert("list".into(), list);
    }
    attributes.insert("rank".into(), json!(random.below(4)));
    if random.chance(60) {
        attributes.insert("score".into(), json!(random.below(5)));
    }
    let collections = ["shoes", "hats", "a"];
    let collections: Vec<_> = collections
        .into_iter()
        .filter(|_| random.chance(40))
        .collect();
    let mut record = json!({"name": valid(random, ScalarType::String), "attributes": attributes});
    if !collections.is_empty() {
        record["collection_ids"] = json!(collections);
    }
    if random.chance(50) {
        record["price"] = json!({"amount": valid(random, ScalarType::Decimal)});
    }
    record
}
