//! What the ODP paths name.

use super::respond::{ALLOW_READ, ALLOW_SEARCH, Media};
use crate::v1;
use bytes::Bytes;
use http::HeaderValue;
use purvey_catalog::catalog::{Catalog, Listing};
use purvey_odp::{capability::Kind, identity::ResourceType, service::Operation};

/// Path of the Service Document (ODP §2).
const SERVICE_DOCUMENT: &str = "/.well-known/odp";

/// What a path names.
#[derive(Debug, PartialEq)]
pub(crate) enum Target<'a> {
    Service,
    List(Listing),
    Get(ResourceType, &'a str),
    /// POST begins a search, and GET with a cursor continues it; GET without one retrieves the resource with the id `search`.
    Search(ResourceType),
    /// Definitions of the Service, or of a Collection.
    Definitions(Option<&'a str>, Kind),
    Schema(Bytes),
    OpenApi(Bytes),
    Nothing,
}

impl<'a> Target<'a> {
    /// What `path` names, if it is one of ours; the manifest in force decides which are.
    pub(crate) fn of(catalog: &Catalog, path: &'a str) -> Option<Self> {
        if v1::owns(path) {
            // No manifest has a schema there, but the catalog's own are.
            return catalog.schema(path).map(Self::Schema);
        }
        if path == SERVICE_DOCUMENT {
            return Some(Self::Service);
        }
        let snapshot = catalog.current();
        let base = snapshot.manifest.endpoint_base().trim_end_matches('/');
        let target = path.strip_prefix(base).and_then(Self::below);
        target
            .or_else(|| catalog.schema(path).map(Self::Schema))
            .or_else(|| catalog.openapi(path).map(Self::OpenApi))
            // Below an endpoint base of its own everything is ours; below the root other surfaces may be.
            .or_else(|| (!base.is_empty() && below(path, base)).then_some(Self::Nothing))
    }

    /// The operation of a path below the endpoint base; `None` if there is none.
    fn below(rest: &'a str) -> Option<Self> {
        let rest = rest.strip_prefix('/')?;
        let (kind, tail) = match rest.split_once('/') {
            None => (rest, None),
            Some((kind, tail)) => (kind, Some(tail)),
        };
        Some(match (kind, tail) {
            ("offerings", None) => Self::List(Listing::Offerings),
            ("collections", None) => Self::List(Listing::Collections),
            ("offerings", Some("search")) => Self::Search(ResourceType::Offering),
            ("collections", Some("search")) => Self::Search(ResourceType::Collection),
            ("offerings", Some(id)) => Self::Get(ResourceType::Offering, id),
            ("collections", Some(tail)) => match tail.split_once('/') {
                Some((id, "offerings")) => Self::List(Listing::CollectionOfferings(id.to_owned())),
                Some((id, "filters")) => Self::Definitions(Some(id), Kind::Filters),
                Some((id, "sorts")) => Self::Definitions(Some(id), Kind::Sorts),
                _ => Self::Get(ResourceType::Collection, tail),
            },
            ("filters", None) => Self::Definitions(None, Kind::Filters),
            ("sorts", None) => Self::Definitions(None, Kind::Sorts),
            _ => return None,
        })
    }

    /// The operation that reading it belongs to; everything else is public.
    pub(super) fn operation(&self) -> Option<Operation> {
        match self {
            Self::List(listing) => Some(listing.operation()),
            Self::Get(ResourceType::Offering, _) => Some(Operation::GetOffering),
            Self::Search(ResourceType::Collection) => Some(Operation::SearchCollections),
            Self::Search(ResourceType::Offering) => Some(Operation::SearchOfferings),
            // A Collection's definitions are a part of it, those of the Service a part of its document.
            Self::Get(ResourceType::Collection, _) | Self::Definitions(Some(_), _) => {
                Some(Operation::GetCollection)
            }
            Self::Service
            | Self::Definitions(None, _)
            | Self::Schema(_)
            | Self::OpenApi(_)
            | Self::Nothing => None,
        }
    }

    /// How it is represented.
    pub(super) fn media(&self) -> Media {
        match self {
            Self::Schema(_) => Media::Schema,
            Self::OpenApi(_) => Media::OpenApi,
            Self::Service | Self::Definitions(None, _) => Media::Public,
            _ => Media::Document,
        }
    }

    /// The methods that it answers to.
    pub(super) fn allow(&self) -> HeaderValue {
        match self {
            Self::Search(_) => ALLOW_SEARCH,
            _ => ALLOW_READ,
        }
    }
}

fn below(path: &str, base: &str) -> bool {
    path.strip_prefix(base)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
