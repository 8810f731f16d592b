//! One record: read, put, delete.

use super::{
    Context, auth,
    condition::Condition,
    id_of,
    problem::{Code, Failure, Fault},
};
use crate::{Response, body, etag, odp};
use axum::{
    body::Body,
    extract::{Path, Request, State, rejection::PathRejection},
};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, LOCATION},
};
use purvey_catalog::catalog::{Catalog, Written};
use purvey_odp::{
    decode::{self, Bounds, DecodeError},
    identity::{LocalId, ResourceType},
    limits, media,
    report::Violation,
};
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;

/// Containers of a stored record: a document's, and two more around the attributes of a translation.
pub(super) const RECORD_DEPTH: usize = limits::JSON_DEPTH + 2;

/// `GET /v1/catalog/{kind}/{id}`: the stored form, with its revision as entity tag.
pub(super) async fn read(
    State(context): State<Context>,
    names: Names,
    request: Request,
) -> Response {
    let request_id = id_of(&request);
    let headers = request.into_parts().0.headers;
    let read = async {
        auth::writer(&context, &headers).await?;
        let (kind, id) = named(names)?;
        let catalog = context.catalog.clone();
        let stored = blocking(move || catalog.record(kind, &id)).await??;
        let stored = stored.ok_or(Failure::new(Code::NotFound))?;
        let tag = etag::of_revision(stored.revision);
        if etag::none_match_names(&headers, &tag) {
            return Ok(answer(StatusCode::NOT_MODIFIED, Some(tag), Body::empty()));
        }
        let mut response = answer(StatusCode::OK, Some(tag), Body::from(stored.bytes));
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static(media::ODP));
        Ok(response)
    };
    read.await
        .unwrap_or_else(|failure: Failure| failure.response(&request_id))
}

/// `PUT /v1/catalog/{kind}/{id}`: creates or replaces.
pub(super) async fn put(
    State(context): State<Context>,
    names: Names,
    request: Request,
) -> Response {
    let request_id = id_of(&request);
    let (parts, body) = request.into_parts();
    let put = async {
        auth::writer(&context, &parts.headers).await?;
        let (kind, id) = named(names)?;
        expect_media(&parts.headers, media::ODP)?;
        let config = &context.config;
        let bytes = body::read(
            &parts.headers,
            body,
            config.max_record_bytes,
            config.body_timeout,
        )
        .await?;
        let mut faults = Vec::new();
        let wait = wait_published(parts.uri.query(), &mut faults);
        let condition = Condition::read(&parts.headers, &mut faults);
        let value = decoded(&bytes, config.max_record_bytes, &mut faults);
        if let Some(value) = &value
            && value.get("id").and_then(Value::as_str) != Some(&id)
        {
            faults.push(Fault::body("/id", "Must equal the id in the path."));
        }
        let value = match value {
            Some(value) if faults.is_empty() => value,
            _ => return Err(Failure::invalid(faults)),
        };
        check_id(&id)?;
        let (catalog, key) = (context.catalog.clone(), id.clone());
        let written = blocking(move || {
            condition.hold(&catalog, kind, &key, |precondition| {
                catalog.put(kind, &key, value.clone(), precondition)
            })
        })
        .await??;
        let published = published(&context, written.generation, wait).await?;
        let status = if written.created {
            StatusCode::CREATED
        } else {
            StatusCode::OK
        };
        let mut response = receipt(status, kind, &id, &written, published);
        let headers = response.headers_mut();
        headers.insert(ETAG, etag::of_revision(written.revision));
        if written.created
            && let Ok(location) = HeaderValue::from_str(parts.uri.path())
        {
            headers.insert(LOCATION, location);
        }
        Ok(response)
    };
    put.await
        .unwrap_or_else(|failure: Failure| failure.response(&request_id))
}

/// `DELETE /v1/catalog/{kind}/{id}`, with `?detach=true` even if a Collection has members or children.
pub(super) async fn delete(
    State(context): State<Context>,
    names: Names,
    request: Request,
) -> Response {
    let request_id = id_of(&request);
    let (parts, _) = request.into_parts();
    let delete = async {
        auth::writer(&context, &parts.headers).await?;
        let (kind, id) = named(names)?;
        let mut faults = Vec::new();
        let query = parts.uri.query();
        let wait = wait_published(query, &mut faults);
        let detach = one_of(query, "detach", &["true", "false"], &mut faults) == Some("true");
        let condition = Condition::read(&parts.headers, &mut faults);
        if !faults.is_empty() {
            return Err(Failure::invalid(faults));
        }
        check_id(&id)?;
        let (catalog, key) = (context.catalog.clone(), id.clone());
        let written = blocking(move || {
            condition.hold(&catalog, kind, &key, |precondition| {
                catalog.delete(kind, &key, precondition, detach)
            })
        })
        .await??;
        let published = published(&context, written.generation, wait).await?;
        Ok(receipt(StatusCode::OK, kind, &id, &written, published))
    };
    delete
        .await
        .unwrap_or_else(|failure: Failure| failure.response(&request_id))
}

/// What a write answers.
#[derive(Serialize)]
struct Receipt<'a> {
    kind: &'static str,
    id: &'a str,
    created: bool,
    revision: u64,
    /// The first generation that holds the write.
    generation: u64,
    /// Whether that generation is served; absent when nobody waited for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    published: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Warning<'a>>,
}

/// Something that was taken although it may be a typing error.
#[derive(Serialize)]
pub(super) struct Warning<'a> {
    pointer: &'a str,
    reason: &'a str,
}

impl<'a> Warning<'a> {
    /// Every warning of a write.
    pub(super) fn all(written: &'a Written) -> Vec<Self> {
        let warning = |Violation { pointer, reason }: &'a Violation| Self { pointer, reason };
        written.warnings.iter().map(warning).collect()
    }
}

fn receipt(
    status: StatusCode,
    kind: ResourceType,
    id: &str,
    written: &Written,
    published: Option<bool>,
) -> Response {
    let receipt = Receipt {
        kind: kind_text(kind),
        id,
        created: written.created,
        revision: written.revision,
        generation: written.generation,
        published,
        warnings: Warning::all(written),
    };
    let body = serde_json::to_vec(&receipt).unwrap_or_default();
    let mut response = answer(status, None, Body::from(body));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn answer(status: StatusCode, tag: Option<HeaderValue>, body: Body) -> Response {
    let mut response = http::Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(tag) = tag {
        headers.insert(ETAG, tag);
    }
    response
}

/// `{kind}` and `{id}` of the path, decoded.
type Names = Result<Path<(String, String)>, PathRejection>;

/// The record that a path names.
fn named(names: Names) -> Result<(ResourceType, String), Failure> {
    // What is not UTF-8 is no id that a record can have.
    let Ok(Path((kind, id))) = names else {
        return Err(Failure::new(Code::NotFound));
    };
    match kind.as_str() {
        "offerings" => Ok((ResourceType::Offering, id)),
        "collections" => Ok((ResourceType::Collection, id)),
        _ => Err(Failure::new(Code::NotFound)),
    }
}

pub(super) fn kind_text(kind: ResourceType) -> &'static str {
    match kind {
        ResourceType::Offering => "offering",
        ResourceType::Collection => "collection",
    }
}

/// An id that no record can have is as absent as any other.
fn check_id(id: &str) -> Result<(), Failure> {
    match LocalId::parse(id) {
        Ok(_) => Ok(()),
        Err(_) => Err(Failure::new(Code::NotFound)),
    }
}

/// Exactly one `Content-Type`, of this essence, and no content coding.
pub(super) fn expect_media(headers: &HeaderMap, essence: &str) -> Result<(), Failure> {
    if let Some(coding) = body::coding(headers) {
        return Err(Failure {
            detail: format!(
                "The body has the content coding {coding:?}; send it without one (no Content-Encoding)."
            )
            .into(),
            ..Failure::new(Code::UnsupportedMediaType)
        });
    }
    if body::media(headers).as_deref() == Some(essence) {
        Ok(())
    } else {
        Err(Failure::new(Code::UnsupportedMediaType))
    }
}

/// A body or line as JSON; otherwise a fault.
pub(super) fn decoded(bytes: &[u8], limit: usize, faults: &mut Vec<Fault>) -> Option<Value> {
    let bounds = Bounds {
        bytes: limit,
        depth: RECORD_DEPTH,
    };
    match decode::decode(bytes, bounds) {
        Ok(value @ Value::Object(_)) => Some(value),
        Ok(_) => {
            faults.push(Fault::body("", "Must be an object."));
            None
        }
        Err(DecodeError::DuplicateKeys { pointers }) => {
            let repeated = |pointer| Fault::body(pointer, "Must occur once.");
            faults.extend(pointers.into_iter().map(repeated));
            None
        }
        Err(error) => {
            faults.push(Fault::body("", error.to_string()));
            None
        }
    }
}

/// Whether `?wait=published` is there.
pub(super) fn wait_published(query: Option<&str>, faults: &mut Vec<Fault>) -> bool {
    one_of(query, "wait", &["published"], faults).is_some()
}

/// The query parameter `name`, one of `values`; otherwise a fault.
pub(super) fn one_of(
    query: Option<&str>,
    name: &'static str,
    values: &[&'static str],
    faults: &mut Vec<Fault>,
) -> Option<&'static str> {
    let mut found = Vec::new();
    let value = odp::query_parameter(query, name, &mut found);
    faults.extend(
        found
            .iter()
            .map(|fault| Fault::query(name, fault.reason().to_owned())),
    );
    let value = value?;
    let known = values.iter().find(|known| **known == value).copied();
    if known.is_none() {
        faults.push(Fault::query(name, "Has a value that is not known."));
    }
    known
}

/// Waits until the generation that holds a write is served, if the caller asked for that.
pub(super) async fn published(
    context: &Context,
    generation: u64,
    wait: bool,
) -> Result<Option<bool>, Failure> {
    if !wait {
        return Ok(None);
    }
    let (catalog, time) = (context.catalog.clone(), context.config.publish_wait);
    Ok(Some(
        blocking(move || wait_for(&catalog, generation, time)).await?,
    ))
}

fn wait_for(catalog: &Catalog, generation: u64, time: Duration) -> bool {
    catalog.wait_published(generation, time)
}

/// Runs what touches the store off the request threads.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let span = tracing::Span::current();
    let work = move || span.in_scope(work);
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "a write did not finish");
        Failure::new(Code::ServerError)
    })
}
