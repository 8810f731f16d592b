//! What the last word of a query may be the beginning of.

use super::index::Part;
use super::prefix::{Begun, PartBegun};
use super::search::TextSearch;
use super::set::{WINDOW, window};
use super::top::Top;
use std::sync::{Arc, OnceLock};

/// Documents of a part that are remembered in their order.
const FIRST: usize = 1_024;

/// The highest share in a window, and where the window begins.
pub(super) type Ceiling = (f32, u32);

/// The documents of a part that have completions.
pub(super) struct Ranked {
    /// The first of them with their shares: highest first, of equal ones the lowest.
    pub(super) first: Box<[(f32, u32)]>,
    /// For each window the highest share there, highest first.
    pub(super) ceilings: Box<[Ceiling]>,
}

impl Ranked {
    fn new(search: &TextSearch, part: &Part, begun: &PartBegun) -> Self {
        let windows = (0..part.documents).step_by(WINDOW as usize);
        let mut ceilings: Box<[Ceiling]> = windows.map(|base| (0.0, base)).collect();
        let mut top = Top::new(FIRST, None);
        for (number, set) in begun.fields.iter().enumerate() {
            let before = begun.fields.get(..number).unwrap_or_default();
            let mut doc = set.next(0);
            while doc < part.documents {
                if !before.iter().any(|set| set.contains(doc)) {
                    let is_in = |field: usize| {
                        let set = begun.fields.get(field);
                        set.is_some_and(|set| set.contains(doc))
                    };
                    let share = search.completed(part, doc, is_in).unwrap_or_default();
                    if let Some((ceiling, _)) = ceilings.get_mut((window(doc) / WINDOW) as usize) {
                        *ceiling = ceiling.max(share);
                    }
                    top.add(share, doc);
                }
                doc = set.next(doc + 1);
            }
        }
        ceilings.sort_by(|a, b| b.0.total_cmp(&a.0));
        Self {
            first: top.into_sorted().into(),
            ceilings,
        }
    }

    /// Whether documents come after the first.
    pub(super) fn has_more(&self) -> bool {
        self.first.len() >= FIRST
    }
}

/// What is remembered of a beginning as long as a generation is the current one.
pub(super) struct Known {
    /// Documents that are seen and have a word that begins so.
    pub(super) documents: u64,
    /// By segment and part, once they were wanted.
    ranked: Vec<Vec<OnceLock<Ranked>>>,
}

impl Known {
    pub(super) fn new(documents: u64, begun: &[Arc<Begun>]) -> Self {
        let parts = |begun: &Arc<Begun>| begun.parts.iter().map(|_| OnceLock::new()).collect();
        Self {
            documents,
            ranked: begun.iter().map(parts).collect(),
        }
    }

    /// The memory that it may come to take, for so many windows in so many parts.
    pub(super) fn bytes(windows: usize, parts: usize) -> usize {
        windows * size_of::<Ceiling>() + parts * FIRST * size_of::<(f32, u32)>()
    }
}

/// Completions of the last word of a query.
pub(super) struct Completions {
    pub(super) begun: Vec<Arc<Begun>>,
    pub(super) known: Arc<Known>,
}

impl Completions {
    /// Those in a part, if there are any.
    pub(super) fn of(&self, (segment, part): (usize, usize)) -> Option<&PartBegun> {
        let begun = self.begun.get(segment)?.parts.get(part)?;
        (begun.cost > 0).then_some(begun)
    }

    /// Those of a part, in their order.
    pub(super) fn ranked(
        &self,
        search: &TextSearch,
        part: &Part,
        (segment, at): (usize, usize),
    ) -> Option<&Ranked> {
        let known = self.known.ranked.get(segment)?.get(at)?;
        let begun = self.of((segment, at))?;
        Some(known.get_or_init(|| Ranked::new(search, part, begun)))
    }
}
