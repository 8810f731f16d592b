//! The manifest, `catalog.toml`: everything about a catalog but its Offerings.

mod advertise;
mod mapping;
mod openapi;
mod read;
mod search;
mod service;
mod source;

pub(crate) use advertise::page_len;
pub use mapping::Mapping;
pub use search::{Capabilities, Filter, TextField};
pub use service::Service;
pub(crate) use service::{MEMBER as CAPABILITIES_MEMBER, RESERVED, is_reserved};

use crate::Error;
use crate::reader::Input;
use crate::record::{Context, Record};
use crate::render::TersePlan;
use crate::schema::Schemas;
use crate::search::Mapping as ColumnMapping;
use crate::segment::TextPlan;
use purvey_odp::capability::EffectiveCapabilities;
use purvey_odp::identity::ResourceType;
use purvey_odp::language::LanguageTag;
use purvey_odp::report::{Invalid, Place, Report};
use purvey_odp::service::{Operation, ServiceDocument};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use xxhash_rust::xxh3::xxh3_64;

/// The manifest of a Service about which nothing is known.
const EMPTY: &str = "[service]\nname = \"Catalog\"\ndescription = \"A catalog without entries yet.\"\nlanguage = \"en\"\n";

/// A manifest without faults.
#[derive(Debug)]
pub struct Manifest {
    /// The manifest as JSON, its schemas inlined: what [`Manifest::to_toml`] writes.
    source: Map<String, Value>,
    /// Where its members stand in the text that it was read from.
    lines: Arc<source::Lines>,
    service: Service,
    mapping: Option<Mapping>,
    schemas: Schemas,
    openapi: Option<openapi::OpenApi>,
    collections: Vec<Record>,
    text: Vec<TextField>,
    texts: [Arc<TextPlan>; 2],
    offering_terse: TersePlan,
    collection_terse: TersePlan,
    default_sort: Option<String>,
    capabilities: Capabilities,
    effective: OnceLock<EffectiveCapabilities>,
    scoped: BTreeMap<String, Scoped>,
    columns: Vec<ColumnMapping>,
    rendering: u64,
}

/// What a Collection adds to the Service's filters and sorts.
#[derive(Debug)]
struct Scoped {
    own: Capabilities,
    /// Its own and the Service's.
    effective: OnceLock<EffectiveCapabilities>,
    /// Its `search_capabilities`.
    advertised: Option<Value>,
}

impl Manifest {
    /// Reads a manifest; files that it names are looked for in `base`.
    ///
    /// # Errors
    /// [`Error::Invalid`] with every fault: the pointer is the key's path (`/filters/0/type`), the reason ends in its line.
    pub fn parse(toml: &str, base: &Path) -> Result<Self, Error> {
        Self::parse_with(toml, &|file| {
            std::fs::read_to_string(base.join(file)).map_err(|error| error.to_string())
        })
    }

    /// Reads a manifest whose files are at hand, as name and text: for catalogs that are compiled in.
    ///
    /// # Errors
    /// As [`Manifest::parse`].
    pub fn parse_embedded(toml: &str, files: &[(&str, &str)]) -> Result<Self, Error> {
        Self::parse_with(toml, &|file| {
            files
                .iter()
                .find(|(name, _)| *name == file)
                .map(|(_, text)| (*text).to_owned())
                .ok_or_else(|| "there is no such file".to_owned())
        })
    }

    /// The manifest of a Service without entries.
    ///
    /// # Errors
    /// None in practice.
    pub fn empty() -> Result<Self, Error> {
        Self::parse_embedded(EMPTY, &[])
    }

    fn parse_with(toml: &str, load: read::Load<'_>) -> Result<Self, Error> {
        let (value, lines) = source::read(toml)?;
        let mut report = Report::new();
        let manifest = read::manifest(&mut report, value, load);
        let mut manifest = report
            .finish(manifest)
            .map_err(|invalid| Error::Invalid(lines.locate(invalid)))?;
        manifest.lines = Arc::new(lines);
        Ok(manifest)
    }

    /// Faults of the manifest that only show in its catalog, each with its line.
    pub(crate) fn locate(&self, invalid: Invalid) -> Invalid {
        self.lines.locate(invalid)
    }

    /// The same manifest, with the lines of the text that `other` was read from: the stored form of it has its own.
    pub(crate) fn with_lines_of(self, other: &Self) -> Self {
        Self {
            lines: Arc::clone(&other.lines),
            ..self
        }
    }

    /// The self-contained form, schemas inlined: parsing it gives the same manifest.
    pub fn to_toml(&self) -> String {
        source::write(&self.source)
    }

    /// The self-contained form for wire-form records and these Collections (stored form), which replace the manifest's own; the
    /// filters and sorts that the manifest gives them stay.
    pub fn to_export(&self, collections: impl IntoIterator<Item = Value>) -> String {
        let mut source = self.source.clone();
        source.shift_remove("records");
        let own = source.shift_remove("collections");
        let scopes = |id: &Value| {
            let tables = own.as_ref()?.as_array()?;
            tables.iter().find(|table| table.get("id") == Some(id))
        };
        let collections: Vec<Value> = collections
            .into_iter()
            .map(|mut collection| {
                let scope = collection.get("id").and_then(scopes);
                for member in ["filters", "sorts"] {
                    let value = scope.and_then(|scope| scope.get(member));
                    if let (Some(value), Value::Object(map)) = (value, &mut collection) {
                        map.insert(member.to_owned(), value.clone());
                    }
                }
                collection
            })
            .collect();
        if !collections.is_empty() {
            source.insert("collections".to_owned(), collections.into());
        }
        source::write(&source)
    }

    /// `[service]`.
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// The Service's language: that of every record that names none.
    pub fn language(&self) -> &LanguageTag {
        self.service.language()
    }

    /// The languages of the Service Document, the default one first.
    pub fn languages(&self) -> impl Iterator<Item = &LanguageTag> {
        self.service.languages()
    }

    /// The Service Document in one of [`Manifest::languages`] (any other gives the default), advertising `operations` and, with
    /// `search-offerings`, the Service's filters and sorts.
    ///
    /// # Errors
    /// `operations` lack one that every Service has.
    pub fn service_document(
        &self,
        language: &LanguageTag,
        operations: &[Operation],
    ) -> Result<ServiceDocument, Invalid> {
        let searches = operations.contains(&Operation::SearchOfferings);
        let capabilities = searches.then_some(&self.capabilities);
        self.service.document(language, operations, capabilities)
    }

    /// Path below which the operations are.
    pub fn endpoint_base(&self) -> &str {
        self.service.endpoint_base()
    }

    /// `[[collections]]`, as records.
    pub fn collections(&self) -> &[Record] {
        &self.collections
    }

    /// `[records]`; without it records are in wire form.
    pub fn mapping(&self) -> Option<&Mapping> {
        self.mapping.as_ref()
    }

    /// The wire-form Offering for what a reader gave: mapped when there is a mapping, as it is otherwise. Not yet validated.
    ///
    /// # Errors
    /// Cells of another type than the mapping says, or a table without a mapping.
    pub fn map_row(&self, input: Input<'_>) -> Result<Value, Invalid> {
        match (&self.mapping, input) {
            (Some(mapping), input) => mapping.map(&input),
            (None, Input::Value(value)) => Ok(value),
            (None, Input::Row(_)) => Err(Invalid::one(
                "",
                "A table's rows need [records] in the manifest.",
            )),
        }
    }

    /// The attribute schemas.
    pub fn schemas(&self) -> &Schemas {
        &self.schemas
    }

    /// The text of the OpenAPI document that is served at `path`.
    pub fn openapi(&self, path: &str) -> Option<&str> {
        let openapi = self.openapi.as_ref()?;
        (openapi.path == path).then_some(openapi.text.as_str())
    }

    /// What search text is compared with, and how much each counts.
    pub fn text(&self) -> &[TextField] {
        &self.text
    }

    /// The texts of a kind that are searched: of Offerings those of [`text`](Self::text), of Collections name and description.
    pub fn text_plan(&self, kind: ResourceType) -> &Arc<TextPlan> {
        match kind {
            ResourceType::Collection => &self.texts[0],
            ResourceType::Offering => &self.texts[1],
        }
    }

    /// What the Terse Representation of a resource has.
    pub fn terse(&self, kind: ResourceType) -> &TersePlan {
        match kind {
            ResourceType::Offering => &self.offering_terse,
            ResourceType::Collection => &self.collection_terse,
        }
    }

    /// The sort of a search that has neither text nor a sort of its own.
    pub fn default_sort(&self) -> Option<&str> {
        self.default_sort.as_deref()
    }

    /// The filters and sorts of the Service.
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// The filters and sorts of one Collection beyond the Service's.
    pub fn collection_capabilities(&self, id: &str) -> Option<&Capabilities> {
        self.scoped.get(id).map(|scoped| &scoped.own)
    }

    /// What a search may use that names this Collection, or none (ODP §5): the Service's filters and sorts, and the Collection's own.
    pub fn effective_capabilities(&self, collection: Option<&str>) -> &EffectiveCapabilities {
        let merge = |own: Option<&Capabilities>| {
            EffectiveCapabilities::merge(self.capabilities.scope(), own.map(Capabilities::scope))
        };
        match collection.and_then(|id| self.scoped.get(id)) {
            None => self.effective.get_or_init(|| merge(None)),
            Some(scoped) => scoped.effective.get_or_init(|| merge(Some(&scoped.own))),
        }
    }

    /// `search_capabilities` of a Full Collection.
    pub(crate) fn collection_advertisement(&self, id: &str) -> Option<&Value> {
        self.scoped.get(id)?.advertised.as_ref()
    }

    /// The search columns that every Offering has values in: one for each filter of the Service and of every Collection.
    pub fn columns(&self) -> &[ColumnMapping] {
        &self.columns
    }

    /// Changes whenever what is indexed may change: the default language, what Terse Representations have, what Collections advertise, where filters have
    /// their values and of which type, which members text is searched in.
    pub fn rendering_digest(&self) -> u64 {
        self.rendering
    }
}

impl Context for Manifest {
    fn default_language(&self) -> &LanguageTag {
        self.language()
    }

    fn has_openapi(&self) -> bool {
        self.service.has_openapi()
    }

    fn validate_attributes(
        &self,
        report: &mut Report,
        place: &Place<'_>,
        url: &str,
        attributes: &Value,
    ) {
        self.schemas.validate(report, place, url, attributes);
    }
}

fn digest(parts: &impl std::fmt::Debug) -> u64 {
    xxh3_64(format!("{parts:?}").as_bytes())
}

/// Notes every member that was not taken out: the manifest knows no others.
fn closed(report: &mut Report, place: &Place<'_>, map: &Map<String, Value>) {
    for name in map.keys() {
        report.add(&place.key(name), "Is not a key of the manifest here.");
    }
}

/// Notes `reason` at a JSON Pointer below `place`.
pub(crate) fn note(report: &mut Report, place: &Place<'_>, pointer: &str, reason: &str) {
    let Some(rest) = pointer.strip_prefix('/') else {
        return report.add(place, reason);
    };
    let end = rest.find('/').unwrap_or(rest.len());
    let (token, below) = rest.split_at(end);
    let token = token.replace("~1", "/").replace("~0", "~");
    note(report, &place.key(&token), below, reason);
}
