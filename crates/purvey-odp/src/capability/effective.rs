//! The capabilities that are effective for one search.

use super::{CapabilitySource, Definition, SearchCapabilities};
use crate::filter::FilterDefinition;
use crate::identity::CapabilityId;
use crate::sort::{SortDefinition, SortKey};
use std::collections::{HashMap, HashSet};
use std::fmt;

/// Who advertises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The Service Document.
    Service,
    /// The Collection that the search names.
    Collection,
}

impl Scope {
    /// A name for people and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Collection => "collection",
        }
    }
}

/// What is advertised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Filter Definitions.
    Filters,
    /// Sort Definitions.
    Sorts,
}

impl Kind {
    /// The member of `search_capabilities`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Filters => "filters",
            Self::Sorts => "sorts",
        }
    }
}

/// One source after it was read and, when linked, retrieved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetched<T> {
    /// The scope advertises no such source.
    Absent,
    /// The whole source.
    Definitions(Vec<T>),
    /// The source could not be had, or breaks a rule; the reason is for people.
    Failed(String),
}

impl<T: Definition + Clone> Fetched<T> {
    /// A source of which every definition is at hand; a linked one counts as failed.
    fn at_hand(source: Option<&CapabilitySource<T>>) -> Self {
        match source {
            None => Self::Absent,
            Some(CapabilitySource::Inline(definitions)) => Self::Definitions(definitions.clone()),
            Some(CapabilitySource::Linked(_)) => {
                Self::Failed("the linked source was not retrieved".to_owned())
            }
        }
    }
}

/// The two sources of one scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeCapabilities {
    /// Filter Definitions.
    pub filters: Fetched<FilterDefinition>,
    /// Sort Definitions.
    pub sorts: Fetched<SortDefinition>,
}

impl ScopeCapabilities {
    /// Neither source.
    pub const NONE: Self = Self {
        filters: Fetched::Absent,
        sorts: Fetched::Absent,
    };
}

/// An advertisement as it is, its linked sources failed: whoever retrieves them puts them in place.
impl From<&SearchCapabilities> for ScopeCapabilities {
    fn from(capabilities: &SearchCapabilities) -> Self {
        Self {
            filters: Fetched::at_hand(capabilities.filters()),
            sorts: Fetched::at_hand(capabilities.sorts()),
        }
    }
}

/// Why something advertised is not effective. Never a reason to give up text search.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Issue {
    /// The source could not be had or is invalid: none of it is effective.
    Source {
        /// Whose source.
        scope: Scope,
        /// Which source.
        kind: Kind,
        /// What is wrong, for people.
        reason: String,
    },
    /// The effective catalog cannot hold the source: none of it is effective.
    Overflow {
        /// Whose source.
        scope: Scope,
        /// Which source.
        kind: Kind,
    },
    /// Two sources publish the identifier: neither definition is effective.
    Conflict {
        /// Which sources.
        kind: Kind,
        /// The identifier.
        id: CapabilityId,
    },
    /// A Sort Definition names a filter that is not effective.
    SortReference {
        /// The Sort Definition.
        id: CapabilityId,
        /// The first such filter.
        filter_id: CapabilityId,
    },
}

/// A short stable form, such as `filters-conflict:price` or `sort-reference:price-low-to-high`.
impl fmt::Display for Issue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source { scope, kind, .. } => {
                write!(f, "{}-source:{}", kind.as_str(), scope.as_str())
            }
            Self::Overflow { scope, kind } => {
                write!(f, "{}-overflow:{}", kind.as_str(), scope.as_str())
            }
            Self::Conflict { kind, id } => write!(f, "{}-conflict:{id}", kind.as_str()),
            Self::SortReference { id, .. } => write!(f, "sort-reference:{id}"),
        }
    }
}

/// The Filter and Sort Definitions that one search may use: those of the Service, and of the Collection it names. Every
/// filter of every sort is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EffectiveCapabilities {
    filters: Catalog<FilterDefinition>,
    sorts: Catalog<SortDefinition>,
    issues: Vec<Issue>,
}

/// Definitions in the order of their sources, found by identifier.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Catalog<T> {
    definitions: Vec<T>,
    index: HashMap<CapabilityId, usize>,
}

impl<T> Default for Catalog<T> {
    fn default() -> Self {
        Self {
            definitions: Vec::new(),
            index: HashMap::new(),
        }
    }
}

impl<T: Definition> Catalog<T> {
    fn new(definitions: Vec<T>) -> Self {
        let index = definitions
            .iter()
            .enumerate()
            .map(|(i, definition)| (definition.id().clone(), i))
            .collect();
        Self { definitions, index }
    }

    fn get(&self, id: &str) -> Option<&T> {
        self.index.get(id).and_then(|i| self.definitions.get(*i))
    }

    /// Merges the sources of one kind, the Service's first; what falls out is in `issues`.
    fn merge(service: Fetched<T>, collection: Fetched<T>, issues: &mut Vec<Issue>) -> Self {
        let service = admit(service, Scope::Service, &HashSet::new(), issues);
        let first: HashSet<_> = service.iter().map(|d| d.id().clone()).collect();
        let collection = admit(collection, Scope::Collection, &first, issues);
        let conflicts: Vec<_> = collection
            .iter()
            .map(Definition::id)
            .filter(|id| first.contains(*id))
            .cloned()
            .collect();
        let quarantined: HashSet<_> = conflicts.iter().cloned().collect();
        issues.extend(
            conflicts
                .into_iter()
                .map(|id| Issue::Conflict { kind: T::KIND, id }),
        );
        Self::new(
            service
                .into_iter()
                .chain(collection)
                .filter(|definition| !quarantined.contains(definition.id()))
                .collect(),
        )
    }
}

/// The definitions of a source that is whole, consistent and small enough beside those of the `earlier` one; none otherwise.
fn admit<T: Definition>(
    source: Fetched<T>,
    scope: Scope,
    earlier: &HashSet<CapabilityId>,
    issues: &mut Vec<Issue>,
) -> Vec<T> {
    let kind = T::KIND;
    let definitions = match source {
        Fetched::Absent => return Vec::new(),
        Fetched::Failed(reason) => {
            issues.push(Issue::Source {
                scope,
                kind,
                reason,
            });
            return Vec::new();
        }
        Fetched::Definitions(definitions) => definitions,
    };
    let mut ids = HashSet::new();
    if let Some(repeated) = definitions.iter().find(|d| !ids.insert(d.id())) {
        let reason = format!(
            "the identifier {} occurs twice in the source",
            repeated.id()
        );
        issues.push(Issue::Source {
            scope,
            kind,
            reason,
        });
        return Vec::new();
    }
    let further = ids.iter().filter(|id| !earlier.contains(**id)).count();
    if earlier.len() + further > T::EFFECTIVE {
        issues.push(Issue::Overflow { scope, kind });
        return Vec::new();
    }
    definitions
}

impl EffectiveCapabilities {
    /// What an Agent may use in a search: the Service's capabilities, and those of the Collection that the search names.
    ///
    /// A source that failed, contradicts itself or does not fit is left out whole; an identifier that both scopes publish is
    /// quarantined, and so is a sort over a filter that is not effective. Everything left out is among the
    /// [`issues`](Self::issues). Never fails: with nothing effective, text search remains.
    pub fn merge(service: ScopeCapabilities, collection: Option<ScopeCapabilities>) -> Self {
        let collection = collection.unwrap_or(ScopeCapabilities::NONE);
        let mut issues = Vec::new();
        let filters = Catalog::merge(service.filters, collection.filters, &mut issues);
        let mut sorts = Catalog::merge(service.sorts, collection.sorts, &mut issues);
        let missing = |sort: &SortDefinition| {
            sort.keys()
                .iter()
                .map(SortKey::filter_id)
                .find(|id| filters.get(id.as_str()).is_none())
                .cloned()
        };
        let mut resolved = Vec::new();
        for sort in std::mem::take(&mut sorts.definitions) {
            match missing(&sort) {
                None => resolved.push(sort),
                Some(filter_id) => issues.push(Issue::SortReference {
                    id: sort.id().clone(),
                    filter_id,
                }),
            }
        }
        Self {
            filters,
            sorts: Catalog::new(resolved),
            issues,
        }
    }

    /// What a Service may publish: the same as [`merge`](Self::merge), but nothing may be left out.
    ///
    /// A Service checks its own capabilities alone, and then with those of every Collection that has some.
    ///
    /// # Errors
    /// Everything that an Agent would have to leave out.
    pub fn check(
        service: ScopeCapabilities,
        collection: Option<ScopeCapabilities>,
    ) -> Result<Self, Vec<Issue>> {
        let effective = Self::merge(service, collection);
        if effective.issues.is_empty() {
            Ok(effective)
        } else {
            Err(effective.issues)
        }
    }

    /// The effective Filter Definitions, the Service's first, in the order of their sources.
    pub fn filters(&self) -> &[FilterDefinition] {
        &self.filters.definitions
    }

    /// The effective Sort Definitions, the Service's first, in the order of their sources.
    pub fn sorts(&self) -> &[SortDefinition] {
        &self.sorts.definitions
    }

    /// The effective Filter Definition of this identifier.
    pub fn filter(&self, id: &str) -> Option<&FilterDefinition> {
        self.filters.get(id)
    }

    /// The effective Sort Definition of this identifier; its filters are effective too.
    pub fn sort(&self, id: &str) -> Option<&SortDefinition> {
        self.sorts.get(id)
    }

    /// Why something advertised is not effective.
    pub fn issues(&self) -> &[Issue] {
        &self.issues
    }
}
