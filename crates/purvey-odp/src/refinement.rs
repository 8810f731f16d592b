//! Refinements: values of a filter, counted (ODP §5).

use crate::filter::FilterDefinition;
use crate::identity::CapabilityId;
use crate::report::{Invalid, Place, Report};
use crate::value::{Scalar, ScalarType};
use crate::version::ProtocolVersion;
use crate::{limits, shape};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// One value of a filter, and how many distinct Offerings of the whole result have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefinementBucket {
    /// The value, of the filter's type.
    pub value: Scalar,
    /// The number of Offerings, at most 9,007,199,254,740,991.
    pub count: u64,
    /// Whether there may be more Offerings than that.
    pub lower_bound: bool,
}

impl RefinementBucket {
    fn read(
        report: &mut Report,
        place: &Place<'_>,
        value: Value,
        scalar_type: ScalarType,
    ) -> Option<Self> {
        let mut map = shape::object(report, place, value)?;
        let before = report.len();
        let value = shape::required(report, place, &mut map, "value", |report, place, value| {
            scalar_type.read(report, place, &value)
        });
        let count = shape::required(report, place, &mut map, "count", |report, place, value| {
            read_count(report, place, &value)
        });
        let lower_bound = shape::optional(
            report,
            place,
            &mut map,
            "count_relation",
            |report, place, value| {
                let is_known = value == "lower_bound";
                if !is_known {
                    report.add(place, "Must be lower_bound, or absent.");
                }
                is_known.then_some(())
            },
        );
        if report.len() != before {
            return None;
        }
        Some(Self {
            value: value?,
            count: count?,
            lower_bound: lower_bound.is_some(),
        })
    }

    /// The wire value.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("value".into(), self.value.to_value());
        map.insert("count".into(), json!(self.count));
        if self.lower_bound {
            map.insert("count_relation".into(), json!("lower_bound"));
        }
        Value::Object(map)
    }
}

fn read_count(report: &mut Report, place: &Place<'_>, value: &Value) -> Option<u64> {
    let count = match ScalarType::Integer.scalar(value) {
        Some(Scalar::Integer(number)) => number.to_u64(),
        _ => None,
    };
    let count = count.filter(|count| *count <= limits::REFINEMENT_COUNT);
    if count.is_none() {
        report.add(
            place,
            format!(
                "Must be an integer from 0 through {}.",
                limits::REFINEMENT_COUNT
            ),
        );
    }
    count
}

/// The counted values of one filter: 1 through 32, each once under the type's equality.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefinementGroup {
    filter_id: CapabilityId,
    values: Vec<RefinementBucket>,
}

impl RefinementGroup {
    /// The group that a Service answers for a refinable filter. Unlike what may be read, no count is zero.
    ///
    /// # Errors
    /// Every fault, with pointers into the group.
    pub fn new(
        definition: &FilterDefinition,
        values: Vec<RefinementBucket>,
    ) -> Result<Self, Invalid> {
        let mut report = Report::new();
        let root = Place::ROOT;
        let place = root.key("values");
        if !definition.is_refinable() {
            report.add(&root.key("filter_id"), "Must be a refinable filter.");
        }
        check_count(&mut report, &place, values.len(), limits::REFINEMENT_VALUES);
        for (i, bucket) in values.iter().enumerate() {
            let place = place.index(i);
            if bucket.value.scalar_type() != definition.scalar_type() {
                report.add(
                    &place.key("value"),
                    format!("Must be of the type {}.", definition.scalar_type()),
                );
            }
            if !(1..=limits::REFINEMENT_COUNT).contains(&bucket.count) {
                report.add(
                    &place.key("count"),
                    format!("Must be from 1 through {}.", limits::REFINEMENT_COUNT),
                );
            }
        }
        check_unique(&mut report, &place, &values);
        report.finish(Some(Self {
            filter_id: definition.id().clone(),
            values,
        }))
    }

    /// The filter.
    pub fn filter_id(&self) -> &CapabilityId {
        &self.filter_id
    }

    /// The same with its first values alone, `most` of them and at least one.
    #[must_use]
    pub fn first(&self, most: usize) -> Self {
        Self {
            filter_id: self.filter_id.clone(),
            values: self.values.iter().take(most.max(1)).cloned().collect(),
        }
    }

    /// The counted values.
    pub fn values(&self) -> &[RefinementBucket] {
        &self.values
    }

    /// Reads a group of one of the `requested` filters; notes every fault. Further members are ignored.
    pub fn read(
        report: &mut Report,
        place: &Place<'_>,
        value: Value,
        requested: &[FilterDefinition],
    ) -> Option<Self> {
        let mut map = shape::object(report, place, value)?;
        let before = report.len();
        ProtocolVersion::refuse(report, place, &mut map);
        let definition = shape::required(
            report,
            place,
            &mut map,
            "filter_id",
            |report, place, value| {
                let id = CapabilityId::read(report, place, value)?;
                let definition = requested.iter().find(|definition| *definition.id() == id);
                if definition.is_none() {
                    report.add(place, "Must be a filter that the request names.");
                }
                definition
            },
        );
        let values = shape::required(report, place, &mut map, "values", |report, place, value| {
            let values = shape::array(report, place, value)?;
            check_count(report, place, values.len(), limits::REFINEMENT_VALUES);
            // Without the definition nothing more can be said of the values.
            let scalar_type = definition?.scalar_type();
            let before = report.len();
            let buckets: Vec<_> = values
                .into_iter()
                .enumerate()
                .filter_map(|(i, value)| {
                    RefinementBucket::read(report, &place.index(i), value, scalar_type)
                })
                .collect();
            if report.len() == before {
                check_unique(report, place, &buckets);
            }
            Some(buckets)
        });
        if report.len() != before {
            return None;
        }
        Some(Self {
            filter_id: definition?.id().clone(),
            values: values?,
        })
    }

    /// The wire value.
    pub fn to_value(&self) -> Value {
        json!({
            "filter_id": self.filter_id.as_str(),
            "values": self.values.iter().map(RefinementBucket::to_value).collect::<Value>(),
        })
    }
}

impl Serialize for RefinementGroup {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

/// Reads the member `refinements` of a search response; notes every fault.
///
/// `requested` are the filters whose refinements the request names. On a continuation page nothing is requested: there, as
/// without a request for them, the member must be absent.
pub fn read_groups(
    report: &mut Report,
    place: &Place<'_>,
    value: Value,
    requested: &[FilterDefinition],
) -> Option<Vec<RefinementGroup>> {
    if requested.is_empty() {
        report.add(
            place,
            "Must be absent on a continuation page, and when the request names no refinements.",
        );
        return None;
    }
    let groups = shape::array(report, place, value)?;
    let before = report.len();
    check_count(report, place, groups.len(), limits::REFINEMENTS);
    let mut seen = HashSet::new();
    let mut read = Vec::new();
    for (i, group) in groups.into_iter().enumerate() {
        let place = place.index(i);
        let Some(group) = RefinementGroup::read(report, &place, group, requested) else {
            continue;
        };
        if !seen.insert(group.filter_id.clone()) {
            report.add(
                &place.key("filter_id"),
                "Must not be the filter of another group.",
            );
        }
        read.push(group);
    }
    (report.len() == before).then_some(read)
}

fn check_count(report: &mut Report, place: &Place<'_>, count: usize, max: usize) {
    if count == 0 || count > max {
        report.add(
            place,
            format!("Must have from 1 through {max} elements, not {count}."),
        );
    }
}

fn check_unique(report: &mut Report, place: &Place<'_>, buckets: &[RefinementBucket]) {
    let mut seen = HashSet::new();
    for (i, bucket) in buckets.iter().enumerate() {
        if !seen.insert(&bucket.value) {
            report.add(
                &place.index(i).key("value"),
                "Must not equal the value of another bucket.",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(id: &str, scalar_type: &str) -> FilterDefinition {
        let value = json!({"id": id, "title": id, "description": id, "type": scalar_type, "operators": ["eq"], "refinable": true});
        FilterDefinition::validate(value).unwrap()
    }

    fn faults(value: Value, requested: &[FilterDefinition]) -> Vec<String> {
        let mut report = Report::new();
        let groups = read_groups(
            &mut report,
            &Place::ROOT.key("refinements"),
            value,
            requested,
        );
        match report.finish(groups) {
            Ok(_) => Vec::new(),
            Err(invalid) => invalid
                .into_violations()
                .into_iter()
                .map(|v| v.pointer)
                .collect(),
        }
    }

    #[test]
    fn groups_come_back_as_they_were() {
        let value = json!([{"filter_id": "material", "values": [
            {"value": "wood", "count": 18420},
            {"value": "metal", "count": 12681, "count_relation": "lower_bound"}]}]);
        let mut report = Report::new();
        let groups = read_groups(
            &mut report,
            &Place::ROOT,
            value.clone(),
            &[definition("material", "string")],
        );
        let groups = report.finish(groups).unwrap();
        assert_eq!(
            groups
                .iter()
                .map(RefinementGroup::to_value)
                .collect::<Value>(),
            value
        );
        assert!(!groups[0].values()[0].lower_bound && groups[0].values()[1].lower_bound);
    }

    #[test]
    fn every_fault_is_noted_where_it_is() {
        let bucket = |value: Value| json!({"value": value, "count": 3});
        let group = |id: &str, values: Value| json!({"filter_id": id, "values": values});
        let many = |count: u64| (0..count).map(|i| bucket(json!(i))).collect::<Value>();
        let requested = [
            definition("material", "string"),
            definition("made_to_order", "boolean"),
            definition("price", "decimal"),
            definition("height", "integer"),
        ];
        for (value, pointers) in [
            (json!([]), vec!["/refinements"]),
            (json!({}), vec!["/refinements"]),
            (
                json!([group("category", json!([bucket(json!("desk"))]))]),
                vec!["/refinements/0/filter_id"],
            ),
            (
                json!([group("made_to_order", json!([bucket(json!("yes"))]))]),
                vec!["/refinements/0/values/0/value"],
            ),
            (
                json!([group("material", json!([]))]),
                vec!["/refinements/0/values"],
            ),
            (json!([group("height", many(32))]), vec![]),
            (
                json!([group("height", many(33))]),
                vec!["/refinements/0/values"],
            ),
            (
                json!([group(
                    "price",
                    json!([bucket(json!("1")), bucket(json!("2")), bucket(json!("1.0"))])
                )]),
                vec!["/refinements/0/values/2/value"],
            ),
            (
                json!([
                    group("material", json!([bucket(json!("a"))])),
                    group("material", json!([bucket(json!("b"))]))
                ]),
                vec!["/refinements/1/filter_id"],
            ),
            (
                json!([group(
                    "material",
                    json!([{"value": "a", "count": -1}, {"value": "b", "count": 1.5},
                    {"value": "c", "count": 9_007_199_254_740_992_u64}, {"value": "d", "count": "1"},
                    {"value": "e", "count": 1, "count_relation": "exact"}, {"count": 1}, {"value": "f"}])
                )]),
                vec![
                    "/refinements/0/values/0/count",
                    "/refinements/0/values/1/count",
                    "/refinements/0/values/2/count",
                    "/refinements/0/values/3/count",
                    "/refinements/0/values/4/count_relation",
                    "/refinements/0/values/5",
                    "/refinements/0/values/6",
                ],
            ),
            (
                json!([group(
                    "material",
                    json!([{"value": "a", "count": 0}, {"value": "b", "count": 9_007_199_254_740_991_u64}])
                )]),
                vec![],
            ),
            (
                json!([{"odp_version": "1.0"}]),
                vec![
                    "/refinements/0/odp_version",
                    "/refinements/0",
                    "/refinements/0",
                ],
            ),
        ] {
            assert_eq!(faults(value.clone(), &requested), pointers, "{value}");
        }
        // A continuation page, or a request without refinements.
        let wood = json!([group("material", json!([bucket(json!("wood"))]))]);
        assert_eq!(faults(wood, &[]), ["/refinements"]);
    }

    #[test]
    fn a_service_answers_no_empty_bucket() {
        let bucket = |value: &str, count| RefinementBucket {
            value: Scalar::String(value.to_owned()),
            count,
            lower_bound: false,
        };
        let material = definition("material", "string");
        assert!(RefinementGroup::new(&material, vec![bucket("a", 1)]).is_ok());
        let pointers = |definition: &FilterDefinition, values| {
            let violations = RefinementGroup::new(definition, values)
                .unwrap_err()
                .into_violations();
            violations
                .into_iter()
                .map(|v| v.pointer)
                .collect::<Vec<_>>()
        };
        assert_eq!(pointers(&material, vec![]), ["/values"]);
        assert_eq!(
            pointers(&material, vec![bucket("a", 0), bucket("a", 1)]),
            ["/values/0/count", "/values/1/value"]
        );
        assert_eq!(
            pointers(&definition("height", "integer"), vec![bucket("a", 1)]),
            ["/values/0/value"]
        );
    }
}
