//! TOML text to a JSON value that remembers the line of every member, so that every fault can be reported with its place.

use super::note;
use purvey_odp::report::{Invalid, Place, Report, Violation};
use serde_json::{Map, Number, Value};
use std::collections::HashMap;
use std::str::FromStr;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table};

/// The lines on which the members of a TOML document stand, by JSON Pointer.
#[derive(Debug, Default)]
pub(super) struct Lines(HashMap<String, usize>);

impl Lines {
    /// The same faults, each reason ending in the line of the member, or of the nearest one around it.
    pub(super) fn locate(&self, invalid: Invalid) -> Invalid {
        let mut report = Vec::new();
        for mut violation in invalid.into_violations() {
            if let Some(line) = self.of(&violation.pointer) {
                violation.reason.push_str(&format!(" (line {line})"));
            }
            report.push(violation);
        }
        gather(report)
    }

    fn of(&self, pointer: &str) -> Option<usize> {
        let mut pointer = pointer;
        loop {
            if let Some(line) = self.0.get(pointer) {
                return Some(*line);
            }
            pointer = pointer.rsplit_once('/')?.0;
        }
    }
}

/// Reads TOML text. Dates become their text; numbers keep theirs.
///
/// # Errors
/// Every syntax fault, with its line.
pub(super) fn read(text: &str) -> Result<(Value, Lines), Invalid> {
    let starts = LineStarts::of(text);
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(gather(
            errors
                .iter()
                .map(|error| Violation {
                    pointer: String::new(),
                    reason: error.span().map_or_else(
                        || error.message().to_owned(),
                        |span| format!("{} (line {})", error.message(), starts.line(span.start)),
                    ),
                })
                .collect(),
        ));
    }
    let mut reader = Reader {
        starts,
        lines: HashMap::new(),
        faults: Vec::new(),
    };
    let value = reader.table(table.get_ref(), "");
    if reader.faults.is_empty() {
        Ok((value, Lines(reader.lines)))
    } else {
        Err(gather(reader.faults))
    }
}

fn gather(violations: Vec<Violation>) -> Invalid {
    let mut report = Report::new();
    for violation in violations {
        note(
            &mut report,
            &Place::ROOT,
            &violation.pointer,
            &violation.reason,
        );
    }
    match report.finish::<()>(None) {
        Err(invalid) => invalid,
        Ok(()) => Invalid::one("", "Is not valid."),
    }
}

/// Offsets to line numbers.
struct LineStarts(Vec<usize>);

impl LineStarts {
    fn of(text: &str) -> Self {
        Self(memchr::memchr_iter(b'\n', text.as_bytes()).collect())
    }

    fn line(&self, offset: usize) -> usize {
        1 + self.0.partition_point(|&newline| newline < offset)
    }
}

struct Reader {
    starts: LineStarts,
    lines: HashMap<String, usize>,
    faults: Vec<Violation>,
}

impl Reader {
    fn value(&mut self, value: &Spanned<DeValue<'_>>, pointer: String) -> Value {
        match value.get_ref() {
            DeValue::String(text) => Value::String(text.to_string()),
            DeValue::Integer(integer) => {
                let number = i128::from_str_radix(integer.as_str(), integer.radix())
                    .ok()
                    .and_then(|i| Number::from_str(&i.to_string()).ok());
                self.number(number, pointer, value.span().start)
            }
            DeValue::Float(float) => {
                let text = float.as_str().trim_start_matches('+');
                let number = serde_json::from_str::<Number>(text).ok();
                self.number(number, pointer, value.span().start)
            }
            DeValue::Boolean(flag) => Value::Bool(*flag),
            DeValue::Datetime(datetime) => Value::String(datetime.to_string()),
            DeValue::Array(items) => Value::Array(
                items
                    .iter()
                    .enumerate()
                    .map(|(i, item)| {
                        let pointer = format!("{pointer}/{i}");
                        self.note(&pointer, item.span().start);
                        self.value(item, pointer)
                    })
                    .collect(),
            ),
            DeValue::Table(table) => self.table(table, &pointer),
        }
    }

    fn number(&mut self, number: Option<Number>, pointer: String, offset: usize) -> Value {
        number.map_or_else(
            || {
                self.faults.push(Violation {
                    pointer,
                    reason: format!(
                        "Must be a finite number. (line {})",
                        self.starts.line(offset)
                    ),
                });
                Value::Null
            },
            Value::Number,
        )
    }

    fn table(&mut self, table: &DeTable<'_>, pointer: &str) -> Value {
        // The parser sorts by key; the author's order is what people expect back.
        let mut members: Vec<_> = table.iter().collect();
        members.sort_by_key(|(key, _)| key.span().start);
        let mut out = Map::new();
        for (key, value) in members {
            let token = key.get_ref().replace('~', "~0").replace('/', "~1");
            let pointer = format!("{pointer}/{token}");
            self.note(&pointer, key.span().start);
            let value = self.value(value, pointer);
            out.insert(key.get_ref().to_string(), value);
        }
        Value::Object(out)
    }

    fn note(&mut self, pointer: &str, offset: usize) {
        let line = self.starts.line(offset);
        self.lines.insert(pointer.to_owned(), line);
    }
}

/// TOML text of a JSON object. Members that are null are left out: TOML has no null.
pub(super) fn write(value: &Map<String, Value>) -> String {
    toml::to_string_pretty(&table(value)).unwrap_or_default()
}

fn table(map: &Map<String, Value>) -> Table {
    map.iter()
        .filter_map(|(name, value)| Some((name.clone(), toml_value(value)?)))
        .collect()
}

fn toml_value(value: &Value) -> Option<toml::Value> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(flag) => toml::Value::Boolean(*flag),
        Value::Number(number) => {
            let text = number.to_string();
            match text.parse::<i64>() {
                Ok(integer) => toml::Value::Integer(integer),
                Err(_) => toml::Value::Float(text.parse().ok()?),
            }
        }
        Value::String(text) => toml::Value::String(text.clone()),
        Value::Array(items) => toml::Value::Array(items.iter().filter_map(toml_value).collect()),
        Value::Object(map) => toml::Value::Table(table(map)),
    })
}
