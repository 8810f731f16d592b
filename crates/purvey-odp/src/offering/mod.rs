//! Offerings, full and terse (ODP §4).
//!
//! The objects are open: members that the protocol does not define are kept and come back ([`Offering::extra`]), since the
//! schemas allow them and dropping them would lose data. The closed objects within (images, Actions, schema references)
//! refuse what they do not know; an Agent has [`crate::normalise`] before that.

pub(crate) mod envelope;
mod representation;

pub use representation::{DetailFields, Placement, Representation};

use crate::action::{Action, SchemaReference};
use crate::identity::LocalId;
use crate::price::Price;
use crate::report::{Invalid, Place, Report};
use crate::shape;
use envelope::{Draft, Envelope, envelope_accessors, insert_ids, read_ids};
use serde_json::{Map, Value};

/// A Full Representation of an Offering.
///
/// Held here: every rule of one document. Not held, since they need more than it: that `collection_ids` exist, that
/// `attributes` fit their schema, and the bounds on bytes and depth.
#[derive(Clone, Debug, PartialEq)]
pub struct Offering {
    envelope: Envelope,
    members: Members,
    actions: Vec<Action>,
    extra: Map<String, Value>,
}

/// A Terse Representation of an Offering: no Actions, and attributes that may be incomplete.
#[derive(Clone, Debug, PartialEq)]
pub struct TerseOffering {
    envelope: Envelope,
    members: Members,
    detail_fields: Option<DetailFields>,
    extra: Map<String, Value>,
}

/// The members that only Offerings have, in both representations.
#[derive(Clone, Debug, Default, PartialEq)]
struct Members {
    collection_ids: Vec<LocalId>,
    price: Option<Price>,
    schema: Option<SchemaReference>,
    attributes: Map<String, Value>,
}

envelope_accessors!(Offering);
envelope_accessors!(TerseOffering);

impl Members {
    /// Takes the member when it is one of these, else gives it back.
    fn take(
        &mut self,
        report: &mut Report,
        parent: &Place<'_>,
        member: &str,
        value: Value,
    ) -> Option<Value> {
        let place = &parent.key(member);
        match member {
            "collection_ids" => {
                self.collection_ids = read_ids(report, place, value).unwrap_or_default();
            }
            "price" => self.price = Price::read(report, place, value),
            "schema" => self.schema = SchemaReference::read(report, place, value),
            "attributes" => {
                if let Some(attributes) = shape::object(report, place, value) {
                    if attributes.is_empty() {
                        report.add(place, "Must be omitted rather than empty.");
                    }
                    self.attributes = attributes;
                }
            }
            _ => return Some(value),
        }
        None
    }

    fn insert_into(self, map: &mut Map<String, Value>) {
        insert_ids(map, "collection_ids", &self.collection_ids);
        if let Some(price) = self.price {
            map.insert("price".into(), price.into_value());
        }
        if let Some(schema) = self.schema {
            map.insert("schema".into(), schema.to_value());
        }
        if !self.attributes.is_empty() {
            map.insert("attributes".into(), self.attributes.into());
        }
    }
}

macro_rules! member_accessors {
    ($type:ty) => {
        impl $type {
            /// The Collections of which it is a direct member, each once; empty stands for an absent member.
            pub fn collection_ids(&self) -> &[LocalId] {
                &self.members.collection_ids
            }

            /// The price; absent does not mean free.
            pub fn price(&self) -> Option<&Price> {
                self.members.price.as_ref()
            }

            /// The schema of the whole attributes.
            pub fn schema(&self) -> Option<&SchemaReference> {
                self.members.schema.as_ref()
            }

            /// The Service's own data, members in their order; empty stands for an absent member. With attributes there is
            /// always a schema.
            pub fn attributes(&self) -> &Map<String, Value> {
                &self.members.attributes
            }
        }
    };
}
member_accessors!(Offering);
member_accessors!(TerseOffering);

impl Offering {
    /// The Offering that `value` is.
    ///
    /// # Errors
    /// Every rule that it breaks.
    pub fn validate(value: Value, placement: Placement) -> Result<Self, Invalid> {
        let mut report = Report::new();
        let offering = Self::read(&mut report, &Place::ROOT, value, placement);
        report.finish(offering)
    }

    /// Reads a Full Offering and notes every rule that it breaks.
    pub fn read(
        report: &mut Report,
        place: &Place<'_>,
        value: Value,
        placement: Placement,
    ) -> Option<Self> {
        let map = shape::object(report, place, value)?;
        let before = report.len();
        let mut draft = Draft::default();
        let mut members = Members::default();
        let mut actions = Vec::new();
        let mut extra = Map::new();
        let has_attributes = map.contains_key("attributes");
        let has_schema = map.contains_key("schema");
        for (member, value) in map {
            let Some(value) = draft.take(report, place, placement, &member, value) else {
                continue;
            };
            let Some(value) = members.take(report, place, &member, value) else {
                continue;
            };
            match member.as_str() {
                "actions" => {
                    actions =
                        Action::read_list(report, &place.key("actions"), value).unwrap_or_default();
                }
                "detail_fields" => {
                    report.add(&place.key(&member), "Must not be in a Full Representation.");
                }
                _ => {
                    extra.insert(member, value);
                }
            }
        }
        if has_attributes && !has_schema {
            report.add(
                place,
                "Must have the member schema, since it has attributes.",
            );
        }
        if has_schema && !has_attributes {
            report.add(
                &place.key("schema"),
                "Must be omitted, since there are no attributes.",
            );
        }
        let envelope = draft.finish(report, place, placement)?;
        (report.len() == before).then_some(Self {
            envelope,
            members,
            actions,
            extra,
        })
    }

    /// What can follow discovery, at most 16; empty stands for an absent member.
    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// The wire form.
    pub fn to_value(&self, placement: Placement) -> Value {
        self.clone().into_value(placement)
    }

    /// The wire form; nothing large is copied.
    pub fn into_value(self, placement: Placement) -> Value {
        let mut map = self.envelope.into_map(placement);
        self.members.insert_into(&mut map);
        if !self.actions.is_empty() {
            let actions: Vec<Value> = self.actions.iter().map(Action::to_value).collect();
            map.insert("actions".into(), actions.into());
        }
        map.extend(self.extra);
        Value::Object(map)
    }
}

impl TerseOffering {
    /// The Terse Offering that `value` is.
    ///
    /// # Errors
    /// Every rule that it breaks.
    pub fn validate(value: Value, placement: Placement) -> Result<Self, Invalid> {
        let mut report = Report::new();
        let offering = Self::read(&mut report, &Place::ROOT, value, placement);
        report.finish(offering)
    }

    /// Reads a Terse Offering and notes every rule that it breaks. Its attributes are a part and never held to their schema.
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
        let mut members = Members::default();
        let mut detail_fields = None;
        let mut extra = Map::new();
        if map.contains_key("attributes") && !map.contains_key("schema") {
            report.add(
                place,
                "Must have the member schema, since it has attributes.",
            );
        }
        for (member, value) in map {
            let Some(value) = draft.take(report, place, placement, &member, value) else {
                continue;
            };
            let Some(value) = members.take(report, place, &member, value) else {
                continue;
            };
            match member.as_str() {
                "actions" => report.add(
                    &place.key(&member),
                    "Must not be in a Terse Representation.",
                ),
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
            members,
            detail_fields,
            extra,
        })
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
        self.members.insert_into(&mut map);
        if let Some(fields) = self.detail_fields {
            map.insert("detail_fields".into(), fields.into_value());
        }
        map.extend(self.extra);
        Value::Object(map)
    }
}

/// Notes every pointer of `detail_fields` that points at something present.
pub(crate) fn check_absent(report: &mut Report, place: &Place<'_>, value: &Value) {
    let Some(Value::Array(fields)) = value.get("detail_fields") else {
        return;
    };
    let fields_place = place.key("detail_fields");
    for (i, field) in fields.iter().enumerate() {
        let present = field
            .as_str()
            .is_some_and(|p| !p.is_empty() && value.pointer(p).is_some());
        if present || field == "/odp_version" {
            report.add(
                &fields_place.index(i),
                "Must not point at a member that is present.",
            );
        }
    }
}

#[cfg(test)]
mod tests;
