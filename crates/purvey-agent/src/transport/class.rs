//! Kinds of resources.

use crate::error::content_type;
use http::{HeaderMap, header};
use purvey_odp::{limits, media};
use std::time::Duration;

/// What kind of resource is fetched: decides the byte limit, the media types, the freshness that is assumed when a response
/// says nothing, and whether credentials may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// The Service Document (ODP §2).
    ServiceDocument,
    /// One Collection by its id.
    Collection,
    /// One Offering by its id.
    Offering,
    /// A page of a list of Offerings.
    Page,
    /// A page of a list of Collections.
    CollectionPage,
    /// A page of search results: a search, or the continuation of one.
    Search,
    /// A page of a linked capability source (ODP §5).
    Definitions,
    /// An attribute schema (ODP §10).
    AttributeSchema,
    /// An OpenAPI document (ODP §4).
    OpenApi,
    /// A branding image.
    Image,
    /// An Action that the caller chose to invoke; whatever media type.
    Invoke,
}

impl Class {
    /// Most bytes of a response's body without its content codings (ODP §7). An Action's response has no limit in the protocol;
    /// this is the default for it.
    pub fn byte_limit(self) -> usize {
        match self {
            Self::ServiceDocument => limits::SERVICE_DOCUMENT_BYTES,
            Self::Collection | Self::Offering => limits::RESOURCE_BYTES,
            Self::Page | Self::CollectionPage | Self::Search | Self::Definitions => {
                limits::PAGE_BYTES
            }
            Self::AttributeSchema => limits::ATTRIBUTE_SCHEMA_BYTES,
            Self::OpenApi => limits::OPENAPI_BYTES,
            Self::Image => limits::BRANDING_IMAGE_BYTES,
            Self::Invoke => INVOKE_BYTES,
        }
    }

    /// The `Accept` that is sent.
    pub fn accept(self) -> &'static str {
        match self {
            Self::ServiceDocument
            | Self::Collection
            | Self::Offering
            | Self::Page
            | Self::CollectionPage
            | Self::Search
            | Self::Definitions => "application/odp+json, application/problem+json;q=0.9",
            Self::AttributeSchema => media::SCHEMA,
            Self::OpenApi => "application/vnd.oai.openapi+json;version=3.1, application/json;q=0.9",
            Self::Image => "image/svg+xml, image/png, image/webp",
            Self::Invoke => "*/*",
        }
    }

    /// Whether a successful response with these fields has a media type that the class can be in (ODP §1, §4).
    pub fn accepts(self, headers: &HeaderMap) -> bool {
        let essence = content_type(headers);
        let essence = essence.as_deref();
        match self {
            Self::ServiceDocument
            | Self::Collection
            | Self::Offering
            | Self::Page
            | Self::CollectionPage
            | Self::Search
            | Self::Definitions => essence == Some(media::ODP),
            Self::AttributeSchema => essence == Some(media::SCHEMA),
            Self::OpenApi => match essence {
                Some(media::OPENAPI) => headers
                    .get(header::CONTENT_TYPE)
                    .and_then(|field| field.to_str().ok())
                    .is_some_and(|field| {
                        media::parameter(field, "version").as_deref() == Some("3.1")
                    }),
                Some("application/json") => true,
                _ => false,
            },
            Self::Image => matches!(essence, Some("image/svg+xml" | "image/png" | "image/webp")),
            Self::Invoke => true,
        }
    }

    /// How long a response that says nothing about it is fresh (ODP §12); zero for what is not stored.
    pub fn fallback_freshness(self) -> Duration {
        const MINUTE: u64 = 60;
        const HOUR: u64 = 60 * MINUTE;
        Duration::from_secs(match self {
            Self::ServiceDocument => 4 * HOUR,
            Self::Collection | Self::CollectionPage | Self::Definitions => HOUR,
            Self::Offering | Self::Page => 5 * MINUTE,
            Self::AttributeSchema | Self::OpenApi | Self::Image => 24 * HOUR,
            Self::Search | Self::Invoke => 0,
        })
    }

    /// Whether the resource is a supporting document: fetched without credentials, whatever its origin (ODP §11).
    pub fn is_anonymous(self) -> bool {
        matches!(self, Self::AttributeSchema | Self::OpenApi | Self::Image)
    }
}

/// Most bytes of an Action's response unless set otherwise.
const INVOKE_BYTES: usize = 1_048_576;
