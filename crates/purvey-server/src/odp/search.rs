//! `search-offerings` and `search-collections` (ODP §5): the request judged, the work bounded, what is slow logged.

use super::{
    Odp, auth, languages,
    problem::Failure,
    query::{self, ListQuery},
    representation, respond,
    respond::Media,
    several,
};
use crate::{Response, body, searches::NotRun};
use axum::body::Body;
use bytes::Bytes;
use http::request::Parts;
use purvey_catalog::{
    Access, Error,
    catalog::{Catalog, Explanation, Page, SearchRequest},
};
use purvey_odp::{
    decode::{self, Bounds, DecodeError},
    identity::ResourceType,
    limits, media,
    offering::Representation,
    problem::InvalidParam,
    report::Invalid,
    request::{CollectionSearchRequest, OfferingSearchRequest},
    service::Operation,
};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Seconds after which a search that found no room is welcome again.
const BUSY_RETRY_AFTER: u64 = 1;
/// The log's target for slow searches.
const SLOW: &str = "purvey_server::slow_search";

/// Answers a POST. What is wrong is said in this order: who asks, what is accepted, what is sent, the request's syntax (every fault of it), the
/// Collection that it names, the capabilities.
pub(super) async fn begin(
    odp: &Odp,
    parts: &Parts,
    kind: ResourceType,
    body: Body,
) -> Result<Response, Failure> {
    let headers = &parts.headers;
    let operation = match kind {
        ResourceType::Collection => Operation::SearchCollections,
        ResourceType::Offering => Operation::SearchOfferings,
    };
    let access = auth::access(odp, headers, operation).await?;
    Media::Document.negotiate(headers)?;
    expect_media(parts)?;
    let bytes = body::read(
        headers,
        body,
        limits::REQUEST_BYTES,
        odp.config.body_timeout,
    )
    .await?;
    let wanted = query::retrieval(parts.uri.query());
    let request = Ready {
        representation: wanted.as_ref().ok().copied().flatten(),
        parts,
        access: &access,
    };
    let page = match kind {
        ResourceType::Offering => {
            let parsed = read(&bytes, OfferingSearchRequest::validate);
            let request = request.with(both(parsed, wanted.err())?);
            let work = move |catalog: &Catalog| {
                let (page, explanation) = catalog.search_offerings_explained(&request)?;
                Ok((page, Some(explanation)))
            };
            run(odp, operation, work).await?
        }
        ResourceType::Collection => {
            let parsed = read(&bytes, CollectionSearchRequest::validate);
            let request = request.with(both(parsed, wanted.err())?);
            let work = move |catalog: &Catalog| Ok((catalog.search_collections(&request)?, None));
            run(odp, operation, work).await?
        }
    };
    let (body, language) = several(page);
    Ok(respond::answer(headers, language, body).await)
}

/// The page that a continuation names.
pub(super) async fn resume(
    odp: &Odp,
    parts: &Parts,
    kind: ResourceType,
    access: &Access,
) -> Result<Page, Failure> {
    let query = query::list(parts.uri.query()).map_err(Failure::InvalidRequest)?;
    // Without a cursor the path is another resource's.
    let ListQuery::Continue { cursor } = query else {
        return Err(Failure::NotFound);
    };
    let (cursor, access) = (cursor.into_owned(), access.clone());
    match kind {
        ResourceType::Offering => {
            let work = move |catalog: &Catalog| {
                Ok((catalog.resume_search_offerings(&cursor, &access)?, None))
            };
            run(odp, Operation::SearchOfferings, work).await
        }
        ResourceType::Collection => {
            let work = move |catalog: &Catalog| {
                Ok((catalog.resume_search_collections(&cursor, &access)?, None))
            };
            run(odp, Operation::SearchCollections, work).await
        }
    }
}

/// What a search needs beside its body.
struct Ready<'a> {
    representation: Option<query::Wanted>,
    parts: &'a Parts,
    access: &'a Access,
}

impl Ready<'_> {
    fn with<R>(&self, request: R) -> SearchRequest<R> {
        SearchRequest {
            request,
            representation: representation(self.representation, Representation::Terse),
            accept_language: languages(&self.parts.headers),
            access: self.access.clone(),
        }
    }
}

/// Exactly one `Content-Type`, the protocol's, and no content coding (ODP §1).
fn expect_media(parts: &Parts) -> Result<(), Failure> {
    if let Some(coding) = body::coding(&parts.headers) {
        return Err(Failure::UnsupportedMedia(format!(
            "The body has the content coding {coding:?}; send it without one (no Content-Encoding)."
        )));
    }
    if body::media(&parts.headers).as_deref() == Some(media::ODP) {
        Ok(())
    } else {
        let detail = format!("Send the request as {}.", media::ODP);
        Err(Failure::UnsupportedMedia(detail))
    }
}

/// The request that a body is, or each of its faults.
fn read<R>(
    bytes: &Bytes,
    validate: impl FnOnce(Value) -> Result<R, Invalid>,
) -> Result<R, Vec<InvalidParam>> {
    let value = decode::decode(bytes, Bounds::REQUEST).map_err(|error| match &error {
        DecodeError::DuplicateKeys { pointers } => pointers
            .iter()
            .map(|pointer| InvalidParam::body(pointer, "Must occur once."))
            .collect(),
        _ => vec![InvalidParam::body("", &error.to_string())],
    })?;
    validate(value).map_err(|invalid| {
        invalid
            .violations()
            .iter()
            .map(InvalidParam::from)
            .collect()
    })
}

/// The request, unless it or the query has faults; those of the query come first.
fn both<R>(
    parsed: Result<R, Vec<InvalidParam>>,
    query: Option<Vec<InvalidParam>>,
) -> Result<R, Failure> {
    match (parsed, query) {
        (Ok(request), None) => Ok(request),
        (parsed, query) => {
            let mut faults = query.unwrap_or_default();
            faults.extend(parsed.err().unwrap_or_default());
            Err(Failure::InvalidRequest(faults))
        }
    }
}

/// Runs a search within the bounds, and logs its shape when it was slow: never its text nor a value.
async fn run(
    odp: &Odp,
    operation: Operation,
    work: impl FnOnce(&Catalog) -> Result<(Page, Option<Explanation>), Error> + Send + 'static,
) -> Result<Page, Failure> {
    let catalog = odp.catalog.clone();
    let slow = odp.config.slow_search;
    let asked = Instant::now();
    let work = move || {
        let begun = Instant::now();
        let (page, explanation) = work(&catalog)?;
        let took = begun.elapsed();
        if took >= slow {
            let shape = explanation.and_then(|shape| serde_json::to_string(&shape).ok());
            tracing::warn!(
                target: SLOW,
                operation = operation.as_str(),
                milliseconds = milliseconds(took),
                queued_milliseconds = milliseconds(begun.duration_since(asked)),
                generation = page.generation,
                bytes = page.bytes.len(),
                shape,
                "a slow search"
            );
        }
        Ok::<_, Error>(page)
    };
    match odp.searches.run(work).await {
        Ok(result) => Ok(result?),
        Err(NotRun::Busy) => Err(Failure::Unavailable {
            retry_after: BUSY_RETRY_AFTER,
        }),
        Err(NotRun::Broken) => Err(Failure::Internal),
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_micros() as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ServerConfig, odp::Target};
    use http::Request;
    use purvey_catalog::catalog::Options;
    use std::sync::{Arc, mpsc};

    #[tokio::test]
    async fn without_room_a_search_is_told_when_to_come_back() {
        let directory = tempfile::tempdir().unwrap();
        let catalog = Catalog::open(directory.path(), Options::default()).unwrap();
        let config = ServerConfig {
            max_searches: 1,
            search_queue: 0,
            ..ServerConfig::default()
        };
        let odp = Arc::new(Odp::new(catalog.into(), Arc::new(config)));
        let (release, held) = mpsc::channel::<()>();
        let (begun, begin) = tokio::sync::oneshot::channel();
        let holder = tokio::spawn({
            let odp = Arc::clone(&odp);
            let work = move || {
                let _ = begun.send(());
                held.recv().is_err()
            };
            async move { odp.searches.run(work).await }
        });
        begin.await.unwrap();
        let post = async || {
            let request = Request::post("/odp/offerings/search")
                .header("content-type", media::ODP)
                .body(())
                .unwrap();
            let (parts, ()) = request.into_parts();
            let body = || Body::from(r#"{"odp_version":"1.0","query":"x"}"#);
            let target = Target::Search(ResourceType::Offering);
            let id = crate::request_id::RequestId::of(&parts.headers);
            odp.answer(&parts, &target, &id, body).await
        };
        let refused = post().await;
        assert_eq!(refused.status(), 503);
        assert_eq!(refused.headers()["retry-after"], "1");
        drop(release);
        assert_eq!(holder.await.unwrap(), Ok(true));
        assert_eq!(post().await.status(), 200);
    }
}
