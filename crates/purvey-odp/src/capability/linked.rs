//! Collecting a linked capability source, page by page.

use super::Definition;
use crate::identity::CapabilityId;
use crate::limits;
use std::collections::HashSet;
use std::fmt;

/// The definitions of one linked source while its pages arrive. Nothing comes out before the last page: a source is exposed
/// whole or not at all.
#[derive(Debug)]
pub struct LinkedSource<T> {
    definitions: Vec<T>,
    own: HashSet<CapabilityId>,
    /// Identifiers of the sources that are applied before this one.
    earlier: HashSet<CapabilityId>,
    /// How many identifiers are in `own` or `earlier`.
    effective: usize,
    pages: usize,
    complete: bool,
}

/// Why a linked source is to be discarded, and not read further.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkedFault {
    /// A page holds more than 100 definitions.
    PageItems,
    /// The sixteenth page has a `next`.
    Pages,
    /// An identifier occurs twice in the source.
    Repeated(CapabilityId),
    /// The effective catalog cannot hold the source.
    Overflow,
    /// A page came after the last one, or the last one did not come.
    Sequence,
}

impl fmt::Display for LinkedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PageItems => write!(
                f,
                "a page holds more than {} definitions",
                limits::PAGE_ITEMS
            ),
            Self::Pages => write!(
                f,
                "the source has more than {} pages",
                limits::CAPABILITY_PAGES
            ),
            Self::Repeated(id) => write!(f, "the identifier {id} occurs twice in the source"),
            Self::Overflow => f.write_str("the effective catalog cannot hold the source"),
            Self::Sequence => f.write_str("the sequence of pages is broken"),
        }
    }
}

impl std::error::Error for LinkedFault {}

impl<T: Definition> LinkedSource<T> {
    /// A source without pages yet; `earlier` are the definitions of the sources that are applied before it.
    pub fn new(earlier: &[T]) -> Self {
        let earlier: HashSet<_> = earlier
            .iter()
            .map(|definition| definition.id().clone())
            .collect();
        Self {
            definitions: Vec::new(),
            own: HashSet::new(),
            effective: earlier.len(),
            earlier,
            pages: 0,
            complete: false,
        }
    }

    /// Takes the definitions of the following page; `has_next` says whether the page has a `next`. After a fault the source
    /// is to be discarded.
    ///
    /// # Errors
    /// The rule that is broken by this page, or by the one that would follow.
    pub fn push(&mut self, page: Vec<T>, has_next: bool) -> Result<(), LinkedFault> {
        if self.complete {
            return Err(LinkedFault::Sequence);
        }
        self.pages += 1;
        if page.len() > limits::PAGE_ITEMS {
            return Err(LinkedFault::PageItems);
        }
        for definition in page {
            let id = definition.id().clone();
            if !self.earlier.contains(&id) {
                self.effective += 1;
            }
            if let Some(id) = self.own.replace(id) {
                return Err(LinkedFault::Repeated(id));
            }
            if self.effective > T::EFFECTIVE {
                return Err(LinkedFault::Overflow);
            }
            self.definitions.push(definition);
        }
        if has_next && self.pages >= limits::CAPABILITY_PAGES {
            return Err(LinkedFault::Pages);
        }
        self.complete = !has_next;
        Ok(())
    }

    /// The definitions of the whole source, in order.
    ///
    /// # Errors
    /// When the last page has not come.
    pub fn finish(self) -> Result<Vec<T>, LinkedFault> {
        if self.complete {
            Ok(self.definitions)
        } else {
            Err(LinkedFault::Sequence)
        }
    }
}
