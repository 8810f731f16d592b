//! Schema graphs of a given size.

use super::enriched;
use crate::adapter::Role;
use crate::case::{Fault, Outcome};
use crate::service::MANIFEST;
use purvey_catalog::Error;
use purvey_catalog::manifest::Manifest;

/// Bytes of one document, within the bounds of one.
const DOCUMENT: usize = 250_000;

/// Publishes, or reads, an attribute schema that needs exactly so many bytes of documents, each within the bounds of one.
pub(super) fn limit(role: Role, bytes: usize) -> Result<Outcome, Fault> {
    let documents = documents(bytes)?;
    let valid = match role {
        Role::Service => published(&documents)?,
        Role::Agent => enriched::graph(&documents)?,
    };
    Ok(Outcome::valid(valid))
}

/// Documents of so many bytes together; the first refers to all others, by their number.
fn documents(bytes: usize) -> Result<Vec<String>, Fault> {
    let count = bytes.div_ceil(DOCUMENT);
    let document = |at: usize| {
        let references: String = (1..count)
            .filter(|_| at == 0)
            .map(|to| format!(r#",{{"$ref":"{to}.json"}}"#))
            .collect();
        let text = |comment: &str| {
            format!(
                r#"{{"$schema":"https://json-schema.org/draft/2020-12/schema","$comment":"{comment}","anyOf":[true{references}]}}"#
            )
        };
        let wanted = (bytes - at * DOCUMENT).min(DOCUMENT);
        let padding = wanted.checked_sub(text("").len());
        let padding = padding.ok_or_else(|| Fault(format!("no graph has just {bytes} bytes")))?;
        Ok(text(&"a".repeat(padding)))
    };
    (0..count).map(document).collect()
}

fn published(documents: &[String]) -> Result<bool, Fault> {
    let mut manifest = format!("{MANIFEST}[schemas]\n");
    for (at, text) in documents.iter().enumerate() {
        manifest += &format!("\"/{at}.json\" = {{ inline = '''{text}''' }}\n");
    }
    match Manifest::parse_embedded(&manifest, &[]) {
        Ok(_) => Ok(true),
        // Nothing but the graph of the first document may be at fault.
        Err(Error::Invalid(invalid))
            if invalid
                .violations()
                .iter()
                .all(|fault| fault.pointer == "/schemas/~10.json") =>
        {
            Ok(false)
        }
        Err(error) => Err(Fault(error.to_string())),
    }
}
