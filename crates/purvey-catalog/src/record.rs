//! Records: one Collection or Offering in its default language, with its translations.
//!
//! A record is stored as one JSON object: the wire members of the default language, without `odp_version`, and `translations`, an
//! object from language tags to `{name?, description?, attributes?}`, and `audience`, who may see it (everybody when it is absent);
//! neither is ever on the wire. Translated attributes are a JSON Merge Patch (RFC 7396) on
//! the default ones: members that a translation does not name stay as they are, so numbers and codes are written once.

mod doubt;
mod size;

use crate::access;
use crate::manifest::Manifest;
use purvey_odp::collection::Collection;
use purvey_odp::identity::ResourceType;
use purvey_odp::language::LanguageTag;
use purvey_odp::limits;
use purvey_odp::offering::{Offering, Placement};
use purvey_odp::report::{Invalid, Place, Report, Violation};
use purvey_odp::shape;
use purvey_odp::text::{Description, Name};
use serde_json::{Map, Value};
use size::Size;

/// The stored member that holds translations.
const TRANSLATIONS: &str = "translations";
/// The member that no record has by itself.
const AUTH_EXPANDS: &str = "auth_expands";
/// The stored member that names who may see the record.
const AUDIENCE: &str = "audience";
/// What surrounds one item on a page: version, items, the longest `next`, `auth_expands`, and a spliced `language` of 35 characters.
const ENVELOPE_BYTES: usize = r#"{"odp_version":"1.0","items":[],"next":"","auth_expands":true}"#
    .len()
    + limits::NEXT_CHARS
    + r#""language":"","#.len()
    + 35;
/// The page and its `items` are the two containers around an item.
const ITEM_DEPTH: usize = limits::JSON_DEPTH - 2;

/// A validated record.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    kind: ResourceType,
    wire: Value,
    audience: Vec<String>,
    translations: Vec<Translation>,
    doubts: Vec<Violation>,
}

/// A record's texts in another language.
#[derive(Clone, Debug, PartialEq)]
struct Translation {
    language: LanguageTag,
    members: Map<String, Value>,
}

impl Record {
    /// The record that `value` is: wire members (with or without `odp_version`) and optional `translations` and `audience`.
    ///
    /// # Errors
    /// Every rule broken: the wire rules (ODP §4), languages, attributes against their schema in every language, and the bound
    /// on bytes and depth of the full form with a page around it in every language.
    pub fn validate(
        value: Value,
        kind: ResourceType,
        manifest: &Manifest,
    ) -> Result<Self, Invalid> {
        let mut report = Report::new();
        let record = Self::read(&mut report, &Place::ROOT, value, kind, manifest);
        report.finish(record)
    }

    pub(crate) fn read(
        report: &mut Report,
        place: &Place<'_>,
        value: Value,
        kind: ResourceType,
        context: &(impl Context + ?Sized),
    ) -> Option<Self> {
        let mut map = shape::object(report, place, value)?;
        let before = report.len();
        let translations = map
            .shift_remove(TRANSLATIONS)
            .map(|value| translations(report, &place.key(TRANSLATIONS), value, kind))
            .unwrap_or_default();
        let audience = map
            .shift_remove(AUDIENCE)
            .and_then(|value| access::read(report, &place.key(AUDIENCE), value))
            .unwrap_or_default();
        if map.shift_remove(AUTH_EXPANDS).is_some() {
            report.add(
                &place.key(AUTH_EXPANDS),
                "Must be absent: auth_expands of the manifest's [service] says where it stands.",
            );
        }
        let placement = if map.contains_key("odp_version") {
            Placement::TopLevel
        } else {
            Placement::Embedded
        };
        if kind == ResourceType::Collection && map.shift_remove("search_capabilities").is_some() {
            report.add(
                &place.key("search_capabilities"),
                "Must be absent: the manifest's filters and sorts of this Collection make it.",
            );
        }
        let value = Value::Object(map);
        let wire = match kind {
            ResourceType::Offering => {
                Offering::read(report, place, value, placement).map(|offering| {
                    let doubts = doubt::of_offering(&offering);
                    (offering.into_value(Placement::Embedded), doubts)
                })
            }
            ResourceType::Collection => {
                Collection::read(report, place, value, placement).map(|collection| {
                    let doubts = doubt::of_collection(&collection);
                    (collection.into_value(Placement::Embedded), doubts)
                })
            }
        };
        let (wire, doubts) = wire?;
        let record = Self {
            kind,
            wire,
            audience,
            translations,
            doubts,
        };
        record.check_languages(report, place, context.default_language());
        record.check_attributes(report, place, context);
        record.check_actions(report, place, context);
        record.check_size(report, place);
        (report.len() == before).then_some(record)
    }

    /// A record as it was stored; what was validated before is not validated again.
    ///
    /// # Errors
    /// It is not of the stored form.
    pub fn from_stored(value: Value, kind: ResourceType) -> Result<Self, Invalid> {
        let mut report = Report::new();
        let map = shape::object(&mut report, &Place::ROOT, value);
        let record = map.map(|mut map| {
            let translations = map
                .shift_remove(TRANSLATIONS)
                .map(|value| translations(&mut report, &Place::ROOT.key(TRANSLATIONS), value, kind))
                .unwrap_or_default();
            let audience = map
                .shift_remove(AUDIENCE)
                .and_then(|value| access::read(&mut report, &Place::ROOT.key(AUDIENCE), value))
                .unwrap_or_default();
            if !map.get("id").is_some_and(Value::is_string) {
                report.add(&Place::ROOT, "Must have the member id.");
            }
            Self {
                kind,
                wire: Value::Object(map),
                audience,
                translations,
                doubts: Vec::new(),
            }
        });
        report.finish(record)
    }

    /// The stored form.
    pub fn to_stored(&self) -> Value {
        self.clone().into_stored()
    }

    /// The stored form.
    pub fn into_stored(self) -> Value {
        let mut wire = self.wire;
        if !self.audience.is_empty()
            && let Value::Object(map) = &mut wire
        {
            map.insert(AUDIENCE.to_owned(), self.audience.into());
        }
        if !self.translations.is_empty() {
            let translations = self
                .translations
                .into_iter()
                .map(|t| (t.language.as_str().to_owned(), Value::Object(t.members)))
                .collect();
            if let Value::Object(map) = &mut wire {
                map.insert(TRANSLATIONS.to_owned(), Value::Object(translations));
            }
        }
        wire
    }

    /// The stored form as JSON text.
    pub fn to_stored_bytes(&self) -> Vec<u8> {
        if self.translations.is_empty() && self.audience.is_empty() {
            crate::render::bytes(&self.wire)
        } else {
            crate::render::bytes(&self.to_stored())
        }
    }

    /// Its Local Resource Identifier.
    pub fn id(&self) -> &str {
        self.wire
            .get("id")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// Whether it is a Collection or an Offering.
    pub fn kind(&self) -> ResourceType {
        self.kind
    }

    /// The wire members in the default language, without `odp_version` and without what translations add.
    pub fn wire(&self) -> &Value {
        &self.wire
    }

    /// The Collections that it names: an Offering's `collection_ids`, a Collection's `parent_ids`.
    pub fn collection_ids(&self) -> impl Iterator<Item = &str> {
        let member = match self.kind {
            ResourceType::Offering => "collection_ids",
            ResourceType::Collection => "parent_ids",
        };
        self.wire
            .get(member)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
    }

    /// What is valid in it and may be a typing error, by JSON Pointer: members that the protocol does not define, types of a price and relations
    /// of Actions that it does not define, members of another type of price. Nothing in a record as it was stored.
    pub fn doubts(&self) -> &[Violation] {
        &self.doubts
    }

    /// The audiences that may see it; empty: everybody.
    pub fn audience(&self) -> &[String] {
        &self.audience
    }

    /// The language of its default texts, when it is not the Service's.
    pub fn language(&self) -> Option<&str> {
        self.wire.get("language").and_then(Value::as_str)
    }

    /// The languages that it is translated to, in the order of the record.
    pub fn translated(&self) -> impl ExactSizeIterator<Item = &LanguageTag> {
        self.translations.iter().map(|t| &t.language)
    }

    /// The Full Representation in its default language; borrowed when nothing has to be added.
    pub(crate) fn full(&self, default: &LanguageTag) -> std::borrow::Cow<'_, Value> {
        if self.translations.is_empty() {
            return std::borrow::Cow::Borrowed(&self.wire);
        }
        let mut value = self.wire.clone();
        let language = self.language().unwrap_or(default.as_str()).to_owned();
        self.name_languages(&mut value, &language, &language);
        std::borrow::Cow::Owned(value)
    }

    /// The Full Representation in the translation of this index.
    pub(crate) fn translation(&self, index: usize, default: &LanguageTag) -> Option<Value> {
        let translation = self.translations.get(index)?;
        let mut value = self.wire.clone();
        for (name, member) in &translation.members {
            if name == "attributes" {
                if let Some(attributes) = value.get_mut(name) {
                    merge(attributes, member);
                }
            } else if let Value::Object(map) = &mut value {
                map.insert(name.clone(), member.clone());
            }
        }
        let first = self.language().unwrap_or(default.as_str());
        self.name_languages(&mut value, translation.language.as_str(), first);
        Some(value)
    }

    /// Sets `language` and, unless the record has it, `localizations`, before the members that the protocol lists after them.
    fn name_languages(&self, value: &mut Value, language: &str, first: &str) {
        let Value::Object(map) = value else { return };
        if let Some(known) = map.get_mut("language") {
            *known = Value::String(language.to_owned());
        } else {
            let at = position(map);
            map.shift_insert(
                at,
                "language".to_owned(),
                Value::String(language.to_owned()),
            );
        }
        if !map.contains_key("localizations") {
            let all = std::iter::once(first)
                .chain(self.translations.iter().map(|t| t.language.as_str()))
                .map(|tag| Value::String(tag.to_owned()))
                .collect();
            let at = map
                .keys()
                .position(|name| name == "language")
                .map_or(map.len(), |at| at + 1);
            map.shift_insert(at, "localizations".to_owned(), Value::Array(all));
        }
    }

    fn check_languages(&self, report: &mut Report, place: &Place<'_>, default: &LanguageTag) {
        let own = self
            .language()
            .and_then(|tag| LanguageTag::parse(tag).ok())
            .unwrap_or_else(|| default.clone());
        let translations = place.key(TRANSLATIONS);
        for (i, translation) in self.translations.iter().enumerate() {
            let place = translations.key(translation.language.as_str());
            if translation.language == own {
                report.add(&place, "Must not be the record's own language.");
            }
            let earlier = self.translations.iter().take(i);
            if earlier
                .into_iter()
                .any(|t| t.language == translation.language)
            {
                report.add(&place, "Must not occur twice.");
            }
        }
        if self.translations.len() >= limits::LOCALIZATIONS {
            report.add(
                &translations,
                format!("Must have at most {} languages.", limits::LOCALIZATIONS - 1),
            );
        }
        if let Some(Value::Array(tags)) = self.wire.get("localizations") {
            let has = |tag: &LanguageTag| {
                *tag == own || self.translations.iter().any(|t| t.language == *tag)
            };
            let known = tags
                .iter()
                .filter_map(|tag| LanguageTag::parse(tag.as_str()?).ok())
                .filter(has)
                .count();
            if known != tags.len() || known != self.translations.len() + 1 {
                report.add(
                    &place.key("localizations"),
                    "Must list exactly the record's language and its translations, or be absent.",
                );
            }
        }
    }

    fn check_attributes(
        &self,
        report: &mut Report,
        place: &Place<'_>,
        context: &(impl Context + ?Sized),
    ) {
        let translated = || {
            self.translations
                .iter()
                .filter_map(|t| Some((t, t.members.get("attributes")?)))
        };
        let Some(attributes) = self.wire.get("attributes") else {
            for (translation, _) in translated() {
                report.add(
                    &place
                        .key(TRANSLATIONS)
                        .key(translation.language.as_str())
                        .key("attributes"),
                    "Must be absent, since the record has no attributes.",
                );
            }
            return;
        };
        let url = self
            .wire
            .get("schema")
            .and_then(|schema| schema.get("url"))
            .and_then(Value::as_str)
            .unwrap_or_default();
        context.validate_attributes(report, &place.key("attributes"), url, attributes);
        for (translation, patch) in translated() {
            let mut attributes = attributes.clone();
            merge(&mut attributes, patch);
            let translations = place.key(TRANSLATIONS);
            let language = translations.key(translation.language.as_str());
            let place = language.key("attributes");
            if attributes.as_object().is_none_or(Map::is_empty) {
                report.add(&place, "Must leave at least one attribute.");
            } else {
                context.validate_attributes(report, &place, url, &attributes);
            }
        }
    }

    /// An OpenAPI Action without a document of its own needs the Service's (ODP §4).
    fn check_actions(
        &self,
        report: &mut Report,
        place: &Place<'_>,
        context: &(impl Context + ?Sized),
    ) {
        let actions = self.wire.get("actions").and_then(Value::as_array);
        let Some(actions) = actions.filter(|_| !context.has_openapi()) else {
            return;
        };
        let place = place.key("actions");
        for (i, action) in actions.iter().enumerate() {
            let target = action.get("openapi");
            if target.is_some_and(|target| target.get("url").is_none()) {
                report.add(
                    &place.index(i).key("openapi"),
                    "Must have the member url, since [service] in the manifest has no openapi.",
                );
            }
        }
    }

    fn check_size(&self, report: &mut Report, place: &Place<'_>) {
        let mut largest = Size::of(&self.wire);
        if !self.translations.is_empty() {
            // The tag of the default language is bounded like any other.
            let languages = self.translations.len() + 1;
            let tags = r#""language":"","localizations":[],"#.len() + languages * 38 + 35;
            for i in 0..self.translations.len() {
                if let Some(t) = self.translations.get(i) {
                    largest = largest.max(Size::of_patched(&self.wire, &t.members));
                }
            }
            largest.bytes += tags;
        }
        if largest.bytes + ENVELOPE_BYTES > limits::PAGE_BYTES {
            report.add(
                place,
                format!(
                    "Must have at most {} bytes in every language, so that a page can hold it.",
                    limits::PAGE_BYTES - ENVELOPE_BYTES
                ),
            );
        }
        if largest.depth > ITEM_DEPTH {
            report.add(
                place,
                format!("Must nest at most {ITEM_DEPTH} containers deep, itself included."),
            );
        }
    }
}

/// What validating a record needs to know of its catalog.
pub(crate) trait Context {
    /// The Service's language.
    fn default_language(&self) -> &LanguageTag;
    /// Whether the Service has an OpenAPI document for Actions that name none.
    fn has_openapi(&self) -> bool;
    /// Notes at `place` where `attributes` do not fit the schema of this URL.
    fn validate_attributes(
        &self,
        report: &mut Report,
        place: &Place<'_>,
        url: &str,
        attributes: &Value,
    );
}

/// Where `language` belongs: after the members that come before it in the protocol's order.
fn position(map: &Map<String, Value>) -> usize {
    map.keys()
        .position(|name| !matches!(name.as_str(), "id" | "name" | "description" | "images"))
        .unwrap_or(map.len())
}

fn translations(
    report: &mut Report,
    place: &Place<'_>,
    value: Value,
    kind: ResourceType,
) -> Vec<Translation> {
    let Some(map) = shape::object(report, place, value) else {
        return Vec::new();
    };
    map.into_iter()
        .filter_map(|(tag, value)| {
            let place = place.key(&tag);
            let language = LanguageTag::read(report, &place, Value::String(tag.clone()))?;
            let members = translation(report, &place, value, kind)?;
            Some(Translation { language, members })
        })
        .collect()
}

fn translation(
    report: &mut Report,
    place: &Place<'_>,
    value: Value,
    kind: ResourceType,
) -> Option<Map<String, Value>> {
    let members = shape::object(report, place, value)?;
    if members.is_empty() {
        report.add(place, "Must translate at least one member.");
    }
    for (name, value) in &members {
        let place = place.key(name);
        match name.as_str() {
            "name" => {
                Name::read(report, &place, value.clone());
            }
            "description" => {
                Description::read(report, &place, value.clone());
            }
            "attributes" if kind == ResourceType::Offering => {
                if !value.is_object() {
                    let kind = shape::kind(value);
                    report.add(&place, format!("Must be an object, not {kind}."));
                }
            }
            _ => report.add(&place, "Is not a member that can be translated."),
        }
    }
    Some(members)
}

/// JSON Merge Patch (RFC 7396).
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(map) = target else { return };
    for (name, value) in patch {
        if value.is_null() {
            map.shift_remove(name);
        } else {
            merge(map.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}
