//! Responses that carry an ODP document or an attribute schema.

use super::problem::Failure;
use crate::{Response, encoding::Coding, etag};
use axum::body::Body;
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, StatusCode,
    header::{
        ACCEPT, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
        ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ALLOW,
        CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_TYPE, ETAG,
        VARY,
    },
};
use purvey_catalog::Access;
use purvey_odp::media;

/// What the ODP paths answer to.
pub(crate) const ALLOW_READ: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");
/// What those of searches answer to.
pub(super) const ALLOW_SEARCH: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS, POST");

/// The kind of a representation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Media {
    /// `application/odp+json`: varies with the language and with who asks.
    Document,
    /// The Service Document and the Service's definitions: the same for everybody.
    Public,
    /// `application/schema+json`
    Schema,
    /// `application/vnd.oai.openapi+json`
    OpenApi,
}

impl Media {
    const fn essence(self) -> &'static str {
        match self {
            Self::Document | Self::Public => media::ODP,
            Self::Schema => media::SCHEMA,
            Self::OpenApi => media::OPENAPI,
        }
    }

    const fn content_type(self) -> &'static str {
        match self {
            // Of this type the version is a part (ODP §4).
            Self::OpenApi => "application/vnd.oai.openapi+json;version=3.1",
            _ => self.essence(),
        }
    }

    const fn vary(self) -> &'static str {
        match self {
            Self::Document => "Accept, Accept-Encoding, Accept-Language, Authorization",
            Self::Public => "Accept, Accept-Encoding, Accept-Language",
            Self::Schema | Self::OpenApi => "Accept, Accept-Encoding",
        }
    }

    /// Whether the request accepts it (ODP §1); the usual answers are known without parsing.
    pub(super) fn negotiate(self, headers: &HeaderMap) -> Result<(), Failure> {
        let mut values = headers.get_all(ACCEPT).iter();
        let accepted = match (values.next(), values.next()) {
            (None, _) => true,
            (Some(one), None) if one == "*/*" || one == self.essence() => true,
            (Some(one), None) => media::accepts(one.to_str().ok(), self.essence()),
            _ => {
                let all: Vec<&str> = headers
                    .get_all(ACCEPT)
                    .iter()
                    .filter_map(|value| value.to_str().ok())
                    .collect();
                media::accepts(Some(&all.join(",")), self.essence())
            }
        };
        if accepted {
            Ok(())
        } else {
            Err(Failure::NotAcceptable(self.essence()))
        }
    }
}

/// Answers with `body`: its entity tag, 304 when the caller has it, the coding it prefers, no body for HEAD. What only some may see is
/// kept out of shared caches.
pub(super) async fn representation(
    method: &Method,
    request: &HeaderMap,
    media: Media,
    access: &Access,
    language: Option<HeaderValue>,
    body: Bytes,
) -> Response {
    let wanted = Coding::choose(request, body.len());
    let tag = etag::of_content(&body, wanted);
    let (mut response, tag) = if etag::none_match_names(request, &tag) {
        let mut response = http::Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        (response, tag)
    } else {
        let (mut response, coding) = coded(request, media, language, body.clone()).await;
        if *method == Method::HEAD {
            *response.body_mut() = Body::empty();
        }
        let tag = match coding == wanted {
            true => tag,
            // It could not be coded.
            false => etag::of_content(&body, coding),
        };
        (response, tag)
    };
    let headers = response.headers_mut();
    headers.insert(ETAG, tag);
    headers.insert(VARY, HeaderValue::from_static(media.vary()));
    if !access.is_public() {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("private"));
    }
    share(headers);
    response
}

/// Answers a POST with `body` in the coding that the caller prefers. A search is as fresh as its request, so nobody keeps it (ODP §12).
pub(super) async fn answer(
    request: &HeaderMap,
    language: Option<HeaderValue>,
    body: Bytes,
) -> Response {
    let (mut response, _) = coded(request, Media::Document, language, body).await;
    let headers = response.headers_mut();
    headers.insert(VARY, HeaderValue::from_static(Media::Document.vary()));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    share(headers);
    response
}

/// `body` in the coding that the caller prefers, which is told, with the header fields that describe it.
async fn coded(
    request: &HeaderMap,
    media: Media,
    language: Option<HeaderValue>,
    body: Bytes,
) -> (Response, Coding) {
    let mut coding = Coding::choose(request, body.len());
    let body = match coding.encode(body.clone()).await {
        Ok(coded) => coded,
        Err(error) => {
            tracing::warn!(%error, ?coding, "a body could not be coded and is sent as it is");
            coding = Coding::Identity;
            body
        }
    };
    let length = body.len();
    let mut response = http::Response::new(Body::from(body));
    let headers = response.headers_mut();
    headers.reserve(12);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media.content_type()));
    headers.insert(CONTENT_LENGTH, length.into());
    if let Some(language) = language {
        headers.insert(CONTENT_LANGUAGE, language);
    }
    if let Some(coding) = coding.header() {
        headers.insert(CONTENT_ENCODING, coding);
    }
    (response, coding)
}

/// Lets pages of any origin read the response: no cookie counts under the ODP paths, and a page that knows a token may use it.
pub(super) fn share(headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(
        ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static(
            "Content-Language, ETag, Retry-After, WWW-Authenticate, X-Request-Id",
        ),
    );
}

/// The answer to OPTIONS, a browser's preflight included.
pub(super) fn options(allow: HeaderValue) -> Response {
    let mut response = http::Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ALLOW, allow.clone());
    share(headers);
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, allow);
    headers.insert(
        ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static(
            "Accept, Accept-Language, Authorization, Content-Type, If-None-Match, X-Request-Id",
        ),
    );
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    response
}
