//! Reading: pages and documents from one generation.

use super::{Catalog, Document, ListRequest, Listing, Page, Snapshot};
use crate::access::Access;
use crate::cursor::{Cursor, Expected, expiry};
use crate::error::Error;
use crate::generation::{Generation, ListQuery, ListScope};
use crate::page;
use bytes::Bytes;
use purvey_odp::identity::ResourceType;
use purvey_odp::language::{AcceptLanguage, LanguageTag};
use purvey_odp::limits;
use purvey_odp::offering::Representation;
use purvey_odp::report::Invalid;
use purvey_odp::service::Operation;
use std::sync::Arc;

/// Items of a page when the request names no limit.
pub(super) const DEFAULT_LIMIT: u64 = 50;
/// How often a first page is answered again because its generation went before it could be pinned.
const ATTEMPTS: usize = 16;
/// What this Service can do; only that is advertised.
const OPERATIONS: [Operation; 7] = [
    Operation::ListCollections,
    Operation::SearchCollections,
    Operation::GetCollection,
    Operation::ListCollectionOfferings,
    Operation::ListOfferings,
    Operation::SearchOfferings,
    Operation::GetOffering,
];

impl Listing {
    /// The protocol's name of the operation.
    pub fn operation(&self) -> Operation {
        match self {
            Self::Collections => Operation::ListCollections,
            Self::Offerings => Operation::ListOfferings,
            Self::CollectionOfferings(_) => Operation::ListCollectionOfferings,
        }
    }

    fn kind(&self) -> ResourceType {
        match self {
            Self::Collections => ResourceType::Collection,
            Self::Offerings | Self::CollectionOfferings(_) => ResourceType::Offering,
        }
    }

    fn collection(&self) -> Option<&str> {
        match self {
            Self::CollectionOfferings(id) => Some(id),
            Self::Collections | Self::Offerings => None,
        }
    }

    /// Where the operation is, below the endpoint base.
    fn path(&self, base: &str) -> String {
        let base = base.trim_end_matches('/');
        match self {
            Self::Collections => format!("{base}/collections"),
            Self::Offerings => format!("{base}/offerings"),
            Self::CollectionOfferings(id) => format!("{base}/collections/{id}/offerings"),
        }
    }
}

impl Catalog {
    /// What this caller's requests are answered from now: the newest generation, or an older one that holds the same for this caller.
    ///
    /// # Errors
    /// Failures of the disk.
    pub fn view(&self, access: &Access) -> Result<Arc<Snapshot>, Error> {
        for _ in 0..ATTEMPTS {
            let current = self.current();
            let generations = &self.inner.generations;
            let changed = current.generation.changed_for(access);
            let snapshot = match generations.steady(&current.generation, changed) {
                None => current,
                Some(number) => match self.superseded(number) {
                    // Another process collected it, or it is damaged.
                    Err(Error::CursorExpired | Error::Corrupt { .. }) => {
                        generations.note_gone(number);
                        continue;
                    }
                    superseded => superseded?,
                },
            };
            let now = Arc::clone(&snapshot.generation);
            return Ok(snapshot.seen(access, &now));
        }
        let current = self.current();
        let now = Arc::clone(&current.generation);
        Ok(current.seen(access, &now))
    }

    fn superseded(&self, number: u64) -> Result<Arc<Snapshot>, Error> {
        let generation = self.inner.generations.get(number)?;
        super::snapshot(&self.inner.manifests, generation).map(Arc::new)
    }

    /// What this caller's continuations into generation `number` are answered from: what the caller saw then, but for what exists
    /// still and is hidden from the caller now.
    ///
    /// # Errors
    /// [`Error::CursorExpired`] when the generation is gone; failures of the disk.
    pub fn view_of(&self, number: u64, access: &Access) -> Result<Arc<Snapshot>, Error> {
        let mut current = self.current();
        if current.generation.number() < number {
            // Another process published it and answered from it before this one looked.
            self.inner.generations.refresh()?;
            self.inner.adopt()?;
            current = self.current();
        }
        let now = Arc::clone(&current.generation);
        if now.number() == number {
            return Ok(current.seen(access, &now));
        }
        let then = self.superseded(number)?;
        let now = match now.changed_for(access) <= number {
            // Nothing that the caller saw then is hidden since.
            true => Arc::clone(&then.generation),
            false => now,
        };
        Ok(then.seen(access, &now))
    }

    /// The Service Document in the language that the caller likes best (ODP §2).
    ///
    /// # Errors
    /// None in practice: a stored manifest makes a valid document.
    pub fn service_document(&self, accept_language: &AcceptLanguage) -> Result<Document, Error> {
        let snapshot = self.current();
        let manifest = &snapshot.manifest;
        let languages: Vec<LanguageTag> = manifest.languages().cloned().collect();
        let language = accept_language
            .lookup(&languages)
            .and_then(|at| languages.get(at))
            .unwrap_or(manifest.language());
        let document = manifest.service_document(language, &OPERATIONS)?;
        let bytes = serde_json::to_vec(&document.to_value())
            .map_err(|e| Error::io("service document")(std::io::Error::other(e)))?;
        Ok(Document {
            bytes: Bytes::from(bytes),
            language: language.clone(),
            generation: snapshot.generation.number(),
        })
    }

    /// The first page of a list (ODP §3).
    ///
    /// # Errors
    /// [`Error::Invalid`] at `/limit`; [`Error::NotFound`] for an unknown Collection; failures of the disk.
    pub fn list(&self, request: &ListRequest) -> Result<Page, Error> {
        let limit = request.limit.unwrap_or(DEFAULT_LIMIT);
        if !limits::PAGE_LIMIT.contains(&limit) {
            return Err(Invalid::one("/limit", "Must be an integer from 1 through 100.").into());
        }
        self.answer_first(&request.access, |snapshot| {
            let cursor = Cursor {
                operation: request.operation.operation().as_str().to_owned(),
                scope: request.operation.collection().map(str::to_owned),
                access: request.access.digest(),
                representation: request.representation,
                preferred: snapshot.preferred(&request.accept_language),
                limit: u32::try_from(limit).unwrap_or(u32::MAX),
                generation: snapshot.generation.number(),
                last_id: String::new(),
                expires: 0,
                search: None,
            };
            self.page(snapshot, &request.operation, cursor, None)
        })
    }

    /// Answers a first request from what the caller sees now.
    pub(super) fn answer_first<T>(
        &self,
        access: &Access,
        answer: impl Fn(&Snapshot) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut attempt = 0;
        loop {
            let snapshot = self.view(access)?;
            match answer(&snapshot) {
                // Another process superseded and deleted it before this one pinned it: nothing has left yet.
                Err(Error::CursorExpired) if attempt < ATTEMPTS => {
                    attempt += 1;
                    self.inner.generations.refresh()?;
                    self.inner.adopt()?;
                }
                result => return result,
            }
        }
    }

    /// The page that a continuation of `operation` names. The sequence is that of the first page, whatever was written since
    /// (ODP §3).
    ///
    /// # Errors
    /// [`Error::CursorInvalid`] when this Service did not issue it for this operation and this caller; [`Error::CursorExpired`];
    /// [`Error::NotFound`] when the caller may not see the Collection any more; failures of the disk.
    pub fn resume(
        &self,
        operation: &Listing,
        cursor: &str,
        access: &Access,
    ) -> Result<Page, Error> {
        let expected = Expected {
            operation: operation.operation().as_str(),
            scope: operation.collection(),
            access: access.digest(),
        };
        let now = self.inner.options.clock.now();
        let cursor = self.inner.cursors.open_cursor(cursor, &expected, now)?;
        let snapshot = self.view_of(cursor.generation, access)?;
        let after = cursor.last_id.clone();
        self.page(&snapshot, operation, cursor, Some(&after))
    }

    /// One resource by itself (ODP §4).
    ///
    /// # Errors
    /// [`Error::NotFound`]; failures of the disk.
    pub fn get(
        &self,
        kind: ResourceType,
        id: &str,
        representation: Representation,
        accept_language: &AcceptLanguage,
        access: &Access,
    ) -> Result<Document, Error> {
        let snapshot = self.view(access)?;
        let preferred = snapshot.preferred(accept_language);
        let generation = &snapshot.generation;
        let operation = match kind {
            ResourceType::Collection => Operation::GetCollection,
            ResourceType::Offering => Operation::GetOffering,
        };
        let expands = snapshot.auth_expands(operation, access.digest());
        let item = page::document(generation, kind, id, representation, &preferred, expands)?;
        Ok(Document {
            bytes: Bytes::from(item.bytes),
            language: match item.language {
                Some(language) => language,
                None => snapshot.manifest.language().clone(),
            },
            generation: generation.number(),
        })
    }

    /// The attribute schema served at `path`.
    pub fn schema(&self, path: &str) -> Option<Bytes> {
        let snapshot = self.current();
        let schema = snapshot.manifest.schemas().served(path)?;
        Some(Bytes::copy_from_slice(schema.as_bytes()))
    }

    /// The OpenAPI document served at `path`.
    pub fn openapi(&self, path: &str) -> Option<Bytes> {
        let snapshot = self.current();
        let document = snapshot.manifest.openapi(path)?;
        Some(Bytes::copy_from_slice(document.as_bytes()))
    }

    /// The page after `after`; `cursor` says what the sequence is.
    fn page(
        &self,
        snapshot: &Snapshot,
        operation: &Listing,
        cursor: Cursor,
        after: Option<&str>,
    ) -> Result<Page, Error> {
        let generation = &snapshot.generation;
        if let Some(id) = operation.collection()
            && !generation.contains(ResourceType::Collection, id)
        {
            return Err(Error::NotFound);
        }
        let preferred = cursor.preferred.clone();
        let query = ListQuery {
            kind: operation.kind(),
            scope: operation
                .collection()
                .map_or(ListScope::All, ListScope::Collection),
            after,
            limit: usize::try_from(cursor.limit).unwrap_or(usize::MAX),
            max_bytes: limits::PAGE_BYTES,
            representation: cursor.representation,
            preferred: &preferred,
        };
        let expands = snapshot.auth_expands(operation.operation(), cursor.access);
        let body = page::page(generation, &query, expands, |last_id| {
            let expires = expiry(self.inner.options.clock.now());
            // Durable before the continuation leaves.
            self.inner.generations.pin(generation.number(), expires)?;
            let text = self.inner.cursors.seal(&Cursor {
                last_id: last_id.to_owned(),
                expires,
                ..cursor
            })?;
            let path = operation.path(snapshot.manifest.endpoint_base());
            Ok(format!("{path}?cursor={text}"))
        })?;
        let mut languages = body.outcome.languages;
        if languages.is_empty() {
            languages.push(snapshot.manifest.language().clone());
        }
        Ok(Page {
            bytes: Bytes::from(body.bytes),
            languages,
            generation: generation.number(),
        })
    }
}

impl Snapshot {
    /// What a caller sees of it, with what is hidden from the caller in `now`.
    fn seen(self: Arc<Self>, access: &Access, now: &Generation) -> Arc<Self> {
        let generation = self.generation.view(access, &self.manifest, now);
        if Arc::ptr_eq(&generation, &self.generation) {
            return self;
        }
        Arc::new(Self {
            languages: generation.languages(&self.manifest),
            manifest: Arc::clone(&self.manifest),
            generation,
        })
    }

    /// Whether responses of an operation tell the caller with this [`Access::digest`] that authentication can expand them: only the
    /// anonymous, and only where the manifest says so (ODP §3).
    pub fn auth_expands(&self, operation: Operation, access: u64) -> bool {
        access == 0 && self.manifest.service().auth_expands(operation)
    }

    /// The languages of this catalog in the order in which Lookup takes them for this caller; each resource has the first that
    /// it is translated to, else its own.
    pub fn preferred(&self, accept_language: &AcceptLanguage) -> Vec<LanguageTag> {
        let order = accept_language.preferred(&self.languages);
        order
            .into_iter()
            .filter_map(|at| self.languages.get(at).cloned())
            .collect()
    }
}
