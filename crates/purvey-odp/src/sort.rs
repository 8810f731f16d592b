//! Sort Definitions: complete ordering recipes (ODP §5).

use crate::identity::CapabilityId;
use crate::report::{Invalid, Place, Report};
use crate::text::{Description, Name};
use crate::value::{Scalar, read_known};
use crate::version::ProtocolVersion;
use crate::{limits, shape};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::cmp::Ordering;

/// Which way a Sort Key orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Smallest first; of several values the smallest counts.
    Ascending,
    /// Largest first; of several values the largest counts.
    Descending,
}

impl Direction {
    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ascending => "ascending",
            Self::Descending => "descending",
        }
    }
}

/// Where a Sort Key puts Offerings without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Missing {
    /// Before all others, whatever the direction.
    First,
    /// After all others, whatever the direction.
    Last,
}

impl Missing {
    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Last => "last",
        }
    }
}

/// One key of a Sort Definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortKey {
    filter_id: CapabilityId,
    direction: Direction,
    missing: Missing,
}

impl SortKey {
    /// A key over the values of the filter `filter_id`.
    pub fn new(filter_id: CapabilityId, direction: Direction, missing: Missing) -> Self {
        Self {
            filter_id,
            direction,
            missing,
        }
    }

    /// The filter whose values order.
    pub fn filter_id(&self) -> &CapabilityId {
        &self.filter_id
    }

    /// Which way it orders.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Where Offerings without a value go.
    pub fn missing(&self) -> Missing {
        self.missing
    }

    /// The value that counts among those of one Offering: the smallest when ascending, the largest when descending.
    pub fn select<'a>(&self, values: &'a [Scalar]) -> Option<&'a Scalar> {
        match self.direction {
            Direction::Ascending => values.iter().min(),
            Direction::Descending => values.iter().max(),
        }
    }

    /// The order of two Offerings by their selected values. Strings are ordered by Unicode scalar values.
    pub fn compare(&self, a: Option<&Scalar>, b: Option<&Scalar>) -> Ordering {
        let missing = match self.missing {
            Missing::First => Ordering::Less,
            Missing::Last => Ordering::Greater,
        };
        match (a, b) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => missing,
            (Some(_), None) => missing.reverse(),
            (Some(a), Some(b)) => match self.direction {
                Direction::Ascending => a.cmp(b),
                Direction::Descending => b.cmp(a),
            },
        }
    }

    /// Appends bytes whose lexicographic order is [`compare`](Self::compare). No key is a prefix of another, so the keys of
    /// a recipe, one after the other and then the Offering id, order as the recipe does.
    pub fn order_key(&self, selected: Option<&Scalar>, out: &mut Vec<u8>) {
        let Some(scalar) = selected else {
            out.push(match self.missing {
                Missing::First => 0,
                Missing::Last => 2,
            });
            return;
        };
        out.push(1);
        let start = out.len();
        scalar.order_key(out);
        if self.direction == Direction::Descending {
            for byte in &mut out[start..] {
                *byte = !*byte;
            }
        }
    }

    /// Reads a Sort Key; notes every fault. Further members are ignored.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let mut map = shape::object(report, place, value)?;
        let filter_id = shape::required(report, place, &mut map, "filter_id", CapabilityId::read);
        let direction = shape::required(
            report,
            place,
            &mut map,
            "direction",
            |report, place, value| {
                let known = [Direction::Ascending, Direction::Descending];
                read_known(report, place, value, &known, Direction::as_str)
            },
        );
        let missing = shape::required(
            report,
            place,
            &mut map,
            "missing",
            |report, place, value| {
                let known = [Missing::First, Missing::Last];
                read_known(report, place, value, &known, Missing::as_str)
            },
        );
        Some(Self {
            filter_id: filter_id?,
            direction: direction?,
            missing: missing?,
        })
    }

    /// The wire value.
    pub fn to_value(&self) -> Value {
        json!({
            "filter_id": self.filter_id.as_str(),
            "direction": self.direction.as_str(),
            "missing": self.missing.as_str(),
        })
    }
}

/// What a recipe compares of one Offering.
#[derive(Clone, Copy, Debug)]
pub struct Sorted<'a> {
    /// The selected value of every key, in the order of the keys.
    pub selected: &'a [Option<&'a Scalar>],
    /// The Offering's identifier.
    pub id: &'a str,
}

/// The order of two Offerings under a recipe: key by key, then by id, ascending by bytes.
pub fn compare_keys(keys: &[SortKey], a: Sorted<'_>, b: Sorted<'_>) -> Ordering {
    keys.iter()
        .zip(a.selected.iter().zip(b.selected))
        .map(|(key, (a, b))| key.compare(*a, *b))
        .find(|order| order.is_ne())
        .unwrap_or_else(|| a.id.as_bytes().cmp(b.id.as_bytes()))
}

/// A Sort Definition: a recipe that a request names and cannot change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortDefinition {
    id: CapabilityId,
    title: Name,
    description: Description,
    keys: Vec<SortKey>,
}

impl SortDefinition {
    /// The identifier that a request names.
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

    /// The keys, 1 through 3, each over another filter.
    pub fn keys(&self) -> &[SortKey] {
        &self.keys
    }

    /// Reads a Sort Definition; notes every fault. Further members are ignored. Whether the filters exist is for
    /// [`EffectiveCapabilities`](crate::capability::EffectiveCapabilities) to say.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let mut map = shape::object(report, place, value)?;
        let before = report.len();
        ProtocolVersion::refuse(report, place, &mut map);
        let id = shape::required(report, place, &mut map, "id", CapabilityId::read);
        let title = shape::required(report, place, &mut map, "title", Name::read);
        let description =
            shape::required(report, place, &mut map, "description", Description::read);
        let keys = shape::required(report, place, &mut map, "keys", read_keys);
        if report.len() != before {
            return None;
        }
        Some(Self {
            id: id?,
            title: title?,
            description: description?,
            keys: keys?,
        })
    }

    /// Reads a Sort Definition by itself.
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
        json!({
            "id": self.id.as_str(),
            "title": self.title.as_str(),
            "description": self.description.as_str(),
            "keys": self.keys.iter().map(SortKey::to_value).collect::<Value>(),
        })
    }
}

impl Serialize for SortDefinition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

fn read_keys(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Vec<SortKey>> {
    let keys = shape::list(report, place, value, 1..=limits::SORT_KEYS, SortKey::read)?;
    let before = report.len();
    for (i, key) in keys.iter().enumerate() {
        if keys[..i]
            .iter()
            .any(|earlier| earlier.filter_id == key.filter_id)
        {
            report.add(
                &place.index(i).key("filter_id"),
                "Must not be the filter of another key.",
            );
        }
    }
    (report.len() == before).then_some(keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Decimal, ScalarType};
    use proptest::prelude::*;

    fn recipe(keys: &Value) -> Value {
        json!({"id": "s", "title": "S", "description": "S.", "keys": keys.clone()})
    }

    fn key(filter_id: &str, direction: &str, missing: &str) -> Value {
        json!({"filter_id": filter_id, "direction": direction, "missing": missing})
    }

    fn faults(value: Value) -> Vec<String> {
        match SortDefinition::validate(value) {
            Ok(_) => Vec::new(),
            Err(invalid) => invalid
                .into_violations()
                .into_iter()
                .map(|v| v.pointer)
                .collect(),
        }
    }

    #[test]
    fn a_definition_comes_back_as_it_was() {
        let value = recipe(&json!([
            key("processing_days", "ascending", "last"),
            key("price", "descending", "first")
        ]));
        assert_eq!(
            SortDefinition::validate(value.clone()).unwrap().to_value(),
            value
        );
    }

    #[test]
    fn every_fault_of_a_definition_is_noted_where_it_is() {
        let k = |id| key(id, "ascending", "last");
        for (keys, pointers) in [
            (json!([]), vec!["/keys"]),
            (json!([k("a"), k("b"), k("c"), k("d")]), vec!["/keys"]),
            (json!([k("a"), k("b"), k("a")]), vec!["/keys/2/filter_id"]),
            (
                json!([key("a", "up", "lost")]),
                vec!["/keys/0/direction", "/keys/0/missing"],
            ),
            (json!([{"filter_id": "a"}]), vec!["/keys/0", "/keys/0"]),
            (json!([k("a b")]), vec!["/keys/0/filter_id"]),
            (json!({}), vec!["/keys"]),
            (json!([k("a"), k("A")]), vec![]),
        ] {
            assert_eq!(faults(recipe(&keys)), pointers, "{keys}");
        }
        assert_eq!(faults(json!({})), ["", "", "", ""]);
        let mut value = recipe(&json!([k("a")]));
        value["odp_version"] = json!("1.0");
        value["note"] = json!("ignored");
        assert_eq!(faults(value), ["/odp_version"]);
    }

    #[test]
    fn values_are_selected_and_placed() {
        let scalars: Vec<_> = ["10", "9.5", "9.50", "-1"]
            .iter()
            .map(|text| ScalarType::Decimal.scalar(&json!(text)).unwrap())
            .collect();
        let ascending = SortKey::new(
            CapabilityId::parse("f").unwrap(),
            Direction::Ascending,
            Missing::First,
        );
        let descending = SortKey::new(
            CapabilityId::parse("f").unwrap(),
            Direction::Descending,
            Missing::First,
        );
        assert_eq!(ascending.select(&scalars), Some(&scalars[3]));
        assert_eq!(descending.select(&scalars), Some(&scalars[0]));
        assert_eq!(ascending.select(&[]), None);
        // Missing values keep their place in either direction.
        for key in [ascending, descending] {
            assert_eq!(key.compare(None, Some(&scalars[0])), Ordering::Less);
            let last = SortKey::new(key.filter_id, key.direction, Missing::Last);
            assert_eq!(last.compare(None, Some(&scalars[0])), Ordering::Greater);
            assert_eq!(
                last.compare(Some(&scalars[1]), Some(&scalars[2])),
                Ordering::Equal
            );
        }
    }

    #[test]
    fn a_recipe_orders_by_its_keys_and_then_by_id() {
        let value = recipe(&json!([
            key("days", "ascending", "last"),
            key("price", "descending", "first")
        ]));
        let recipe = SortDefinition::validate(value).unwrap();
        let number = |n: i64| Scalar::Integer(Decimal::from(n));
        let ascending = [
            (Some(1), None, "b"),
            (Some(1), Some(9), "d"),
            (Some(1), Some(2), "a"),
            (Some(1), Some(2), "c"),
            (Some(2), Some(9), "Z"),
            (Some(2), Some(9), "a"),
            (None, None, "A"),
            (None, Some(7), "B"),
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                let scalars = [
                    a.0.map(number),
                    a.1.map(number),
                    b.0.map(number),
                    b.1.map(number),
                ];
                let (x, y) = (
                    [scalars[0].as_ref(), scalars[1].as_ref()],
                    [scalars[2].as_ref(), scalars[3].as_ref()],
                );
                let (x, y) = (
                    Sorted {
                        selected: &x,
                        id: a.2,
                    },
                    Sorted {
                        selected: &y,
                        id: b.2,
                    },
                );
                assert_eq!(compare_keys(recipe.keys(), x, y), i.cmp(&j), "{a:?} {b:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn order_keys_order_as_the_recipe_does(
            a in (prop::option::of(-300i64..300), prop::option::of("[\0ab]{0,3}"), "[ab]{1,2}"),
            b in (prop::option::of(-300i64..300), prop::option::of("[\0ab]{0,3}"), "[ab]{1,2}"),
            directions in any::<(bool, bool)>(),
            missing in any::<(bool, bool)>(),
        ) {
            let key = |id: &str, ascending, first| SortKey::new(
                CapabilityId::parse(id).unwrap(),
                if ascending { Direction::Ascending } else { Direction::Descending },
                if first { Missing::First } else { Missing::Last },
            );
            let keys = [key("n", directions.0, missing.0), key("s", directions.1, missing.1)];
            let scalars = |(n, s, _): &(Option<i64>, Option<String>, String)| {
                (n.map(|n| Scalar::Integer(Decimal::from(n))), s.clone().map(Scalar::String))
            };
            let bytes = |n: &Option<Scalar>, s: &Option<Scalar>, id: &str| {
                let mut out = Vec::new();
                keys[0].order_key(n.as_ref(), &mut out);
                keys[1].order_key(s.as_ref(), &mut out);
                out.extend(id.as_bytes());
                out
            };
            let ((an, a_s), (bn, b_s)) = (scalars(&a), scalars(&b));
            let expected = compare_keys(
                &keys,
                Sorted { selected: &[an.as_ref(), a_s.as_ref()], id: &a.2 },
                Sorted { selected: &[bn.as_ref(), b_s.as_ref()], id: &b.2 },
            );
            prop_assert_eq!(bytes(&an, &a_s, &a.2).cmp(&bytes(&bn, &b_s, &b.2)), expected);
        }
    }
}
