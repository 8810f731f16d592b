//! Rendering: a record to the bytes that pages and documents are made of.

use crate::manifest::{CAPABILITIES_MEMBER, Manifest};
use crate::record::Record;
use purvey_odp::detail::detail_fields;
use purvey_odp::identity::ResourceType;
use purvey_odp::language::LanguageTag;
use purvey_odp::limits;
use purvey_odp::pointer::Pointer;
use purvey_odp::report::{Place, Report};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// A Full Collection and what it advertises, in bytes: leaves room for a page around it.
const ADVERTISING_BYTES: usize = limits::PAGE_BYTES - 2 * limits::NEXT_CHARS;

/// The bytes of one record in item form: without `odp_version`, as they stand on a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// Terse Representation in the default language, with `detail_fields`.
    pub terse: Vec<u8>,
    /// Full Representation in the default language.
    pub full: Vec<u8>,
    /// Language, Terse and Full Representation of every translation.
    pub variants: Vec<(LanguageTag, Vec<u8>, Vec<u8>)>,
    /// Whether the default representations carry `language`.
    pub has_language: bool,
    /// The Collections that it names: those that an Offering is a direct member of, the parents of a Collection.
    pub collections: Vec<String>,
    /// The audiences that may see it; empty: everybody.
    pub audience: Vec<String>,
}

/// Renders a record under a manifest.
pub fn render(record: &Record, manifest: &Manifest) -> Rendered {
    let plan = manifest.terse(record.kind());
    let default = manifest.language();
    let capabilities = match record.kind() {
        ResourceType::Collection => manifest.collection_advertisement(record.id()),
        ResourceType::Offering => None,
    };
    let full = advertising(record.full(default), capabilities);
    let variants = record
        .translated()
        .enumerate()
        .filter_map(|(i, language)| {
            let full = Cow::Owned(record.translation(i, default)?);
            let full = advertising(full, capabilities);
            Some((language.clone(), plan.render(&full), bytes(&full)))
        })
        .collect();
    Rendered {
        terse: plan.render(&full),
        full: bytes(&full),
        variants,
        has_language: full.get("language").is_some(),
        collections: record.collection_ids().map(str::to_owned).collect(),
        audience: record.audience().to_vec(),
    }
}

/// A Full Collection with its `search_capabilities`; without them where they would make it longer than a page.
fn advertising<'a>(full: Cow<'a, Value>, capabilities: Option<&Value>) -> Cow<'a, Value> {
    let Some(capabilities) = capabilities else {
        return full;
    };
    if bytes(&full).len() + bytes(capabilities).len() > ADVERTISING_BYTES {
        return full;
    }
    let mut full = full.into_owned();
    if let Value::Object(map) = &mut full {
        map.insert(CAPABILITIES_MEMBER.to_owned(), capabilities.clone());
    }
    Cow::Owned(full)
}

/// Compact JSON text.
pub(crate) fn bytes(value: &Value) -> Vec<u8> {
    // A value always has a text; writing it straight into bytes is only the faster way.
    serde_json::to_vec(value).unwrap_or_else(|_| value.to_string().into_bytes())
}

/// Which members a Terse Representation has beside `id`, `name` and what describes its language (ODP §4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TersePlan(Vec<(String, Pick)>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pick {
    Whole,
    /// The first element of `images`.
    First,
    /// These members of an object; anything else is taken whole.
    Members(Vec<(String, Pick)>),
}

impl TersePlan {
    /// A plan of whole members.
    pub(crate) fn members(names: &[&str]) -> Self {
        Self(
            names
                .iter()
                .map(|name| ((*name).to_owned(), Pick::Whole))
                .collect(),
        )
    }

    /// Adds the member that a pointer names; notes at `place` what a Terse Representation cannot have.
    pub(crate) fn add(
        &mut self,
        report: &mut Report,
        place: &Place<'_>,
        pointer: &Pointer,
        kind: ResourceType,
    ) {
        let tokens: Vec<&str> = pointer.tokens().collect();
        let known: &[&str] = match kind {
            ResourceType::Offering => &[
                "id",
                "name",
                "description",
                "images",
                "web_url",
                "collection_ids",
                "price",
                "schema",
                "attributes",
            ],
            ResourceType::Collection => &[
                "id",
                "name",
                "description",
                "images",
                "web_url",
                "parent_ids",
            ],
        };
        let reason = match tokens.as_slice() {
            ["actions", ..] => "Actions are never part of a Terse Representation.",
            ["images", "0"] => {
                insert_first(&mut self.0);
                return;
            }
            []
            | [
                "language" | "localizations" | "detail_fields" | "auth_expands",
                ..,
            ] => "Must name a member; the protocol's own ones come by themselves.",
            [name, rest @ ..] if !rest.is_empty() && *name != "attributes" => {
                "Must name a whole member, the first image, or an attribute."
            }
            [name, ..] if !known.contains(name) => "Is not a member of this resource.",
            tokens => {
                insert(&mut self.0, tokens);
                return;
            }
        };
        report.add(place, reason);
    }

    /// The Terse Representation of a Full one, as JSON text.
    pub(crate) fn render(&self, full: &Value) -> Vec<u8> {
        let mut terse = Value::Object(self.apply(full));
        if let Some(fields) = detail_fields(full, &terse)
            && let Value::Object(map) = &mut terse
        {
            map.insert("detail_fields".to_owned(), fields.into());
        }
        bytes(&terse)
    }

    fn apply(&self, full: &Value) -> Map<String, Value> {
        let mut terse = Map::new();
        let Value::Object(full) = full else {
            return terse;
        };
        for (name, value) in full {
            let always = matches!(
                name.as_str(),
                "id" | "name" | "language" | "localizations" | "auth_expands"
            );
            let picked = if always {
                Some(value.clone())
            } else {
                self.0
                    .iter()
                    .find(|(picked, _)| picked == name)
                    .and_then(|(_, pick)| pick.apply(value))
            };
            if let Some(value) = picked {
                terse.insert(name.clone(), value);
            }
        }
        // Attributes never come without their schema (ODP §4).
        if terse.contains_key("attributes")
            && !terse.contains_key("schema")
            && let Some(schema) = full.get("schema")
        {
            let before = terse.len() - 1;
            terse.shift_insert(before, "schema".to_owned(), schema.clone());
        }
        terse
    }
}

impl Pick {
    fn apply(&self, value: &Value) -> Option<Value> {
        match (self, value) {
            (Self::First, Value::Array(items)) => {
                items.first().map(|item| Value::Array(vec![item.clone()]))
            }
            (Self::Members(picks), Value::Object(map)) => {
                let mut out = Map::new();
                for (name, value) in map {
                    let pick = picks.iter().find(|(picked, _)| picked == name);
                    if let Some(value) = pick.and_then(|(_, pick)| pick.apply(value)) {
                        out.insert(name.clone(), value);
                    }
                }
                (!out.is_empty()).then_some(Value::Object(out))
            }
            _ => Some(value.clone()),
        }
    }
}

fn insert_first(picks: &mut Vec<(String, Pick)>) {
    if !picks.iter().any(|(name, _)| name == "images") {
        picks.push(("images".to_owned(), Pick::First));
    }
}

fn insert(picks: &mut Vec<(String, Pick)>, tokens: &[&str]) {
    let Some((name, rest)) = tokens.split_first() else {
        return;
    };
    let at = picks.iter().position(|(known, _)| known == name);
    let at = at.unwrap_or_else(|| {
        picks.push(((*name).to_owned(), Pick::Members(Vec::new())));
        picks.len() - 1
    });
    let Some((_, pick)) = picks.get_mut(at) else {
        return;
    };
    if rest.is_empty() {
        *pick = Pick::Whole;
    } else if let Pick::Members(members) = pick {
        insert(members, rest);
    }
}
