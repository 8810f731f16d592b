//! `detail_fields`: what retrieval in full adds to a Terse Representation (ODP §4).

use crate::pointer::{Pointer, push_token};
use crate::report::{Invalid, Place, Report};
use crate::{limits, shape, version};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// Name of the member.
pub const MEMBER: &str = "detail_fields";

/// A `detail_fields` member: 1 through 32 distinct JSON Pointers, each of 1 through 256 printable ASCII characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct DetailFields(Vec<Pointer>);

impl DetailFields {
    /// The pointers in their published order.
    pub fn pointers(&self) -> &[Pointer] {
        &self.0
    }

    /// Reads a JSON array; notes every fault of its form. Whether the pointers are the right ones, [`check`] says.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let count = 1..=limits::DETAIL_FIELDS;
        let pointers = shape::list(report, place, value, count, |report, place, value| {
            let text = shape::string(report, place, value)?;
            let pointer = Pointer::parse(&text).ok().filter(|_| fits(&text));
            if pointer.is_none() {
                report.add(
                    place,
                    "Must be a JSON Pointer of 1 through 256 printable ASCII characters.",
                );
            }
            pointer
        })?;
        let mut seen = BTreeSet::new();
        if let Some(index) = pointers.iter().position(|pointer| !seen.insert(pointer)) {
            report.add(&place.index(index), "Must not occur twice.");
            return None;
        }
        Some(Self(pointers))
    }
}

/// Whether the pointer `text` may be published.
fn fits(text: &str) -> bool {
    (1..=limits::DETAIL_FIELD_CHARS).contains(&text.len())
        && text.bytes().all(|b| matches!(b, b' '..=b'~'))
}

/// The `detail_fields` of `terse`, given the Full Representation of the same resource for the same caller: the shortest pointers
/// that together name everything that `full` has and `terse` lacks, in the order of `full`.
///
/// Nothing when nothing is lacking, and when the list would pass a limit, since a part of it would be false. Arrays are
/// compared by presence alone: their elements are values, not fields. `full` must nest no deeper than [`crate::decode`] lets it.
pub fn detail_fields(full: &Value, terse: &Value) -> Option<Vec<String>> {
    let mut found = Vec::new();
    let complete = collect(full, terse, &mut String::new(), &mut |pointer| {
        found.push(pointer.to_owned());
        found.len() <= limits::DETAIL_FIELDS && fits(pointer)
    });
    (complete && !found.is_empty()).then_some(found)
}

/// Hands to `lacking` the pointer of each minimal subtree of `full` that `terse` lacks, until `lacking` returns false; tells
/// whether it never did. `at` is the pointer of both values.
fn collect(
    full: &Value,
    terse: &Value,
    at: &mut String,
    lacking: &mut impl FnMut(&str) -> bool,
) -> bool {
    let (Value::Object(full), Value::Object(terse)) = (full, terse) else {
        return true;
    };
    let length = at.len();
    for (name, member) in full {
        if length == 0 && is_metadata(name) {
            continue;
        }
        let more = match terse.get(name) {
            // Nothing to descend into, the common case: no pointer has to be written.
            Some(kept) if !kept.is_object() => continue,
            Some(kept) => {
                push_token(at, name);
                collect(member, kept, at, lacking)
            }
            None => {
                push_token(at, name);
                lacking(at)
            }
        };
        at.truncate(length);
        if !more {
            return false;
        }
    }
    true
}

/// Whether the top-level member `name` is about the representation and no field of the resource.
fn is_metadata(name: &str) -> bool {
    name == version::MEMBER || name == MEMBER
}

/// Checks a Terse Representation against the Full one made at the same moment for the same caller: fields keep their places and
/// types, `terse` has nothing that `full` lacks, and `detail_fields`, when it is there, is exhaustive and minimal. Values may
/// differ.
///
/// # Errors
/// Every rule that is broken; pointers are into `terse`, but for a `detail_fields` in `full`.
pub fn check(full: &Value, terse: &Value) -> Result<(), Invalid> {
    let mut report = Report::new();
    let root = Place::ROOT;
    let place = root.key(MEMBER);
    if full.get(MEMBER).is_some() {
        report.add(&place, "Must not be in a Full Representation.");
    }
    check_placement(&mut report, &root, full, terse);
    if let Some(value) = terse.get(MEMBER)
        && let Some(published) = DetailFields::read(&mut report, &place, value.clone())
    {
        check_fields(&mut report, &place, full, terse, &published);
    }
    report.finish(Some(()))
}

fn check_placement(report: &mut Report, place: &Place<'_>, full: &Value, terse: &Value) {
    if let (Value::Object(full), Value::Object(terse)) = (full, terse) {
        for (name, member) in terse {
            match full.get(name) {
                Some(whole) => check_placement(report, &place.key(name), whole, member),
                None if place.pointer().is_empty() && is_metadata(name) => {}
                None => report.add(
                    &place.key(name),
                    "Must be in the Full Representation as well.",
                ),
            }
        }
    } else if std::mem::discriminant(full) != std::mem::discriminant(terse) {
        let rule = format!("Must be {}, as in full.", shape::kind(full));
        report.add(place, rule);
    }
}

fn check_fields(
    report: &mut Report,
    place: &Place<'_>,
    full: &Value,
    terse: &Value,
    published: &DetailFields,
) {
    // As far as the report can hold faults; a longer list is wrong in any case.
    let mut expected = BTreeSet::new();
    collect(full, terse, &mut String::new(), &mut |pointer| {
        expected.insert(pointer.to_owned());
        expected.len() < limits::DETAIL_FIELDS + Report::CAPACITY
    });
    for (index, pointer) in published.pointers().iter().enumerate() {
        if !expected.remove(pointer.as_str()) {
            report.add(
                &place.index(index),
                "Must be the shortest pointer to something that the Full Representation adds.",
            );
        }
    }
    for missing in expected {
        report.add(place, format!("Must contain {missing}, or not be there."));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn pointers(full: &Value, terse: &Value) -> Vec<String> {
        match check(full, terse) {
            Ok(()) => Vec::new(),
            Err(invalid) => {
                let violations = invalid.into_violations();
                violations.into_iter().map(|v| v.pointer).collect()
            }
        }
    }

    /// Both directions: what we compute is `fields`, and `terse` with them is sound.
    fn agree(full: &Value, mut terse: Value, fields: &[&str]) {
        assert_eq!(detail_fields(full, &terse).unwrap(), fields);
        terse[MEMBER] = json!(fields);
        assert_eq!(pointers(full, &terse), Vec::<String>::new());
    }

    #[test]
    fn exhaustive_and_minimal() {
        agree(
            &json!({
                "odp_version": "1.0", "id": "gpu-1", "name": "GPU", "actions": [],
                "attributes": {"region": "us-west", "cpu": {"cores": 16}, "storage": {"capacity_gib": 500}}
            }),
            json!({"id": "gpu-1", "name": "GPU", "attributes": {"region": "us-west"}}),
            &["/actions", "/attributes/cpu", "/attributes/storage"],
        );
        agree(
            &json!({"id": "a", "name": "A", "attributes": {"x": 1, "y": 2}, "price": {"type": "free"}}),
            json!({"id": "a", "name": "A"}),
            &["/attributes", "/price"],
        );
    }

    #[test]
    fn volatile_values_do_not_count() {
        agree(
            &json!({"odp_version": "1.0", "id": "gpu-1", "name": "GPU", "attributes": {"available_units": 2}, "actions": []}),
            json!({"id": "gpu-1", "name": "GPU", "attributes": {"available_units": 3}}),
            &["/actions"],
        );
        // An array is a value: fewer images are still images.
        let full =
            json!({"id": "a", "name": "A", "images": [{"src": "/1", "alt": "1"}, {"src": "/2"}]});
        let terse = json!({"id": "a", "name": "A", "images": [{"src": "/1"}]});
        assert_eq!(detail_fields(&full, &terse), None);
        assert_eq!(pointers(&full, &terse), Vec::<String>::new());
    }

    #[test]
    fn tokens_are_escaped() {
        agree(
            &json!({"odp_version": "1.0", "id": "gpu-1", "name": "GPU", "attributes": {"included": true, "a/b~c": 1, "": 2}}),
            json!({"id": "gpu-1", "name": "GPU", "attributes": {"included": true}}),
            &["/attributes/a~1b~0c", "/attributes/"],
        );
    }

    #[test]
    fn absence_says_nothing() {
        let full = json!({"odp_version": "1.0", "id": "gpu-1", "name": "GPU", "attributes": {"region": "us-west"}});
        assert_eq!(
            pointers(&full, &json!({"id": "gpu-1", "name": "GPU"})),
            Vec::<String>::new()
        );
    }

    #[test]
    fn wrong_lists() {
        let full = json!({"odp_version": "1.0", "id": "gpu-1", "name": "GPU", "attributes": {"region": "us-west", "x": {"y": 1}}, "actions": []});
        let wrong = |fields: Value| {
            pointers(
                &full,
                &json!({"id": "gpu-1", "name": "GPU", "detail_fields": fields}),
            )
        };
        assert_eq!(
            wrong(json!(["/attributes", "/actions"])),
            Vec::<String>::new()
        );
        assert_eq!(wrong(json!(["/attributes"])), ["/detail_fields"]);
        assert_eq!(wrong(json!([])), ["/detail_fields"]);
        assert_eq!(wrong(json!("/attributes")), ["/detail_fields"]);
        assert_eq!(
            wrong(json!(["/actions", "/attributes", "/name"])),
            ["/detail_fields/2"]
        );
        assert_eq!(
            wrong(json!(["/actions", "/attributes", "/odp_version"])),
            ["/detail_fields/2"]
        );
        assert_eq!(
            wrong(json!(["/actions", "/attributes", "/other"])),
            ["/detail_fields/2"]
        );
        assert_eq!(
            wrong(json!(["/actions", "/attributes", "/attributes/x"])),
            ["/detail_fields/2"]
        );
        assert_eq!(
            wrong(json!(["/actions", "/attributes", "/actions"])),
            ["/detail_fields/2"]
        );
        assert_eq!(
            wrong(json!(["/actions", "/attributes/x", "/attributes/region"])).len(),
            3
        );
        assert_eq!(
            wrong(json!(["/actions", "#/attributes"])),
            ["/detail_fields/1"]
        );
        assert_eq!(wrong(json!(["/actions", ""])), ["/detail_fields/1"]);
        assert_eq!(wrong(json!(["/actions", 1])), ["/detail_fields/1"]);
        assert_eq!(
            wrong(json!(["/actions", "/caf\u{e9}"])),
            ["/detail_fields/1"]
        );
    }

    #[test]
    fn full_has_none() {
        let full =
            json!({"odp_version": "1.0", "id": "a", "name": "A", "detail_fields": ["/attributes"]});
        assert_eq!(
            pointers(&full, &json!({"id": "a", "name": "A"})),
            ["/detail_fields"]
        );
        assert_eq!(detail_fields(&full, &json!({"id": "a", "name": "A"})), None);
    }

    #[test]
    fn fields_keep_their_type_and_place() {
        let full = json!({"odp_version": "1.0", "id": "gpu-1", "name": "GPU", "attributes": {"region": "us-west"}});
        let terse = json!({"id": "gpu-1", "name": "GPU", "attributes": {"region": ["us-west"]}});
        assert_eq!(pointers(&full, &terse), ["/attributes/region"]);
        let terse = json!({"id": "gpu-1", "name": "GPU", "summary": {"region": "us-west"}});
        assert_eq!(pointers(&full, &terse), ["/summary"]);
        let terse = json!({"id": "gpu-1", "name": "GPU", "attributes": "us-west"});
        assert_eq!(pointers(&full, &terse), ["/attributes"]);
    }

    #[test]
    fn too_long_a_list_is_left_out() {
        let terse = json!({"id": "a", "name": "A", "attributes": {"kept": 1}});
        let full = |n: usize| {
            let mut full = terse.clone();
            for i in 0..n {
                full["attributes"][format!("x{i}")] = json!(i);
            }
            full
        };
        assert_eq!(detail_fields(&full(32), &terse).unwrap().len(), 32);
        assert_eq!(detail_fields(&full(33), &terse), None);

        let named = |name: &str| {
            let mut full = terse.clone();
            full["attributes"][name] = json!(1);
            detail_fields(&full, &terse)
        };
        // "/attributes/" has 12 characters.
        assert!(named(&"x".repeat(244)).is_some());
        assert_eq!(named(&"x".repeat(245)), None);
        assert_eq!(named(&"/".repeat(123)), None);
        assert_eq!(named("caf\u{e9}"), None);
        assert_eq!(named("a\tb"), None);
        assert!(named("a b").is_some());
    }

    /// A nested object, and the same without some of its members.
    fn pair() -> impl Strategy<Value = (Value, Value)> {
        let leaf = prop_oneof![Just(json!(1)), Just(json!("x")), Just(json!([{"a": 1}]))]
            .prop_map(|v| (v.clone(), v));
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop::collection::vec(("[a-c/~]{1,2}", inner, any::<bool>()), 1..5).prop_map(
                |members| {
                    let (mut full, mut terse) = (serde_json::Map::new(), serde_json::Map::new());
                    for (name, (whole, part), keep) in members {
                        full.insert(name.clone(), whole);
                        match keep {
                            true => terse.insert(name, part),
                            false => terse.shift_remove(&name),
                        };
                    }
                    (Value::Object(full), Value::Object(terse))
                },
            )
        })
    }

    proptest! {
        /// Putting what the pointers name back into the terse value gives the full one, and every pointer is needed.
        #[test]
        fn what_is_lacking_is_exactly_what_is_named((full, terse) in pair()) {
            let fields = detail_fields(&full, &terse).unwrap_or_default();
            prop_assume!(full == terse || !fields.is_empty());
            let mut whole = terse.clone();
            for field in &fields {
                let pointer = Pointer::parse(field).unwrap();
                prop_assert!(pointer.resolve(&whole).is_none());
                let added = pointer.resolve(&full).unwrap().clone();
                let (parent, _) = field.rsplit_once('/').unwrap();
                let name = pointer.tokens().last().unwrap();
                whole.pointer_mut(parent).unwrap()[name] = added;
            }
            prop_assert_eq!(&whole, &full);
            if !fields.is_empty() {
                let mut terse = terse;
                terse[MEMBER] = json!(fields);
                prop_assert!(check(&full, &terse).is_ok());
                terse[MEMBER].as_array_mut().unwrap().pop();
                prop_assert!(check(&full, &terse).is_err());
            }
        }
    }
}
