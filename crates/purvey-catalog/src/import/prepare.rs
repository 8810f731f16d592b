//! From a raw record to one that can be stored; runs on several threads.

use crate::manifest::Manifest;
use crate::reader::{Input, Raw};
use crate::record::Record;
use crate::store::Put;
use purvey_odp::identity::ResourceType;
use purvey_odp::report::{Invalid, Violation};
use serde_json::Value;

/// The kind of a JSON record in a stream of records, and the record itself. `{"collection": {…}}` and `{"offering": {…}}` say it;
/// everything else is an Offering (which always has more than one member).
pub fn record_kind(value: Value) -> (ResourceType, Value) {
    if let Value::Object(mut map) = value {
        if map.len() == 1 {
            for kind in [ResourceType::Collection, ResourceType::Offering] {
                if map.get(kind.as_str()).is_some_and(Value::is_object)
                    && let Some(inner) = map.shift_remove(kind.as_str())
                {
                    return (kind, inner);
                }
            }
        }
        return (ResourceType::Offering, Value::Object(map));
    }
    (ResourceType::Offering, value)
}

/// A record that can be stored, and what in it may be a typing error.
pub(super) struct Prepared {
    pub(super) put: Put,
    pub(super) doubts: Vec<Violation>,
}

/// Decodes, maps and validates one record.
pub(super) fn prepare(raw: &Raw, manifest: &Manifest) -> Result<Prepared, Invalid> {
    let input = raw.input()?;
    let (kind, value) = match (manifest.mapping(), input) {
        (None, Input::Value(value)) => record_kind(value),
        (_, input) => (ResourceType::Offering, manifest.map_row(input)?),
    };
    let record = Record::validate(value, kind, manifest)?;
    Ok(Prepared {
        put: Put::of(&record),
        doubts: record.doubts().to_vec(),
    })
}
