//! Where the values of a filter come from (ODP §5, mapped value sets).

use purvey_odp::filter::FilterDefinition;
use purvey_odp::identity::{CapabilityId, LocalId};
use purvey_odp::pointer::Pointer;
use purvey_odp::value::{Scalar, ScalarType};
use serde_json::Value;
use std::collections::HashSet;

/// Names a column: a filter, and the Collection that defines it unless the Service does.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ColumnName(String);

impl ColumnName {
    /// The column of a filter. Two Collections may define filters of one identifier, which have nothing in common.
    pub fn new(collection: Option<&LocalId>, filter: &CapabilityId) -> Self {
        // No identifier has a slash.
        Self(match collection {
            None => filter.as_str().to_owned(),
            Some(collection) => format!("{}/{}", collection.as_str(), filter.as_str()),
        })
    }

    pub(crate) fn from_text(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The name as it is stored.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The values that a filter maps an Offering to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    name: ColumnName,
    scalar_type: ScalarType,
    pointers: Vec<Pointer>,
}

impl Mapping {
    /// The filter `definition` of the Service or of a Collection maps to everything at `pointers` in the Full form.
    pub fn new(
        collection: Option<&LocalId>,
        definition: &FilterDefinition,
        pointers: Vec<Pointer>,
    ) -> Self {
        Self {
            name: ColumnName::new(collection, definition.id()),
            scalar_type: definition.scalar_type(),
            pointers,
        }
    }

    /// The column that holds the values.
    pub fn name(&self) -> &ColumnName {
        &self.name
    }

    /// Their type.
    pub fn scalar_type(&self) -> ScalarType {
        self.scalar_type
    }

    /// Whether values may be names of Collections: then a caller who does not see all of these is not shown all values.
    pub fn names_collections(&self) -> bool {
        let mut pointers = self.pointers.iter();
        pointers.any(|pointer| pointer.tokens().next() == Some("collection_ids"))
    }

    /// Whether values are strings from `/collection_ids` alone.
    fn is_membership(&self) -> bool {
        let mut pointers = self.pointers.iter();
        self.scalar_type == ScalarType::String
            && pointers.all(|pointer| pointer.as_str() == "/collection_ids")
    }

    /// The value, as JSON text, that each of these Collections is in a column; `None` when values may come from elsewhere too.
    pub(crate) fn collection_texts<'c>(
        &self,
        collections: impl Iterator<Item = &'c str>,
    ) -> Option<HashSet<Vec<u8>>> {
        let text = |id: &str| Value::from(id).to_string().into_bytes();
        self.is_membership()
            .then(|| collections.map(text).collect())
    }

    /// The mapped set of an Offering in its Full form: each value once, ascending. An array gives its elements; what is not of the filter's type
    /// is not mapped.
    pub fn values(&self, full: &Value) -> Vec<Scalar> {
        let found = self
            .pointers
            .iter()
            .flat_map(|pointer| pointer.values(full));
        let mut scalars: Vec<_> = found
            .filter_map(|value| self.scalar_type.scalar(value))
            .collect();
        scalars.sort_unstable();
        scalars.dedup();
        scalars
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn mapping(scalar_type: &str, pointers: &[&str]) -> Mapping {
        let definition = FilterDefinition::validate(json!({
            "id": "f", "title": "F", "description": "F.", "type": scalar_type, "operators": ["eq"]
        }));
        let pointers = pointers
            .iter()
            .map(|text| Pointer::parse(text).unwrap())
            .collect();
        Mapping::new(None, &definition.unwrap(), pointers)
    }

    #[test]
    fn values_come_from_all_pointers_once_and_of_the_type_only() {
        let full = json!({
            "id": "x", "name": "1", "price": {"amount": "10.50"}, "collection_ids": ["b", "a"],
            "attributes": {"n": [1, 1.0, "1", 2.5, null, {"v": 3}, [7]], "m": 10e-1, "more": ["10.5", "x", "007"]}
        });
        let values = |scalar_type: &str, pointers: &[&str]| -> Vec<Value> {
            let values = mapping(scalar_type, pointers).values(&full);
            values.iter().map(Scalar::to_value).collect()
        };
        let both = ["/attributes/n", "/attributes/m"];
        assert_eq!(values("integer", &both), [json!(1), json!(7)]);
        assert_eq!(values("number", &both), [json!(1), json!(2.5), json!(7)]);
        assert_eq!(values("string", &both), [json!("1")]);
        assert_eq!(values("boolean", &both), Vec::<Value>::new());
        assert_eq!(
            values("string", &["/collection_ids"]),
            [json!("a"), json!("b")]
        );
        assert_eq!(
            values("decimal", &["/attributes/more", "/price/amount"]),
            [json!("10.5")]
        );
        assert_eq!(values("integer", &["/attributes/n/5/v"]), [json!(3)]);
        assert_eq!(values("string", &["/nowhere"]), Vec::<Value>::new());
    }

    #[test]
    fn names_tell_scopes_apart() {
        let filter = CapabilityId::parse("size").unwrap();
        let collection = LocalId::parse("shoes").unwrap();
        assert_eq!(ColumnName::new(None, &filter).as_str(), "size");
        assert_eq!(
            ColumnName::new(Some(&collection), &filter).as_str(),
            "shoes/size"
        );
    }
}
