//! `[records]`: how a table's columns, or the members of a JSON object, become the members of a wire-form Offering.
//!
//! Where a text names a value (`id`, `name`, `description`, `web_url`, `language` and every attribute), a text without braces is a
//! column and a text with braces is a template (`"{registry}/{name}"`). Everywhere else every text is a template, so one
//! without braces is a constant. `{{` and `}}` are braces. An attribute may also be `{ column, type, split, pattern }`,
//! `{ template, type }` or a table of further attributes. `split` cuts a text into several values; of each, `pattern` (a regular expression) takes
//! what its first group matches, or all that it matches when it has no group, and drops a value that does not match. A template whose column is absent is absent; so is an object or array element around
//! it, but for `attributes`, which only loses that member. Without any attribute the Offering gets no `schema` either (ODP §4).

use super::closed;
use crate::reader::{Cell, Header, Input};
use purvey_odp::report::{Invalid, Place, Report};
use purvey_odp::shape;
use purvey_odp::value::ScalarType;
use regex::Regex;
use serde_json::{Map, Number, Value};

/// The members that a mapping may give: those of the wire, and who may see the record.
const MEMBERS: [&str; 12] = [
    "id",
    "name",
    "description",
    "images",
    "language",
    "web_url",
    "collection_ids",
    "price",
    "schema",
    "attributes",
    "actions",
    "audience",
];

/// A compiled `[records]` table.
#[derive(Debug)]
pub struct Mapping {
    members: Vec<(&'static str, Node)>,
}

#[derive(Debug)]
enum Node {
    Constant(Value),
    Template(Vec<Piece>, Option<ScalarType>),
    Column(Column),
    /// Absent elements are left out; an empty array is absent.
    Array(Vec<Node>),
    /// One absent member makes the object absent.
    Whole(Vec<(String, Node)>),
    /// Absent members are left out; an empty object is absent.
    Partial(Vec<(String, Node)>),
}

#[derive(Debug)]
enum Piece {
    Text(String),
    Column(String),
}

#[derive(Debug)]
struct Column {
    name: String,
    of: Option<ScalarType>,
    split: Option<String>,
    pattern: Option<Regex>,
}

impl Mapping {
    pub(super) fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let mut map = shape::object(report, place, value)?;
        let mut members = Vec::new();
        for name in MEMBERS {
            let Some(value) = map.shift_remove(name) else {
                if matches!(name, "id" | "name") {
                    report.add(place, format!("Must have the member {name}."));
                }
                continue;
            };
            let place = place.key(name);
            let node = match name {
                "id" | "name" | "description" | "web_url" | "language" => {
                    named(report, &place, value)
                }
                "attributes" => attributes(report, &place, value),
                // The wire form is an object; only its one member is of interest here.
                "schema" => match value {
                    text @ Value::String(_) => structure(report, &place, text)
                        .map(|node| Node::Whole(vec![("url".to_owned(), node)])),
                    other => structure(report, &place, other),
                },
                _ => structure(report, &place, value),
            };
            members.extend(node.map(|node| (name, node)));
        }
        closed(report, place, &map);
        if members.iter().any(|(name, _)| *name == "attributes")
            && !members.iter().any(|(name, _)| *name == "schema")
        {
            report.add(
                place,
                "Must have the member schema, since it has attributes.",
            );
        }
        Some(Self { members })
    }

    /// The constant schema URL, when the mapping gives one.
    pub(super) fn schema(&self) -> Option<&str> {
        let (_, node) = self.members.iter().find(|(name, _)| *name == "schema")?;
        match node {
            Node::Whole(members) => match members.as_slice() {
                [(_, Node::Constant(Value::String(url)))] => Some(url),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether `header` has every column that the mapping names: said once, before a million rows lack one.
    ///
    /// # Errors
    /// One violation for each missing column.
    pub fn check_columns(&self, header: &Header) -> Result<(), Invalid> {
        let mut report = Report::new();
        for (member, node) in &self.members {
            let mut columns = Vec::new();
            node.columns(&mut columns);
            for column in columns {
                if !header.has(column) {
                    report.add(
                        &Place::ROOT.key("records").key(member),
                        format!("The table has no column {column:?}."),
                    );
                }
            }
        }
        report.finish(Some(()))
    }

    /// The wire-form Offering for one row or JSON object; not yet validated.
    ///
    /// # Errors
    /// Cells that are not of the type that the mapping says; the pointer is that of the Offering's member.
    pub fn map(&self, input: &Input<'_>) -> Result<Value, Invalid> {
        if matches!(input, Input::Value(value) if !value.is_object()) {
            return Err(Invalid::one("", "Must be an object."));
        }
        let mut report = Report::new();
        let mut out = Map::with_capacity(self.members.len());
        for (name, node) in &self.members {
            if *name == "schema" && node.constant() {
                continue;
            }
            if let Some(value) = node.value(&mut report, &Place::ROOT.key(name), input) {
                out.insert((*name).to_owned(), value);
            }
        }
        if out.contains_key("attributes") && !out.contains_key("schema") {
            let node = self.members.iter().find(|(name, _)| *name == "schema");
            let schema = node
                .and_then(|(name, node)| node.value(&mut report, &Place::ROOT.key(name), input));
            out.extend(schema.map(|schema| ("schema".to_owned(), schema)));
        } else if !out.contains_key("attributes") {
            out.shift_remove("schema");
        }
        report.finish(Some(Value::Object(out)))
    }
}

/// A text that names a value: a column, or a template when it has braces.
fn named(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Node> {
    match value {
        Value::String(name) if !name.contains(['{', '}']) => {
            if name.is_empty() {
                report.add(place, "Must name a column.");
                return None;
            }
            Some(Node::Column(Column {
                name,
                of: None,
                split: None,
                pattern: None,
            }))
        }
        Value::String(template) => Some(Node::Template(pieces(report, place, &template)?, None)),
        Value::Object(map) if map.contains_key("column") => column(report, place, map),
        Value::Object(mut map) if map.contains_key("template") => {
            let template = shape::optional(report, place, &mut map, "template", shape::string)?;
            let of = shape::optional(report, place, &mut map, "type", scalar_type);
            closed(report, place, &map);
            let place = place.key("template");
            Some(Node::Template(pieces(report, &place, &template)?, of))
        }
        other => {
            report.add(
                place,
                format!(
                    "Must be a column's name, a template or a table with column, not {}.",
                    shape::kind(&other)
                ),
            );
            None
        }
    }
}

fn column(report: &mut Report, place: &Place<'_>, mut map: Map<String, Value>) -> Option<Node> {
    let name = shape::optional(report, place, &mut map, "column", shape::string);
    let of = shape::optional(report, place, &mut map, "type", scalar_type);
    let split = shape::optional(report, place, &mut map, "split", shape::string);
    let pattern = shape::optional(report, place, &mut map, "pattern", read_pattern);
    closed(report, place, &map);
    if split.as_deref() == Some("") {
        report.add(&place.key("split"), "Must not be empty.");
    }
    Some(Node::Column(Column {
        name: name?,
        of,
        split,
        pattern,
    }))
}

fn read_pattern(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Regex> {
    let text = shape::string(report, place, value)?;
    match Regex::new(&text) {
        Ok(pattern) => Some(pattern),
        Err(error) => {
            // The last line says what is wrong; those before draw it.
            let error = error.to_string();
            let reason = error.lines().last().unwrap_or_default();
            report.add(place, format!("Must be a regular expression: {reason}."));
            None
        }
    }
}

fn scalar_type(report: &mut Report, place: &Place<'_>, value: Value) -> Option<ScalarType> {
    let text = shape::string(report, place, value)?;
    let found = ScalarType::parse(&text);
    if found.is_none() {
        report.add(
            place,
            "Must be one of string, boolean, integer, number, decimal, date, date-time.",
        );
    }
    found
}

fn attributes(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Node> {
    let map = shape::object(report, place, value)?;
    let members = map
        .into_iter()
        .filter_map(|(name, value)| {
            let place = place.key(&name);
            let nested = matches!(&value, Value::Object(map) if !map.contains_key("column") && !map.contains_key("template"));
            let node = if nested {
                attributes(report, &place, value)?
            } else {
                named(report, &place, value)?
            };
            Some((name, node))
        })
        .collect();
    Some(Node::Partial(members))
}

/// A structure whose texts are templates.
fn structure(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Node> {
    Some(match value {
        Value::String(template) => {
            let mut pieces = pieces(report, place, &template)?;
            match pieces.as_mut_slice() {
                [] => Node::Constant(Value::String(String::new())),
                [Piece::Text(text)] => Node::Constant(Value::String(std::mem::take(text))),
                _ => Node::Template(pieces, None),
            }
        }
        Value::Array(items) => Node::Array(
            items
                .into_iter()
                .enumerate()
                .filter_map(|(i, item)| structure(report, &place.index(i), item))
                .collect(),
        ),
        Value::Object(map) if map.contains_key("column") => return column(report, place, map),
        Value::Object(map) => Node::Whole(
            map.into_iter()
                .filter_map(|(name, value)| {
                    let node = structure(report, &place.key(&name), value)?;
                    Some((name, node))
                })
                .collect(),
        ),
        other => Node::Constant(other),
    })
}

fn pieces(report: &mut Report, place: &Place<'_>, template: &str) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        text.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let brace = &rest[at..=at];
        if let Some(doubled) = after.strip_prefix(brace) {
            text.push_str(brace);
            rest = doubled;
            continue;
        }
        match after.split_once('}') {
            Some((name, tail)) if brace == "{" && !name.is_empty() && !name.contains('{') => {
                if !text.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut text)));
                }
                pieces.push(Piece::Column(name.to_owned()));
                rest = tail;
            }
            _ => {
                report.add(
                    place,
                    "A brace must enclose a column's name, or be written twice.",
                );
                return None;
            }
        }
    }
    text.push_str(rest);
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Some(pieces)
}

impl Node {
    fn constant(&self) -> bool {
        match self {
            Self::Constant(_) => true,
            Self::Template(..) | Self::Column(_) => false,
            Self::Array(items) => items.iter().all(Self::constant),
            Self::Whole(members) | Self::Partial(members) => {
                members.iter().all(|(_, node)| node.constant())
            }
        }
    }

    fn columns<'a>(&'a self, out: &mut Vec<&'a str>) {
        match self {
            Self::Constant(_) => {}
            Self::Template(pieces, _) => out.extend(pieces.iter().filter_map(|p| match p {
                Piece::Text(_) => None,
                Piece::Column(name) => Some(name.as_str()),
            })),
            Self::Column(column) => out.push(&column.name),
            Self::Array(items) => items.iter().for_each(|node| node.columns(out)),
            Self::Whole(members) | Self::Partial(members) => {
                members.iter().for_each(|(_, node)| node.columns(out));
            }
        }
    }

    fn value(&self, report: &mut Report, place: &Place<'_>, input: &Input<'_>) -> Option<Value> {
        match self {
            Self::Constant(value) => Some(value.clone()),
            Self::Template(pieces, of) => {
                let text = fill(report, place, pieces, input)?;
                typed(report, place, &text, *of)
            }
            Self::Column(column) => match input.get(&column.name)? {
                Cell::Text(text) => column.text(report, place, text),
                Cell::Value(Value::Null) => None,
                Cell::Value(Value::String(text)) => column.text(report, place, text),
                Cell::Value(value @ (Value::Number(_) | Value::Bool(_)))
                    if column.pattern.is_some() =>
                {
                    column.text(report, place, &value.to_string())
                }
                Cell::Value(value) => match column.of {
                    Some(of) => {
                        of.read(report, place, value)?;
                        Some(value.clone())
                    }
                    None => Some(value.clone()),
                },
            },
            Self::Array(items) => {
                let items: Vec<Value> = items
                    .iter()
                    .enumerate()
                    .filter_map(|(i, node)| node.value(report, &place.index(i), input))
                    .collect();
                (!items.is_empty()).then_some(Value::Array(items))
            }
            Self::Whole(members) => {
                let mut out = Map::with_capacity(members.len());
                for (name, node) in members {
                    out.insert(name.clone(), node.value(report, &place.key(name), input)?);
                }
                Some(Value::Object(out))
            }
            Self::Partial(members) => {
                let mut out = Map::with_capacity(members.len());
                for (name, node) in members {
                    if let Some(value) = node.value(report, &place.key(name), input) {
                        out.insert(name.clone(), value);
                    }
                }
                (!out.is_empty()).then_some(Value::Object(out))
            }
        }
    }
}

impl Column {
    fn text(&self, report: &mut Report, place: &Place<'_>, text: &str) -> Option<Value> {
        let Some(split) = &self.split else {
            return typed(report, place, self.matched(text)?, self.of);
        };
        let items: Vec<Value> = text
            .split(split.as_str())
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .filter_map(|part| self.matched(part))
            .enumerate()
            .filter_map(|(i, part)| typed(report, &place.index(i), part, self.of))
            .collect();
        (!items.is_empty()).then_some(Value::Array(items))
    }

    /// What the pattern takes of a text; all of it without a pattern.
    fn matched<'t>(&self, text: &'t str) -> Option<&'t str> {
        let Some(pattern) = &self.pattern else {
            return Some(text);
        };
        let groups = pattern.captures(text)?;
        let whole = if pattern.captures_len() > 1 { 1 } else { 0 };
        Some(groups.get(whole)?.as_str())
    }
}

fn fill(
    report: &mut Report,
    place: &Place<'_>,
    pieces: &[Piece],
    input: &Input<'_>,
) -> Option<String> {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(constant) => text.push_str(constant),
            Piece::Column(name) => match input.get(name)? {
                Cell::Text(cell) => text.push_str(cell),
                Cell::Value(Value::String(cell)) => text.push_str(cell),
                Cell::Value(Value::Null) => return None,
                Cell::Value(value @ (Value::Number(_) | Value::Bool(_))) => {
                    text.push_str(&value.to_string());
                }
                Cell::Value(value) => {
                    report.add(
                        place,
                        format!(
                            "{name:?} is {}; a template needs a scalar.",
                            shape::kind(value)
                        ),
                    );
                    return None;
                }
            },
        }
    }
    Some(text)
}

/// `text` as a value of type `of`; a string without one.
fn typed(
    report: &mut Report,
    place: &Place<'_>,
    text: &str,
    of: Option<ScalarType>,
) -> Option<Value> {
    let value = match of {
        None | Some(ScalarType::String) => return Some(Value::String(text.to_owned())),
        Some(ScalarType::Boolean) => match text {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => Value::String(text.to_owned()),
        },
        // Reading the type refuses what is still a text, or has a fraction where an integer is asked for.
        Some(ScalarType::Integer | ScalarType::Number) => serde_json::from_str::<Number>(text)
            .map_or_else(|_| Value::String(text.to_owned()), Value::Number),
        Some(_) => Value::String(text.to_owned()),
    };
    let of = of?;
    of.read(report, place, &value)?;
    Some(value)
}
