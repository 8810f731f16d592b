//! `[service]`: what the Service Document says (ODP §2).

use super::openapi::INLINE;
use super::search::Capabilities;
use super::{closed, note};
use purvey_odp::language::LanguageTag;
use purvey_odp::limits;
use purvey_odp::report::{Invalid, Place, Report};
use purvey_odp::service::{Authentication, Operation, ServiceDocument};
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
    /// Of the operations that are not `not-required`.
    authentication: Vec<(Operation, Authentication)>,
    auth_expands: Vec<Operation>,
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
        let authentication = shape::optional(
            report,
            place,
            &mut map,
            "authentication",
            |report, place, value| read_authentication(report, place, value, &members),
        );
        let auth_expands =
            shape::optional(report, place, &mut map, "auth_expands", read_operations);
        closed(report, place, &map);
        let mut http = json!({ "endpoint_base": endpoint_base });
        if let (Some(mut openapi), Value::Object(http)) =
            (members.shift_remove("openapi"), &mut http)
        {
            // The document itself is no part of the Service Document.
            if let Value::Object(openapi) = &mut openapi {
                openapi.shift_remove(INLINE);
            }
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
            authentication: authentication.unwrap_or_default(),
            auth_expands: auth_expands.unwrap_or_default(),
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

    /// Whether an operation wants authentication (ODP §2).
    pub fn authentication(&self, operation: Operation) -> Authentication {
        let named = self
            .authentication
            .iter()
            .find(|(name, _)| *name == operation);
        named.map_or(Authentication::NotRequired, |(_, wanted)| *wanted)
    }

    /// Whether responses of an operation tell the anonymous that authentication can expand them (ODP §3).
    pub fn auth_expands(&self, operation: Operation) -> bool {
        self.auth_expands.contains(&operation)
    }

    /// Whether Agents can enroll here, by AEP (ODP §13).
    pub fn enrollment(&self) -> bool {
        has_enrollment(&self.members)
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
            .map(|operation| {
                let authentication = self.authentication(*operation).as_str();
                json!({ "name": operation.as_str(), "authentication": authentication })
            })
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

fn has_enrollment(members: &Map<String, Value>) -> bool {
    let protocols = members.get("protocols");
    protocols.is_some_and(|protocols| protocols.get("enrollment").is_some())
}

/// `authentication`: a table from operations to what they want.
fn read_authentication(
    report: &mut Report,
    place: &Place<'_>,
    value: Value,
    members: &Map<String, Value>,
) -> Option<Vec<(Operation, Authentication)>> {
    let mut out = Vec::new();
    for (name, value) in shape::object(report, place, value)? {
        let place = place.key(&name);
        let operation = read_operation(report, &place, &name);
        let authentication = Authentication::read(report, &place, value);
        let (Some(operation), Some(authentication)) = (operation, authentication) else {
            continue;
        };
        if authentication == Authentication::NotRequired {
            continue;
        }
        if !has_enrollment(members) {
            report.add(
                &place,
                "Must be not-required, since no enrollment protocol is advertised: [service.protocols] has no enrollment.",
            );
            continue;
        }
        out.push((operation, authentication));
    }
    Some(out)
}

/// `auth_expands`: the operations, or `true` for all of them.
fn read_operations(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Vec<Operation>> {
    if value == Value::Bool(true) {
        return Some(Operation::ALL.to_vec());
    }
    let most = Operation::ALL.len();
    shape::list(report, place, value, 1..=most, |report, place, value| {
        let name = shape::string(report, place, value)?;
        read_operation(report, place, &name)
    })
}

fn read_operation(report: &mut Report, place: &Place<'_>, name: &str) -> Option<Operation> {
    let operation = Operation::from_name(name);
    if operation.is_none() {
        report.add(place, "Is not an operation of the protocol.");
    }
    operation
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
