//! Actions: what can follow the discovery of an Offering. Nothing here is ever invoked by being read (ODP §4).

mod target;

pub use target::{
    ActionRequest, ContentType, ContentTypes, HttpMethod, HttpTarget, OpenApiTarget,
    SchemaReference,
};

use crate::identity::LocalId;
use crate::limits;
use crate::report::{Invalid, Place, Report};
use crate::service::Authentication;
use crate::shape;
use crate::text::Text;
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::fmt;

/// One operation that follows discovery. The object is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// Whether the target wants authentication.
    pub authentication: Authentication,
    /// Unique within the Offering.
    pub id: LocalId,
    /// The result sought.
    pub rel: Relation,
    /// For people; 1 through 512 code points.
    pub description: Option<Text<512>>,
    /// What to call.
    pub target: Target,
}

/// The target of an Action: always exactly one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Member `http`: one plain request.
    Http(HttpTarget),
    /// Member `openapi`: one operation of an OpenAPI 3.1 document.
    OpenApi(OpenApiTarget),
}

/// `rel`: the result that an Action brings. 1 through 64 of `a-z 0-9 -`, beginning with a letter, hyphens only inside.
/// A relation that this version does not define is kept, and never selected automatically.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Relation(String);

/// The relations that this version defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CoreRelation {
    /// Retrieve a representation, free or paid.
    Download,
    /// Complete a one-time acquisition.
    Purchase,
    /// Obtain current terms.
    Quote,
    /// Hold or allocate a resource.
    Reserve,
    /// Execute an online capability.
    Invoke,
}

impl Relation {
    /// Parses a relation.
    ///
    /// # Errors
    /// What is not a lower-case token of at most 64 characters.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        if is_relation(text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Invalid::one("", RELATION_RULE))
        }
    }

    /// The wire value.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The defined relation that this is, if it is one.
    pub fn core(&self) -> Option<CoreRelation> {
        Some(match self.as_str() {
            "download" => CoreRelation::Download,
            "purchase" => CoreRelation::Purchase,
            "quote" => CoreRelation::Quote,
            "reserve" => CoreRelation::Reserve,
            "invoke" => CoreRelation::Invoke,
            _ => return None,
        })
    }

    /// Reads a JSON string; notes what is not a relation.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let text = shape::string(report, place, value)?;
        if is_relation(&text) {
            return Some(Self(text));
        }
        report.add(place, RELATION_RULE);
        None
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

const RELATION_RULE: &str = "Must be a token of at most 64 lower-case letters, digits and inner hyphens that begins with a letter.";

fn is_relation(text: &str) -> bool {
    text.len() <= limits::ACTION_RELATION_CHARS
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.split('-').all(|part| {
            !part.is_empty()
                && part
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        })
}

impl Action {
    /// Reads one Action and notes every rule that it breaks.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let mut map = shape::object(report, place, value)?;
        let before = report.len();
        let authentication = shape::required(
            report,
            place,
            &mut map,
            "authentication",
            Authentication::read,
        );
        let id = shape::required(report, place, &mut map, "id", LocalId::read);
        let rel = shape::required(report, place, &mut map, "rel", Relation::read);
        let description = shape::optional(report, place, &mut map, "description", Text::read);
        if map.contains_key("http") == map.contains_key("openapi") {
            report.add(place, "Must have exactly one of http and openapi.");
        }
        let http =
            shape::optional(report, place, &mut map, "http", HttpTarget::read).map(Target::Http);
        let openapi = shape::optional(report, place, &mut map, "openapi", OpenApiTarget::read)
            .map(Target::OpenApi);
        shape::closed(report, place, &map);
        let action = Self {
            authentication: authentication?,
            id: id?,
            rel: rel?,
            description,
            target: http.or(openapi)?,
        };
        (report.len() == before).then_some(action)
    }

    /// Reads `actions`: 1 through 16, no `id` twice.
    pub fn read_list(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Vec<Self>> {
        let actions = shape::list(report, place, value, 1..=limits::ACTIONS, Self::read)?;
        let before = report.len();
        let mut seen = HashSet::with_capacity(actions.len());
        for (i, action) in actions.iter().enumerate() {
            if !seen.insert(action.id.as_str()) {
                report.add(
                    &place.index(i).key("id"),
                    "Must not be the id of an earlier Action.",
                );
            }
        }
        (report.len() == before).then_some(actions)
    }

    /// The wire form.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("authentication".into(), self.authentication.as_str().into());
        map.insert("id".into(), self.id.as_str().into());
        map.insert("rel".into(), self.rel.as_str().into());
        if let Some(description) = &self.description {
            map.insert("description".into(), description.as_str().into());
        }
        match &self.target {
            Target::Http(target) => map.insert("http".into(), target.to_value()),
            Target::OpenApi(target) => map.insert("openapi".into(), target.to_value()),
        };
        Value::Object(map)
    }
}

#[cfg(test)]
mod tests;
