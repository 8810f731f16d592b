//! The filter value model (ODP, Filter Value Model): typed scalars with the equality and order of their type.

mod decimal;
#[cfg(test)]
mod tests;
mod time;

pub use decimal::Decimal;
pub use time::{Date, DateTime};

use crate::report::{Place, Report};
use crate::shape;
use serde_json::{Number, Value};
use std::fmt;

/// The type of a filter's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ScalarType {
    /// JSON string, compared by Unicode scalar values.
    String,
    /// JSON Boolean.
    Boolean,
    /// JSON number whose value is an integer. As in JSON Schema, the value decides and not the spelling: `1.0` and `1e3` are
    /// integers.
    Integer,
    /// JSON number.
    Number,
    /// JSON string holding a base-10 number without an exponent, compared as a number.
    Decimal,
    /// JSON string holding an RFC 3339 `full-date`, compared by the calendar.
    Date,
    /// JSON string holding an RFC 3339 `date-time`, compared as an instant.
    DateTime,
}

impl ScalarType {
    /// Every type, in the specification's order.
    pub const ALL: [Self; 7] = [
        Self::String,
        Self::Boolean,
        Self::Integer,
        Self::Number,
        Self::Decimal,
        Self::Date,
        Self::DateTime,
    ];

    /// The type of this wire name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == name)
    }

    /// Reads a wire name; notes one that is no type.
    pub fn read_name(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        read_known(report, place, value, &Self::ALL, Self::as_str)
    }

    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Decimal => "decimal",
            Self::Date => "date",
            Self::DateTime => "date-time",
        }
    }

    /// Whether values are numbers, so that a unit can apply to them.
    pub fn is_numeric(self) -> bool {
        matches!(self, Self::Integer | Self::Number | Self::Decimal)
    }

    /// Whether `lt`, `lte`, `gt` and `gte` apply to values.
    pub fn is_ordered(self) -> bool {
        !matches!(self, Self::String | Self::Boolean)
    }

    /// `value` as a scalar of this type, when it is one.
    pub fn scalar(self, value: &Value) -> Option<Scalar> {
        Some(match (self, value) {
            (Self::String, Value::String(text)) => Scalar::String(text.clone()),
            (Self::Boolean, Value::Bool(value)) => Scalar::Boolean(*value),
            (Self::Integer, Value::Number(number)) => {
                Scalar::Integer(Decimal::parse(number.as_str()).filter(Decimal::is_integer)?)
            }
            (Self::Number, Value::Number(number)) => {
                Scalar::Number(Decimal::parse(number.as_str())?)
            }
            (Self::Decimal, Value::String(text)) => Scalar::Decimal(Decimal::parse_plain(text)?),
            (Self::Date, Value::String(text)) => Scalar::Date(Date::parse(text)?),
            (Self::DateTime, Value::String(text)) => Scalar::DateTime(DateTime::parse(text)?),
            _ => return None,
        })
    }

    /// Reads a scalar of this type; notes at `place` when `value` is none.
    pub fn read(self, report: &mut Report, place: &Place<'_>, value: &Value) -> Option<Scalar> {
        let scalar = self.scalar(value);
        if scalar.is_none() {
            report.add(
                place,
                format!("Must be {}, not {}.", self.wanted(), self.given(value)),
            );
        }
        scalar
    }

    fn wanted(self) -> &'static str {
        match self {
            Self::String => "a string",
            Self::Boolean => "a boolean",
            Self::Integer => "an integer",
            Self::Number => "a number",
            Self::Decimal => "a string holding a decimal number without exponent or leading zeros",
            Self::Date => "a string holding a calendar date (YYYY-MM-DD)",
            Self::DateTime => "a string holding an RFC 3339 date-time",
        }
    }

    /// What `value` is, in words that do not repeat what is wanted.
    fn given(self, value: &Value) -> &'static str {
        match (self, value) {
            (Self::Integer, Value::Number(_)) => "a number with a fraction",
            (_, Value::String(_)) if self.wanted().starts_with("a string") => "another string",
            _ => shape::kind(value),
        }
    }
}

impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One value of a filter: equality, order and hash are those of its type.
///
/// Scalars of different types are never equal and are ordered by type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scalar {
    /// See [`ScalarType::String`].
    String(String),
    /// See [`ScalarType::Boolean`]; `false` comes first.
    Boolean(bool),
    /// See [`ScalarType::Integer`]; holds an integer.
    Integer(Decimal),
    /// See [`ScalarType::Number`].
    Number(Decimal),
    /// See [`ScalarType::Decimal`].
    Decimal(Decimal),
    /// See [`ScalarType::Date`].
    Date(Date),
    /// See [`ScalarType::DateTime`].
    DateTime(DateTime),
}

impl Scalar {
    /// The type of this scalar.
    pub fn scalar_type(&self) -> ScalarType {
        match self {
            Self::String(_) => ScalarType::String,
            Self::Boolean(_) => ScalarType::Boolean,
            Self::Integer(_) => ScalarType::Integer,
            Self::Number(_) => ScalarType::Number,
            Self::Decimal(_) => ScalarType::Decimal,
            Self::Date(_) => ScalarType::Date,
            Self::DateTime(_) => ScalarType::DateTime,
        }
    }

    /// The wire value, in one spelling per value: numbers without needless zeros, date-times in UTC.
    pub fn to_value(&self) -> Value {
        match self {
            Self::String(text) => Value::String(text.clone()),
            Self::Boolean(value) => Value::Bool(*value),
            Self::Integer(number) | Self::Number(number) => {
                Value::Number(Number::from_string_unchecked(number.to_string()))
            }
            Self::Decimal(number) => Value::String(number.to_plain()),
            Self::Date(date) => Value::String(date.to_string()),
            Self::DateTime(instant) => Value::String(instant.to_string()),
        }
    }

    /// Appends a byte string whose lexicographic order is `Ord` and whose equality is `Eq`.
    ///
    /// No key is a prefix of another, so keys can be concatenated into one that compares by the first, then the second.
    pub fn order_key(&self, out: &mut Vec<u8>) {
        out.push(self.scalar_type() as u8);
        match self {
            Self::String(text) => string_key(text, out),
            Self::Boolean(value) => out.push(u8::from(*value)),
            Self::Integer(number) | Self::Number(number) | Self::Decimal(number) => {
                number.order_key(out);
            }
            Self::Date(date) => date.order_key(out),
            Self::DateTime(instant) => instant.order_key(out),
        }
    }
}

/// UTF-8 keeps the order of scalar values; 0 ends the key, so 0 and 1 are written as 1 and another byte.
fn string_key(text: &str, out: &mut Vec<u8>) {
    for byte in text.bytes() {
        match byte {
            0 => out.extend([1, 1]),
            1 => out.extend([1, 2]),
            byte => out.push(byte),
        }
    }
    out.push(0);
}

/// Reads a string that is the wire name of one of `known`; notes any other.
pub(crate) fn read_known<T: Copy>(
    report: &mut Report,
    place: &Place<'_>,
    value: Value,
    known: &[T],
    name: impl Fn(T) -> &'static str,
) -> Option<T> {
    let text = shape::string(report, place, value)?;
    let found = known.iter().copied().find(|item| name(*item) == text);
    if found.is_none() {
        let names: Vec<_> = known.iter().map(|item| name(*item)).collect();
        report.add(place, format!("Must be one of {}.", names.join(", ")));
    }
    found
}
