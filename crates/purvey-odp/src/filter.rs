//! Filter Definitions and Filter Expressions (ODP §5).

mod expression;
#[cfg(test)]
mod tests;
mod ucum;

pub use expression::{Condition, FilterExpression, UncheckedExpression};
pub use ucum::UcumCode;

use crate::identity::CapabilityId;
use crate::report::{Invalid, Place, Report};
use crate::shape;
use crate::text::{Description, Name};
use crate::value::{ScalarType, read_known};
use crate::version::ProtocolVersion;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::fmt;

/// What a Filter Expression asks of the values that an Offering has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operator {
    /// Some value equals the operand.
    Eq,
    /// Some value equals one of the operands.
    In,
    /// Some value is less than the operand.
    Lt,
    /// Some value is at most the operand.
    Lte,
    /// Some value is greater than the operand.
    Gt,
    /// Some value is at least the operand.
    Gte,
    /// There is a value (`true`), or there is none (`false`).
    Exists,
}

impl Operator {
    /// Every operator, in the specification's order.
    pub const ALL: [Self; 7] = [
        Self::Eq,
        Self::In,
        Self::Lt,
        Self::Lte,
        Self::Gt,
        Self::Gte,
        Self::Exists,
    ];

    /// The operator of this wire name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == name)
    }

    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Eq => "eq",
            Self::In => "in",
            Self::Lt => "lt",
            Self::Lte => "lte",
            Self::Gt => "gt",
            Self::Gte => "gte",
            Self::Exists => "exists",
        }
    }

    /// Whether a definition of this type may advertise the operator.
    pub fn is_compatible(self, scalar_type: ScalarType) -> bool {
        match self {
            Self::Eq | Self::In | Self::Exists => true,
            Self::Lt | Self::Lte | Self::Gt | Self::Gte => scalar_type.is_ordered(),
        }
    }

    /// Reads a wire name; notes one that is no operator.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        read_known(report, place, value, &Self::ALL, Self::as_str)
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What the numbers of a filter measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A unit of the Unified Code for Units of Measure, which Agents can convert.
    Ucum {
        /// Case-sensitive code.
        code: UcumCode,
    },
    /// A unit with a meaning at this Service only.
    Service {
        /// Identifier within the Service.
        code: CapabilityId,
        /// Name for people.
        title: Name,
    },
}

impl Unit {
    /// Reads a unit; notes every fault. Further members are ignored.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let mut map = shape::object(report, place, value)?;
        let is_ucum =
            shape::required(report, place, &mut map, "system", |report, place, value| {
                let name = |ucum| if ucum { "ucum" } else { "service" };
                read_known(report, place, value, &[true, false], name)
            })?;
        if is_ucum {
            let code = shape::required(report, place, &mut map, "code", UcumCode::read)?;
            return Some(Self::Ucum { code });
        }
        let code = shape::required(report, place, &mut map, "code", CapabilityId::read);
        let title = shape::required(report, place, &mut map, "title", Name::read);
        Some(Self::Service {
            code: code?,
            title: title?,
        })
    }

    /// The wire value.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Ucum { code } => json!({"system": "ucum", "code": code.as_str()}),
            Self::Service { code, title } => {
                json!({"system": "service", "code": code.as_str(), "title": title.as_str()})
            }
        }
    }
}

/// A Filter Definition: maps every Offering to a set of values of one type, and says how to ask for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterDefinition {
    id: CapabilityId,
    title: Name,
    description: Description,
    scalar_type: ScalarType,
    operators: Vec<Operator>,
    unit: Option<Unit>,
    refinable: bool,
}

impl FilterDefinition {
    /// The identifier that expressions, sort keys and refinements name.
    pub fn id(&self) -> &CapabilityId {
        &self.id
    }

    /// Name for people.
    pub fn title(&self) -> &Name {
        &self.title
    }

    /// Explanation for people.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// The type of the values.
    pub fn scalar_type(&self) -> ScalarType {
        self.scalar_type
    }

    /// The advertised operators, each once, as they were written; never empty, all compatible with the type.
    pub fn operators(&self) -> &[Operator] {
        &self.operators
    }

    /// The unit of the values; only numeric types have one.
    pub fn unit(&self) -> Option<&Unit> {
        self.unit.as_ref()
    }

    /// Whether refinements can be asked for; then `eq` or `in` is advertised.
    pub fn is_refinable(&self) -> bool {
        self.refinable
    }

    /// Reads a Filter Definition; notes every fault. Further members are ignored.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let mut map = shape::object(report, place, value)?;
        let before = report.len();
        ProtocolVersion::refuse(report, place, &mut map);
        let has_unit = map.contains_key("unit");
        let id = shape::required(report, place, &mut map, "id", CapabilityId::read);
        let title = shape::required(report, place, &mut map, "title", Name::read);
        let description =
            shape::required(report, place, &mut map, "description", Description::read);
        let scalar_type = shape::required(report, place, &mut map, "type", ScalarType::read_name);
        let operators = shape::required(report, place, &mut map, "operators", read_operators);
        let unit = shape::optional(report, place, &mut map, "unit", Unit::read);
        let refinable = shape::optional(
            report,
            place,
            &mut map,
            "refinable",
            |report, place, value| {
                let is_true = value == Value::Bool(true);
                if !is_true {
                    report.add(place, "Must be true, or absent.");
                }
                is_true.then_some(())
            },
        )
        .is_some();

        if let Some(scalar_type) = scalar_type {
            let at_operators = place.key("operators");
            for (i, operator) in operators.iter().flatten().enumerate() {
                if !operator.is_compatible(scalar_type) {
                    report.add(
                        &at_operators.index(i),
                        format!("Does not apply to the type {scalar_type}."),
                    );
                }
            }
            if has_unit && !scalar_type.is_numeric() {
                report.add(
                    &place.key("unit"),
                    format!("Must be absent for the type {scalar_type}, which is not numeric."),
                );
            }
        }
        if refinable
            && let Some(operators) = &operators
            && !operators
                .iter()
                .any(|o| matches!(o, Operator::Eq | Operator::In))
        {
            report.add(&place.key("refinable"), "Needs the operator eq or in.");
        }
        if report.len() != before {
            return None;
        }
        Some(Self {
            id: id?,
            title: title?,
            description: description?,
            scalar_type: scalar_type?,
            operators: operators?,
            unit,
            refinable,
        })
    }

    /// Reads a Filter Definition by itself.
    ///
    /// # Errors
    /// Every fault.
    pub fn validate(value: Value) -> Result<Self, Invalid> {
        let mut report = Report::new();
        let definition = Self::read(&mut report, &Place::ROOT, value);
        report.finish(definition)
    }

    /// The wire value.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        let operators: Vec<_> = self.operators.iter().map(|o| o.as_str()).collect();
        map.insert("id".into(), json!(self.id.as_str()));
        map.insert("title".into(), json!(self.title.as_str()));
        map.insert("description".into(), json!(self.description.as_str()));
        map.insert("type".into(), json!(self.scalar_type.as_str()));
        map.insert("operators".into(), json!(operators));
        if let Some(unit) = &self.unit {
            map.insert("unit".into(), unit.to_value());
        }
        if self.refinable {
            map.insert("refinable".into(), json!(true));
        }
        Value::Object(map)
    }
}

impl Serialize for FilterDefinition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

fn read_operators(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Vec<Operator>> {
    // Repetitions are noted one by one; their number needs no bound of its own.
    let operators = shape::list(report, place, value, 1..=usize::MAX, Operator::read)?;
    let before = report.len();
    for (i, operator) in operators.iter().enumerate() {
        if operators[..i].contains(operator) {
            report.add(&place.index(i), "Must not be listed twice.");
        }
    }
    (report.len() == before).then_some(operators)
}
