//! The OpenAPI document that a Service serves itself (ODP §2): `openapi = { url = "/openapi.json", file = "openapi.json" }` in `[service]`.

use super::read::Load;
use super::service::{RESERVED, is_reserved};
use purvey_odp::decode::{Bounds, decode};
use purvey_odp::limits;
use purvey_odp::report::{Place, Report};
use serde_json::{Map, Value};

/// The key of the document's file, beside its `url`.
const FILE: &str = "file";
/// The key of the document's text in a self-contained manifest.
pub(super) const INLINE: &str = "inline";

/// A document and the path that it is served at.
#[derive(Debug)]
pub(super) struct OpenApi {
    pub(super) path: String,
    pub(super) text: String,
}

impl OpenApi {
    /// Reads the document that `[service]` has, if it has one; in `source` its file's name is replaced by its text.
    pub(super) fn read(
        report: &mut Report,
        root: &Place<'_>,
        source: &mut Map<String, Value>,
        load: Load<'_>,
    ) -> Option<Self> {
        let service = root.key("service");
        let place = service.key("openapi");
        let openapi = source.get_mut("service")?.get_mut("openapi")?;
        let Value::Object(openapi) = openapi else {
            return None;
        };
        let text = match (openapi.shift_remove(FILE), openapi.get(INLINE)) {
            (None, None) => return None,
            (Some(Value::String(file)), None) => match load(&file) {
                Ok(text) => text,
                Err(error) => {
                    report.add(&place.key(FILE), format!("{file}: {error}."));
                    return None;
                }
            },
            (None, Some(Value::String(text))) => text.clone(),
            _ => {
                report.add(&place, "Must have one of file and inline, a string.");
                return None;
            }
        };
        openapi.insert(INLINE.to_owned(), text.as_str().into());
        let path = openapi.get("url").and_then(Value::as_str)?.to_owned();
        check_path(report, &place.key("url"), &path);
        check_text(report, &place, &text);
        Some(Self { path, text })
    }
}

fn check_path(report: &mut Report, place: &Place<'_>, path: &str) {
    let served = path.starts_with('/') && !path.starts_with("//") && !path.contains(['?', '#']);
    if !served || is_reserved(path) {
        report.add(
            place,
            format!(
                "Must be a path alone, and not at or below {}, since the document is served there.",
                RESERVED.join(", ")
            ),
        );
    }
}

fn check_text(report: &mut Report, place: &Place<'_>, text: &str) {
    let bounds = Bounds {
        bytes: limits::OPENAPI_BYTES,
        depth: limits::OPENAPI_DEPTH,
    };
    match decode(text.as_bytes(), bounds) {
        Err(error) => report.add(place, format!("Is not JSON that can be served: {error}.")),
        Ok(document) => {
            let version = document.get("openapi").and_then(Value::as_str);
            if !version.is_some_and(|version| version.starts_with("3.1.")) {
                report.add(place, "Must be a document of OpenAPI 3.1.");
            }
        }
    }
}
