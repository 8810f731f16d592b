//! How much work it is to hold a value to a schema, before it is done.
//!
//! A schema of a kilobyte can ask for more steps than there is time for: each level that refers twice to the next doubles
//! them. Here the steps are counted without being taken, each pair of schema and value once, so that counting costs at most
//! the number of pairs. What is too much is refused.

use super::index::{Index, is_built_in};
use crate::issue::{Fault, IssueCode};
use purvey_odp::keywords;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::ptr;

/// Most steps of one evaluation; one is about the comparison of two short values.
const STEPS: u64 = 2_000_000;
/// Most pairs of schema and value that are looked at.
const PAIRS: usize = 400_000;
/// Most schemas within schemas on the way to one value: the evaluation is recursive.
const DEPTH: usize = 256;
/// Steps of one search that may have to go back and forth.
const BACKTRACKING: u64 = 2_000;
/// Characters of text that are one step.
const TEXT: usize = 64;
/// Most characters of a number that is divided: arithmetic is exact.
const NUMBER: usize = 64;

/// Steps that holding `value` to `schema` takes at most.
///
/// # Errors
/// What would take too much work, a schema that never comes to an end, and a reference that leads nowhere.
pub(super) fn count<'a>(index: &Index<'a>, schema: &'a Value, value: &Value) -> Result<u64, Fault> {
    let mut counter = Counter {
        index,
        known: HashMap::new(),
    };
    Ok(counter.pair(schema, value, 0)?.steps)
}

/// Work for one schema and one value.
#[derive(Clone, Copy, Default)]
struct Work {
    /// To evaluate it.
    steps: u64,
    /// To find out what it evaluates, for `unevaluatedProperties` and `unevaluatedItems` around it.
    marks: u64,
}

impl Work {
    fn add(&mut self, steps: u64, marks: u64) {
        self.steps = self.steps.saturating_add(steps);
        self.marks = self.marks.saturating_add(marks);
    }
}

struct Counter<'i, 'a> {
    index: &'i Index<'a>,
    /// Nothing while it is being counted.
    known: HashMap<(*const Value, *const Value), Option<Work>>,
}

fn within_bounds(work: Work) -> Result<Work, Fault> {
    if work.steps > STEPS {
        return too_costly("The schema takes too many steps to evaluate.");
    }
    Ok(work)
}

fn too_costly<T>(message: &str) -> Result<T, Fault> {
    Err(Fault::new(IssueCode::TooCostly, message))
}

impl<'a> Counter<'_, 'a> {
    fn pair(&mut self, schema: &'a Value, value: &Value, depth: usize) -> Result<Work, Fault> {
        let Value::Object(map) = schema else {
            return Ok(Work { steps: 1, marks: 0 });
        };
        if map.keys().all(|keyword| !keywords::leads_on(keyword)) {
            let mut work = Work { steps: 1, marks: 1 };
            for (keyword, held) in map {
                work.add(own(keyword, held, value)?, 0);
            }
            return within_bounds(work);
        }
        let key = (ptr::from_ref(schema), ptr::from_ref(value));
        match self.known.get(&key) {
            Some(Some(work)) => return Ok(*work),
            Some(None) => return too_costly("The schema refers to itself without end."),
            None => {}
        }
        if depth >= DEPTH || self.known.len() >= PAIRS {
            return too_costly("The schema is too deep or too large to evaluate.");
        }
        self.known.insert(key, None);
        let work = within_bounds(self.object(schema, map, value, depth + 1)?)?;
        self.known.insert(key, Some(work));
        Ok(work)
    }

    fn object(
        &mut self,
        schema: &'a Value,
        map: &'a Map<String, Value>,
        value: &Value,
        depth: usize,
    ) -> Result<Work, Fault> {
        let mut work = Work { steps: 1, marks: 1 };
        let mut unevaluated = false;
        for (keyword, held) in map {
            work.add(own(keyword, held, value)?, 0);
            let in_place = keywords::is_in_place(keyword);
            let inner = in_place.then(|| keywords::held(keyword, held));
            for inner in inner.into_iter().flatten() {
                let inner = self.pair(inner, value, depth)?;
                work.add(inner.steps, inner.steps.saturating_add(inner.marks));
            }
            for (inner, value) in below_value(keyword, held, value) {
                let inner = self.pair(inner, value, depth)?;
                work.add(inner.steps, inner.steps);
            }
            if let Some(inner) = self.reference(schema, keyword, held, value, depth)? {
                work.add(inner.steps, inner.steps.saturating_add(inner.marks));
            }
            unevaluated |= keyword.starts_with("unevaluated");
        }
        if unevaluated {
            work.add(work.marks, 0);
        }
        Ok(work)
    }

    fn reference(
        &mut self,
        schema: &'a Value,
        keyword: &str,
        held: &Value,
        value: &Value,
        depth: usize,
    ) -> Result<Option<Work>, Fault> {
        if !matches!(keyword, "$ref" | "$dynamicRef") {
            return Ok(None);
        }
        if held.as_str().is_some_and(is_built_in) {
            return Err(Fault::new(
                IssueCode::Unsupported,
                "The schema asks for schemas as values.",
            ));
        }
        let targets = self.index.referred(schema, keyword, held);
        if targets.is_empty() {
            return Err(Fault::new(
                IssueCode::Invalid,
                "A reference of the schema leads to no schema.",
            ));
        }
        // Which one a dynamic reference means depends on the way here; only one of them is evaluated.
        let mut most = Work::default();
        for target in targets {
            let work = self.pair(target, value, depth)?;
            most.steps = most.steps.max(work.steps);
            most.marks = most.marks.max(work.marks);
        }
        Ok(Some(most))
    }
}

/// The schemas that a keyword applies to what is within the value, with what they apply to. More than that is fine.
fn below_value<'a, 'v>(
    keyword: &str,
    held: &'a Value,
    value: &'v Value,
) -> Vec<(&'a Value, &'v Value)> {
    match (keyword, held, value) {
        ("properties", Value::Object(schemas), Value::Object(members)) => schemas
            .iter()
            .filter_map(|(name, schema)| Some((schema, members.get(name)?)))
            .collect(),
        ("patternProperties", Value::Object(schemas), Value::Object(members)) => schemas
            .values()
            .flat_map(|schema| members.values().map(move |member| (schema, member)))
            .collect(),
        ("additionalProperties" | "unevaluatedProperties", schema, Value::Object(members)) => {
            members.values().map(|member| (schema, member)).collect()
        }
        ("propertyNames", schema, Value::Object(members)) => {
            vec![(schema, &Value::Null); members.len()]
        }
        ("prefixItems", Value::Array(schemas), Value::Array(items)) => {
            schemas.iter().zip(items).collect()
        }
        ("items" | "contains" | "unevaluatedItems", schema, Value::Array(items)) => {
            items.iter().map(|item| (schema, item)).collect()
        }
        _ => Vec::new(),
    }
}

/// What a keyword costs by itself.
fn own(keyword: &str, held: &Value, value: &Value) -> Result<u64, Fault> {
    let members = match value {
        Value::Object(members) => members.len(),
        Value::Array(items) => items.len(),
        Value::String(text) => text.len() / TEXT,
        _ => 0,
    };
    let size = match held {
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        _ => 1,
    };
    let steps = match (keyword, held) {
        ("pattern", Value::String(pattern)) => search(pattern).saturating_mul(steps(1 + members)),
        ("patternProperties", Value::Object(schemas)) => schemas
            .keys()
            .map(|pattern| search(pattern).saturating_mul(steps(1 + members)))
            .fold(0, u64::saturating_add),
        ("additionalProperties" | "unevaluatedProperties" | "propertyNames", _) => {
            steps(1 + members)
        }
        ("uniqueItems", _) => steps(1 + members * 8),
        ("multipleOf", divisor) if !is_short(divisor) || !is_short(value) => {
            return too_costly("The schema divides numbers that are too long.");
        }
        _ => steps(1 + size),
    };
    Ok(steps)
}

fn steps(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Steps of a search in a short text. Whatever looks around or back is searched by trying.
fn search(pattern: &str) -> u64 {
    let looks_around = ["(?=", "(?!", "(?<=", "(?<!", "(?>"];
    let tries =
        looks_around.iter().any(|group| pattern.contains(group)) || has_back_reference(pattern);
    if tries { BACKTRACKING } else { 2 }
}

fn has_back_reference(pattern: &str) -> bool {
    let mut bytes = pattern.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'\\'
            && bytes
                .next()
                .is_some_and(|next| matches!(next, b'1'..=b'9' | b'k'))
        {
            return true;
        }
    }
    false
}

/// Whether a number can be divided exactly without an effort; anything else is not divided.
fn is_short(value: &Value) -> bool {
    let Some(number) = value.as_number() else {
        return true;
    };
    let text = number.to_string();
    let exponent = text.split(['e', 'E']).nth(1).unwrap_or("0");
    text.len() <= NUMBER
        && exponent
            .parse::<i32>()
            .is_ok_and(|e| e.unsigned_abs() <= 400)
}
