//! The ODP paths: the Service Document, the operations below `http.endpoint_base`, attribute schemas.

mod auth;
pub(crate) mod problem;
mod query;
mod respond;

pub(crate) use query::single as query_parameter;

use self::{
    problem::Failure,
    query::{ListQuery, Wanted},
    respond::Media,
};
use crate::{Response, front::Refusal, v1};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header::ACCEPT_LANGUAGE, request::Parts};
use purvey_catalog::Access;
use purvey_catalog::catalog::{Catalog, Document, ListRequest, Listing, Page};
use purvey_odp::{
    identity::ResourceType,
    language::{AcceptLanguage, LanguageTag},
    offering::Representation,
    service::Operation,
};

/// Path of the Service Document (ODP §2).
const SERVICE_DOCUMENT: &str = "/.well-known/odp";

/// Answers if the path is one of ours; the manifest in force decides which are.
pub(crate) async fn answer(catalog: &Catalog, parts: &Parts) -> Option<Response> {
    let path = parts.uri.path();
    if v1::owns(path) {
        return None;
    }
    let target = if path == SERVICE_DOCUMENT {
        Target::Service
    } else {
        let snapshot = catalog.current();
        let base = snapshot.manifest.endpoint_base().trim_end_matches('/');
        match path.strip_prefix(base).and_then(Target::below) {
            Some(target) => target,
            None => match catalog.schema(path) {
                Some(schema) => Target::Schema(schema),
                // Below an endpoint base of its own everything is ours; below the root other surfaces may be.
                None if !base.is_empty() && below(path, base) => Target::Nothing,
                None => return None,
            },
        }
    };
    Some(respond(catalog, parts, target).await)
}

fn below(path: &str, base: &str) -> bool {
    path.strip_prefix(base)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// What a path names.
#[derive(Debug, PartialEq)]
enum Target<'a> {
    Service,
    List(Listing),
    Get(ResourceType, &'a str),
    Schema(Bytes),
    Nothing,
}

impl<'a> Target<'a> {
    /// The operation of a path below the endpoint base; `None` if there is none.
    fn below(rest: &'a str) -> Option<Self> {
        let rest = rest.strip_prefix('/')?;
        let (kind, tail) = match rest.split_once('/') {
            None => (rest, None),
            Some((kind, tail)) => (kind, Some(tail)),
        };
        match (kind, tail) {
            ("offerings", None) => Some(Self::List(Listing::Offerings)),
            ("collections", None) => Some(Self::List(Listing::Collections)),
            ("offerings", Some(id)) => Some(Self::Get(ResourceType::Offering, id)),
            ("collections", Some(tail)) => Some(match tail.strip_suffix("/offerings") {
                Some(id) => Self::List(Listing::CollectionOfferings(id.to_owned())),
                None => Self::Get(ResourceType::Collection, tail),
            }),
            _ => None,
        }
    }

    /// The operation that it belongs to; everything else is public.
    fn operation(&self) -> Option<Operation> {
        match self {
            Self::List(listing) => Some(listing.operation()),
            Self::Get(ResourceType::Collection, _) => Some(Operation::GetCollection),
            Self::Get(ResourceType::Offering, _) => Some(Operation::GetOffering),
            Self::Service | Self::Schema(_) | Self::Nothing => None,
        }
    }
}

async fn respond(catalog: &Catalog, parts: &Parts, target: Target<'_>) -> Response {
    let method = &parts.method;
    let result = match *method {
        _ if target == Target::Nothing => Err(Failure::NotFound),
        Method::GET | Method::HEAD => read(catalog, parts, target).await,
        Method::OPTIONS => Ok(respond::options()),
        // Search is a POST to a path which is otherwise a resource; it is not advertised, so it is not there.
        Method::POST if matches!(target, Target::Get(_, "search")) => Err(Failure::NotFound),
        _ => Err(Failure::MethodNotAllowed),
    };
    result.unwrap_or_else(|failure| failure.response(method))
}

async fn read(catalog: &Catalog, parts: &Parts, target: Target<'_>) -> Result<Response, Failure> {
    let headers = &parts.headers;
    let media = match target {
        Target::Schema(_) => Media::Schema,
        Target::Service => Media::Service,
        _ => Media::Document,
    };
    let access = match target.operation() {
        Some(operation) => auth::access(catalog, headers, operation)?,
        None => Access::public(),
    };
    media.negotiate(headers)?;
    let (body, language) = match target {
        Target::Nothing => return Err(Failure::NotFound),
        Target::Schema(body) => (body, None),
        Target::Service => single(catalog.service_document(&languages(headers))?),
        Target::Get(kind, id) => {
            let wanted = query::retrieval(parts.uri.query()).map_err(Failure::InvalidRequest)?;
            let representation = representation(wanted, Representation::Full);
            single(catalog.get(kind, id, representation, &languages(headers), &access)?)
        }
        Target::List(operation) => {
            let query = query::list(parts.uri.query()).map_err(Failure::InvalidRequest)?;
            several(list(catalog, headers, operation, query, &access)?)
        }
    };
    Ok(respond::representation(&parts.method, headers, media, &access, language, body).await)
}

fn list(
    catalog: &Catalog,
    headers: &HeaderMap,
    operation: Listing,
    query: ListQuery<'_>,
    access: &Access,
) -> Result<Page, Failure> {
    Ok(match query {
        ListQuery::Continue { cursor } => catalog.resume(&operation, &cursor, access)?,
        ListQuery::First {
            representation: wanted,
            limit,
        } => catalog.list(&ListRequest {
            operation,
            representation: representation(wanted, Representation::Terse),
            limit,
            accept_language: languages(headers),
            access: access.clone(),
        })?,
    })
}

fn representation(wanted: Option<Wanted>, default: Representation) -> Representation {
    match wanted {
        None => default,
        Some(Wanted::Terse) => Representation::Terse,
        Some(Wanted::Full) => Representation::Full,
    }
}

fn languages(headers: &HeaderMap) -> AcceptLanguage {
    let mut values = headers.get_all(ACCEPT_LANGUAGE).iter();
    match (values.next(), values.next()) {
        (None, _) => AcceptLanguage::parse(None),
        (Some(one), None) => AcceptLanguage::parse(one.to_str().ok()),
        _ => {
            let all: Vec<&str> = headers
                .get_all(ACCEPT_LANGUAGE)
                .iter()
                .filter_map(|value| value.to_str().ok())
                .collect();
            AcceptLanguage::parse(Some(&all.join(",")))
        }
    }
}

fn single(document: Document) -> (Bytes, Option<HeaderValue>) {
    let language = HeaderValue::from_str(document.language.as_str()).ok();
    (document.bytes, language)
}

fn several(page: Page) -> (Bytes, Option<HeaderValue>) {
    let language = match page.languages.as_slice() {
        [] => None,
        [one] => HeaderValue::from_str(one.as_str()).ok(),
        many => {
            let tags: Vec<&str> = many.iter().map(LanguageTag::as_str).collect();
            HeaderValue::from_str(&tags.join(", ")).ok()
        }
    };
    (page.bytes, language)
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Full { retry_after } => Self::Unavailable { retry_after },
            Refusal::TooFast { retry_after, .. } => Self::RateLimited { retry_after },
            Refusal::Panicked => Self::Internal,
        }
    }
}
