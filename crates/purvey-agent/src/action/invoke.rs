//! Invoking an Action: only here, and only when a caller asks for it.

use super::input::{Content, Input};
use super::parameters::{self, target};
use super::{Request, ResolvedAction, refused, unsupported};
use crate::issue::{Fault, IssueCode, Scope};
use crate::schema::Schema;
use crate::service::Service;
use crate::supporting::Supporting;
use crate::transport::{Class, Fetch, Operation as Budget};
use crate::{Code, Error};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use purvey_odp::decode::{Bounds, decode};
use purvey_odp::media;
use purvey_odp::report::Invalid;
use url::Url;

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

impl Service {
    /// Invokes an Action of an Offering of this Service. Nothing else ever does, whatever its relation says.
    ///
    /// The request is made as the Action defines it; parameters and body are held to their schemas before anything is sent. Credentials that
    /// the transport has are sent to the Service's own origin alone: an Action that leads elsewhere is invoked without any. A
    /// 401 or 402 comes back as an error with its [`challenges`](Error::challenges): nothing is enrolled or paid here, and
    /// what is not a read is not retried.
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
        let mut headers = input.fields()?;
        let url = match &action.request {
            Request::Compact(compact) if input.parameters.is_empty() => compact.url.clone(),
            Request::Compact(_) => return Err(refused("The Action has no parameters.")),
            Request::OpenApi(operation) => {
                let url = target(operation, &input.parameters, &mut headers)?;
                parameters::check(operation, &input.parameters).await?;
                url
            }
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
