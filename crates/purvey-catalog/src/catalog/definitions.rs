//! Filters and sorts as sequences of their own: the linked capability sources (ODP §5).

use super::{Catalog, Page, Snapshot};
use crate::access::Access;
use crate::cursor::{Cursor, Expected, expiry};
use crate::error::Error;
use crate::manifest::{Capabilities, page_len};
use crate::page;
use bytes::Bytes;
use purvey_odp::capability::Kind;
use purvey_odp::identity::ResourceType;
use purvey_odp::limits;
use purvey_odp::offering::Representation;
use purvey_odp::report::Invalid;

/// Which page of a sequence of definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefinitionPage<'a> {
    /// The first one.
    First {
        /// Most definitions of a page, 1 through 100; `None`: as many as fit, so that an Agent that reads at most 16 pages gets all. Anything else is refused.
        limit: Option<u64>,
    },
    /// The one that a cursor names.
    Next(&'a str),
}

impl Catalog {
    /// A page of the Filter or Sort Definitions of the Service, or of a Collection beside the Service's. A first page names all there are; the sequence keeps
    /// to its generation.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such Collection for this caller, or nothing to list; [`Error::Invalid`] at `/limit`; [`Error::CursorInvalid`];
    /// [`Error::CursorExpired`]; failures of the disk.
    pub fn definitions(
        &self,
        collection: Option<&str>,
        kind: Kind,
        page: DefinitionPage<'_>,
        access: &Access,
    ) -> Result<Page, Error> {
        match page {
            DefinitionPage::First { limit } => {
                let most = limits::PAGE_ITEMS as u64;
                let limit = limit.unwrap_or(most);
                if !limits::PAGE_LIMIT.contains(&limit) {
                    let reason = format!("Must be an integer from 1 through {most}.");
                    return Err(Invalid::one("/limit", reason).into());
                }
                self.answer_first(access, |snapshot| {
                    let cursor = Cursor {
                        operation: kind.as_str().to_owned(),
                        scope: collection.map(str::to_owned),
                        access: access.digest(),
                        representation: Representation::Full,
                        preferred: Vec::new(),
                        limit: u32::try_from(limit).unwrap_or(u32::MAX),
                        generation: snapshot.generation.number(),
                        last_id: String::new(),
                        expires: 0,
                        search: None,
                    };
                    self.definitions_after(snapshot, collection, kind, cursor)
                })
            }
            DefinitionPage::Next(cursor) => {
                let expected = Expected {
                    operation: kind.as_str(),
                    scope: collection,
                    access: access.digest(),
                };
                let now = self.inner.options.clock.now();
                let cursor = self.inner.cursors.open_cursor(cursor, &expected, now)?;
                let snapshot = self.view_of(cursor.generation, access)?;
                self.definitions_after(&snapshot, collection, kind, cursor)
            }
        }
    }

    /// The definitions after the one that the cursor names; its empty id names none.
    fn definitions_after(
        &self,
        snapshot: &Snapshot,
        collection: Option<&str>,
        kind: Kind,
        cursor: Cursor,
    ) -> Result<Page, Error> {
        let generation = &snapshot.generation;
        let manifest = &snapshot.manifest;
        let scope = match collection {
            None => Some(manifest.capabilities()),
            Some(id) => manifest
                .collection_capabilities(id)
                .filter(|_| generation.contains(ResourceType::Collection, id)),
        };
        let ids = scope.map(|scope| scope.ids(kind)).unwrap_or_default();
        let scope = scope.filter(|_| !ids.is_empty()).ok_or(Error::NotFound)?;
        let start = match cursor.last_id.as_str() {
            "" => 0,
            last => {
                let at = ids.iter().position(|id| *id == last);
                at.ok_or(Error::CursorInvalid)? + 1
            }
        };
        let items = texts(scope, kind, start);
        let lens: Vec<usize> = items.iter().map(Vec::len).collect();
        let limit = usize::try_from(cursor.limit).unwrap_or(usize::MAX);
        let (items, rest) = items.split_at(page_len(&lens, limit));
        let last = ids.get((start + items.len()).saturating_sub(1));
        let next = match last.filter(|_| !rest.is_empty()) {
            None => None,
            Some(last) => {
                let expires = expiry(self.inner.options.clock.now());
                // Durable before the continuation leaves.
                self.inner.generations.pin(generation.number(), expires)?;
                let text = self.inner.cursors.seal(&Cursor {
                    last_id: (*last).to_owned(),
                    expires,
                    ..cursor
                })?;
                let base = manifest.endpoint_base();
                let path = collection.map_or_else(String::new, |id| format!("/collections/{id}"));
                Some(format!("{base}{path}/{}?cursor={text}", kind.as_str()))
            }
        };
        Ok(Page {
            bytes: Bytes::from(page::values(items, next)?),
            languages: vec![manifest.language().clone()],
            generation: generation.number(),
        })
    }
}

/// The JSON texts of the definitions of a scope from one on.
fn texts(scope: &Capabilities, kind: Kind, start: usize) -> Vec<Vec<u8>> {
    let definitions = scope.definitions(kind).into_iter().skip(start);
    definitions
        .map(|definition| crate::render::bytes(&definition))
        .collect()
}
