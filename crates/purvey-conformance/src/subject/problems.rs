//! Problems and limits.

use super::Reply;
use crate::adapter::Role;
use crate::case::{Fault, Input, Outcome};
use purvey_catalog::Error;
use purvey_catalog::manifest::Manifest;
use purvey_odp::decode::{Bounds, DecodeError, decode};
use purvey_odp::problem::Problem;

/// A Service writes by the strict rules; an Agent reads by its own.
pub(super) fn problem(role: Role, input: &Input) -> Result<Reply, Fault> {
    let (problem, status) = (input.member("problem")?, input.read("http_status")?);
    let read = match role {
        Role::Service => Problem::validate(problem, status),
        Role::Agent => Problem::read_lenient(problem, status),
    };
    Ok(Outcome::valid(read.is_ok()).into())
}

/// Decodes a document of exactly so many bytes, within the bounds of its kind.
pub(super) fn limit(role: Role, input: &Input) -> Result<Reply, Fault> {
    let (resource, bytes): (String, usize) = (input.read("resource")?, input.read("bytes")?);
    let bounds = match resource.as_str() {
        "request" => Bounds::REQUEST,
        "offering" | "collection" => Bounds::RESOURCE,
        "page" => Bounds::PAGE,
        "problem" => Bounds::PROBLEM,
        "service_document" => Bounds::SERVICE_DOCUMENT,
        "schema_graph" if role == Role::Service => return schema_graph(bytes),
        "schema_graph" => return Ok(Reply::Skipped("schema graphs are not retrieved yet")),
        _ => return Err(Fault(format!("the resource {resource} is not known"))),
    };
    const FRAME: &str = r#"{"id":""}"#;
    let padding = bytes.checked_sub(FRAME.len());
    let padding = padding.ok_or_else(|| Fault(format!("no document has only {bytes} bytes")))?;
    let document = format!(r#"{{"id":"{}"}}"#, "a".repeat(padding));
    match decode(document.as_bytes(), bounds) {
        Ok(_) => Ok(Outcome::valid(true).into()),
        Err(DecodeError::TooLarge { .. }) => Ok(Outcome::valid(false).into()),
        Err(error) => Err(Fault(error.to_string())),
    }
}

/// Publishes an attribute schema that needs exactly so many bytes of documents, each within the bounds of one.
fn schema_graph(bytes: usize) -> Result<Reply, Fault> {
    const DOCUMENT: usize = 250_000;
    let count = bytes.div_ceil(DOCUMENT);
    let mut manifest =
        "[service]\nname = \"S\"\ndescription = \"S\"\nlanguage = \"en\"\n[schemas]\n".to_owned();
    for at in 0..count {
        let references: Vec<String> = (1..count)
            .filter(|_| at == 0)
            .map(|to| format!(r#"{{"$ref":"{to}.json"}}"#))
            .collect();
        let document = |comment: &str| {
            format!(
                r#"{{"$schema":"https://json-schema.org/draft/2020-12/schema","$comment":"{comment}","anyOf":[true{}{}]}}"#,
                if references.is_empty() { "" } else { "," },
                references.join(",")
            )
        };
        let wanted = (bytes - at * DOCUMENT).min(DOCUMENT);
        let padding = wanted.checked_sub(document("").len());
        let padding = padding.ok_or_else(|| Fault(format!("no graph has just {bytes} bytes")))?;
        let text = document(&"a".repeat(padding));
        manifest += &format!("\"/{at}.json\" = {{ inline = '''{text}''' }}\n");
    }
    match Manifest::parse_embedded(&manifest, &[]) {
        Ok(_) => Ok(Outcome::valid(true).into()),
        // Nothing but the graph of the first document may be at fault.
        Err(Error::Invalid(invalid))
            if invalid
                .violations()
                .iter()
                .all(|fault| fault.pointer == "/schemas/~10.json") =>
        {
            Ok(Outcome::valid(false).into())
        }
        Err(error) => Err(Fault(error.to_string())),
    }
}
