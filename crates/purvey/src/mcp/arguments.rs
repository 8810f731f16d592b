//! What the tools take. The comments are what a model reads.

use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Which Service.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Inspect {
    /// The Service's origin, such as `https://market.example`.
    pub(super) origin: String,
}

/// What a search can use.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Capabilities {
    /// The Service's origin, such as `https://market.example`.
    pub(super) origin: String,
    /// Identifier of the Collection that the search will name, whose own filters and sorts come in addition.
    #[serde(default)]
    pub(super) collection: Option<String>,
    /// The continuation of an earlier result; all other arguments but origin are then ignored.
    #[serde(default)]
    pub(super) continuation: Option<String>,
}

/// Which Collections.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListCollections {
    /// The Service's origin, such as `https://market.example`.
    pub(super) origin: String,
    /// Most items of this result, 1 through 100; 20 unless given.
    #[serde(default)]
    #[schemars(range(min = 1, max = 100))]
    pub(super) limit: Option<usize>,
    /// The continuation of an earlier result; all other arguments but origin are then ignored.
    #[serde(default)]
    pub(super) continuation: Option<String>,
}

/// Which Offerings.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListOfferings {
    /// The Service's origin, such as `https://market.example`.
    pub(super) origin: String,
    /// Identifier of a Collection: only its direct members.
    #[serde(default)]
    pub(super) collection: Option<String>,
    /// Most items of this result, 1 through 100; 20 unless given.
    #[serde(default)]
    #[schemars(range(min = 1, max = 100))]
    pub(super) limit: Option<usize>,
    /// The continuation of an earlier result; all other arguments but origin are then ignored.
    #[serde(default)]
    pub(super) continuation: Option<String>,
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
    /// The Service's origin, such as `https://market.example`.
    pub(super) origin: String,
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
    /// Most items of this result, 1 through 100; 20 unless given.
    #[serde(default)]
    #[schemars(range(min = 1, max = 100))]
    pub(super) limit: Option<usize>,
    /// The continuation of an earlier result; all other arguments but origin are then ignored.
    #[serde(default)]
    pub(super) continuation: Option<String>,
}

/// What Collections to find. One of query, parent and roots is needed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchCollections {
    /// The Service's origin, such as `https://market.example`.
    pub(super) origin: String,
    /// Text to search for; the Service decides what it means.
    #[serde(default)]
    pub(super) query: Option<String>,
    /// Identifier of a Collection: only its direct children.
    #[serde(default)]
    pub(super) parent: Option<String>,
    /// Only Collections without a parent.
    #[serde(default)]
    pub(super) roots: bool,
    /// Most items of this result, 1 through 100; 20 unless given.
    #[serde(default)]
    #[schemars(range(min = 1, max = 100))]
    pub(super) limit: Option<usize>,
    /// The continuation of an earlier result; all other arguments but origin are then ignored.
    #[serde(default)]
    pub(super) continuation: Option<String>,
}

/// Which Offering.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GetOffering {
    /// The Service's origin, such as `https://market.example`.
    pub(super) origin: String,
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
    /// The Service's origin, such as `https://market.example`.
    pub(super) origin: String,
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
