//! Attribute schemas.

use crate::adapter::Role;
use crate::case::{Fault, Input, Outcome};
use crate::service::{MANIFEST, Service};
use http::header;
use purvey_catalog::Error;
use purvey_catalog::manifest::Manifest;
use purvey_odp::media;
use purvey_odp::normalise;
use purvey_odp::offering::{Offering, Placement, Representation};
use purvey_odp::service::Operation;
use serde_json::{Value, json};
use std::fmt::Write as _;

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// A Service must not publish a broken reference; an Agent does without the schema, and so without the attributes.
pub(super) fn reference(role: Role, input: &Input) -> Result<Outcome, Fault> {
    let mut offering = json!({
        "odp_version": "1.0", "id": "item", "name": "Item",
        "schema": input.member("reference")?,
        "attributes": {"model": "A100"},
    });
    if role == Role::Agent {
        normalise::offering(&mut offering, Representation::Full);
        let offering = Offering::validate(offering, Placement::TopLevel)
            .map_err(Fault::of("the Offering that is left"))?;
        return Ok(Outcome::valid(offering.schema().is_some()));
    }
    Ok(Outcome::valid(
        Offering::validate(offering, Placement::TopLevel).is_ok(),
    ))
}

/// A manifest with these schemas, by URL; nothing when they are refused.
fn manifest(schemas: &[(String, Value)], more: &str) -> Result<Option<Manifest>, Fault> {
    let mut toml = format!("{MANIFEST}{more}\n[schemas]\n");
    let mut files = Vec::new();
    for (i, (url, schema)) in schemas.iter().enumerate() {
        writeln!(toml, "{} = \"{i}.json\"", Value::from(url.as_str()))
            .map_err(Fault::of("manifest"))?;
        files.push((format!("{i}.json"), schema.to_string()));
    }
    let files: Vec<_> = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    match Manifest::parse_embedded(&toml, &files) {
        Ok(manifest) => Ok(Some(manifest)),
        Err(Error::Invalid(invalid))
            if invalid
                .violations()
                .iter()
                .all(|v| v.pointer.starts_with("/schemas")) =>
        {
            Ok(None)
        }
        Err(error) => Err(Fault::of("manifest")(error)),
    }
}

/// Whether a Service that has this schema answers with just this response.
pub(super) fn response(input: &Input) -> Result<Outcome, Fault> {
    let (status, content_type): (u16, String) =
        (input.read("status")?, input.read("content_type")?);
    let document = input.member("document")?;
    let Some(manifest) = manifest(&[("/schemas/item.json".to_owned(), document.clone())], "")?
    else {
        return Ok(Outcome::valid(false));
    };
    let response = Service::with_manifest(&manifest)?.get("/schemas/item.json")?;
    let sent = media::essence(response.field(header::CONTENT_TYPE).unwrap_or_default());
    let body: Value = serde_json::from_slice(&response.body).map_err(Fault::of("schema"))?;
    let same = response.status.as_u16() == status
        && sent == media::essence(&content_type)
        && body == document;
    Ok(Outcome::valid(same))
}

/// Whether a Service takes schemas that refer to each other like this.
pub(super) fn profile(input: &Input) -> Result<Outcome, Fault> {
    let documents: Vec<Value> = input.read("documents")?;
    let schemas: Vec<_> = documents
        .into_iter()
        .enumerate()
        .map(|(i, document)| {
            let id = document
                .get("$id")
                .and_then(Value::as_str)
                .map(str::to_owned);
            (id.unwrap_or_else(|| format!("/schemas/{i}.json")), document)
        })
        .collect();
    Ok(Outcome::valid(manifest(&schemas, "")?.is_some()))
}

/// Whether the attributes of this representation are held to the whole schema: a Full one that lacks a required member is refused,
/// a Terse one that lacks it is served.
pub(super) fn scope(input: &Input) -> Result<Outcome, Fault> {
    const URL: &str = "/schemas/item.json";
    let schema = json!({"$schema": DIALECT, "type": "object", "required": ["a", "b"]});
    let more = "[search]\nterse = [\"/attributes/a\"]";
    let manifest = manifest(&[(URL.to_owned(), schema)], more)?;
    let service = Service::with_manifest(
        &manifest.ok_or_else(|| Fault("the schema was refused".to_owned()))?,
    )?;
    let offering = |attributes| json!({"id": "item", "name": "Item", "schema": {"url": URL}, "attributes": attributes});
    let representation: String = input.read("representation")?;
    let complete = match representation.as_str() {
        "full" => !service.put("offerings", &offering(json!({"a": 1})))?,
        "terse" => {
            if !service.put("offerings", &offering(json!({"a": 1, "b": 2})))? {
                return Err(Fault("a whole Offering was refused".to_owned()));
            }
            let page = service.document(&service.path(Operation::ListOfferings, None)?)?;
            page.pointer("/items/0/attributes") != Some(&json!({"a": 1}))
        }
        _ => {
            return Err(Fault(format!(
                "the representation {representation} is not known"
            )));
        }
    };
    Ok(Outcome::new().with("complete_instance_validation", complete))
}
