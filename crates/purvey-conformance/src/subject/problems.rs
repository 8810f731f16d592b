//! Problems and limits.

use super::graph;
use crate::adapter::Role;
use crate::case::{Fault, Input, Outcome};
use purvey_odp::decode::{Bounds, DecodeError, decode};
use purvey_odp::problem::Problem;

/// A Service writes by the strict rules; an Agent reads by its own.
pub(super) fn problem(role: Role, input: &Input) -> Result<Outcome, Fault> {
    let (problem, status) = (input.member("problem")?, input.read("http_status")?);
    let read = match role {
        Role::Service => Problem::validate(problem, status),
        Role::Agent => Problem::read_lenient(problem, status),
    };
    Ok(Outcome::valid(read.is_ok()))
}

/// Decodes a document of exactly so many bytes, within the bounds of its kind.
pub(super) fn limit(role: Role, input: &Input) -> Result<Outcome, Fault> {
    let (resource, bytes): (String, usize) = (input.read("resource")?, input.read("bytes")?);
    let bounds = match resource.as_str() {
        "request" => Bounds::REQUEST,
        "offering" | "collection" => Bounds::RESOURCE,
        "page" => Bounds::PAGE,
        "problem" => Bounds::PROBLEM,
        "service_document" => Bounds::SERVICE_DOCUMENT,
        "schema_graph" => return graph::limit(role, bytes),
        _ => return Err(Fault(format!("the resource {resource} is not known"))),
    };
    const FRAME: &str = r#"{"id":""}"#;
    let padding = bytes.checked_sub(FRAME.len());
    let padding = padding.ok_or_else(|| Fault(format!("no document has only {bytes} bytes")))?;
    let document = format!(r#"{{"id":"{}"}}"#, "a".repeat(padding));
    match decode(document.as_bytes(), bounds) {
        Ok(_) => Ok(Outcome::valid(true)),
        Err(DecodeError::TooLarge { .. }) => Ok(Outcome::valid(false)),
        Err(error) => Err(Fault(error.to_string())),
    }
}
