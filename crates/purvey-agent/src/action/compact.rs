//! Compact targets: one plain request.

use http::Method;
use purvey_odp::action::{ContentType, HttpMethod, HttpTarget};
use purvey_odp::identity::ServiceOrigin;
use url::Url;

/// A compact target at its Service.
#[derive(Clone, Debug)]
pub(super) struct Compact {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) content_type: Option<String>,
    /// The schema of the request's body, fetched when there is a body to hold to it.
    pub(super) schema: Option<Url>,
    /// Media types of a successful answer; empty when nothing is said.
    pub(super) accepts: Vec<String>,
}

impl Compact {
    pub(super) fn new(target: &HttpTarget, origin: &ServiceOrigin) -> Self {
        let request = target.request.as_ref();
        let text = |content_type: &ContentType| content_type.as_str().to_owned();
        Self {
            method: match target.method {
                HttpMethod::Get => Method::GET,
                HttpMethod::Post => Method::POST,
            },
            url: target.href.resolve(origin),
            content_type: request.and_then(|request| request.content_type()).map(text),
            schema: request
                .and_then(|request| request.schema())
                .map(|schema| schema.url.resolve(origin)),
            accepts: target
                .response_content_types
                .as_slice()
                .iter()
                .map(text)
                .collect(),
        }
    }
}
