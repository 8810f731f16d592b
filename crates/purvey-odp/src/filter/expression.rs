//! Filter Expressions: as written, and checked against their definition.

use super::{FilterDefinition, Operator};
use crate::identity::CapabilityId;
use crate::report::{Invalid, Place, Report};
use crate::value::{Scalar, ScalarType};
use crate::{limits, shape};
use serde_json::{Value, json};
use std::collections::HashMap;

/// A Filter Expression whose syntax holds, and whose definition is not known yet.
#[derive(Clone, Debug, PartialEq)]
pub struct UncheckedExpression {
    id: CapabilityId,
    operand: Operand,
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    /// Of `eq`, `lt`, `lte`, `gt` or `gte`.
    Scalar(Operator, Value),
    /// Of `in`.
    Set(Vec<Value>),
    /// Of `exists`.
    Presence(bool),
}

impl UncheckedExpression {
    /// The filter that the expression names.
    pub fn id(&self) -> &CapabilityId {
        &self.id
    }

    /// The operator.
    pub fn operator(&self) -> Operator {
        match &self.operand {
            Operand::Scalar(operator, _) => *operator,
            Operand::Set(_) => Operator::In,
            Operand::Presence(_) => Operator::Exists,
        }
    }

    /// Reads an expression; notes every fault that needs no definition to see. Further members are ignored.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let mut map = shape::object(report, place, value)?;
        let id = shape::required(report, place, &mut map, "id", CapabilityId::read);
        let operator = shape::required(report, place, &mut map, "operator", Operator::read);
        let operand =
            shape::required(
                report,
                place,
                &mut map,
                "value",
                |report, place, value| match operator? {
                    Operator::Exists => read_presence(report, place, &value),
                    Operator::In => read_set(report, place, value),
                    scalar => {
                        is_scalar(report, place, &value).then_some(Operand::Scalar(scalar, value))
                    }
                },
            );
        Some(Self {
            id: id?,
            operand: operand?,
        })
    }

    /// The wire value, operands as they were written.
    pub fn to_value(&self) -> Value {
        let operand = match &self.operand {
            Operand::Scalar(_, value) => value.clone(),
            Operand::Set(values) => Value::Array(values.clone()),
            Operand::Presence(present) => Value::Bool(*present),
        };
        json!({"id": self.id.as_str(), "operator": self.operator().as_str(), "value": operand})
    }

    /// Checks operator and operands against the definition that the expression names; notes every fault.
    pub fn check(
        &self,
        report: &mut Report,
        place: &Place<'_>,
        definition: &FilterDefinition,
    ) -> Option<FilterExpression> {
        let before = report.len();
        let operator = self.operator();
        if !definition.operators().contains(&operator) {
            let advertised: Vec<_> = definition.operators().iter().map(|o| o.as_str()).collect();
            report.add(
                &place.key("operator"),
                format!(
                    "Must be one that the filter advertises: {}.",
                    advertised.join(", ")
                ),
            );
        }
        let place = place.key("value");
        let scalar_type = definition.scalar_type();
        let condition = match &self.operand {
            Operand::Presence(present) => Some(Condition::Exists(*present)),
            Operand::Set(values) => check_set(report, &place, values, scalar_type),
            Operand::Scalar(operator, value) => {
                let scalar = scalar_type.read(report, &place, value);
                scalar.map(|scalar| Condition::with_scalar(*operator, scalar))
            }
        };
        if report.len() != before {
            return None;
        }
        Some(FilterExpression {
            id: self.id.clone(),
            condition: condition?,
        })
    }
}

fn read_presence(report: &mut Report, place: &Place<'_>, value: &Value) -> Option<Operand> {
    let present = value.as_bool();
    if present.is_none() {
        report.add(
            place,
            format!("Must be a boolean, not {}.", shape::kind(value)),
        );
    }
    present.map(Operand::Presence)
}

fn read_set(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Operand> {
    let values = shape::array(report, place, value)?;
    let before = report.len();
    if values.is_empty() || values.len() > limits::IN_VALUES {
        report.add(
            place,
            format!(
                "Must have from 1 through {} values, not {}.",
                limits::IN_VALUES,
                values.len()
            ),
        );
    }
    let mut seen = Seen::default();
    for (i, value) in values.iter().enumerate() {
        let place = place.index(i);
        if is_scalar(report, &place, value) {
            // What JSON itself calls equal; the definition's type can find more.
            let json_type = match value {
                Value::Bool(_) => ScalarType::Boolean,
                Value::Number(_) => ScalarType::Number,
                _ => ScalarType::String,
            };
            if let Some(scalar) = json_type.scalar(value) {
                seen.add(report, &place, i, scalar);
            }
        }
    }
    (report.len() == before).then_some(Operand::Set(values))
}

fn check_set(
    report: &mut Report,
    place: &Place<'_>,
    values: &[Value],
    scalar_type: ScalarType,
) -> Option<Condition> {
    let before = report.len();
    let mut seen = Seen::default();
    for (i, value) in values.iter().enumerate() {
        let place = place.index(i);
        if let Some(scalar) = scalar_type.read(report, &place, value) {
            seen.add(report, &place, i, scalar);
        }
    }
    (report.len() == before).then(|| {
        let mut scalars: Vec<_> = seen.0.into_keys().collect();
        scalars.sort();
        Condition::In(scalars)
    })
}

/// The values met so far, with the index of each.
#[derive(Default)]
struct Seen(HashMap<Scalar, usize>);

impl Seen {
    fn add(&mut self, report: &mut Report, place: &Place<'_>, index: usize, scalar: Scalar) {
        if let Some(first) = self.0.get(&scalar) {
            report.add(
                place,
                format!("Must not equal another value: that at index {first} does."),
            );
        } else {
            self.0.insert(scalar, index);
        }
    }
}

fn is_scalar(report: &mut Report, place: &Place<'_>, value: &Value) -> bool {
    let scalar = matches!(value, Value::String(_) | Value::Bool(_) | Value::Number(_));
    if !scalar {
        report.add(
            place,
            format!(
                "Must be a string, a boolean or a number, not {}.",
                shape::kind(value)
            ),
        );
    }
    scalar
}

/// Operator and operands of a Filter Expression; the operands are of the definition's type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Some value equals this one.
    Eq(Scalar),
    /// Some value equals one of these: 1 through 100, each once, ascending.
    In(Vec<Scalar>),
    /// Some value is less than this one.
    Lt(Scalar),
    /// Some value is at most this one.
    Lte(Scalar),
    /// Some value is greater than this one.
    Gt(Scalar),
    /// Some value is at least this one.
    Gte(Scalar),
    /// Whether there is a value.
    Exists(bool),
}

impl Condition {
    /// The condition of an operator that takes one scalar.
    fn with_scalar(operator: Operator, scalar: Scalar) -> Self {
        match operator {
            Operator::Lt => Self::Lt(scalar),
            Operator::Lte => Self::Lte(scalar),
            Operator::Gt => Self::Gt(scalar),
            Operator::Gte => Self::Gte(scalar),
            Operator::Eq | Operator::In | Operator::Exists => Self::Eq(scalar),
        }
    }

    /// The operator.
    pub fn operator(&self) -> Operator {
        match self {
            Self::Eq(_) => Operator::Eq,
            Self::In(_) => Operator::In,
            Self::Lt(_) => Operator::Lt,
            Self::Lte(_) => Operator::Lte,
            Self::Gt(_) => Operator::Gt,
            Self::Gte(_) => Operator::Gte,
            Self::Exists(_) => Operator::Exists,
        }
    }

    /// Whether an Offering with these values of the filter matches. A value of another type matches nothing.
    pub fn matches(&self, values: &[Scalar]) -> bool {
        let any = |bound: &Scalar, holds: fn(&Scalar, &Scalar) -> bool| {
            values
                .iter()
                .any(|value| value.scalar_type() == bound.scalar_type() && holds(value, bound))
        };
        match self {
            Self::Eq(bound) => values.contains(bound),
            Self::In(bounds) => values
                .iter()
                .any(|value| bounds.binary_search(value).is_ok()),
            Self::Lt(bound) => any(bound, |value, bound| value < bound),
            Self::Lte(bound) => any(bound, |value, bound| value <= bound),
            Self::Gt(bound) => any(bound, |value, bound| value > bound),
            Self::Gte(bound) => any(bound, |value, bound| value >= bound),
            Self::Exists(present) => *present != values.is_empty(),
        }
    }

    fn operand(&self) -> Value {
        match self {
            Self::Eq(scalar)
            | Self::Lt(scalar)
            | Self::Lte(scalar)
            | Self::Gt(scalar)
            | Self::Gte(scalar) => scalar.to_value(),
            Self::In(scalars) => scalars.iter().map(Scalar::to_value).collect(),
            Self::Exists(present) => Value::Bool(*present),
        }
    }
}

/// A Filter Expression that its definition allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterExpression {
    id: CapabilityId,
    condition: Condition,
}

impl FilterExpression {
    /// The filter that the expression names.
    pub fn id(&self) -> &CapabilityId {
        &self.id
    }

    /// What is asked of the filter's values.
    pub fn condition(&self) -> &Condition {
        &self.condition
    }

    /// Whether an Offering with these values of the filter matches.
    pub fn matches(&self, values: &[Scalar]) -> bool {
        self.condition.matches(values)
    }

    /// Reads an expression for the filter `definition`; notes every fault, a different `id` too.
    pub fn read(
        report: &mut Report,
        place: &Place<'_>,
        value: Value,
        definition: &FilterDefinition,
    ) -> Option<Self> {
        let expression = UncheckedExpression::read(report, place, value)?;
        if expression.id() != definition.id() {
            report.add(&place.key("id"), format!("Must be {}.", definition.id()));
            return None;
        }
        expression.check(report, place, definition)
    }

    /// Reads an expression for the filter `definition` by itself.
    ///
    /// # Errors
    /// Every fault.
    pub fn validate(value: Value, definition: &FilterDefinition) -> Result<Self, Invalid> {
        let mut report = Report::new();
        let expression = Self::read(&mut report, &Place::ROOT, value, definition);
        report.finish(expression)
    }

    /// The wire value, its operands in one spelling per value.
    pub fn to_value(&self) -> Value {
        json!({
            "id": self.id.as_str(),
            "operator": self.condition.operator().as_str(),
            "value": self.condition.operand(),
        })
    }
}
