//! Invoking an Action: only here, and only when a caller asks for it.

use super::openapi::{Location, OpenApi, Parameter};
use super::{Request, ResolvedAction};
use crate::issue::{Fault, IssueCode, Scope};
use crate::schema::Schema;
use crate::service::Service;
use crate::supporting::Supporting;
use crate::transport::{Class, Fetch, Operation as Budget};
use crate::{Code, Error};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use purvey_odp::decode::{Bounds, decode};
use purvey_odp::identity::ServiceOrigin;
use purvey_odp::media;
use purvey_odp::report::Invalid;
use serde_json::Value;
use url::Url;

/// What an Action is given. Empty unless something is added.
#[derive(Clone, Debug, Default)]
pub struct Input {
    parameters: Vec<(String, Value)>,
    body: Option<Content>,
    headers: HeaderMap,
    credentials: Vec<(ServiceOrigin, HeaderName, HeaderValue)>,
}

#[derive(Clone, Debug)]
enum Content {
    Json(Value),
    Bytes(String, Bytes),
}

/// What an Action answered: whatever the media type, and untrusted.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Answer {
    /// 2xx.
    pub status: StatusCode,
    /// The response's fields.
    pub headers: HeaderMap,
    /// The whole body without content codings.
    pub body: Bytes,
    /// The URL that answered.
    pub url: Url,
}

/// Fields that a request makes itself, or that say who asks: the latter are credentials of one origin.
const RESERVED: [&str; 14] = [
    "accept",
    "aep-authorization",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "host",
    "payment-signature",
    "proxy-authorization",
    "transfer-encoding",
    "upgrade",
];

impl Input {
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// A JSON body. It is held to the schema of the request when there is one.
    #[must_use]
    pub fn json(mut self, value: impl Into<Value>) -> Self {
        self.body = Some(Content::Json(value.into()));
        self
    }

    /// A body of any media type.
    #[must_use]
    pub fn bytes(mut self, content_type: impl Into<String>, body: impl Into<Bytes>) -> Self {
        self.body = Some(Content::Bytes(content_type.into(), body.into()));
        self
    }

    /// A parameter that the OpenAPI document defines: a string, a number, a boolean, or an array of them.
    #[must_use]
    pub fn parameter(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.parameters.push((name.into(), value.into()));
        self
    }

    /// A further field of the request, such as `Idempotency-Key`. Fields that the request makes itself and credentials are
    /// refused when the Action is invoked.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.append(name, value);
        self
    }

    /// A credential or payment for one origin, such as the answer to a challenge. It is sent when the Action's target has that
    /// origin, and nowhere else.
    #[must_use]
    pub fn credential(
        mut self,
        origin: &ServiceOrigin,
        name: HeaderName,
        mut value: HeaderValue,
    ) -> Self {
        value.set_sensitive(true);
        self.credentials.push((origin.clone(), name, value));
        self
    }
}

fn refused(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidRequest, message)
}

impl Service {
    /// Invokes an Action of an Offering of this Service. Nothing else ever does, whatever its relation says.
    ///
    /// The request is made as the Action defines it; a body is held to its schema before anything is sent. Credentials that
    /// the transport has are sent to the Service's own origin alone: an Action that leads elsewhere is invoked without any. A 401 or 402 comes back as an error with its
    /// [`challenges`](Error::challenges): nothing is enrolled or paid here, and what is not a read is not retried.
    ///
    /// # Errors
    /// [`Code::InvalidRequest`] for an input that does not fit, [`Code::UnsupportedSchema`] when it cannot be known whether it
    /// fits, and what the target answers.
    pub async fn invoke(&self, action: &ResolvedAction, input: Input) -> Result<Answer, Error> {
        let budget = self.settings().operation();
        let fetch = self.request(&budget, action, input).await?;
        let fetched = self.fetch(&budget, fetch).await?;
        Ok(Answer {
            status: fetched.status,
            headers: fetched.headers,
            body: fetched.body,
            url: fetched.url,
        })
    }

    async fn request(
        &self,
        budget: &Budget,
        action: &ResolvedAction,
        input: Input,
    ) -> Result<Fetch, Error> {
        let mut headers = further(&input.headers)?;
        let url = match &action.request {
            Request::Compact(compact) if input.parameters.is_empty() => compact.url.clone(),
            Request::Compact(_) => return Err(refused("The Action has no parameters.")),
            Request::OpenApi(operation) => target(operation, &input.parameters, &mut headers)?,
        };
        let accepts = match &action.request {
            Request::Compact(compact) => &compact.accepts,
            Request::OpenApi(operation) => &operation.accepts,
        };
        if let Ok(value) = HeaderValue::from_str(&accepts.join(", "))
            && !accepts.is_empty()
        {
            headers.insert(header::ACCEPT, value);
        }
        let supporting = Supporting {
            transport: &*self.settings().transport,
            operation: budget,
        };
        let body = self.body(supporting, action, input.body).await?;
        for (origin, name, value) in input.credentials {
            if origin.is_origin_of(&url) {
                headers.append(name, value);
            }
        }
        // A Service must not have the Agent act elsewhere with what it is known by there.
        let elsewhere = !self.origin().is_origin_of(&url);
        let mut fetch = Fetch::get(url, Class::Invoke);
        fetch.anonymous = elsewhere;
        fetch.method = action.method().clone();
        if let Some((content_type, bytes)) = body {
            let content_type = HeaderValue::from_str(&content_type)
                .map_err(|_| refused("The media type of the body cannot be sent."))?;
            headers.insert(header::CONTENT_TYPE, content_type);
            fetch.body = Some(bytes);
        }
        fetch.headers = headers;
        Ok(fetch)
    }

    /// The body's media type and bytes, after it was held to what the Action says of it.
    async fn body(
        &self,
        supporting: Supporting<'_>,
        action: &ResolvedAction,
        content: Option<Content>,
    ) -> Result<Option<(String, Bytes)>, Error> {
        let expected = Expected::of(&action.request);
        let Some(content) = content else {
            return match expected.required {
                true => Err(refused("The Action needs a body.")),
                false => Ok(None),
            };
        };
        if !expected.permitted {
            return Err(refused("The Action takes no body."));
        }
        let (content_type, schema) = expected.content(&content)?;
        let value = match &content {
            Content::Json(value) => Some(value.clone()),
            Content::Bytes(..) if !is_json(&content_type) => None,
            Content::Bytes(_, bytes) => {
                let decoded = decode(bytes, Bounds::OPENAPI);
                Some(decoded.map_err(|error| refused(error.to_string()))?)
            }
        };
        if let Some(schema) = schema {
            let unknown = || Fault::new(IssueCode::Unsupported, "Only JSON has a schema.");
            let value = value.ok_or_else(unknown).map_err(unsupported)?;
            let schema = match (schema, &action.request) {
                (At::Url(url), _) => Schema::fetch(&supporting, url).await,
                (At::Pointer(pointer), Request::OpenApi(operation)) => operation.schema(&pointer),
                (At::Pointer(_), Request::Compact(_)) => Err(unknown()),
            };
            let checked = schema.map_err(unsupported)?;
            let checked = checked.check(Scope::Action, "", value).await;
            checked.map_err(|issue| match issue.code {
                IssueCode::Mismatch => {
                    Error::invalid_request(&Invalid::one(issue.pointer, issue.message))
                }
                _ => Error::new(Code::UnsupportedSchema, issue.message),
            })?;
        }
        let bytes = match content {
            Content::Json(value) => Bytes::from(value.to_string()),
            Content::Bytes(_, bytes) => bytes,
        };
        Ok(Some((content_type, bytes)))
    }
}

fn unsupported(fault: Fault) -> Error {
    match fault.cause {
        Some(cause) => cause,
        None => Error::new(Code::UnsupportedSchema, fault.message),
    }
}

/// What an Action says of its body.
struct Expected<'a> {
    required: bool,
    permitted: bool,
    /// Media types and where their schemas are; none when nothing is said.
    contents: Vec<(&'a str, Option<At>)>,
    /// The schema of a body of which no media type is said.
    any: Option<At>,
}

/// Where a schema is.
#[derive(Clone)]
enum At {
    Url(Url),
    /// In the OpenAPI document.
    Pointer(String),
}

impl<'a> Expected<'a> {
    fn of(request: &'a Request) -> Self {
        match request {
            Request::Compact(compact) => {
                let schema = compact.schema.clone().map(At::Url);
                let content_type = compact.content_type.as_deref();
                Self {
                    required: schema.is_some() && compact.method != Method::GET,
                    permitted: compact.method != Method::GET,
                    contents: content_type
                        .map(|content_type| (content_type, schema.clone()))
                        .into_iter()
                        .collect(),
                    any: schema,
                }
            }
            Request::OpenApi(operation) => {
                let contents = operation.body.iter().flat_map(|body| &body.contents);
                Self {
                    required: operation.body.as_ref().is_some_and(|body| body.required),
                    permitted: operation.body.is_some(),
                    contents: contents
                        .map(|(media, at)| (media.as_str(), at.clone().map(At::Pointer)))
                        .collect(),
                    any: None,
                }
            }
        }
    }

    /// The media type that the content is sent as, and its schema.
    fn content(&self, content: &Content) -> Result<(String, Option<At>), Error> {
        if self.contents.is_empty() {
            let content_type = match content {
                Content::Json(_) => "application/json",
                Content::Bytes(content_type, _) => content_type,
            };
            return Ok((content_type.to_owned(), self.any.clone()));
        }
        let mut expected = self.contents.iter();
        let found = expected.find(|(expected, _)| match content {
            Content::Json(_) => is_json(expected),
            Content::Bytes(content_type, _) => {
                media::essence(content_type).is_some_and(|e| media::essence(expected) == Some(e))
            }
        });
        let (expected, schema) = found.ok_or_else(|| {
            let types: Vec<&str> = self.contents.iter().map(|(media, _)| *media).collect();
            refused(format!("The body must be {}.", types.join(" or ")))
        })?;
        let content_type = match content {
            Content::Json(_) => (*expected).to_owned(),
            Content::Bytes(content_type, _) => content_type.clone(),
        };
        Ok((content_type, schema.clone()))
    }
}

/// Whether a media type is JSON.
fn is_json(content_type: &str) -> bool {
    media::essence(content_type)
        .is_some_and(|essence| essence == "application/json" || essence.ends_with("+json"))
}

fn further(headers: &HeaderMap) -> Result<HeaderMap, Error> {
    match headers
        .keys()
        .find(|name| RESERVED.contains(&name.as_str()))
    {
        Some(name) => Err(refused(format!(
            "The field {name} is not for callers to set."
        ))),
        None => Ok(headers.clone()),
    }
}

/// The URL of an operation with these parameters; those that are fields are added to `headers`.
fn target(
    operation: &OpenApi,
    values: &[(String, Value)],
    headers: &mut HeaderMap,
) -> Result<Url, Error> {
    for (name, _) in values {
        let mut known = operation.parameters.iter();
        let known = known.any(|p| p.name == *name && p.location != Location::Elsewhere);
        if !known || values.iter().filter(|(other, _)| other == name).count() > 1 {
            return Err(refused(format!(
                "The parameter {name:?} is not one of the operation's, or there twice."
            )));
        }
    }
    let mut url = operation.url.clone();
    let mut query = Vec::new();
    for parameter in &operation.parameters {
        let value = values.iter().find(|(name, _)| *name == parameter.name);
        let Some((name, value)) = value else {
            if parameter.required || parameter.location == Location::Path {
                return Err(refused(format!(
                    "The parameter {:?} is needed.",
                    parameter.name
                )));
            }
            continue;
        };
        let texts = texts(name, value)?;
        match parameter.location {
            Location::Path => {
                let text = path_segment(parameter, &texts)?;
                url = url.replace(&format!("{{{name}}}"), &text);
            }
            Location::Query => query.extend(pairs(parameter, &texts)),
            Location::Header => {
                let field = field(name, &texts.join(","))?;
                headers.insert(field.0, field.1);
            }
            Location::Elsewhere => {}
        }
    }
    let mut url = Url::parse(&url).map_err(|_| refused("The operation has no usable URL."))?;
    if !query.is_empty() {
        url.set_query(Some(&query.join("&")));
    }
    Ok(url)
}

fn field(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), Error> {
    let name = HeaderName::from_bytes(name.as_bytes()).ok();
    let name = name.filter(|name| !RESERVED.contains(&name.as_str()));
    name.zip(HeaderValue::from_str(value).ok())
        .ok_or_else(|| refused("A parameter cannot be a field of the request."))
}

/// The texts of a scalar or an array of scalars.
fn texts(name: &str, value: &Value) -> Result<Vec<String>, Error> {
    let items = match value {
        Value::Array(items) if !items.is_empty() => items.as_slice(),
        scalar => std::slice::from_ref(scalar),
    };
    items
        .iter()
        .map(|item| match item {
            Value::String(text) => Ok(text.clone()),
            Value::Number(_) | Value::Bool(_) => Ok(item.to_string()),
            _ => Err(refused(format!(
                "The parameter {name:?} must be a string, a number, a boolean or an array of them."
            ))),
        })
        .collect()
}

fn path_segment(parameter: &Parameter, texts: &[String]) -> Result<String, Error> {
    let encoded: Vec<String> = texts.iter().map(|text| encode(text)).collect();
    let segment = encoded.join(",");
    if matches!(segment.as_str(), "" | "." | "..") {
        let message = format!("The parameter {:?} cannot be {segment:?}.", parameter.name);
        return Err(refused(message));
    }
    Ok(segment)
}

fn pairs(parameter: &Parameter, texts: &[String]) -> Vec<String> {
    let name = encode(&parameter.name);
    let encoded = texts.iter().map(|text| encode(text));
    if parameter.explode {
        return encoded.map(|text| format!("{name}={text}")).collect();
    }
    let encoded: Vec<String> = encoded.collect();
    vec![format!("{name}={}", encoded.join(","))]
}

/// Percent-encodes everything but the unreserved characters (RFC 3986 §2.3).
fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
