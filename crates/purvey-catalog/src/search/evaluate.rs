//! Which documents of a segment match.

use super::bitset::Bitset;
use super::cache::FilterCache;
use super::column::{Column, Columns, Selection};
use super::mapping::ColumnName;
use purvey_odp::filter::{Condition, FilterExpression};
use purvey_odp::identity::{CapabilityId, LocalId};
use std::sync::Arc;

/// Asking one document costs as much as scanning so many.
const PROBE_COST: u32 = 16;

/// The columns of a segment as one search sees them: the Service's filters, and those of the Collection that the search names.
#[derive(Clone, Copy)]
pub(crate) struct Scoped<'a> {
    pub(crate) columns: &'a Columns,
    pub(crate) collection: Option<&'a LocalId>,
}

impl<'a> Scoped<'a> {
    /// The column of a filter. No identifier is effective in both scopes.
    pub(crate) fn column(&self, filter: &CapabilityId) -> Option<&'a Arc<Column>> {
        let of = |collection| self.columns.get(&ColumnName::new(collection, filter));
        of(None).or_else(|| of(Some(self.collection?)))
    }
}

/// The documents of a segment that match, and those that would if one filter were left out.
pub(crate) struct Matching {
    /// Match everything.
    pub(crate) all: Bitset,
    /// Expressions whose documents the cache had.
    pub(crate) remembered: u32,
    /// Match everything but the expressions of a filter, for each refined filter that has some.
    beside: Vec<(CapabilityId, Bitset)>,
}

impl Matching {
    /// The documents that count for a refinement of `filter`.
    pub(crate) fn beside(&self, filter: &CapabilityId) -> &Bitset {
        let own = self.beside.iter().find(|(id, _)| id == filter);
        own.map_or(&self.all, |(_, set)| set)
    }
}

/// Narrows `base` by all expressions.
///
/// Expressions on filters that are not refined narrow the base for everybody. Each refined filter with expressions then has a set of its own within the base;
/// what matches beside it is the intersection of the other sets, which products from the left and from the right give without repeated work.
pub(crate) fn evaluate(
    scoped: Scoped<'_>,
    cache: &FilterCache,
    filters: &[FilterExpression],
    is_refined: impl Fn(&CapabilityId) -> bool,
    mut base: Bitset,
) -> Matching {
    let (own, shared): (Vec<_>, Vec<_>) = filters
        .iter()
        .partition(|expression| is_refined(expression.id()));
    let mut remembered = 0;
    for expression in shared {
        remembered += narrow(scoped, cache, expression, &mut base);
    }
    let mut sets: Vec<(&CapabilityId, Bitset)> = Vec::new();
    for expression in own {
        let at = match sets.iter().position(|(id, _)| *id == expression.id()) {
            Some(at) => at,
            None => {
                sets.push((expression.id(), base.clone()));
                sets.len() - 1
            }
        };
        remembered += narrow(scoped, cache, expression, &mut sets[at].1);
    }
    let mut rights = vec![base.clone()];
    for (_, set) in sets.iter().skip(1).rev() {
        let mut right = rights.last().unwrap_or(&base).clone();
        right.and(set);
        rights.push(right);
    }
    let mut all = base;
    let mut beside = Vec::with_capacity(sets.len());
    for (id, set) in sets {
        if let Some(mut others) = rights.pop() {
            others.and(&all);
            beside.push((id.clone(), others));
        }
        all.and(&set);
    }
    Matching {
        all,
        remembered,
        beside,
    }
}

/// Returns the number of expressions that the cache had: one or none.
fn narrow(
    scoped: Scoped<'_>,
    cache: &FilterCache,
    expression: &FilterExpression,
    set: &mut Bitset,
) -> u32 {
    let condition = expression.condition();
    let Some(column) = scoped.column(expression.id()) else {
        // Nobody has a value.
        if *condition != Condition::Exists(false) {
            set.clear();
        }
        return 0;
    };
    let selection = column.select(condition);
    if selection == Selection::Nothing {
        set.clear();
        return 0;
    }
    let key = FilterCache::key(column, condition);
    if let Some(selected) = cache.get(&key) {
        set.and(&selected);
        return 1;
    }
    if set.count() < set.len() / PROBE_COST {
        column.keep_selected(&selection, set);
        return 0;
    }
    let selected = Arc::new(column.selected_documents(&selection));
    set.and(&selected);
    cache.put(key, &selected);
    0
}
