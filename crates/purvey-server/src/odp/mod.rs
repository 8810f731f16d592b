//! The ODP paths: the Service Document, the operations below `http.endpoint_base`, attribute schemas, the OpenAPI document.

mod auth;
pub(crate) mod problem;
mod query;
mod respond;
mod search;
mod target;

pub(crate) use auth::bearer;
pub(crate) use query::single as query_parameter;
pub(crate) use respond::ALLOW_READ;
pub(crate) use target::Target;

use self::{
    problem::Failure,
    query::{ListQuery, Wanted},
};
use crate::{
    Response, ServerConfig, Surfaces, front::Refusal, request_id::RequestId, searches::Searches,
};
use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header::ACCEPT_LANGUAGE, request::Parts};
use purvey_catalog::Access;
use purvey_catalog::catalog::{Catalog, DefinitionPage, Document, ListRequest, Listing, Page};
use purvey_odp::{
    capability::Kind,
    language::{AcceptLanguage, LanguageTag},
    offering::Representation,
    problem::InvalidParam,
};
use purvey_work::Platform;
use std::sync::Arc;

/// The Service role over HTTP.
pub(crate) struct Odp {
    catalog: Catalog,
    /// Whose users are known here too.
    work: Option<Platform>,
    config: Arc<ServerConfig>,
    searches: Searches,
}

impl Odp {
    pub(crate) fn new(surfaces: Surfaces, config: Arc<ServerConfig>) -> Self {
        let Surfaces { catalog, work } = surfaces;
        Self {
            searches: Searches::new(&config),
            catalog,
            work,
            config,
        }
    }

    /// Whether this is the token of a user of the run platform.
    async fn knows(&self, token: &str) -> bool {
        match &self.work {
            Some(platform) => platform.authenticate(token).await.is_ok(),
            None => false,
        }
    }

    /// What a path names, if it is one of ours.
    pub(crate) fn target<'a>(&self, path: &'a str) -> Option<Target<'a>> {
        Target::of(&self.catalog, path)
    }

    /// Answers a request for `target`; only a search looks at the body.
    pub(crate) async fn answer(
        &self,
        parts: &Parts,
        target: &Target<'_>,
        id: &RequestId,
        body: impl FnOnce() -> Body,
    ) -> Response {
        let method = &parts.method;
        let allow = target.allow();
        let result = match (method, target) {
            (_, Target::Nothing) => Err(Failure::NotFound),
            (&Method::GET | &Method::HEAD, _) => self.read(parts, target).await,
            (&Method::OPTIONS, _) => Ok(respond::options(allow)),
            (&Method::POST, Target::Search(kind)) => {
                Box::pin(search::begin(self, parts, *kind, body())).await
            }
            _ => Err(Failure::MethodNotAllowed { allow }),
        };
        result.unwrap_or_else(|failure| {
            if let Failure::Broken(error) = &failure {
                tracing::error!(request_id = id.as_str(), %error, "a read failed");
            }
            failure.response(method)
        })
    }

    async fn read(&self, parts: &Parts, target: &Target<'_>) -> Result<Response, Failure> {
        let (catalog, headers) = (&self.catalog, &parts.headers);
        let query = parts.uri.query();
        let target = match target {
            Target::Search(kind) if !query::continues(query) => &Target::Get(*kind, "search"),
            target => target,
        };
        let media = target.media();
        let access = match target.operation() {
            Some(operation) => auth::access(self, headers, operation).await?,
            None => Access::public(),
        };
        media.negotiate(headers)?;
        let (body, language) = match target {
            Target::Nothing => return Err(Failure::NotFound),
            Target::Schema(body) | Target::OpenApi(body) => (body.clone(), None),
            Target::Service => single(catalog.service_document(&languages(headers))?),
            Target::Get(kind, id) => {
                let wanted = query::retrieval(query).map_err(Failure::InvalidRequest)?;
                let representation = representation(wanted, Representation::Full);
                single(catalog.get(*kind, id, representation, &languages(headers), &access)?)
            }
            Target::List(operation) => {
                let query = query::list(query).map_err(Failure::InvalidRequest)?;
                several(list(catalog, headers, operation.clone(), query, &access)?)
            }
            Target::Search(kind) => {
                several(Box::pin(search::resume(self, parts, *kind, &access)).await?)
            }
            Target::Definitions(collection, kind) => {
                several(definitions(catalog, *collection, *kind, query, &access)?)
            }
        };
        Ok(respond::representation(&parts.method, headers, media, &access, language, body).await)
    }
}

fn definitions(
    catalog: &Catalog,
    collection: Option<&str>,
    kind: Kind,
    query: Option<&str>,
    access: &Access,
) -> Result<Page, Failure> {
    let query = query::definitions(query).map_err(Failure::InvalidRequest)?;
    let page = match &query {
        ListQuery::First { limit, .. } => DefinitionPage::First { limit: *limit },
        ListQuery::Continue { cursor } => DefinitionPage::Next(cursor),
    };
    Ok(catalog.definitions(collection, kind, page, access)?)
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
            Refusal::Unaddressed => Self::InvalidRequest(vec![InvalidParam::header(
                "Host",
                "Must be there once and be a name or an address, with or without a port; under HTTP/2 :authority must be, and say the same.",
            )]),
            Refusal::HeadTooLarge => Self::Unreadable(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE),
        }
    }
}
