//! How the Collections of a Service lie under each other (ODP §4).

use crate::issue::{Fault, IssueCode};
use crate::service::Service;
use crate::{Code, Error, Issue, Scope};
use purvey_odp::collection::Collection;
use purvey_odp::hierarchy::Hierarchy;
use purvey_odp::identity::LocalId;
use std::collections::{HashMap, HashSet, VecDeque};

/// Every Collection of a Service, and the edges between them that hold.
#[derive(Clone, Debug)]
pub struct CollectionTree {
    collections: Vec<Collection>,
    index: HashMap<LocalId, usize>,
    hierarchy: Hierarchy,
    issues: Vec<Issue>,
}

impl Service {
    /// Reads every Collection, in full, and finds out how they lie under each other. Broken edges are ignored, and nothing else:
    /// each is an issue.
    ///
    /// # Errors
    /// As a list of Collections. [`Code::ResponseLimitExceeded`] when there are more Collections than the Agent reads: part of
    /// a hierarchy is none.
    pub async fn hierarchy(&self) -> Result<CollectionTree, Error> {
        let most = self.settings().collections;
        let mut pages = self
            .collections()
            .full()
            .limit(most.saturating_add(1))
            .pages();
        let mut collections = Vec::new();
        while let Some(page) = pages.next_page().await? {
            collections.extend(page.items);
            if collections.len() > most {
                let message = format!("The Service has more than {most} Collections.");
                return Err(Error::new(Code::ResponseLimitExceeded, message));
            }
        }
        Ok(CollectionTree::new(collections))
    }
}

impl CollectionTree {
    /// The hierarchy of these Collections.
    pub fn new(collections: Vec<Collection>) -> Self {
        let edges = |c: &Collection| (c.id().clone(), c.parent_ids().to_vec());
        let hierarchy = Hierarchy::new(collections.iter().map(edges));
        let issues = hierarchy.broken().iter().map(|broken| {
            let pointer = format!("/{}/parent_ids/{}", broken.collection, broken.edge);
            Fault::new(IssueCode::BrokenEdge, broken.fault.to_string())
                .at(Scope::Hierarchy, pointer)
        });
        let issues = issues.collect();
        let ids = collections.iter().enumerate();
        let index = ids.map(|(i, c)| (c.id().clone(), i)).collect();
        Self {
            collections,
            index,
            hierarchy,
            issues,
        }
    }

    /// The Collections, in the Service's order.
    pub fn collections(&self) -> &[Collection] {
        &self.collections
    }

    /// The Collection of this identifier.
    pub fn get(&self, id: &LocalId) -> Option<&Collection> {
        self.collections.get(*self.index.get(id)?)
    }

    /// The Collections without a parent.
    pub fn roots(&self) -> Vec<&Collection> {
        self.all(self.hierarchy.roots())
    }

    /// The direct children of a Collection; none when there is no such Collection.
    pub fn children(&self, id: &LocalId) -> Vec<&Collection> {
        self.all(self.hierarchy.children(id))
    }

    /// The direct parents of a Collection; none when there is no such Collection.
    pub fn parents(&self, id: &LocalId) -> Vec<&Collection> {
        self.all(self.hierarchy.parents(id))
    }

    /// Every Collection below this one, each once, nearest first.
    pub fn descendants(&self, id: &LocalId) -> Vec<&Collection> {
        self.all(self.hierarchy.descendants(id))
    }

    /// Every Collection above this one, each once, nearest first.
    pub fn ancestors(&self, id: &LocalId) -> Vec<&Collection> {
        let mut found = Vec::new();
        let mut seen = HashSet::from([id]);
        let mut queue = VecDeque::from([id]);
        while let Some(id) = queue.pop_front() {
            for parent in self.hierarchy.parents(id) {
                if seen.insert(parent) {
                    found.push(parent);
                    queue.push_back(parent);
                }
            }
        }
        self.all(found)
    }

    /// The edges that are ignored; pointers are `/{index of the Collection}/parent_ids/{index}`.
    pub fn issues(&self) -> &[Issue] {
        &self.issues
    }

    fn all<'a>(&'a self, ids: impl IntoIterator<Item = &'a LocalId>) -> Vec<&'a Collection> {
        ids.into_iter().filter_map(|id| self.get(id)).collect()
    }
}
