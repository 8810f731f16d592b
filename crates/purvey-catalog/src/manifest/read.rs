//! From the manifest's JSON to its parts.

use super::openapi::OpenApi;
use super::search::{Capabilities, Search, TextField};
use super::service::{Service, UNDETERMINED};
use super::{Manifest, Mapping, Scoped, advertise, closed, digest};
use crate::record::{Context, Record};
use crate::schema::Schemas;
use crate::search::Mapping as ColumnMapping;
use crate::segment::TextPlan;
use crate::text::TextConfig;
use purvey_odp::identity::{LocalId, ResourceType};
use purvey_odp::language::LanguageTag;
use purvey_odp::report::{Place, Report};
use purvey_odp::shape;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, OnceLock};

/// Names right below the endpoint base under which operations and capability sources are.
const OPERATIONS: [&str; 4] = ["collections", "offerings", "filters", "sorts"];

/// Gets the text of a file that the manifest names.
pub(super) type Load<'a> = &'a dyn Fn(&str) -> Result<String, String>;

pub(super) fn manifest(report: &mut Report, value: Value, load: Load<'_>) -> Option<Manifest> {
    let root = Place::ROOT;
    let mut source = shape::object(report, &root, value)?;
    let texts = schema_texts(report, &root.key("schemas"), &mut source, load);
    let openapi = OpenApi::read(report, &root, &mut source, load);
    let mut map = source.clone();
    let service = shape::required(report, &root, &mut map, "service", Service::read);
    map.shift_remove("schemas");
    if let Some(service) = &service {
        let base = service.endpoint_base();
        let schemas = root.key("schemas");
        for (url, _) in &texts {
            refuse_operations(report, &schemas.key(url), base, url);
        }
        if let Some(openapi) = &openapi {
            let place = root.key("service");
            let place = place.key("openapi");
            refuse_operations(report, &place.key("url"), base, &openapi.path);
            if texts.iter().any(|(url, _)| *url == openapi.path) {
                report.add(&place.key("url"), "Must not be the path of a schema.");
            }
        }
    }
    let schemas = Schemas::compile(report, &root.key("schemas"), texts);
    let mapping = shape::optional(report, &root, &mut map, "records", Mapping::read);
    if let (Some(mapping), Some(schemas)) = (&mapping, &schemas)
        && let Some(url) = mapping.schema().filter(|url| !schemas.contains(url))
    {
        report.add(
            &root.key("records").key("schema"),
            format!("[schemas] has no {url:?}."),
        );
    }
    let search = shape::optional(report, &root, &mut map, "search", Search::read);
    let (filters, sorts) = (map.shift_remove("filters"), map.shift_remove("sorts"));
    let capabilities = Capabilities::read(report, &root, filters, sorts, &Capabilities::default());
    let collections = map.shift_remove("collections");
    closed(report, &root, &map);
    // A fault of the service must not hide those of the Collections, which only need some language.
    let language = match &service {
        Some(service) => Some(service.language().clone()),
        None => LanguageTag::parse(UNDETERMINED).ok(),
    };
    let (collections, scoped) = collections
        .map(|value| {
            let place = root.key("collections");
            read_collections(report, &place, value, language.as_ref(), &capabilities)
        })
        .unwrap_or_default();
    let search = search.unwrap_or_default();
    if let Some(sort) = &search.default_sort
        && !capabilities.has_sort(sort)
    {
        report.add(
            &root.key("search").key("default_sort"),
            format!("No sort of the Service has the id {sort:?}."),
        );
    }
    let service = service?;
    let texts = [Search::default().text.as_slice(), search.text.as_slice()]
        .map(|fields| Arc::new(text_plan(service.language(), fields)));
    let columns = columns(&capabilities, &scoped);
    let scoped: BTreeMap<String, Scoped> = scoped
        .into_iter()
        .map(|(id, own)| {
            let path = format!("{}/collections/{id}", service.endpoint_base());
            let scoped = Scoped {
                advertised: own.advertise(&path, advertise::COLLECTION_BYTES),
                effective: OnceLock::new(),
                own,
            };
            (id, scoped)
        })
        .collect();
    let advertised = scoped.values().map(|scoped| &scoped.advertised);
    let text = search.text.iter().map(|field| &field.path);
    let rendering = digest(&(
        service.language().as_str(),
        &search.offering_terse,
        &search.collection_terse,
        advertised.collect::<Vec<_>>(),
        &columns,
        text.collect::<Vec<_>>(),
    ));
    Some(Manifest {
        source,
        lines: Arc::default(),
        service,
        mapping,
        schemas: schemas?,
        openapi,
        collections,
        text: search.text,
        texts,
        offering_terse: search.offering_terse,
        collection_terse: search.collection_terse,
        default_sort: search.default_sort,
        capabilities,
        effective: OnceLock::new(),
        scoped,
        columns,
        rendering,
    })
}

fn text_plan(language: &LanguageTag, fields: &[TextField]) -> TextPlan {
    let config = TextConfig {
        language: language.clone(),
        weights: fields.iter().map(|field| field.weight as f32).collect(),
    };
    let fields = fields.iter().map(|field| field.path.clone());
    TextPlan::new(config, fields.collect())
}

/// One search column for each filter of the Service and of every Collection.
fn columns(service: &Capabilities, scoped: &BTreeMap<String, Capabilities>) -> Vec<ColumnMapping> {
    let mapping = |collection: Option<&LocalId>, filter: &super::Filter| {
        ColumnMapping::new(collection, &filter.definition, filter.paths.clone())
    };
    let own = scoped.iter().flat_map(|(id, capabilities)| {
        let collection = LocalId::parse(id).ok();
        let filters = capabilities.filters().iter();
        filters.map(move |filter| mapping(collection.as_ref(), filter))
    });
    let service = service.filters().iter();
    service
        .map(|filter| mapping(None, filter))
        .chain(own)
        .collect()
}

/// The texts of `[schemas]`; in `source` each file's name is replaced by `{ inline = TEXT }`.
fn schema_texts(
    report: &mut Report,
    place: &Place<'_>,
    source: &mut Map<String, Value>,
    load: Load<'_>,
) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    let Some(value) = source.get_mut("schemas") else {
        return texts;
    };
    let Value::Object(entries) = value else {
        report.add(place, "Must be a table from URLs to files.");
        return texts;
    };
    for (url, entry) in entries {
        let place = place.key(url);
        let text = match &*entry {
            Value::String(file) => load(file).map_err(|error| format!("{file}: {error}.")),
            Value::Object(inline) if inline.len() == 1 => match inline.get("inline") {
                Some(Value::String(text)) => Ok(text.clone()),
                _ => Err("Must be a file's name, or { inline = TEXT }.".to_owned()),
            },
            _ => Err("Must be a file's name, or { inline = TEXT }.".to_owned()),
        };
        match text {
            Ok(text) => {
                *entry = serde_json::json!({ "inline": text });
                texts.push((url.clone(), text));
            }
            Err(reason) => report.add(&place, reason),
        }
    }
    texts
}

/// Nothing is served where an operation is.
fn refuse_operations(report: &mut Report, place: &Place<'_>, base: &str, url: &str) {
    let below = url
        .strip_prefix(base)
        .and_then(|rest| rest.strip_prefix('/'));
    let first = below.and_then(|rest| rest.split('/').next());
    if let Some(first) = first.filter(|first| OPERATIONS.contains(first)) {
        report.add(
            place,
            format!("Must not be at or below {base}/{first}: operations are there."),
        );
    }
}

/// What validating a Collection needs: it has no attributes.
struct Language<'a>(&'a LanguageTag);

impl Context for Language<'_> {
    fn default_language(&self) -> &LanguageTag {
        self.0
    }

    fn has_openapi(&self) -> bool {
        false
    }

    fn validate_attributes(&self, _: &mut Report, _: &Place<'_>, _: &str, _: &Value) {}
}

fn read_collections(
    report: &mut Report,
    place: &Place<'_>,
    value: Value,
    language: Option<&LanguageTag>,
    service: &Capabilities,
) -> (Vec<Record>, BTreeMap<String, Capabilities>) {
    let mut scoped = BTreeMap::new();
    let mut records: Vec<Record> = Vec::new();
    let mut ids = HashSet::new();
    let Some(items) = shape::array(report, place, value) else {
        return (records, scoped);
    };
    for (i, item) in items.into_iter().enumerate() {
        let place = place.index(i);
        let Some(mut map) = shape::object(report, &place, item) else {
            continue;
        };
        let (filters, sorts) = (map.shift_remove("filters"), map.shift_remove("sorts"));
        let own = Capabilities::read(report, &place, filters, sorts, service);
        let Some(language) = language else { continue };
        let record = Record::read(
            report,
            &place,
            Value::Object(map),
            ResourceType::Collection,
            &Language(language),
        );
        let Some(record) = record else { continue };
        if !ids.insert(record.id().to_owned()) {
            report.add(&place.key("id"), "Must not be the id of two Collections.");
        }
        if !own.is_empty() {
            scoped.insert(record.id().to_owned(), own);
        }
        records.push(record);
    }
    (records, scoped)
}
