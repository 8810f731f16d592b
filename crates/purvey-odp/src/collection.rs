//! Collections, full and terse (ODP §4).
//!
//! The objects are open: members that the protocol does not define are kept and come back ([`Collection::extra`]).

use crate::identity::LocalId;
use crate::offering::envelope::{Draft, Envelope, envelope_accessors, insert_ids, read_ids};
use crate::offering::{DetailFields, Placement, check_absent};
use crate::report::{Invalid, Place, Report};
use crate::shape;
use serde_json::{Map, Value};

/// A Full Representation of a Collection.
///
/// Held here: every rule of one document. Not held, since they need more than it: the rules of the hierarchy over all
/// Collections, and the bounds on bytes and depth.
#[derive(Clone, Debug, PartialEq)]
pub struct Collection {
    envelope: Envelope,
    parent_ids: Vec<LocalId>,
    extra: Map<String, Value>,
}

/// A Terse Representation of a Collection.
#[derive(Clone, Debug, PartialEq)]
pub struct TerseCollection {
    envelope: Envelope,
    parent_ids: Vec<LocalId>,
    detail_fields: Option<DetailFields>,
    extra: Map<String, Value>,
}

envelope_accessors!(Collection);
envelope_accessors!(TerseCollection);

impl Collection {
    /// The Collection that `value` is.
    ///
    /// # Errors
    /// Every rule that it breaks.
    pub fn validate(value: Value, placement: Placement) -> Result<Self, Invalid> {
        let mut report = Report::new();
        let collection = Self::read(&mut report, &Place::ROOT, value, placement);
        report.finish(collection)
    }

    /// Reads a Full Collection and notes every rule that it breaks. That it names itself as a parent is not noted here: a
    /// Service holds it to the rules of [`crate::hierarchy`], an Agent drops only that edge.
    pub fn read(
        report: &mut Report,
        place: &Place<'_>,
        value: Value,
        placement: Placement,
    ) -> Option<Self> {
        let map = shape::object(report, place, value)?;
        let before = report.len();
        let mut draft = Draft::default();
        let mut parent_ids = Vec::new();
        let mut extra = Map::new();
        for (member, value) in map {
            let Some(value) = draft.take(report, place, placement, &member, value) else {
                continue;
            };
            match member.as_str() {
                "parent_ids" => {
                    parent_ids =
                        read_ids(report, &place.key("parent_ids"), value).unwrap_or_default();
                }
                "detail_fields" => {
                    report.add(&place.key(&member), "Must not be in a Full Representation.");
                }
                _ => {
                    extra.insert(member, value);
                }
            }
        }
        let envelope = draft.finish(report, place, placement)?;
        (report.len() == before).then_some(Self {
            envelope,
            parent_ids,
            extra,
        })
    }

    /// The direct parents, each once; empty for a root.
    pub fn parent_ids(&self) -> &[LocalId] {
        &self.parent_ids
    }

    /// The wire form.
    pub fn to_value(&self, placement: Placement) -> Value {
        self.clone().into_value(placement)
    }

    /// The wire form; nothing large is copied.
    pub fn into_value(self, placement: Placement) -> Value {
        let mut map = self.envelope.into_map(placement);
        insert_ids(&mut map, "parent_ids", &self.parent_ids);
        map.extend(self.extra);
        Value::Object(map)
    }
}

impl TerseCollection {
    /// The Terse Collection that `value` is.
    ///
    /// # Errors
    /// Every rule that it breaks.
    pub fn validate(value: Value, placement: Placement) -> Result<Self, Invalid> {
        let mut report = Report::new();
        let collection = Self::read(&mut report, &Place::ROOT, value, placement);
        report.finish(collection)
    }

    /// Reads a Terse Collection and notes every rule that it breaks.
    pub fn read(
        report: &mut Report,
        place: &Place<'_>,
        value: Value,
        placement: Placement,
    ) -> Option<Self> {
        let before = report.len();
        check_absent(report, place, &value);
        let map = shape::object(report, place, value)?;
        let mut draft = Draft::default();
        let mut parent_ids = Vec::new();
        let mut detail_fields = None;
        let mut extra = Map::new();
        for (member, value) in map {
            let Some(value) = draft.take(report, place, placement, &member, value) else {
                continue;
            };
            match member.as_str() {
                "parent_ids" => {
                    parent_ids =
                        read_ids(report, &place.key("parent_ids"), value).unwrap_or_default();
                }
                "detail_fields" => {
                    detail_fields = DetailFields::read(report, &place.key(&member), value);
                }
                _ => {
                    extra.insert(member, value);
                }
            }
        }
        let envelope = draft.finish(report, place, placement)?;
        (report.len() == before).then_some(Self {
            envelope,
            parent_ids,
            detail_fields,
            extra,
        })
    }

    /// The direct parents when they are shown; empty makes no claim.
    pub fn parent_ids(&self) -> &[LocalId] {
        &self.parent_ids
    }

    /// What the Full Representation adds; absent makes no claim.
    pub fn detail_fields(&self) -> Option<&DetailFields> {
        self.detail_fields.as_ref()
    }

    /// The wire form.
    pub fn to_value(&self, placement: Placement) -> Value {
        self.clone().into_value(placement)
    }

    /// The wire form; nothing large is copied.
    pub fn into_value(self, placement: Placement) -> Value {
        let mut map = self.envelope.into_map(placement);
        insert_ids(&mut map, "parent_ids", &self.parent_ids);
        if let Some(fields) = self.detail_fields {
            map.insert("detail_fields".into(), fields.into_value());
        }
        map.extend(self.extra);
        Value::Object(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn full(value: Value) -> Result<Collection, Invalid> {
        Collection::validate(value, Placement::TopLevel)
    }

    fn pointers<T: std::fmt::Debug>(result: Result<T, Invalid>) -> Vec<String> {
        let invalid = result.unwrap_err();
        invalid
            .into_violations()
            .into_iter()
            .map(|v| v.pointer)
            .collect()
    }

    #[test]
    fn a_collection_comes_back_as_it_went_in() {
        let value = json!({
            "odp_version": "1.0", "id": "gpus", "name": "GPUs", "description": "Accelerated computing resources.",
            "images": [{"alt": "GPU compute hardware", "src": "/images/gpus.jpg"}], "language": "en",
            "localizations": ["en", "ja"], "parent_ids": ["hardware", "cloud"], "web_url": "/c/gpus",
            "vendor": {"b": 1, "a": [true]}
        });
        let collection = full(value.clone()).unwrap();
        assert_eq!(collection.parent_ids().len(), 2);
        assert_eq!(collection.into_value(Placement::TopLevel), value);
    }

    #[test]
    fn the_terse_form_names_what_it_leaves_out() {
        let value = json!({"id": "home-office", "name": "Home office", "detail_fields": ["/description", "/images", "/search_capabilities"]});
        let terse = TerseCollection::validate(value.clone(), Placement::Embedded).unwrap();
        assert_eq!(terse.detail_fields().unwrap().as_slice().len(), 3);
        assert_eq!(terse.into_value(Placement::Embedded), value);
        let value =
            json!({"id": "a", "name": "A", "description": "D", "detail_fields": ["/description"]});
        assert_eq!(
            pointers(TerseCollection::validate(value, Placement::Embedded)),
            ["/detail_fields/0"]
        );
    }

    #[test]
    fn every_fault_is_found_in_one_pass() {
        let value = json!({"id": "gpus/1", "images": [], "parent_ids": ["a", "a"], "language": "ja", "localizations": ["en"], "detail_fields": ["/x"]});
        assert_eq!(
            pointers(full(value)),
            [
                "/id",
                "/images",
                "/parent_ids/1",
                "/detail_fields",
                "",
                "",
                "/localizations"
            ]
        );
        let value = json!({"odp_version": "1.0", "id": "gpus", "name": "GPUs", "parent_ids": [], "localizations": ["en", "EN"]});
        assert_eq!(pointers(full(value)), ["/parent_ids", "/localizations/1"]);
    }
}
