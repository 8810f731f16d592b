//! What can be wrong with a request. Each mutation breaks one part, and says where that is to be reported.

use super::{Case, FILTERS, Filter, Random, named, operand, value};
use serde_json::{Value, json};

/// Every kind of mutation, by name.
pub const KINDS: [&str; 34] = [
    "query",
    "limit",
    "collection",
    "descendants",
    "descendants alone",
    "sort",
    "refinements",
    "refinement",
    "refinement twice",
    "filters",
    "filters many",
    "expression",
    "member missing",
    "filter id",
    "operator",
    "scalar",
    "set",
    "set size",
    "set element",
    "set twice",
    "exists",
    "version",
    "no constraint",
    "unknown filter",
    "not advertised",
    "type",
    "element type",
    "equal values",
    "unknown sort",
    "not refinable",
    "elsewhere",
    "duplicate",
    "no document",
    "representation",
];

const WRONG: [&str; 4] = ["null", "7", "[]", "{}"];

/// A value of a type that is no string.
fn no_string(random: &mut Random) -> Value {
    serde_json::from_str(random.pick(&WRONG)).unwrap()
}

fn no_array(random: &mut Random) -> Value {
    random.pick(&[json!(null), json!("x"), json!(7), json!({"0": 1})])
}

fn no_boolean(random: &mut Random) -> Value {
    random.pick(&[json!(null), json!("true"), json!(1), json!([true])])
}

/// An id that no filter, sort or resource can have.
fn no_id(random: &mut Random, most: usize) -> Value {
    match random.below(4) {
        0 => json!("a".repeat(most + 1)),
        1 => json!(random.pick(&["", "a b", "a/b", "ä", "a\u{0}"])),
        _ => no_string(random),
    }
}

fn len(body: &Value, member: &str) -> usize {
    body[member].as_array().map_or(0, Vec::len)
}

/// Breaks up to `count` parts so that the body alone shows it.
pub fn syntax(case: &mut Case, random: &mut Random, count: usize) {
    let before = case.expected.len();
    while case.expected.len() < before + count {
        break_syntax(case, random);
        // Small requests have few parts.
        if case.expected.len() > before && random.below(8) == 0 {
            return;
        }
    }
}

fn break_syntax(case: &mut Case, random: &mut Random) {
    match random.below(14) {
        0 if case.claim("query") => {
            let long = "ä".repeat(257);
            case.body["query"] = match random.below(3) {
                0 => json!(long),
                1 => json!(random.pick(&["", " ", "\t\n\u{2003}"])),
                _ => no_string(random),
            };
            case.fault("query", "/query");
        }
        1 if case.claim("limit") => {
            let wrong = [
                "0",
                "101",
                "-1",
                "1.5",
                "\"5\"",
                "null",
                "[1]",
                "1e3",
                "100000000000000000000",
            ];
            case.body["limit"] = serde_json::from_str(random.pick(&wrong)).unwrap();
            case.fault("limit", "/limit");
        }
        2 if case.body.get("include_descendants").is_none() && case.claim("collection_id") => {
            case.body["collection_id"] = no_id(random, 128);
            case.fault("collection", "/collection_id");
        }
        3 if case.body.get("collection_id").is_some() && case.claim("include_descendants") => {
            case.body["include_descendants"] = no_boolean(random);
            case.fault("descendants", "/include_descendants");
        }
        4 if case.body.get("collection_id").is_none()
            && case.claim("collection_id")
            && case.claim("include_descendants") =>
        {
            case.body["include_descendants"] = json!(random.below(2) == 0);
            case.fault("descendants alone", "/include_descendants");
        }
        5 if case.claim("sort") => {
            case.body["sort"] = no_id(random, 64);
            case.fault("sort", "/sort");
        }
        6 if case.claim("refinements") => break_refinements(case, random),
        7 if case.claim("filters") => {
            if random.below(2) == 0 {
                let wrong = no_array(random);
                case.body["filters"] = random.pick(&[json!([]), wrong]);
                case.fault("filters", "/filters");
            } else {
                let one = json!({"id": "whole", "operator": "gte", "value": 1});
                case.body["filters"] = (0..33 + random.below(5)).map(|_| one.clone()).collect();
                case.fault("filters many", "/filters");
            }
        }
        8 if case.claim("odp_version") => match random.below(3) {
            0 => {
                case.body
                    .as_object_mut()
                    .unwrap()
                    .shift_remove("odp_version");
                case.fault("version", "");
            }
            1 => {
                case.body["odp_version"] = no_string(random);
                case.fault("version", "/odp_version");
            }
            _ => {
                let other = random.pick(&["1.1", "2.0", "1", "01.0", "", "1.0 "]);
                case.body["odp_version"] = json!(other);
                case.fault("version", "/odp_version");
            }
        },
        9 if random.below(4) == 0 && case.claim("filters") && case.claim("query") => {
            let map = case.body.as_object_mut().unwrap();
            map.shift_remove("query");
            map.shift_remove("filters");
            case.fault("no constraint", "");
        }
        _ => break_expression(case, random),
    }
}

fn break_refinements(case: &mut Case, random: &mut Random) {
    let ids = json!(["text", "flag", "whole", "money", "day"]);
    let at = random.below(5);
    match random.below(4) {
        0 => {
            let many: Value = (0..17).map(|n| json!(format!("r{n}"))).collect();
            let wrong = no_array(random);
            case.body["refinements"] = random.pick(&[json!([]), many, wrong]);
            case.fault("refinements", "/refinements");
        }
        1 => {
            case.body["refinements"] = ids;
            case.body["refinements"][at] = no_id(random, 64);
            case.fault("refinement", format!("/refinements/{at}"));
        }
        _ => {
            // The later one is too many.
            let (first, second) = (at.min(3), at.min(3) + 1);
            case.body["refinements"] = ids;
            case.body["refinements"][second] = case.body["refinements"][first].clone();
            case.fault("refinement twice", format!("/refinements/{second}"));
        }
    }
}

/// A Filter Expression that is as it was, by its place; from then on it is not.
fn expression(case: &mut Case, random: &mut Random) -> Option<usize> {
    let count = len(&case.body, "filters");
    let at = random.below(count.max(1));
    (count > 0 && case.claim(&format!("filters/{at}"))).then_some(at)
}

fn break_expression(case: &mut Case, random: &mut Random) {
    let Some(at) = expression(case, random) else {
        return;
    };
    let place = format!("/filters/{at}");
    let mut set = |operator: &str, value: Value| {
        case.body["filters"][at] = json!({"id": "whole", "operator": operator, "value": value});
    };
    let pointer = format!("{place}/value");
    match random.below(10) {
        0 => {
            case.body["filters"][at] =
                random.pick(&[json!(null), json!(7), json!("text"), json!([])]);
            case.fault("expression", place);
        }
        1 => {
            let member = random.pick(&["id", "operator", "value"]);
            let map = case.body["filters"][at].as_object_mut().unwrap();
            map.shift_remove(member);
            case.fault("member missing", place);
        }
        2 => {
            case.body["filters"][at]["id"] = no_id(random, 64);
            case.fault("filter id", format!("{place}/id"));
        }
        3 => {
            let wrong = [
                json!("ne"),
                json!("EQ"),
                json!(""),
                json!(null),
                json!(["eq"]),
            ];
            case.body["filters"][at]["operator"] = random.pick(&wrong);
            case.fault("operator", format!("{place}/operator"));
        }
        4 => {
            let operator = random.pick(&["eq", "lt", "lte", "gt", "gte"]);
            set(
                operator,
                random.pick(&[json!(null), json!([1]), json!({"a": 1})]),
            );
            case.fault("scalar", pointer);
        }
        5 => {
            set("in", no_array(random));
            case.fault("set", pointer);
        }
        6 => {
            let many: Value = (0..101 + random.below(5)).map(|n| json!(n)).collect();
            set("in", random.pick(&[json!([]), many]));
            case.fault("set size", pointer);
        }
        7 => {
            let (wrong, element) = (
                random.below(4),
                random.pick(&[json!(null), json!([1]), json!({})]),
            );
            let mut values = json!([1, 2, 3, 4]);
            values[wrong] = element;
            set("in", values);
            case.fault("set element", format!("{pointer}/{wrong}"));
        }
        8 => {
            // Equal as JSON has it, however it is written.
            let again = serde_json::from_str(random.pick(&["2", "2.0", "2e0", "0.2E1"])).unwrap();
            let mut values = json!([1, 2, 3, 4, 5]);
            let twice = 2 + random.below(3);
            values[twice] = again;
            set("in", values);
            case.fault("set twice", format!("{pointer}/{twice}"));
        }
        _ => {
            set("exists", no_boolean(random));
            case.fault("exists", pointer);
        }
    }
}

/// Breaks up to `count` parts of a request so that it asks for what is not offered.
pub fn capability(case: &mut Case, random: &mut Random, count: usize) {
    let before = case.expected.len();
    while case.expected.len() < before + count {
        break_capability(case, random);
        if case.expected.len() > before && random.below(8) == 0 {
            return;
        }
    }
}

fn break_capability(case: &mut Case, random: &mut Random) {
    match random.below(6) {
        0 if case.claim("sort") => {
            case.body["sort"] = json!(random.pick(&["sideways", "whole", "UP", "desk"]));
            case.fault("unknown sort", "/sort");
        }
        1 if case.claim("refinements") => {
            let wrong = random.pick(&["real", "instant", "nothing", "TEXT"]);
            case.body["refinements"] = json!(["text", "whole", "day"]);
            let at = random.below(3);
            case.body["refinements"][at] = json!(wrong);
            case.fault("not refinable", format!("/refinements/{at}"));
        }
        _ => break_use(case, random),
    }
}

/// Uses a filter as it cannot be used.
fn break_use(case: &mut Case, random: &mut Random) {
    let Some(at) = expression(case, random) else {
        return;
    };
    let is_desk = case.body["collection_id"] == "desk";
    let place = format!("/filters/{at}");
    let expression = &mut case.body["filters"][at];
    let filter: &Filter = named(expression["id"].as_str().unwrap()).unwrap();
    match random.below(6) {
        0 => {
            expression["id"] = json!(random.pick(&["nothing", "Whole", "up", "lamps"]));
            case.fault("unknown filter", format!("{place}/id"));
        }
        1 if !is_desk => {
            *expression = json!({"id": "local", "operator": "eq", "value": "x"});
            case.fault("elsewhere", format!("{place}/id"));
        }
        2 => {
            let all = ["eq", "in", "lt", "lte", "gt", "gte", "exists"];
            let (filter, operator) = loop {
                let filter = random.pick(&FILTERS[..7]);
                let operator = random.pick(&all);
                if !filter.operators.contains(&operator) {
                    break (filter, operator);
                }
            };
            let value = operand(random, filter.scalar, operator);
            *expression = json!({"id": filter.id, "operator": operator, "value": value});
            case.fault("not advertised", format!("{place}/operator"));
        }
        3 => {
            // Of types that have more than one spelling of a value.
            let (id, first, second) = random.pick(&[
                ("money", "1.5", "1.50"),
                ("money", "-0", "0.0"),
                (
                    "instant",
                    "2024-05-01T12:00:00Z",
                    "2024-05-01T14:00:00+02:00",
                ),
                (
                    "instant",
                    "2024-05-01T12:00:00Z",
                    "2024-05-01t12:00:00.000z",
                ),
            ]);
            let other = if id == "money" {
                "7"
            } else {
                "2020-01-01T00:00:00Z"
            };
            *expression = json!({"id": id, "operator": "in", "value": [first, other, second]});
            case.fault("equal values", format!("{place}/value/2"));
        }
        4 if filter.operators.contains(&"in") => {
            let mut values: Value = (0..5).map(|n| value(filter.scalar, n)).collect();
            let wrong = random.below(5);
            values[wrong] = of_no_type(random, filter.scalar);
            *expression = json!({"id": filter.id, "operator": "in", "value": values});
            case.fault("element type", format!("{place}/value/{wrong}"));
        }
        _ => {
            let scalar = |operator: &&str| !["in", "exists"].contains(operator);
            let operators: Vec<&str> = filter.operators.iter().copied().filter(scalar).collect();
            let value = of_no_type(random, filter.scalar);
            *expression =
                json!({"id": filter.id, "operator": random.pick(&operators), "value": value});
            case.fault("type", format!("{place}/value"));
        }
    }
}

/// A scalar that is none of this type.
fn of_no_type(random: &mut Random, scalar: &str) -> Value {
    let wrong: &[&str] = match scalar {
        "boolean" => &["\"true\"", "1", "0.5"],
        "integer" => &["\"5\"", "5.5", "true", "1e-1"],
        "number" => &["\"5.5\"", "false"],
        "decimal" => &[
            "5", "\"05\"", "\"1e3\"", "\"1.\"", "\".5\"", "\"+1\"", "\"\"", "true", "\"1,5\"",
        ],
        "date" => &[
            "20240501",
            "\"2023-02-29\"",
            "\"2024-13-01\"",
            "\"2024-5-1\"",
            "\"today\"",
            "true",
            "\"2024-05-01T00:00:00Z\"",
        ],
        "date-time" => &[
            "1714521600",
            "\"2024-05-01\"",
            "\"2024-05-01T12:00:00\"",
            "\"2024-05-01T25:00:00Z\"",
            "\"2024-02-30T00:00:00Z\"",
            "false",
        ],
        _ => &["5", "true", "1.5"],
    };
    serde_json::from_str(random.pick(wrong)).unwrap()
}

/// The bytes of what is no JSON document, or of one with a member more than once.
pub fn raw(case: &mut Case, random: &mut Random) -> Vec<u8> {
    // Never empty.
    case.body["more"] = json!(true);
    let text = case.body.to_string();
    let wrong = |case: &mut Case, bytes: Vec<u8>| {
        case.fault("no document", "");
        bytes
    };
    match random.below(8) {
        0 => wrong(
            case,
            (text + random.pick(&["x", "{}", ",", "\u{a0}"])).into_bytes(),
        ),
        1 => {
            let end = 1 + random.below(text.len() - 1);
            wrong(case, text.into_bytes()[..end].to_vec())
        }
        2 => {
            let deep = format!(",\"x\":{}{}}}", "[".repeat(16), "]".repeat(16));
            wrong(
                case,
                (text[..text.len() - 1].to_owned() + &deep).into_bytes(),
            )
        }
        3 => {
            let bytes = [&text.as_bytes()[..text.len() - 1], b",\"x\":\"\xff\"}"].concat();
            wrong(case, bytes)
        }
        _ => {
            // Members of the request, of an object in it, or both.
            let count = 1 + random.below(3);
            let mut members = String::new();
            for n in 0..count {
                members += &format!(",\"again {n}\":[{n}],\"again {n}\":{n}");
                case.fault("duplicate", format!("/again {n}"));
            }
            let inner = r#","inner":[0,{"a":1,"b/c":2,"a":{"d":3,"d":4},"b/c":5}]"#;
            if random.below(2) == 0 {
                members += inner;
                for pointer in ["/inner/1/a", "/inner/1/a/d", "/inner/1/b~1c"] {
                    case.fault("duplicate", pointer);
                }
            }
            (text[..text.len() - 1].to_owned() + &members + "}").into_bytes()
        }
    }
}

/// The target of a continuation with something beside its cursor, and what is wrong with it.
pub fn continuation(next: &str, random: &mut Random) -> (String, Vec<String>) {
    let mut target = next.to_owned();
    let mut expected = Vec::new();
    let mut add = |name: &str, value: &str| {
        target += &format!("&{name}={value}");
        expected.push(format!("query:{name}"));
    };
    let which = 1 + random.below(7);
    if which & 1 != 0 {
        add("limit", random.pick(&["3", "0", "x", ""]));
    }
    if which & 2 != 0 {
        add("representation", random.pick(&["full", "terse", "medium"]));
    }
    if which & 4 != 0 {
        add("cursor", random.pick(&["x", ""]));
    }
    if which == 4 {
        return (target, expected);
    }
    // With two cursors there is none that something could be beside.
    if which & 4 != 0 {
        let legal = ["&limit=3", "&representation=full", "&representation=terse"];
        expected.retain(|place| match place.as_str() {
            "query:limit" => !target.contains(legal[0]),
            "query:representation" => !target.contains(legal[1]) && !target.contains(legal[2]),
            _ => true,
        });
    }
    (target, expected)
}
