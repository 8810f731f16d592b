//! What a search needs of a generation, made when it is first wanted and kept with it.

use super::{Generation, Part, slot};
use crate::Error;
use crate::search::{Bitset, FilterCache, Members, SearchIndex, SearchSegment};
use crate::text::{TextConfig, TextSearch, TextSegment};
use parking_lot::Mutex;
use purvey_odp::identity::ResourceType;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

/// Scopes that one generation remembers, and their memory in bytes.
const SCOPES: usize = 256;
const SCOPES_BYTES: usize = 16 << 20;

/// What is made on demand.
#[derive(Default)]
pub(super) struct Lazy {
    indexes: [Mutex<Option<Arc<SearchIndex>>>; 2],
    texts: [Mutex<Option<Arc<TextSearch>>>; 2],
    /// Scopes by what they are, the oldest first.
    scopes: Mutex<VecDeque<(Scope, Arc<Members>)>>,
}

/// Documents that a search can be confined to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Offerings that are direct members of a Collection.
    Members(String),
    /// Offerings that are members of a Collection or of anything below it.
    Descendants(String),
    /// Collections without a parent.
    Roots,
    /// Collections that are direct children of a Collection.
    Children(String),
}

impl Scope {
    fn kind(&self) -> ResourceType {
        match self {
            Self::Members(_) | Self::Descendants(_) => ResourceType::Offering,
            Self::Roots | Self::Children(_) => ResourceType::Collection,
        }
    }
}

impl Generation {
    /// The documents of a kind, searchable. The first call reads the columns of new segments.
    ///
    /// # Errors
    /// [`Error::Corrupt`], also for segments that were written without columns; [`Error::Io`].
    pub(crate) fn search_index(
        &self,
        kind: ResourceType,
        cache: &Arc<FilterCache>,
    ) -> Result<Arc<SearchIndex>, Error> {
        let mut known = self.lazy.indexes[slot(kind)].lock();
        if let Some(index) = &*known {
            return Ok(Arc::clone(index));
        }
        let segments = self.parts[slot(kind)].iter().map(|part| {
            let ids = Arc::clone(&part.segment);
            let columns = self.columns_of(part, kind)?;
            Ok(SearchSegment::new(columns, ids, &part.dead))
        });
        let segments: Result<Vec<_>, Error> = segments.collect();
        let index = Arc::new(SearchIndex::new(segments?, Arc::clone(cache)));
        *known = Some(Arc::clone(&index));
        Ok(index)
    }

    /// Whether every segment has what a search needs, its texts indexed as `config` says.
    pub(crate) fn is_searchable(&self, kind: ResourceType, config: &TextConfig) -> bool {
        let digest = config.digest();
        self.parts[slot(kind)].iter().all(|part| {
            let text = part.segment.text();
            part.segment.has_columns() && text.is_some_and(|text| text.config_digest() == digest)
        })
    }

    /// The texts of a kind, searchable; what is dead or hidden here has no part in any score.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for segments that were written without a text index.
    pub(crate) fn text_search(
        &self,
        kind: ResourceType,
        config: &TextConfig,
    ) -> Result<Arc<TextSearch>, Error> {
        let mut known = self.lazy.texts[slot(kind)].lock();
        if let Some(search) = &*known {
            return Ok(Arc::clone(search));
        }
        let unscored = self.unscored(kind);
        let segments = self.parts[slot(kind)].iter().zip(&unscored);
        let segments = segments.map(|(part, dead)| {
            let text = part.segment.text().map(Arc::clone);
            let text = text.ok_or_else(|| part.segment.lacks("it has no text index"))?;
            Ok(TextSegment::new(text, dead))
        });
        let segments: Result<Vec<_>, Error> = segments.collect();
        let search = Arc::new(TextSearch::new(segments?, config));
        *known = Some(Arc::clone(&search));
        Ok(search)
    }

    /// The documents of a scope, the dead among them, for each segment of their kind.
    pub(crate) fn scope(&self, scope: &Scope) -> Arc<Members> {
        let known = |scopes: &VecDeque<(Scope, Arc<Members>)>| {
            let found = scopes.iter().find(|(known, _)| known == scope);
            found.map(|(_, members)| Arc::clone(members))
        };
        if let Some(members) = known(&self.lazy.scopes.lock()) {
            return members;
        }
        let parts = &self.parts[slot(scope.kind())];
        let members = Arc::new(match scope {
            Scope::Members(id) | Scope::Children(id) => union(parts, std::slice::from_ref(id)),
            Scope::Descendants(id) => union(parts, &self.below(id)),
            Scope::Roots => self.roots(),
        });
        let mut scopes = self.lazy.scopes.lock();
        if known(&scopes).is_none() {
            scopes.push_back((scope.clone(), Arc::clone(&members)));
            let mut bytes: usize = scopes.iter().map(|(_, members)| members.bytes()).sum();
            while scopes.len() > SCOPES || bytes > SCOPES_BYTES {
                let Some((_, oldest)) = scopes.pop_front() else {
                    break;
                };
                bytes -= oldest.bytes();
            }
        }
        members
    }

    /// A Collection and everything below it, each once.
    fn below(&self, collection: &str) -> Vec<String> {
        let mut found = vec![collection.to_owned()];
        let mut seen: HashSet<String> = found.iter().cloned().collect();
        let mut at = 0;
        while let Some(parent) = found.get(at).cloned() {
            for part in &self.parts[slot(ResourceType::Collection)] {
                let children = part.segment.postings(&parent).into_iter().flatten();
                for child in children.filter(|ordinal| !part.dead.contains(*ordinal)) {
                    let child = part.segment.id(child);
                    if seen.insert(child.to_owned()) {
                        found.push(child.to_owned());
                    }
                }
            }
            at += 1;
        }
        found
    }

    /// Collections that no existing Collection is the parent of.
    fn roots(&self) -> Members {
        let sets = self.parts[slot(ResourceType::Collection)]
            .iter()
            .map(|part| {
                let mut set = Bitset::full(part.segment.len());
                for (parent, children) in part.segment.all_postings() {
                    if self.contains(ResourceType::Collection, parent) {
                        set.and_not(&Bitset::from_roaring(part.segment.len(), children));
                    }
                }
                set
            });
        Members::new(sets.collect())
    }
}

/// The documents that belong to any of the Collections.
fn union(parts: &[Part], collections: &[String]) -> Members {
    let sets = parts.iter().map(|part| {
        let mut set = Bitset::new(part.segment.len());
        let postings = collections
            .iter()
            .filter_map(|id| part.segment.postings(id));
        postings.for_each(|members| set.or_roaring(members));
        set
    });
    Members::new(sets.collect())
}

impl std::fmt::Debug for Lazy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lazy")
    }
}
