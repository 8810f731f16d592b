//! What the tools take. The comments are what a model reads.
//!
//! What all tools take, and what all lists take, stands here once: it is taken out of a call before the tool's own arguments
//! are read, and put into the schema of each tool.

use rmcp::model::{JsonObject, Tool};
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Some arguments of a call.
pub(super) trait Arguments: DeserializeOwned + JsonSchema + 'static {}

impl<T: DeserializeOwned + JsonSchema + 'static> Arguments for T {}

/// Takes these arguments out of a call, which may have others.
pub(super) fn take<T: Arguments>(arguments: &mut JsonObject) -> serde_json::Result<T> {
    let schema = schema::<T>();
    let names = schema.get("properties").and_then(Value::as_object);
    let names = names.into_iter().flat_map(Map::keys);
    let taken = names.filter_map(|name| arguments.shift_remove_entry(name));
    serde_json::from_value(Value::Object(taken.collect()))
}

/// The arguments of a call that has no others.
pub(super) fn parse<T: Arguments>(arguments: JsonObject) -> serde_json::Result<T> {
    serde_json::from_value(Value::Object(arguments))
}

/// The schema of some arguments.
pub(super) fn schema<T: Arguments>() -> JsonObject {
    let tool = Tool::new("", "", Arc::new(JsonObject::new()));
    Arc::unwrap_or_clone(tool.with_input_schema::<T>().input_schema)
}

/// The schema of these arguments together with `further` ones.
pub(super) fn joined(mut first: JsonObject, further: JsonObject) -> JsonObject {
    for (name, value) in further {
        match (first.get_mut(&name), value) {
            (Some(Value::Object(members)), Value::Object(more)) => members.extend(more),
            (Some(Value::Array(items)), Value::Array(more)) => items.extend(more),
            (_, value) => {
                first.insert(name, value);
            }
        }
    }
    first
}

/// Which Service: of every tool.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Whose {
    /// The Service's origin, such as `https://market.example`.
    pub(super) origin: String,
}

/// How much: of every tool that lists.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Extent {
    /// Most items of this result, 1 through 100; 20 unless given, and 100 for list_capabilities.
    #[serde(default)]
    #[schemars(range(min = 1, max = 100))]
    pub(super) limit: Option<usize>,
    /// The continuation of an earlier result of this tool and origin; other arguments stay as they were, or are left out.
    #[serde(default)]
    pub(super) continuation: Option<String>,
}

/// Nothing else.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Inspect {}

/// What a search can use.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Capabilities {
    /// Identifier of the Collection that the search will name, whose own filters and sorts come in addition.
    #[serde(default)]
    pub(super) collection: Option<String>,
}

/// Which Collections.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListCollections {}

/// Which Offerings.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListOfferings {
    /// Identifier of a Collection: only its direct members.
    #[serde(default)]
    pub(super) collection: Option<String>,
}

/// One condition.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Filter {
    /// Identifier of a filter that list_capabilities gives.
    pub(super) id: String,
    /// One of the operators of that filter: eq, in, lt, lte, gt, gte, exists.
    pub(super) operator: String,
    /// A value of the filter's type; an array of them for in; true or false for exists. A decimal is a string.
    pub(super) value: Value,
}

/// What Offerings to find. A query or a filter is needed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchOfferings {
    /// Text to search for; the Service decides what it means.
    #[serde(default)]
    pub(super) query: Option<String>,
    /// Conditions that each result fulfils, all of them.
    #[serde(default)]
    pub(super) filters: Vec<Filter>,
    /// Identifier of a sort that list_capabilities gives.
    #[serde(default)]
    pub(super) sort: Option<String>,
    /// Identifiers of refinable filters whose values are to be counted over the whole result.
    #[serde(default)]
    pub(super) refinements: Vec<String>,
    /// Identifier of a Collection: only its members.
    #[serde(default)]
    pub(super) collection: Option<String>,
    /// Members of the Collections below that one as well.
    #[serde(default)]
    pub(super) include_descendants: bool,
}

/// What Collections to find. One of query, parent and roots is needed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchCollections {
    /// Text to search for; the Service decides what it means.
    #[serde(default)]
    pub(super) query: Option<String>,
    /// Identifier of a Collection: only its direct children.
    #[serde(default)]
    pub(super) parent: Option<String>,
    /// Only Collections without a parent.
    #[serde(default)]
    pub(super) roots: bool,
}

/// Which Offering.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GetOffering {
    /// The Offering's identifier.
    pub(super) id: String,
    /// JSON Pointer of a part that an earlier result lists as omitted, such as /attributes/specification: only that part.
    #[serde(default)]
    pub(super) part: Option<String>,
}

/// Which Action, and what to give it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InvokeAction {
    /// The Offering's identifier.
    pub(super) offering: String,
    /// The Action's identifier, as get_offering gives it.
    pub(super) action: String,
    /// The request's body, as the Action's schema asks for it.
    #[serde(default)]
    pub(super) input: Option<Value>,
    /// Parameters of path and query by name, when the Action has some.
    #[serde(default)]
    pub(super) parameters: Map<String, Value>,
}
