//! Where an Action goes: a plain HTTP request or an operation of an OpenAPI document.

use crate::limits;
use crate::media;
use crate::reference::ResourceReference;
use crate::report::{Invalid, Place, Report};
use crate::shape;
use crate::text::Text;
use serde_json::{Map, Value};
use std::collections::HashSet;

/// A compact HTTP target. The object is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpTarget {
    /// Where the request goes.
    pub href: ResourceReference,
    /// How it is made.
    pub method: HttpMethod,
    /// Its body, when it has one.
    pub request: Option<ActionRequest>,
    /// Media types of a successful answer: none when not advertised, at most 8, each once.
    pub response_content_types: ContentTypes,
}

/// Up to 8 distinct media types; empty stands for an absent member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContentTypes(Vec<ContentType>);

/// An OpenAPI target. The object is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenApiTarget {
    /// The document; absent: `http.openapi.url` of the Service Document, without which the Action is unusable.
    pub url: Option<ResourceReference>,
    /// `operationId`, case-sensitive, which the document must bear exactly once.
    pub operation_id: Text<{ limits::OPERATION_ID_CHARS }>,
}

/// What is known of a request body: at least one of its two members. The object is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionRequest {
    /// Its media type alone.
    ContentType(ContentType),
    /// Its schema alone.
    Schema(SchemaReference),
    /// Both.
    Both(ContentType, SchemaReference),
}

/// A reference to a JSON Schema, Draft 2020-12: `{"url": …}`. The object is closed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SchemaReference {
    /// Where the schema is.
    pub url: ResourceReference,
}

/// The methods that the protocol uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HttpMethod {
    /// `GET`
    Get,
    /// `POST`
    Post,
}

impl HttpMethod {
    /// The method with the wire name `name`, case-sensitively.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "GET" => Some(Self::Get),
            "POST" => Some(Self::Post),
            _ => None,
        }
    }

    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }

    fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let name = shape::string(report, place, value)?;
        let found = Self::from_name(&name);
        if found.is_none() {
            report.add(place, "Must be GET or POST.");
        }
        found
    }
}

/// A media type with or without parameters, of at most 255 characters, kept as written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ContentType(String);

impl ContentType {
    /// Parses a media type.
    ///
    /// # Errors
    /// What is not a media type, or is longer than 255 characters.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        if is_content_type(text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Invalid::one("", CONTENT_TYPE_RULE))
        }
    }

    /// The media type as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads a JSON string; notes what is not a media type.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let text = shape::string(report, place, value)?;
        if is_content_type(&text) {
            return Some(Self(text));
        }
        report.add(place, CONTENT_TYPE_RULE);
        None
    }
}

const CONTENT_TYPE_RULE: &str = "Must be a media type of at most 255 characters.";

fn is_content_type(text: &str) -> bool {
    text.len() <= 255 && text.trim() == text && media::essence(text).is_some()
}

impl ContentTypes {
    /// The media types `types`.
    ///
    /// # Errors
    /// More than 8, or one twice.
    pub fn new(types: Vec<ContentType>) -> Result<Self, Invalid> {
        if types.len() > limits::RESPONSE_CONTENT_TYPES {
            return Err(Invalid::one("", "Must have at most 8 media types."));
        }
        let distinct: HashSet<&str> = types.iter().map(ContentType::as_str).collect();
        if distinct.len() < types.len() {
            return Err(Invalid::one("", "Must not have a media type twice."));
        }
        Ok(Self(types))
    }

    /// The media types in their order.
    pub fn as_slice(&self) -> &[ContentType] {
        &self.0
    }

    fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let types = shape::list(
            report,
            place,
            value,
            1..=limits::RESPONSE_CONTENT_TYPES,
            ContentType::read,
        )?;
        let before = report.len();
        let mut seen = HashSet::with_capacity(types.len());
        for (i, content_type) in types.iter().enumerate() {
            if !seen.insert(content_type.as_str()) {
                report.add(&place.index(i), "Must not be listed twice.");
            }
        }
        (report.len() == before).then_some(Self(types))
    }
}

impl SchemaReference {
    /// Reads `{"url": …}`.
    pub fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let mut map = shape::object(report, place, value)?;
        let before = report.len();
        let url = shape::required(report, place, &mut map, "url", ResourceReference::read);
        shape::closed(report, place, &map);
        let reference = Self { url: url? };
        (report.len() == before).then_some(reference)
    }

    /// The wire form.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("url".into(), self.url.as_str().into());
        Value::Object(map)
    }
}

impl ActionRequest {
    /// The media type of the body, when it is known.
    pub fn content_type(&self) -> Option<&ContentType> {
        match self {
            Self::ContentType(content_type) | Self::Both(content_type, _) => Some(content_type),
            Self::Schema(_) => None,
        }
    }

    /// The schema of the body, when there is one.
    pub fn schema(&self) -> Option<&SchemaReference> {
        match self {
            Self::Schema(schema) | Self::Both(_, schema) => Some(schema),
            Self::ContentType(_) => None,
        }
    }

    fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let mut map = shape::object(report, place, value)?;
        let before = report.len();
        if !map.contains_key("content_type") && !map.contains_key("schema") {
            report.add(place, "Must have content_type or schema.");
        }
        let content_type =
            shape::optional(report, place, &mut map, "content_type", ContentType::read);
        let schema = shape::optional(report, place, &mut map, "schema", SchemaReference::read);
        shape::closed(report, place, &map);
        let request = match (content_type, schema) {
            (Some(content_type), Some(schema)) => Self::Both(content_type, schema),
            (Some(content_type), None) => Self::ContentType(content_type),
            (None, Some(schema)) => Self::Schema(schema),
            (None, None) => return None,
        };
        (report.len() == before).then_some(request)
    }

    fn to_value(&self) -> Value {
        let mut map = Map::new();
        if let Some(content_type) = self.content_type() {
            map.insert("content_type".into(), content_type.as_str().into());
        }
        if let Some(schema) = self.schema() {
            map.insert("schema".into(), schema.to_value());
        }
        Value::Object(map)
    }
}

impl HttpTarget {
    pub(super) fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let mut map = shape::object(report, place, value)?;
        let before = report.len();
        let href = shape::required(report, place, &mut map, "href", ResourceReference::read);
        let method = shape::required(report, place, &mut map, "method", HttpMethod::read);
        let request = shape::optional(report, place, &mut map, "request", ActionRequest::read);
        let types = shape::optional(
            report,
            place,
            &mut map,
            "response_content_types",
            ContentTypes::read,
        );
        shape::closed(report, place, &map);
        let target = Self {
            href: href?,
            method: method?,
            request,
            response_content_types: types.unwrap_or_default(),
        };
        (report.len() == before).then_some(target)
    }

    pub(super) fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("href".into(), self.href.as_str().into());
        map.insert("method".into(), self.method.as_str().into());
        if let Some(request) = &self.request {
            map.insert("request".into(), request.to_value());
        }
        let types = self.response_content_types.as_slice();
        if !types.is_empty() {
            let types: Vec<Value> = types.iter().map(|t| t.as_str().into()).collect();
            map.insert("response_content_types".into(), types.into());
        }
        Value::Object(map)
    }
}

impl OpenApiTarget {
    pub(super) fn read(report: &mut Report, place: &Place<'_>, value: Value) -> Option<Self> {
        let mut map = shape::object(report, place, value)?;
        let before = report.len();
        let url = shape::optional(report, place, &mut map, "url", ResourceReference::read);
        let operation_id = shape::required(report, place, &mut map, "operation_id", Text::read);
        shape::closed(report, place, &map);
        let target = Self {
            url,
            operation_id: operation_id?,
        };
        (report.len() == before).then_some(target)
    }

    pub(super) fn to_value(&self) -> Value {
        let mut map = Map::new();
        if let Some(url) = &self.url {
            map.insert("url".into(), url.as_str().into());
        }
        map.insert("operation_id".into(), self.operation_id.as_str().into());
        Value::Object(map)
    }
}
