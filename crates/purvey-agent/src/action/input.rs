//! What an Action is given.

use super::refused;
use crate::Error;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use purvey_odp::identity::ServiceOrigin;
use serde_json::Value;

/// What an Action is given. Empty unless something is added.
#[derive(Clone, Debug, Default)]
pub struct Input {
    pub(super) parameters: Vec<(String, Value)>,
    pub(super) body: Option<Content>,
    headers: HeaderMap,
    pub(super) credentials: Vec<(ServiceOrigin, HeaderName, HeaderValue)>,
}

#[derive(Clone, Debug)]
pub(super) enum Content {
    Json(Value),
    Bytes(String, Bytes),
}

/// Fields that a request makes itself, or that say who asks: the latter are credentials of one origin.
pub(super) const RESERVED: [&str; 14] = [
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

    /// A parameter that the OpenAPI document defines: a string, a number, a boolean, or an array of them. It is held to its
    /// schema as the text that is sent: `"5"` is an integer as well as `5` is.
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

    /// The further fields, when callers may set them.
    pub(super) fn fields(&self) -> Result<HeaderMap, Error> {
        let mut names = self.headers.keys();
        match names.find(|name| RESERVED.contains(&name.as_str())) {
            Some(name) => Err(refused(format!(
                "The field {name} is not for callers to set."
            ))),
            None => Ok(self.headers.clone()),
        }
    }
}
