//! Members that the protocol does not define.

use super::Record;
use purvey_odp::identity::ResourceType;
use serde_json::Value;

/// The members that the protocol defines, of the objects that may have others (ODP §4).
const OFFERING_MEMBERS: [&str; 13] = [
    "id",
    "name",
    "description",
    "images",
    "language",
    "localizations",
    "auth_expands",
    "web_url",
    "collection_ids",
    "price",
    "schema",
    "attributes",
    "actions",
];
const COLLECTION_MEMBERS: [&str; 9] = [
    "id",
    "name",
    "description",
    "images",
    "language",
    "localizations",
    "auth_expands",
    "web_url",
    "parent_ids",
];
const PRICE_MEMBERS: [&str; 6] = ["type", "amount", "currency", "minimum", "maximum", "unit"];

impl Record {
    /// JSON Pointers of the members that the protocol does not define: they are kept and served, and may be
    /// typing errors.
    pub(crate) fn unknown_members(&self) -> Vec<String> {
        let known: &[&str] = match self.kind {
            ResourceType::Offering => &OFFERING_MEMBERS,
            ResourceType::Collection => &COLLECTION_MEMBERS,
        };
        let unknown = |value: Option<&Value>, known: &[&str], above: &str| -> Vec<String> {
            let members = value.and_then(Value::as_object).into_iter().flatten();
            let names = members.map(|(name, _)| name.as_str());
            let names = names.filter(|name| !known.contains(name));
            names
                .map(|name| format!("{above}/{}", name.replace('~', "~0").replace('/', "~1")))
                .collect()
        };
        let mut out = unknown(Some(&self.wire), known, "");
        out.extend(unknown(self.wire.get("price"), &PRICE_MEMBERS, "/price"));
        out
    }
}
