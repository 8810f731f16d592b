//! How a Service is reached: endpoint base, MCP endpoints.

use super::Operation;
use crate::identity::LocalId;
use crate::limits;
use crate::reference::ResourceReference;
use crate::report::{Invalid, Place, Report};
use crate::shape;
use crate::text::{Description, Name};
use serde_json::{Map, Value};
use std::fmt;

/// `http`: where the operations are. The object is open.
#[derive(Clone, Debug, PartialEq)]
pub struct Http {
    /// The path below which the operations are.
    pub endpoint_base: EndpointBase,
    /// The OpenAPI 3.1 document of Actions that name none themselves.
    pub openapi: Option<ResourceReference>,
    /// Members that the protocol does not define.
    extra: Map<String, Value>,
}

impl Http {
    pub(super) fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let mut map = shape::object(report, place, value)?;
        let before = report.len();
        let endpoint_base =
            shape::required(report, place, &mut map, "endpoint_base", EndpointBase::read);
        let openapi = shape::optional(
            report,
            place,
            &mut map,
            "openapi",
            |report, place, value| {
                let mut map = shape::object(report, place, value)?;
                let url = shape::required(report, place, &mut map, "url", ResourceReference::read);
                shape::closed(report, place, &map);
                url
            },
        );
        let http = Self {
            endpoint_base: endpoint_base?,
            openapi,
            extra: map,
        };
        (report.len() == before).then_some(http)
    }

    pub(super) fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("endpoint_base".into(), self.endpoint_base.as_str().into());
        if let Some(url) = &self.openapi {
            let mut openapi = Map::new();
            openapi.insert("url".into(), url.as_str().into());
            map.insert("openapi".into(), openapi.into());
        }
        map.extend(self.extra.clone());
        Value::Object(map)
    }

    /// Members that the protocol does not define.
    pub fn extra(&self) -> &Map<String, Value> {
        &self.extra
    }
}

/// `endpoint_base`: a path of the Service Origin of at most 2,048 ASCII characters, with one leading slash, without query
/// and fragment. It may end in a slash, which changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EndpointBase(String);

impl EndpointBase {
    /// Parses an endpoint base.
    ///
    /// # Errors
    /// What is not such a path.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        if is_endpoint_base(text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Invalid::one("", ENDPOINT_BASE_RULE))
        }
    }

    /// The path as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path of an operation at the Service Origin; nothing when `id` is given to an operation that takes none, or
    /// lacking for one that does.
    pub fn path(&self, operation: Operation, id: Option<&LocalId>) -> Option<String> {
        if operation.takes_id() != id.is_some() {
            return None;
        }
        let base = self.0.strip_suffix('/').unwrap_or(&self.0);
        let path = operation.path_template();
        let id = id.map_or("", LocalId::as_str);
        Some(format!("{base}/{}", path.replace("{id}", id)))
    }

    /// Reads a JSON string; notes what is not an endpoint base.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let text = shape::string(report, place, value)?;
        if is_endpoint_base(&text) {
            return Some(Self(text));
        }
        report.add(place, ENDPOINT_BASE_RULE);
        None
    }
}

impl fmt::Display for EndpointBase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

const ENDPOINT_BASE_RULE: &str = "Must be a path of at most 2048 ASCII characters that begins with exactly one slash, without query and fragment.";

fn is_endpoint_base(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_hex = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
    text.starts_with('/')
        && !text.starts_with("//")
        && text.len() <= limits::ENDPOINT_BASE_CHARS
        && bytes.iter().enumerate().all(|(i, b)| match b {
            b'%' => is_hex(i + 1) && is_hex(i + 2),
            b => b.is_ascii_alphanumeric() || b"._~!$&'()*+,;=:@/-".contains(b),
        })
}

/// One MCP endpoint of a Service. The object is closed; `type` is always `streamable-http`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpEndpoint {
    /// Where it is.
    pub url: ResourceReference,
    /// Its label.
    pub name: Option<Name>,
    /// What it is for.
    pub description: Option<Description>,
}

impl McpEndpoint {
    /// The only transport.
    pub const TYPE: &'static str = "streamable-http";

    /// Reads one endpoint and notes every rule that it breaks.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let mut map = shape::object(report, place, value)?;
        let before = report.len();
        shape::required(report, place, &mut map, "type", |report, place, value| {
            if shape::string(report, place, value)? != Self::TYPE {
                report.add(place, "Must be streamable-http.");
            }
            Some(())
        });
        let url = shape::required(report, place, &mut map, "url", ResourceReference::read);
        let name = shape::optional(report, place, &mut map, "name", Name::read);
        let description =
            shape::optional(report, place, &mut map, "description", Description::read);
        shape::closed(report, place, &map);
        let endpoint = Self {
            url: url?,
            name,
            description,
        };
        (report.len() == before).then_some(endpoint)
    }

    /// The wire form.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("type".into(), Self::TYPE.into());
        map.insert("url".into(), self.url.as_str().into());
        if let Some(name) = &self.name {
            map.insert("name".into(), name.as_str().into());
        }
        if let Some(description) = &self.description {
            map.insert("description".into(), description.as_str().into());
        }
        Value::Object(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_base_is_a_path() {
        let long = format!("/{}", "a".repeat(2047));
        for ok in ["/", "/odp/", "/catalog/odp", "/a%2Fb/~x", &long] {
            assert_eq!(EndpointBase::parse(ok).unwrap().as_str(), ok);
        }
        let longer = format!("/{}", "a".repeat(2048));
        for bad in [
            "",
            "odp",
            "//odp",
            "/odp/?tenant=1",
            "/odp#x",
            "/a b",
            "/é",
            "/a%2",
            "/a%zz",
            "/a[1]",
            "https://a.example/",
            &longer,
        ] {
            assert!(EndpointBase::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn operations_are_below_it() {
        let id = LocalId::parse("a.b~c").unwrap();
        for base in ["/odp", "/odp/"] {
            let base = EndpointBase::parse(base).unwrap();
            let path = |operation, id| base.path(operation, id);
            assert_eq!(
                path(Operation::ListOfferings, None).unwrap(),
                "/odp/offerings"
            );
            assert_eq!(
                path(Operation::SearchCollections, None).unwrap(),
                "/odp/collections/search"
            );
            assert_eq!(
                path(Operation::ListCollectionOfferings, Some(&id)).unwrap(),
                "/odp/collections/a.b~c/offerings"
            );
            assert_eq!(path(Operation::GetOffering, None), None);
            assert_eq!(path(Operation::ListOfferings, Some(&id)), None);
        }
        let root = EndpointBase::parse("/").unwrap();
        assert_eq!(
            root.path(Operation::GetOffering, Some(&id)).unwrap(),
            "/offerings/a.b~c"
        );
    }
}
