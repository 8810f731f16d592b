//! What a caller wants of a value, said before it is known how a Service calls it and writes it (ODP §5).

use purvey_odp::capability::EffectiveCapabilities;
use purvey_odp::filter::{FilterDefinition, Operator};
use purvey_odp::value::ScalarType;
use serde_json::{Number, Value, json};

/// A condition in a caller's words. Each Service that is searched resolves it through its own definitions: by which filter, of
/// which type, with which operator.
///
/// A name means the filter that has it as its identifier, or else the only one that has it as its title, whatever the case. A
/// text becomes a value of the filter's type. `eq` and `in` stand in for each other where a filter offers one of them and that
/// says the same. What no definition fits is refused as a Service would refuse it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    names: Vec<String>,
    operator: Operator,
    texts: Vec<String>,
}

impl Intent {
    /// `name` has a value that `operator` compares with `text`, as the caller writes it: `20`, `2027-01-31`, `true`.
    pub fn new(name: impl Into<String>, operator: Operator, text: impl Into<String>) -> Self {
        Self::any_of(name, operator, [text])
    }

    /// The same with several values, one of which is enough: for [`Operator::In`] and [`Operator::Eq`].
    pub fn any_of<S: Into<String>>(
        name: impl Into<String>,
        operator: Operator,
        texts: impl IntoIterator<Item = S>,
    ) -> Self {
        Self {
            names: vec![name.into()],
            operator,
            texts: texts.into_iter().map(Into::into).collect(),
        }
    }

    /// Another name, for Services that have none of the earlier ones.
    #[must_use]
    pub fn or_named(mut self, name: impl Into<String>) -> Self {
        self.names.push(name.into());
        self
    }

    /// The Filter Expression that says it to a Service with these capabilities; not necessarily one that it accepts.
    pub(crate) fn expression(&self, effective: &EffectiveCapabilities) -> Value {
        let mut names = self.names.iter();
        let definition = names.find_map(|name| named(effective, name));
        let first = self.names.first().map(String::as_str).unwrap_or_default();
        let id = definition.map_or(first, |definition| definition.id().as_str());
        let operator = self.operator_for(definition);
        let scalar_type = match operator {
            Operator::Exists => Some(ScalarType::Boolean),
            _ => definition.map(FilterDefinition::scalar_type),
        };
        let mut values: Vec<Value> = self
            .texts
            .iter()
            .map(|text| typed(scalar_type, text))
            .collect();
        let value = match (operator, values.len()) {
            (Operator::In, _) | (_, 0 | 2..) => Value::Array(values),
            (_, 1) => values.remove(0),
        };
        json!({"id": id, "operator": operator.as_str(), "value": value})
    }

    /// A set of one is that one, and equal to one of several is in their set.
    fn operator_for(&self, definition: Option<&FilterDefinition>) -> Operator {
        let offers = |operator| definition.is_none_or(|d| d.operators().contains(&operator));
        let several = self.texts.len() != 1;
        match self.operator {
            Operator::Eq if several || !offers(Operator::Eq) && offers(Operator::In) => {
                Operator::In
            }
            Operator::In if !several && !offers(Operator::In) && offers(Operator::Eq) => {
                Operator::Eq
            }
            operator => operator,
        }
    }
}

/// The filter that a name means.
fn named<'a>(effective: &'a EffectiveCapabilities, name: &str) -> Option<&'a FilterDefinition> {
    effective.filter(name).or_else(|| {
        let name = name.trim().to_lowercase();
        let is_titled =
            |filter: &&FilterDefinition| filter.title().as_str().trim().to_lowercase() == name;
        let mut titled = effective.filters().iter().filter(is_titled);
        titled.next().filter(|_| titled.next().is_none())
    })
}

/// The value that a text means. What the type cannot be made of stays a string: what is wrong with it is for the rules to say.
fn typed(scalar_type: Option<ScalarType>, text: &str) -> Value {
    let value = match scalar_type {
        Some(ScalarType::Boolean) => text.parse().ok().map(Value::Bool),
        Some(ScalarType::Integer | ScalarType::Number) => {
            serde_json::from_str::<Number>(text).ok().map(Value::Number)
        }
        _ => None,
    };
    value.unwrap_or_else(|| text.into())
}
