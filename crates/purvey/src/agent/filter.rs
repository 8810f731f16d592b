//! `--filter ID:OPERATOR:VALUE`: what is meant, and as what it is sent.

use purvey_odp::{
    filter::{FilterDefinition, Operator},
    value::ScalarType,
};
use serde_json::{Number, Value};
use std::str::FromStr;

/// A condition as it was typed. Its value takes the type that the filter's definition has.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    pub(super) text: String,
    pub(super) id: String,
    pub(super) operator: String,
    operand: Operand,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Operand {
    One(String),
    /// For `in`.
    Many(Vec<String>),
}

impl FromStr for Filter {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = "a filter is ID:OPERATOR:VALUE, for example price:lte:20";
        let (id, rest) = text.split_once(':').ok_or(wrong)?;
        let (operator, value) = rest.split_once(':').ok_or(wrong)?;
        if id.is_empty() || operator.is_empty() {
            return Err(wrong);
        }
        Ok(Self {
            text: text.to_owned(),
            id: id.to_owned(),
            operator: operator.to_owned(),
            operand: match operator == Operator::In.as_str() {
                true => Operand::Many(split(value)?),
                false => Operand::One(value.to_owned()),
            },
        })
    }
}

impl Filter {
    /// The value that is sent. What the type cannot be made of, or has no definition, stays a string: what is wrong with it is
    /// for the rules to say.
    pub(super) fn value(&self, definition: Option<&FilterDefinition>) -> Value {
        let scalar_type = match self.operator == Operator::Exists.as_str() {
            true => Some(ScalarType::Boolean),
            false => definition.map(FilterDefinition::scalar_type),
        };
        match &self.operand {
            Operand::One(text) => scalar(scalar_type, text),
            Operand::Many(texts) => texts.iter().map(|text| scalar(scalar_type, text)).collect(),
        }
    }
}

fn scalar(scalar_type: Option<ScalarType>, text: &str) -> Value {
    let typed = match scalar_type {
        Some(ScalarType::Boolean) => text.parse().ok().map(Value::Bool),
        Some(ScalarType::Integer | ScalarType::Number) => {
            serde_json::from_str::<Number>(text).ok().map(Value::Number)
        }
        _ => None,
    };
    typed.unwrap_or_else(|| text.into())
}

/// The values of a list with commas between them. One that has a comma itself, or a quote at its beginning, stands in double
/// quotes, in which `""` is a quote.
fn split(text: &str) -> Result<Vec<String>, &'static str> {
    let mut values = Vec::new();
    let mut rest = text;
    loop {
        let (value, behind) = match rest.strip_prefix('"') {
            Some(quoted) => unquote(quoted)?,
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                let (value, behind) = rest.split_at(end);
                (value.to_owned(), behind)
            }
        };
        values.push(value);
        match behind.strip_prefix(',') {
            Some(next) => rest = next,
            None if behind.is_empty() => return Ok(values),
            None => return Err("a value in double quotes ends at a comma or at the end"),
        }
    }
}

/// What stands up to the closing quote, and what is behind it.
fn unquote(text: &str) -> Result<(String, &str), &'static str> {
    let mut value = String::new();
    let mut rest = text;
    loop {
        let (before, behind) = rest
            .split_once('"')
            .ok_or("a value in double quotes has no end")?;
        value.push_str(before);
        match behind.strip_prefix('"') {
            Some(further) => {
                value.push('"');
                rest = further;
            }
            None => return Ok((value, behind)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn value(text: &str, scalar_type: &str) -> Value {
        let definition = FilterDefinition::validate(json!({
            "id": "x", "title": "X", "description": "X.", "type": scalar_type, "operators": ["eq", "in", "exists"],
        }));
        text.parse::<Filter>()
            .unwrap()
            .value(definition.as_ref().ok())
    }

    #[test]
    fn values_take_the_type_of_their_definition() {
        for (text, scalar_type, expected) in [
            ("x:eq:5", "integer", json!(5)),
            ("x:eq:5", "string", json!("5")),
            ("x:eq:5.10", "decimal", json!("5.10")),
            (
                "x:eq:-2.5e3",
                "number",
                serde_json::from_str("-2.5e3").unwrap(),
            ),
            ("x:eq:true", "boolean", json!(true)),
            (
                "x:eq:2027-01-01T10:00:00Z",
                "date-time",
                json!("2027-01-01T10:00:00Z"),
            ),
            ("x:eq: a,\"b\" ", "string", json!(" a,\"b\" ")),
            ("x:eq:", "string", json!("")),
            ("x:in:1,2,3", "integer", json!([1, 2, 3])),
            (
                "x:in:oak,\"a, b\",\"say \"\"no\"\"\",",
                "string",
                json!(["oak", "a, b", "say \"no\"", ""]),
            ),
            ("x:exists:true", "string", json!(true)),
            ("x:exists:maybe", "string", json!("maybe")),
            ("x:eq:many", "integer", json!("many")),
            ("x:eq:007", "integer", json!("007")),
            ("x:eq:1", "no-such-type", json!("1")),
        ] {
            assert_eq!(value(text, scalar_type), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_filter_is_refused() {
        for text in ["", "x", "x:eq", ":eq:1", "x::1", "x:in:\"a", "x:in:\"a\"b"] {
            assert!(text.parse::<Filter>().is_err(), "{text}");
        }
    }
}
