//! What Collections and Offerings have in common.

use super::Placement;
use crate::identity::LocalId;
use crate::image::ResourceImage;
use crate::language::{LanguageTag, Localizations};
use crate::reference::ResourceReference;
use crate::report::{Place, Report};
use crate::shape;
use crate::text::{Description, Name};
use crate::version;
use crate::version::ProtocolVersion;
use serde_json::{Map, Value};
use std::collections::HashSet;

/// The members shared by both resource types and both representations.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Envelope {
    pub(crate) id: LocalId,
    pub(crate) name: Name,
    pub(crate) description: Option<Description>,
    pub(crate) images: Vec<ResourceImage>,
    pub(crate) language: Option<LanguageTag>,
    pub(crate) localizations: Option<Localizations>,
    pub(crate) web_url: Option<ResourceReference>,
    pub(crate) auth_expands: bool,
}

/// An [`Envelope`] being read, member by member in document order: no member is looked up by name.
#[derive(Default)]
pub(crate) struct Draft {
    has_version: bool,
    has_id: bool,
    has_name: bool,
    id: Option<LocalId>,
    name: Option<Name>,
    description: Option<Description>,
    images: Vec<ResourceImage>,
    language: Option<LanguageTag>,
    localizations: Option<Localizations>,
    web_url: Option<ResourceReference>,
    auth_expands: bool,
}

impl Draft {
    /// Takes the member when it is one of the envelope, else gives it back.
    pub(crate) fn take(
        &mut self,
        report: &mut Report,
        parent: &Place<'_>,
        placement: Placement,
        member: &str,
        value: Value,
    ) -> Option<Value> {
        let place = &parent.key(member);
        match member {
            version::MEMBER => {
                self.has_version = true;
                match placement {
                    Placement::TopLevel => {
                        ProtocolVersion::read(report, place, value);
                    }
                    Placement::Embedded => {
                        report.add(place, "Must not repeat the version inside a document.");
                    }
                }
            }
            "id" => {
                self.has_id = true;
                self.id = LocalId::read(report, place, value);
            }
            "name" => {
                self.has_name = true;
                self.name = Name::read(report, place, value);
            }
            "description" => self.description = Description::read(report, place, value),
            "images" => {
                self.images = ResourceImage::read_list(report, place, value).unwrap_or_default();
            }
            "language" => self.language = LanguageTag::read(report, place, value),
            "localizations" => self.localizations = Localizations::read(report, place, value),
            "web_url" => self.web_url = ResourceReference::read(report, place, value),
            "auth_expands" => {
                self.auth_expands = true;
                if value != Value::Bool(true) {
                    report.add(place, "Must be true or absent.");
                }
            }
            _ => return Some(value),
        }
        None
    }

    /// Notes what is missing and what does not fit together.
    pub(crate) fn finish(
        self,
        report: &mut Report,
        place: &Place<'_>,
        placement: Placement,
    ) -> Option<Envelope> {
        if !self.has_version && placement == Placement::TopLevel {
            report.add(place, "Must have the member odp_version.");
        }
        if !self.has_id {
            report.add(place, "Must have the member id.");
        }
        if !self.has_name {
            report.add(place, "Must have the member name.");
        }
        if let (Some(localizations), Some(language)) = (&self.localizations, &self.language) {
            localizations.check_language(report, &place.key("localizations"), language);
        }
        Some(Envelope {
            id: self.id?,
            name: self.name?,
            description: self.description,
            images: self.images,
            language: self.language,
            localizations: self.localizations,
            web_url: self.web_url,
            auth_expands: self.auth_expands,
        })
    }
}

impl Envelope {
    /// The wire members, `odp_version` first in a top-level document.
    pub(crate) fn into_map(self, placement: Placement) -> Map<String, Value> {
        let mut map = Map::new();
        if placement == Placement::TopLevel {
            map.insert(version::MEMBER.into(), "1.0".into());
        }
        map.insert("id".into(), self.id.as_str().into());
        map.insert("name".into(), self.name.as_str().into());
        if let Some(description) = self.description {
            map.insert("description".into(), description.as_str().into());
        }
        if !self.images.is_empty() {
            let images: Vec<Value> = self.images.iter().map(ResourceImage::to_value).collect();
            map.insert("images".into(), images.into());
        }
        if let Some(language) = self.language {
            map.insert("language".into(), language.as_str().into());
        }
        if let Some(localizations) = self.localizations {
            let tags: Vec<Value> = localizations
                .tags()
                .iter()
                .map(|tag| tag.as_str().into())
                .collect();
            map.insert("localizations".into(), tags.into());
        }
        if let Some(web_url) = self.web_url {
            map.insert("web_url".into(), web_url.as_str().into());
        }
        if self.auth_expands {
            map.insert("auth_expands".into(), true.into());
        }
        map
    }
}

/// Reads `collection_ids` or `parent_ids`: at least one, none twice.
pub(crate) fn read_ids(
    report: &mut Report,
    place: &Place<'_>,
    value: Value,
) -> Option<Vec<LocalId>> {
    let items = shape::array(report, place, value)?;
    if items.is_empty() {
        report.add(place, "Must be omitted rather than empty.");
        return None;
    }
    let before = report.len();
    let ids: Vec<LocalId> = items
        .into_iter()
        .enumerate()
        .filter_map(|(i, item)| LocalId::read(report, &place.index(i), item))
        .collect();
    if report.len() > before {
        return None;
    }
    if ids.len() > 1 {
        let mut seen = HashSet::with_capacity(ids.len());
        for (i, id) in ids.iter().enumerate() {
            if !seen.insert(id.as_str()) {
                report.add(&place.index(i), "Must not be listed twice.");
            }
        }
    }
    (report.len() == before).then_some(ids)
}

/// The wire form of [`read_ids`], as an absent member when there is none.
pub(crate) fn insert_ids(map: &mut Map<String, Value>, name: &str, ids: &[LocalId]) {
    if !ids.is_empty() {
        let ids: Vec<Value> = ids.iter().map(|id| id.as_str().into()).collect();
        map.insert(name.into(), ids.into());
    }
}

/// The accessors of the envelope, for a type whose field `envelope` holds one.
macro_rules! envelope_accessors {
    ($type:ty) => {
        impl $type {
            /// The identifier, unique at its Service among resources of its type.
            pub fn id(&self) -> &$crate::identity::LocalId {
                &self.envelope.id
            }

            /// The name, 1 through 128 code points.
            pub fn name(&self) -> &$crate::text::Name {
                &self.envelope.name
            }

            /// The description, 1 through 1,024 code points.
            pub fn description(&self) -> Option<&$crate::text::Description> {
                self.envelope.description.as_ref()
            }

            /// The images, at most 16, the primary one first; empty stands for an absent member.
            pub fn images(&self) -> &[$crate::image::ResourceImage] {
                &self.envelope.images
            }

            /// The language; absent: that of the containing response or the Service Document.
            pub fn language(&self) -> Option<&$crate::language::LanguageTag> {
                self.envelope.language.as_ref()
            }

            /// The languages in which this resource exists; they include [`Self::language`] when both are there.
            pub fn localizations(&self) -> Option<&$crate::language::Localizations> {
                self.envelope.localizations.as_ref()
            }

            /// A page for people.
            pub fn web_url(&self) -> Option<&$crate::reference::ResourceReference> {
                self.envelope.web_url.as_ref()
            }

            /// Whether retrieval with authentication can show more.
            pub fn auth_expands(&self) -> bool {
                self.envelope.auth_expands
            }

            /// Members that the protocol does not define; the object is open and they are kept as they came.
            pub fn extra(&self) -> &serde_json::Map<String, serde_json::Value> {
                &self.extra
            }
        }
    };
}
pub(crate) use envelope_accessors;
