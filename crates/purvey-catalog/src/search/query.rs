//! Searching the segments of a generation.

use super::bitset::Bitset;
use super::cache::FilterCache;
use super::column::{Column, Columns};
use super::evaluate::{Matching, Scoped, evaluate};
use super::refine::{self, Plan, Tally};
use super::sort::{Place, RankedKey, Ranking, START};
use super::text::{Resume, TextMatch};
use super::trace::{RefinementTrace, SegmentTrace, Trace, Watch};
use crate::Error;
use crate::segment::Segment;
use parking_lot::Mutex;
use purvey_odp::filter::{FilterDefinition, FilterExpression};
use purvey_odp::identity::LocalId;
use purvey_odp::refinement::RefinementGroup;
use purvey_odp::sort::SortKey;
use roaring::RoaringBitmap;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

/// Ids of a segment's documents; ordinals follow the byte order of ids.
pub trait Ids: Send + Sync {
    /// The id of a document.
    fn id(&self, ordinal: u32) -> &str;
    /// The ordinal of a document.
    fn find(&self, id: &str) -> Option<u32>;
    /// The first ordinal whose id comes after `id`; the number of documents when there is none.
    fn seek_after(&self, id: &str) -> u32;
}

impl Ids for Segment {
    fn id(&self, ordinal: u32) -> &str {
        Self::id(self, ordinal)
    }

    fn find(&self, id: &str) -> Option<u32> {
        Self::find(self, id)
    }

    fn seek_after(&self, id: &str) -> u32 {
        Self::seek_after(self, id)
    }
}

/// One segment as a generation sees it.
pub struct SearchSegment {
    columns: Arc<Columns>,
    ids: Arc<dyn Ids>,
    live: Bitset,
    live_count: u32,
    /// Counts of live documents for each value, by the column's uid, made when first wanted.
    totals: Mutex<HashMap<u64, Arc<[u32]>>>,
}

impl SearchSegment {
    /// A segment without its dead, which may include what the caller may not see.
    pub fn new(columns: Arc<Columns>, ids: Arc<dyn Ids>, dead: &RoaringBitmap) -> Self {
        let mut live = Bitset::full(columns.documents());
        live.and_not(&Bitset::from_roaring(columns.documents(), dead));
        Self {
            live_count: live.count(),
            live,
            columns,
            ids,
            totals: Mutex::default(),
        }
    }

    /// Documents that are alive.
    pub fn live(&self) -> &Bitset {
        &self.live
    }

    /// Live documents that have each value.
    fn totals(&self, column: &Column) -> Arc<[u32]> {
        if let Some(totals) = self.totals.lock().get(&column.uid()) {
            return Arc::clone(totals);
        }
        let mut totals = column.totals().to_vec();
        if self.live_count < self.live.len() {
            let mut dead = Bitset::full(self.live.len());
            dead.and_not(&self.live);
            let gone = refine::count(column, &dead);
            totals.iter_mut().zip(gone).for_each(|(n, gone)| *n -= gone);
        }
        let totals: Arc<[u32]> = totals.into();
        self.totals.lock().insert(column.uid(), Arc::clone(&totals));
        totals
    }
}

/// Documents that a search is confined to, a set for each segment, for example the members of a Collection and its descendants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members(Vec<Bitset>);

impl Members {
    /// The sets in the order of the segments, each over all documents of its segment.
    pub fn new(sets: Vec<Bitset>) -> Self {
        Self(sets)
    }

    /// The set of a segment; `None` past the last.
    pub fn of(&self, segment: usize) -> Option<&Bitset> {
        self.0.get(segment)
    }

    /// Memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.0.iter().map(Bitset::bytes).sum()
    }
}

/// In which order documents are found. The id, ascending by bytes, decides between equals.
#[derive(Clone, Copy, Debug)]
pub enum Order<'a> {
    /// By id alone.
    Id,
    /// By the keys of a Sort Definition.
    Keys(&'a [SortKey]),
    /// By how well the text matches, best first; by id without text.
    Relevance,
}

/// What to search for.
#[derive(Clone, Copy)]
pub struct Query<'a> {
    /// All must hold.
    pub filters: &'a [FilterExpression],
    /// The Collection that the search names, whose filters may be used beside the Service's.
    pub collection: Option<&'a LocalId>,
    /// Where to search; everywhere when `None`.
    pub scope: Option<&'a Members>,
    /// Text that must match.
    pub text: Option<&'a dyn TextMatch>,
    /// The order of what is found.
    pub order: Order<'a>,
    /// The last document of the page before.
    pub after: Option<After<'a>>,
    /// Documents at most.
    pub limit: usize,
    /// Filters to count the values of.
    pub refinements: &'a [FilterDefinition],
    /// A way to count, where it applies, instead of the one that seems cheapest; for tests and measurements.
    pub plan: Option<Plan>,
}

/// Where the page before ended.
#[derive(Clone, Copy, Debug)]
pub struct After<'a> {
    /// The id of its last document, which is of the same generation.
    pub id: &'a str,
    /// Its score, when the order is that of relevance.
    pub score: f32,
    /// The place of its segment and its ordinal there, where they are known; else the document is looked for among the living.
    pub place: Option<(usize, u32)>,
}

/// A document that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The place of its segment.
    pub segment: usize,
    /// Its ordinal there.
    pub ordinal: u32,
    /// Its score, when the order is that of relevance; zero otherwise.
    pub score: f32,
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct Hits {
    /// Documents in order.
    pub documents: Vec<Hit>,
    /// Whether more documents match after these.
    pub more: bool,
    /// A group for each filter whose values were to be counted and that any document has a value of, in the order of the query.
    pub refinements: Vec<RefinementGroup>,
}

/// The segments of a generation, searchable.
pub struct SearchIndex {
    segments: Vec<SearchSegment>,
    cache: Arc<FilterCache>,
}

impl SearchIndex {
    /// Segments and a cache, which many indexes may share.
    pub fn new(segments: Vec<SearchSegment>, cache: Arc<FilterCache>) -> Self {
        Self { segments, cache }
    }

    /// The segments in their order.
    pub fn segments(&self) -> &[SearchSegment] {
        &self.segments
    }

    /// Searches.
    ///
    /// # Errors
    /// [`Error::CursorInvalid`] when the document to go on after does not exist and its values are needed; errors of the text index.
    pub fn search(&self, query: &Query<'_>) -> Result<Hits, Error> {
        self.search_traced(query, &mut Trace::default())
    }

    /// As [`search`](Self::search), noting how.
    ///
    /// # Errors
    /// As [`search`](Self::search).
    pub fn search_traced(&self, query: &Query<'_>, trace: &mut Trace) -> Result<Hits, Error> {
        let keys = match query.order {
            Order::Keys(keys) => keys,
            Order::Id | Order::Relevance => &[],
        };
        let text_order = query
            .text
            .filter(|_| matches!(query.order, Order::Relevance));
        // Then the text index finds the best itself, faster than it can list everything.
        let by_text_alone = text_order.is_some() && query.refinements.is_empty();
        let rankings: Vec<Ranking<'_>> = self
            .segments
            .iter()
            .map(|segment| segment.ranking(query.collection, keys))
            .collect();
        let resume = self.resume_values(query, &rankings)?;
        let mut tallies: Vec<Vec<Tally<'_>>> = Vec::new();
        tallies.resize_with(query.refinements.len(), Vec::new);
        let mut found = Vec::with_capacity(self.segments.len());
        for (at, segment) in self.segments.iter().enumerate() {
            let mut watch = Watch::start();
            let text = query.text.filter(|_| !by_text_alone);
            let Some(base) = segment.base(at, query.scope, text)? else {
                found.push(Vec::new());
                continue;
            };
            let mut noted = SegmentTrace {
                segment: at,
                documents: base.len(),
                candidates: base.count(),
                scope_us: watch.lap(),
                ..SegmentTrace::default()
            };
            let scoped = segment.scoped(query.collection);
            let is_refined = |id: &_| query.refinements.iter().any(|refined| refined.id() == id);
            let matching = evaluate(scoped, &self.cache, query.filters, is_refined, base);
            noted.matching = matching.all.count();
            noted.remembered = matching.remembered;
            noted.filters_us = watch.lap();
            for (definition, tallies) in query.refinements.iter().zip(&mut tallies) {
                let tally = segment.tally(scoped, definition, &matching, query.plan);
                if let Some((tally, counted)) = tally {
                    tallies.push(tally);
                    noted.refinements.push(counted);
                }
            }
            noted.refinements_us = watch.lap();
            let limit = query.limit + 1;
            let next = query
                .after
                .map_or(0, |after| segment.ids.seek_after(after.id));
            let best = match text_order {
                Some(text) => {
                    let resume = query.after.map(|after| Resume {
                        score: after.score,
                        next,
                    });
                    text.best(at, &matching.all, resume, limit)?
                }
                None => {
                    let from: Place = match &resume {
                        Some(values) => rankings[at].after(values, next),
                        None => START,
                    };
                    let top = rankings[at].top(&matching.all, from, limit);
                    top.into_iter().map(|ordinal| (0.0, ordinal)).collect()
                }
            };
            found.push(best);
            noted.order_us = watch.lap();
            trace.segments.push(noted);
        }
        let mut watch = Watch::start();
        let mut documents = self.merge(&rankings, &found, query.limit + 1);
        let more = documents.len() > query.limit;
        documents.truncate(query.limit);
        let refinements = query.refinements.iter().zip(&tallies);
        let refinements = refinements
            .filter_map(|(definition, tallies)| refine::group(definition, tallies))
            .collect();
        trace.unite_us = watch.lap();
        Ok(Hits {
            documents,
            more,
            refinements,
        })
    }

    /// The values by which the document to go on after was sorted; `None` on the first page.
    fn resume_values<'s>(
        &'s self,
        query: &Query<'_>,
        rankings: &[Ranking<'s>],
    ) -> Result<Option<Vec<Option<&'s [u8]>>>, Error> {
        let Some(after) = query.after else {
            return Ok(None);
        };
        let keys = rankings.first().map_or(0, |ranking| ranking.keys.len());
        if keys == 0 {
            return Ok(Some(Vec::new()));
        }
        let living = || {
            let segments = self.segments.iter().enumerate();
            let mut living = segments.filter_map(|(at, segment)| {
                let ordinal = segment.ids.find(after.id)?;
                segment.live.contains(ordinal).then_some((at, ordinal))
            });
            living.next()
        };
        let (at, ordinal) = after.place.or_else(living).ok_or(Error::CursorInvalid)?;
        let known = self.segments.get(at);
        let ranking = rankings
            .get(at)
            .filter(|_| known.is_some_and(|segment| ordinal < segment.live.len()))
            .ok_or(Error::CursorInvalid)?;
        let keys = ranking.keys.iter();
        Ok(Some(keys.map(|key| key.value(ordinal)).collect()))
    }

    /// The first `limit` of all segments' best.
    fn merge(&self, rankings: &[Ranking<'_>], found: &[Vec<(f32, u32)>], limit: usize) -> Vec<Hit> {
        let mut heads = vec![0; found.len()];
        let mut documents = Vec::new();
        while documents.len() < limit {
            let candidates = found.iter().zip(&heads).enumerate();
            let candidates = candidates.filter_map(|(segment, (best, head))| {
                let (score, ordinal) = *best.get(*head)?;
                Some(Hit {
                    segment,
                    ordinal,
                    score,
                })
            });
            let Some(next) = candidates.min_by(|a, b| self.compare(rankings, *a, *b)) else {
                break;
            };
            heads[next.segment] += 1;
            documents.push(next);
        }
        documents
    }

    fn compare(&self, rankings: &[Ranking<'_>], a: Hit, b: Hit) -> Ordering {
        let keys = rankings[a.segment]
            .keys
            .iter()
            .zip(&rankings[b.segment].keys);
        let by_keys = || {
            keys.map(|(key, other)| key.compare(key.value(a.ordinal), other.value(b.ordinal)))
                .find(|order| order.is_ne())
        };
        let id = |hit: Hit| self.segments[hit.segment].ids.id(hit.ordinal).as_bytes();
        b.score
            .total_cmp(&a.score)
            .then_with(|| by_keys().unwrap_or(Ordering::Equal))
            .then_with(|| id(a).cmp(id(b)))
    }
}

impl SearchSegment {
    fn scoped<'a>(&'a self, collection: Option<&'a LocalId>) -> Scoped<'a> {
        Scoped {
            columns: &self.columns,
            collection,
        }
    }

    fn ranking<'a>(&'a self, collection: Option<&'a LocalId>, keys: &'a [SortKey]) -> Ranking<'a> {
        let scoped = self.scoped(collection);
        let keys = keys
            .iter()
            .map(|key| RankedKey::new(key, scoped.column(key.filter_id()).map(Arc::as_ref)));
        Ranking {
            keys: keys.collect(),
        }
    }

    /// Live documents within the scope that match the text; `None` when there are none.
    fn base(
        &self,
        at: usize,
        scope: Option<&Members>,
        text: Option<&dyn TextMatch>,
    ) -> Result<Option<Bitset>, Error> {
        let members = scope.map(|scope| scope.of(at));
        if self.live_count == 0 || members.is_some_and(|of| of.is_none_or(Bitset::is_empty)) {
            return Ok(None);
        }
        let mut base = match text {
            // What text matches is few: that is narrowed in less time than all living are.
            Some(text) => {
                let mut matching = text.matching(at)?;
                matching.and(&self.live);
                matching
            }
            None => self.live.clone(),
        };
        if let Some(members) = members.flatten() {
            base.and(members);
        }
        Ok(Some(base))
    }

    fn tally<'a>(
        &self,
        scoped: Scoped<'a>,
        definition: &FilterDefinition,
        matching: &Matching,
        forced: Option<Plan>,
    ) -> Option<(Tally<'a>, RefinementTrace)> {
        let column = scoped.column(definition.id())?;
        let set = matching.beside(definition.id());
        let count = set.count();
        if count == 0 {
            return None;
        }
        let plan = match forced {
            Some(plan) if plan != Plan::Totals || count == self.live_count => plan,
            _ => Plan::choose(column, count, self.live_count),
        };
        let totals = match plan {
            Plan::Totals | Plan::Complement => self.totals(column),
            Plan::Iterate | Plan::Scan => Arc::default(),
        };
        let counted = RefinementTrace {
            filter_id: definition.id().as_str().to_owned(),
            plan,
            documents: count,
            values: column.values(),
        };
        let tally = Tally::new(definition.id(), column, plan, set, &self.live, &totals);
        Some((tally, counted))
    }
}
