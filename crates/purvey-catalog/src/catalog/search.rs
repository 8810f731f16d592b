//! Searching: the first pages, and the pages after them (ODP §5).

use super::explain::{Explanation, Phases};
use super::read::DEFAULT_LIMIT;
use super::{Catalog, Page, Snapshot};
use crate::access::Access;
use crate::cursor::{Cursor, Expected, Request, SearchPlace, expiry};
use crate::error::Error;
use crate::generation::{Scope, Wanted};
use crate::page;
use crate::search::{After, Hit, Hits, Order, Query, TextMatch, Trace};
use crate::text::{TextQuery, TextSearch};
use bytes::Bytes;
use purvey_odp::identity::{LocalId, ResourceType};
use purvey_odp::language::AcceptLanguage;
use purvey_odp::limits;
use purvey_odp::offering::Representation;
use purvey_odp::request::{CollectionSearchRequest, OfferingSearchRequest, ParentConstraint};
use purvey_odp::service::Operation;
use serde_json::Value;
use std::sync::Arc;

/// The first request of a search, its syntax judged.
#[derive(Clone, Debug)]
pub struct SearchRequest<R> {
    /// The body.
    pub request: R,
    /// Terse or Full items.
    pub representation: Representation,
    /// The caller's languages.
    pub accept_language: AcceptLanguage,
    /// Who asks.
    pub access: Access,
}

impl Catalog {
    /// The first page of a `search-offerings`: items by the request's sort, else by relevance when there is text, else by the manifest's default sort, else
    /// by id; refinements; at most [`limits::PAGE_BYTES`].
    ///
    /// # Errors
    /// [`Error::NotFound`] for a Collection that does not exist for this caller, before [`Error::Invalid`] for filters, sorts and refinements that the search does not
    /// offer, each at its member; [`Error::Busy`] when too many long requests are being continued; failures of the disk.
    pub fn search_offerings(
        &self,
        request: &SearchRequest<OfferingSearchRequest>,
    ) -> Result<Page, Error> {
        Ok(self.search_offerings_explained(request)?.0)
    }

    /// As [`search_offerings`](Self::search_offerings), with how the page came about.
    ///
    /// # Errors
    /// As [`search_offerings`](Self::search_offerings).
    pub fn search_offerings_explained(
        &self,
        request: &SearchRequest<OfferingSearchRequest>,
    ) -> Result<(Page, Explanation), Error> {
        let limit = request.request.limit();
        self.answer_first(&request.access, |snapshot| {
            let cursor = first(Operation::SearchOfferings, request, limit, snapshot);
            self.offerings(snapshot, &request.request, &cursor)
        })
    }

    /// How a `search-offerings` is answered now, how its text was understood, and where the time goes. Nothing is continued from it, but it does all the work of the page.
    ///
    /// # Errors
    /// As [`search_offerings`](Self::search_offerings).
    pub fn explain(
        &self,
        request: &SearchRequest<OfferingSearchRequest>,
    ) -> Result<Explanation, Error> {
        let limit = request.request.limit();
        self.answer_first(&request.access, |snapshot| {
            let cursor = first(Operation::SearchOfferings, request, limit, snapshot);
            let (_, mut explanation) = self.offerings(snapshot, &request.request, &cursor)?;
            let texts = texts(snapshot, ResourceType::Offering, request.request.query())?;
            if let Some(texts) = texts {
                explanation.words = texts.query()?.words()?;
            }
            Ok(explanation)
        })
    }

    /// The page that a continuation of `search-offerings` names. The sequence is that of the first page, whatever was written since (ODP §3); there are no
    /// refinements.
    ///
    /// # Errors
    /// [`Error::CursorInvalid`] when this Service did not issue it for this operation and caller; [`Error::CursorExpired`]; [`Error::NotFound`] when the Collection is
    /// hidden from the caller now; failures of the disk.
    pub fn resume_search_offerings(&self, cursor: &str, access: &Access) -> Result<Page, Error> {
        let (snapshot, cursor, body) =
            self.open_search(Operation::SearchOfferings, cursor, access)?;
        let request = OfferingSearchRequest::validate(body).map_err(|_| Error::CursorInvalid)?;
        Ok(self.offerings(&snapshot, &request, &cursor)?.0)
    }

    /// The first page of a `search-collections`: by relevance when there is text, else by id.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a parent that does not exist for this caller; failures of the disk.
    pub fn search_collections(
        &self,
        request: &SearchRequest<CollectionSearchRequest>,
    ) -> Result<Page, Error> {
        let limit = request.request.limit();
        self.answer_first(&request.access, |snapshot| {
            let cursor = first(Operation::SearchCollections, request, limit, snapshot);
            self.collections(snapshot, &request.request, &cursor)
        })
    }

    /// The page that a continuation of `search-collections` names.
    ///
    /// # Errors
    /// As [`resume_search_offerings`](Self::resume_search_offerings).
    pub fn resume_search_collections(&self, cursor: &str, access: &Access) -> Result<Page, Error> {
        let (snapshot, cursor, body) =
            self.open_search(Operation::SearchCollections, cursor, access)?;
        let request = CollectionSearchRequest::validate(body).map_err(|_| Error::CursorInvalid)?;
        self.collections(&snapshot, &request, &cursor)
    }

    /// Opens a continuation of a search: what it is answered from, the cursor, and the request without its limit and refinements.
    fn open_search(
        &self,
        operation: Operation,
        cursor: &str,
        access: &Access,
    ) -> Result<(Arc<Snapshot>, Cursor, Value), Error> {
        let expected = Expected {
            operation: operation.as_str(),
            scope: None,
            access: access.digest(),
        };
        let now = self.inner.options.clock.now();
        let cursor = self.inner.cursors.open_cursor(cursor, &expected, now)?;
        let snapshot = self.view_of(cursor.generation, access)?;
        let place = cursor.search.as_ref().ok_or(Error::CursorInvalid)?;
        let body = match &place.request {
            Request::Inline(text) => serde_json::from_slice(text),
            Request::Kept(digest) => serde_json::from_slice(&self.inner.requests.read(*digest)?),
        };
        let body = body.map_err(|_| Error::CursorInvalid)?;
        Ok((snapshot, cursor, body))
    }

    fn offerings(
        &self,
        snapshot: &Snapshot,
        request: &OfferingSearchRequest,
        cursor: &Cursor,
    ) -> Result<(Page, Explanation), Error> {
        let mut phases = Phases::start();
        let generation = &snapshot.generation;
        let manifest = &snapshot.manifest;
        let collection = request.collection_id();
        if let Some(id) = collection
            && !generation.contains(ResourceType::Collection, id.as_str())
        {
            return Err(Error::NotFound);
        }
        let effective = manifest.effective_capabilities(collection.map(LocalId::as_str));
        let resolved = request.resolve(effective)?;
        let index = generation.search_index(ResourceType::Offering, &self.inner.filters)?;
        let scope = collection.map(|id| {
            let id = id.as_str().to_owned();
            generation.scope(&match request.include_descendants() {
                true => Scope::Descendants(id),
                false => Scope::Members(id),
            })
        });
        let default = || effective.sort(manifest.default_sort()?);
        let order = match (resolved.sort(), request.query()) {
            (Some(sort), _) => Order::Keys(sort.keys()),
            (None, Some(_)) => Order::Relevance,
            (None, None) => default().map_or(Order::Id, |sort| Order::Keys(sort.keys())),
        };
        let texts = texts(snapshot, ResourceType::Offering, request.query())?;
        let text = texts.as_ref().map(Texts::query).transpose()?;
        phases.prepared();
        let query = Query {
            filters: resolved.filters(),
            collection,
            scope: scope.as_deref(),
            text: text.as_ref().map(|text| text as &dyn TextMatch),
            order,
            after: after(cursor),
            limit: limit(cursor),
            refinements: resolved.refinements(),
            plan: None,
        };
        let mut trace = Trace::default();
        let hits = index.search_traced(&query, &mut trace)?;
        phases.searched();
        let body = || crate::render::bytes(&without_first_page(request.to_value()));
        let page = self.deliver(snapshot, Operation::SearchOfferings, &hits, cursor, body)?;
        phases.delivered();
        let explanation = Explanation::new(snapshot, request, order, &hits, trace, &phases);
        Ok((page, explanation))
    }

    fn collections(
        &self,
        snapshot: &Snapshot,
        request: &CollectionSearchRequest,
        cursor: &Cursor,
    ) -> Result<Page, Error> {
        let generation = &snapshot.generation;
        let scope = match request.parent() {
            ParentConstraint::Anywhere => None,
            ParentConstraint::Roots => Some(Scope::Roots),
            ParentConstraint::ChildrenOf(id) => {
                let id = id.as_str();
                if !generation.contains(ResourceType::Collection, id) {
                    return Err(Error::NotFound);
                }
                Some(Scope::Children(id.to_owned()))
            }
        };
        let index = generation.search_index(ResourceType::Collection, &self.inner.filters)?;
        let scope = scope.map(|scope| generation.scope(&scope));
        let texts = texts(snapshot, ResourceType::Collection, request.query())?;
        let text = texts.as_ref().map(Texts::query).transpose()?;
        let hits = index.search(&Query {
            filters: &[],
            collection: None,
            scope: scope.as_deref(),
            text: text.as_ref().map(|text| text as &dyn TextMatch),
            order: Order::Relevance,
            after: after(cursor),
            limit: limit(cursor),
            refinements: &[],
            plan: None,
        })?;
        let body = || crate::render::bytes(&without_first_page(request.to_value()));
        self.deliver(snapshot, Operation::SearchCollections, &hits, cursor, body)
    }

    /// The page of what was found, with the continuation of a sequence whose request is `body`.
    fn deliver(
        &self,
        snapshot: &Snapshot,
        operation: Operation,
        hits: &Hits,
        cursor: &Cursor,
        body: impl FnOnce() -> Vec<u8>,
    ) -> Result<Page, Error> {
        let generation = &snapshot.generation;
        let (kind, path) = match operation {
            Operation::SearchCollections => (ResourceType::Collection, "collections/search"),
            _ => (ResourceType::Offering, "offerings/search"),
        };
        let documents: Vec<(usize, u32)> = hits
            .documents
            .iter()
            .map(|hit| (hit.segment, hit.ordinal))
            .collect();
        let wanted = Wanted {
            kind,
            documents: &documents,
            representation: cursor.representation,
            preferred: &cursor.preferred,
            max_bytes: limits::PAGE_BYTES,
        };
        let groups = &hits.refinements;
        let expands = snapshot.auth_expands(operation, cursor.access);
        let (bytes, mut languages) =
            page::found(generation, &wanted, groups, hits.more, expands, |count| {
                let last = count.checked_sub(1).and_then(|at| hits.documents.get(at));
                let last = last.ok_or(Error::NotFound)?;
                let path = format!("{}/{path}", snapshot.manifest.endpoint_base());
                // A continuation has it as it is written.
                let request = match cursor.search.as_ref().map(|place| &place.request) {
                    Some(Request::Inline(text)) => text.clone(),
                    Some(Request::Kept(_)) | None => body(),
                };
                self.next(snapshot, kind, *last, cursor, &path, &request)
            })?;
        if languages.is_empty() {
            languages.push(snapshot.manifest.language().clone());
        }
        Ok(Page {
            bytes: Bytes::from(bytes),
            languages,
            generation: generation.number(),
        })
    }

    /// The reference to the page after `last`. A request that is too long for it is kept beside the index.
    fn next(
        &self,
        snapshot: &Snapshot,
        kind: ResourceType,
        last: Hit,
        cursor: &Cursor,
        path: &str,
        body: &[u8],
    ) -> Result<String, Error> {
        let generation = &snapshot.generation;
        let expires = expiry(self.inner.options.clock.now());
        // Durable before the continuation leaves.
        self.inner.generations.pin(generation.number(), expires)?;
        let segment = generation.segments(kind).nth(last.segment);
        let segment = segment.ok_or(Error::NotFound)?;
        let seal = |request: Request| {
            let text = self.inner.cursors.seal(&Cursor {
                last_id: segment.id(last.ordinal).to_owned(),
                expires,
                search: Some(SearchPlace {
                    request,
                    score: last.score.to_bits(),
                    segment: u32::try_from(last.segment).unwrap_or(u32::MAX),
                    ordinal: last.ordinal,
                }),
                ..cursor.clone()
            })?;
            Ok(format!("{path}?cursor={text}"))
        };
        match seal(Request::Inline(body.to_vec())) {
            Ok(next) if next.len() <= limits::NEXT_CHARS => return Ok(next),
            Ok(_) | Err(Error::Conflict { .. }) => {}
            Err(error) => return Err(error),
        }
        seal(Request::Kept(self.inner.requests.keep(body, expires)?))
    }
}

/// The text of a request, and what it is looked for in.
struct Texts<'a> {
    search: Arc<TextSearch>,
    query: &'a str,
}

impl Texts<'_> {
    fn query(&self) -> Result<TextQuery<'_>, Error> {
        self.search.query(self.query)
    }
}

fn texts<'a>(
    snapshot: &Snapshot,
    kind: ResourceType,
    query: Option<&'a purvey_odp::request::Query>,
) -> Result<Option<Texts<'a>>, Error> {
    let Some(query) = query else {
        return Ok(None);
    };
    let config = snapshot.manifest.text_plan(kind).config();
    Ok(Some(Texts {
        search: snapshot.generation.text_search(kind, config)?,
        query: query.as_str(),
    }))
}

/// The cursor before the first page.
fn first<R>(
    operation: Operation,
    request: &SearchRequest<R>,
    limit: Option<u8>,
    snapshot: &Snapshot,
) -> Cursor {
    Cursor {
        operation: operation.as_str().to_owned(),
        scope: None,
        access: request.access.digest(),
        representation: request.representation,
        preferred: snapshot.preferred(&request.accept_language),
        limit: limit.map_or(DEFAULT_LIMIT as u32, u32::from),
        generation: snapshot.generation.number(),
        last_id: String::new(),
        expires: 0,
        search: None,
    }
}

/// Where the page before ended; nothing before the first page.
fn after(cursor: &Cursor) -> Option<After<'_>> {
    let place = cursor.search.as_ref()?;
    Some(After {
        id: &cursor.last_id,
        score: f32::from_bits(place.score),
        place: Some((place.segment as usize, place.ordinal)),
    })
}

fn limit(cursor: &Cursor) -> usize {
    usize::try_from(cursor.limit).unwrap_or(usize::MAX)
}

/// A request without the members that concern the first page alone, or that the cursor holds already.
fn without_first_page(mut body: Value) -> Value {
    if let Value::Object(map) = &mut body {
        map.shift_remove("limit");
        map.shift_remove("refinements");
    }
    body
}
