//! Random legal searches, and what can be wrong with them.
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    reason = "helpers of one test program"
)]

mod mutations;

pub use mutations::{KINDS, capability, continuation, raw, syntax};

use serde_json::{Map, Value, json};

/// Splitmix64: the same numbers for the same seed everywhere.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }
}

/// A filter of the manifest below.
#[derive(Clone, Copy, Debug)]
pub struct Filter {
    pub id: &'static str,
    pub scalar: &'static str,
    pub operators: &'static [&'static str],
    pub refinable: bool,
}

/// One of each type. `local` belongs to the Collection `desk` alone.
pub const FILTERS: [Filter; 8] = [
    filter("text", "string", &["eq", "in", "exists"], true),
    filter("flag", "boolean", &["eq"], true),
    filter(
        "whole",
        "integer",
        &["eq", "in", "lt", "lte", "gt", "gte", "exists"],
        true,
    ),
    filter("real", "number", &["eq", "lt", "gte"], false),
    filter(
        "money",
        "decimal",
        &["eq", "in", "lte", "gt", "exists"],
        true,
    ),
    filter("day", "date", &["in", "gte", "lte"], true),
    filter("instant", "date-time", &["eq", "in", "lt", "gt"], false),
    filter("local", "string", &["eq"], true),
];

const fn filter(
    id: &'static str,
    scalar: &'static str,
    operators: &'static [&'static str],
    refinable: bool,
) -> Filter {
    Filter {
        id,
        scalar,
        operators,
        refinable,
    }
}

pub fn manifest() -> String {
    let definition = |filter: &Filter| {
        let Filter {
            id,
            scalar,
            operators,
            refinable,
        } = filter;
        let refinable = if *refinable { "refinable = true" } else { "" };
        format!(
            "id = \"{id}\"\ntitle = \"F\"\ndescription = \"F.\"\ntype = \"{scalar}\"\noperators = {operators:?}\npath = \"/attributes/{id}\"\n{refinable}\n"
        )
    };
    let (local, own): (Vec<&Filter>, Vec<&Filter>) =
        FILTERS.iter().partition(|filter| filter.id == "local");
    let mut text = String::from(
        "[service]\nname = \"Lamps\"\ndescription = \"Lamps.\"\nlanguage = \"en\"\n[schemas]\n\"/schemas/lamp.json\" = \"lamp.json\"\n",
    );
    for filter in own {
        text += &format!("[[filters]]\n{}", definition(filter));
    }
    for (id, key) in [("up", "whole"), ("down", "money")] {
        text += &format!(
            "[[sorts]]\nid = \"{id}\"\ntitle = \"S\"\ndescription = \"S.\"\nkeys = [{{ filter_id = \"{key}\", direction = \"ascending\", missing = \"last\" }}]\n"
        );
    }
    text += "[[collections]]\nid = \"lamps\"\nname = \"Lamps\"\n[[collections]]\nid = \"desk\"\nname = \"Desk lamps\"\nparent_ids = [\"lamps\"]\n";
    for filter in local {
        text += &format!("[[collections.filters]]\n{}", definition(filter));
    }
    text
}

pub fn named(id: &str) -> Option<&'static Filter> {
    FILTERS.iter().find(|filter| filter.id == id)
}

/// The n-th value of a type; no two are equal.
pub fn value(scalar: &str, n: usize) -> Value {
    match scalar {
        "boolean" => json!(n.is_multiple_of(2)),
        "integer" => json!(n as i64 - 40),
        "number" => json!(n as f64 + 0.5),
        "decimal" => json!(format!("{n}.{}", n % 7)),
        "date" => json!(format!("2024-{:02}-{:02}", n / 28 % 12 + 1, n % 28 + 1)),
        "date-time" => json!(format!(
            "2024-05-{:02}T{:02}:00:00Z",
            n / 24 % 28 + 1,
            n % 24
        )),
        _ => json!(format!("v{n}")),
    }
}

/// An operand that the operator takes.
pub fn operand(random: &mut Random, scalar: &str, operator: &str) -> Value {
    match operator {
        "exists" => json!(random.below(2) == 0),
        "in" if scalar == "boolean" => json!([true]),
        "in" => {
            let first = random.below(100);
            let count = random.pick(&[1, 2, 3, 5, 100]);
            (first..first + count).map(|n| value(scalar, n)).collect()
        }
        _ => value(scalar, random.below(200)),
    }
}

/// A request that the Service answers.
pub fn legal(random: &mut Random) -> Value {
    let mut body = Map::new();
    body.insert("odp_version".into(), json!("1.0"));
    let with_query = random.below(2) == 0;
    if with_query {
        body.insert(
            "query".into(),
            json!(random.pick(&["lamp", "a lamp", "…?", "灯", "x y z"])),
        );
    }
    let collection = random.pick(&[None, None, Some("lamps"), Some("desk")]);
    let offered: Vec<Filter> = FILTERS
        .into_iter()
        .filter(|filter| filter.id != "local" || collection == Some("desk"))
        .collect();
    let count = random
        .pick(&[0, 1, 2, 3, 6, 32])
        .max(usize::from(!with_query));
    if count > 0 {
        let filters = (0..count).map(|_| {
            let filter = random.pick(&offered);
            let operator = random.pick(filter.operators);
            json!({"id": filter.id, "operator": operator, "value": operand(random, filter.scalar, operator)})
        });
        body.insert("filters".into(), filters.collect());
    }
    if let Some(collection) = collection {
        body.insert("collection_id".into(), json!(collection));
        if random.below(2) == 0 {
            body.insert("include_descendants".into(), json!(random.below(2) == 0));
        }
    }
    if random.below(2) == 0 {
        body.insert("sort".into(), json!(random.pick(&["up", "down"])));
    }
    let refined = offered.iter().filter(|filter| filter.refinable);
    let refined: Vec<&str> = refined.map(|filter| filter.id).collect();
    let refined: Vec<&str> = refined
        .into_iter()
        .filter(|_| random.below(3) == 0)
        .collect();
    if !refined.is_empty() {
        body.insert("refinements".into(), json!(refined));
    }
    if random.below(2) == 0 {
        body.insert("limit".into(), json!(random.pick(&[1, 7, 100])));
    }
    if random.below(4) == 0 {
        // Newer members are ignored.
        body.insert("hint".into(), json!({"a": [null, 1]}));
    }
    let body = Value::Object(body);
    match body.to_string().len() {
        // Room for what mutations add to the 65,536 bytes that a request may have.
        0..60_000 => body,
        _ => legal(random),
    }
}

/// A request under mutation.
pub struct Case {
    pub body: Value,
    /// `in:name` of each fault.
    pub expected: Vec<String>,
    pub kinds: Vec<&'static str>,
    /// Members that are wrong already.
    broken: Vec<String>,
}

impl Case {
    pub fn new(body: Value) -> Self {
        Self {
            body,
            expected: Vec::new(),
            kinds: Vec::new(),
            broken: Vec::new(),
        }
    }

    /// The faults so far are hidden by what comes.
    pub fn forget(&mut self) {
        self.expected.clear();
        self.kinds.clear();
    }

    /// Whether a part of the request is as it was; from then on it is not.
    fn claim(&mut self, part: &str) -> bool {
        let overlaps = |other: &String| {
            let within = |inner: &str, outer: &str| {
                inner == outer || inner.starts_with(&format!("{outer}/"))
            };
            within(part, other) || within(other, part)
        };
        let is_free = !self.broken.iter().any(overlaps);
        if is_free {
            self.broken.push(part.to_owned());
        }
        is_free
    }

    fn fault(&mut self, kind: &'static str, pointer: impl AsRef<str>) {
        self.expected.push(format!("body:{}", pointer.as_ref()));
        self.kinds.push(kind);
    }
}
