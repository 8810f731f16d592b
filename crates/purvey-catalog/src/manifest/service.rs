//! `[service]`: what the Service Document says (ODP §2).

use super::search::Capabilities;
use super::{closed, note};
use purvey_odp::language::LanguageTag;
use purvey_odp::limits;
use purvey_odp::report::{Invalid, Place, Report};
use purvey_odp::service::{Operation, ServiceDocument};
use purvey_odp::shape;
use serde_json::{Map, Value, json};

/// Members that pass from `[service]` to the document as they are.
const MEMBERS: [&str; 13] = [
    "name",
    "description",
    "language",
    "branding",
    "documentation_url",
    "keywords",
    "mcp",
    "payment_origins",
    "protocols",
    "status_url",
    "support_url",
    "website_url",
    "openapi",
];
/// The tag of a language that nobody has said.
pub(super) const UNDETERMINED: &str = "und";
/// Members that a translation may replace.
const TRANSLATED: [&str; 3] = ["name", "description", "keywords"];

/// What is advertised about search, in the Service Document and in Collections.
pub(crate) const MEMBER: &str = "search_capabilities";

/// Paths that the server answers itself.
pub(crate) const RESERVED: [&str; 4] = ["/.well-known", "/livez", "/readyz", "/v1"];

/// Whether a path is at or below one that the server answers itself.
pub(crate) fn is_reserved(path: &str) -> bool {
    RESERVED.iter().any(|prefix| {
        path.strip_prefix(prefix)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// Whether clients take a segment for a step in the path instead of a name, percent-encoded or not.
fn is_dots(segment: &str) -> bool {
    let plain = segment.to_ascii_lowercase().replace("%2e", ".");
    matches!(plain.as_str(), "." | "..")
}

/// The Service's metadata, valid in every language.
#[derive(Debug)]
pub struct Service {
    language: LanguageTag,
    members: Map<String, Value>,
    translations: Vec<(LanguageTag, Map<String, Value>)>,
    http: Value,
    endpoint_base: String,
}

impl Service {
    pub(super) fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let mut map = shape::object(report, place, value)?;
        let before = report.len();
        let translations = map.shift_remove("translations");
        let endpoint_base =
            shape::optional(report, place, &mut map, "endpoint_base", shape::string)
                .unwrap_or_else(|| "/odp".to_owned());
        if is_reserved(&endpoint_base) {
            report.add(
                &place.key("endpoint_base"),
                format!(
                    "Must not be at or below {}: the server has other things there.",
                    RESERVED.join(", ")
                ),
            );
        }
        if endpoint_base.split('/').any(is_dots) {
            report.add(
                &place.key("endpoint_base"),
                "Must not have the segments . and ..: clients resolve them before they ask.",
            );
        }
        let mut members = Map::new();
        for name in MEMBERS {
            if let Some(value) = map.shift_remove(name) {
                members.insert(name.to_owned(), value);
            }
        }
        closed(report, place, &map);
        let mut http = json!({ "endpoint_base": endpoint_base });
        if let (Some(openapi), Value::Object(http)) = (members.shift_remove("openapi"), &mut http) {
            http.insert("openapi".to_owned(), openapi);
        }
        let language = match members.get("language") {
            Some(tag) => LanguageTag::read(report, &place.key("language"), tag.clone()),
            None => {
                report.add(place, "Must have the member language.");
                None
            }
        };
        // Some language, so that this fault hides no other.
        let language = language.or_else(|| {
            members.insert("language".to_owned(), UNDETERMINED.into());
            LanguageTag::parse(UNDETERMINED).ok()
        })?;
        let translations = translations
            .map(|value| read_translations(report, &place.key("translations"), value, &language))
            .unwrap_or_default();
        let service = Self {
            language,
            members,
            translations,
            http,
            endpoint_base,
        };
        for language in service.languages() {
            service.check(report, place, language);
        }
        (report.len() == before).then_some(service)
    }

    /// Validates the document of one language; its faults are placed where the manifest has the member.
    fn check(&self, report: &mut Report, place: &Place<'_>, language: &LanguageTag) {
        let required = [Operation::ListOfferings, Operation::GetOffering];
        let Err(invalid) = self.document(language, &required, None) else {
            return;
        };
        let translation = self.translation(language);
        let translations = place.key("translations");
        let translations = translations.key(language.as_str());
        for violation in invalid.violations() {
            let path = violation
                .pointer
                .strip_prefix("/http")
                .unwrap_or(&violation.pointer);
            let first = path.split('/').nth(1).unwrap_or_default();
            let here = match translation {
                None => place,
                Some(members) if members.contains_key(first) => &translations,
                // The default language's check has said it.
                Some(_) if !first.is_empty() => continue,
                Some(_) => &translations,
            };
            note(report, here, path, &violation.reason);
        }
    }

    /// Its language.
    pub fn language(&self) -> &LanguageTag {
        &self.language
    }

    /// Its languages, the default one first.
    pub fn languages(&self) -> impl Iterator<Item = &LanguageTag> {
        std::iter::once(&self.language).chain(self.translations.iter().map(|(tag, _)| tag))
    }

    /// Path below which the operations are; without a trailing slash.
    pub fn endpoint_base(&self) -> &str {
        self.endpoint_base.trim_end_matches('/')
    }

    /// Whether there is a document for OpenAPI Actions that name none themselves (ODP §4).
    pub fn has_openapi(&self) -> bool {
        self.http.get("openapi").is_some()
    }

    fn translation(&self, language: &LanguageTag) -> Option<&Map<String, Value>> {
        if *language == self.language {
            return None;
        }
        self.translations
            .iter()
            .find(|(tag, _)| tag == language)
            .map(|(_, members)| members)
    }

    pub(super) fn document(
        &self,
        language: &LanguageTag,
        operations: &[Operation],
        capabilities: Option<&Capabilities>,
    ) -> Result<ServiceDocument, Invalid> {
        let mut map = Map::new();
        map.insert("odp_version".to_owned(), "1.0".into());
        map.extend(self.members.clone());
        if let Some(members) = self.translation(language) {
            map.insert("language".to_owned(), language.as_str().into());
            map.extend(members.clone());
        }
        let tags: Vec<&str> = self.languages().map(LanguageTag::as_str).collect();
        map.insert("localizations".to_owned(), tags.into());
        map.insert("http".to_owned(), self.http.clone());
        let operations: Vec<Value> = operations
            .iter()
            .map(
                |operation| json!({ "name": operation.as_str(), "authentication": "not-required" }),
            )
            .collect();
        map.insert("operations".to_owned(), operations.into());
        let mut value = Value::Object(map);
        // The longest list of operations and capabilities still to come has room in the last quarter.
        let most = limits::SERVICE_DOCUMENT_BYTES / 4 * 3;
        let bytes = crate::render::bytes(&value).len();
        if bytes > most {
            return Err(Invalid::one(
                "",
                format!("Must take at most {most} bytes in a Service Document."),
            ));
        }
        let room = limits::SERVICE_DOCUMENT_BYTES - bytes - MEMBER.len() - "\"\":,".len();
        let advertised = capabilities
            .and_then(|capabilities| capabilities.advertise(self.endpoint_base(), room));
        if let (Some(advertised), Value::Object(map)) = (advertised, &mut value) {
            map.insert(MEMBER.to_owned(), advertised);
        }
        ServiceDocument::validate(value)
    }
}

fn read_translations(
    report: &mut Report,
    place: &Place<'_>,
    value: Value,
    default: &LanguageTag,
) -> Vec<(LanguageTag, Map<String, Value>)> {
    let mut out: Vec<(LanguageTag, Map<String, Value>)> = Vec::new();
    let Some(map) = shape::object(report, place, value) else {
        return out;
    };
    for (tag, value) in map {
        let place = place.key(&tag);
        let language = LanguageTag::read(report, &place, Value::String(tag.clone()));
        let members = shape::object(report, &place, value);
        let (Some(language), Some(members)) = (language, members) else {
            continue;
        };
        for name in members.keys() {
            if !TRANSLATED.contains(&name.as_str()) {
                report.add(&place.key(name), "Is not a member that can be translated.");
            }
        }
        if language == *default {
            report.add(&place, "Must not be the Service's own language.");
        }
        if out.iter().any(|(known, _)| *known == language) {
            report.add(&place, "Must not occur twice.");
        }
        out.push((language, members));
    }
    out
}
