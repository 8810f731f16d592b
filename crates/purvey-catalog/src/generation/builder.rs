//! Building the next generation from the one before.

use super::changed::{Changed, Touched};
use super::file;
use super::store::Registry;
use super::touch::{Arrival, audiences};
use super::{Generation, Head, Meta, Part, slot};
use crate::Error;
use crate::cursor::expiry;
use crate::segment::{Segment, SegmentId, TextPlan, merge};
use purvey_odp::identity::ResourceType;
use purvey_odp::language::LanguageTag;
use roaring::RoaringBitmap;
use std::sync::Arc;

/// Segments of one tier that are left alone.
const TIER_SEGMENTS: usize = 8;
/// Documents below which segments are of one tier; each further tier is ten times as large.
const SMALL_DOCUMENTS: u64 = 1_000;

/// A generation in the making. Hold the index lock from its creation until it is published.
pub struct GenerationBuilder {
    registry: Arc<Registry>,
    meta: Meta,
    parts: [Vec<Part>; 2],
    texts: [Option<Arc<TextPlan>>; 2],
    /// The generation before, and its Collections.
    base: Option<Head>,
    collections: Vec<Part>,
    touched: Touched,
}

impl GenerationBuilder {
    pub(super) fn new(registry: Arc<Registry>, base: Option<&Generation>) -> Self {
        let (meta, parts) = match base {
            Some(base) => (base.meta.clone(), base.parts.clone()),
            None => (meta(&[]), [Vec::new(), Vec::new()]),
        };
        let mut touched = Touched::default();
        if base.is_none() {
            touched.add_everybody();
        }
        Self {
            registry,
            meta,
            collections: parts[slot(ResourceType::Collection)].clone(),
            parts,
            texts: [None, None],
            base: base.map(|base| base.head.clone()),
            touched,
        }
    }

    /// Gives what merges need to index the texts of a kind again; without it, merged segments have no text index.
    pub fn set_texts(&mut self, kind: ResourceType, plan: Arc<TextPlan>) {
        self.texts[slot(kind)] = Some(plan);
    }

    /// Replaces the manifest blob.
    pub fn set_meta(&mut self, bytes: &[u8]) {
        let meta = meta(bytes);
        if meta.digest != self.meta.digest {
            self.touched.add_everybody();
        }
        self.meta = meta;
    }

    /// Adds the documents of a finished segment; they replace those with the same ids.
    ///
    /// # Errors
    /// As [`Segment::open`]; [`Error::Corrupt`] when a document cannot be read.
    pub fn add_segment(&mut self, kind: ResourceType, id: SegmentId) -> Result<(), Error> {
        let segment = self.registry.open(id)?;
        if !self.touched.is_everybody() {
            let arrival = Arrival {
                kind,
                segment: &segment,
                parts: &self.parts,
                collections: &self.collections,
            };
            arrival.note(&mut self.touched)?;
        }
        for part in &mut self.parts[slot(kind)] {
            kill_replaced(part, &segment);
        }
        self.parts[slot(kind)].push(Part::new(segment, RoaringBitmap::new()));
        Ok(())
    }

    /// Removes a document; `false` when there is none.
    pub fn kill(&mut self, kind: ResourceType, id: &str) -> bool {
        for part in &mut self.parts[slot(kind)] {
            if let Some(ordinal) = part.find_live(id) {
                self.touched.add(audiences(&part.segment, ordinal));
                Arc::make_mut(&mut part.dead).insert(ordinal);
                return true;
            }
        }
        false
    }

    /// Whether a document exists.
    pub fn contains(&self, kind: ResourceType, id: &str) -> bool {
        self.parts[slot(kind)]
            .iter()
            .any(|part| part.find_live(id).is_some())
    }

    /// Documents of a kind.
    pub fn count(&self, kind: ResourceType) -> u64 {
        self.parts[slot(kind)].iter().map(Part::live).sum()
    }

    /// Rewrites segments that are mostly dead and merges tiers that hold more than eight; publishing does this by itself.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when an item that has to be copied is damaged; [`Error::Io`].
    pub fn merge(&mut self) -> Result<(), Error> {
        self.merge_up_to(u64::MAX)
    }

    /// As [`Self::merge`], leaving out merges of more than `most` live documents.
    pub(super) fn merge_up_to(&mut self, most: u64) -> Result<(), Error> {
        for kind in [ResourceType::Collection, ResourceType::Offering] {
            self.parts[slot(kind)].retain(|part| part.live() > 0);
            while let Some(chosen) = choose(&self.parts[slot(kind)], most) {
                self.merge_parts(kind, &chosen)?;
            }
        }
        Ok(())
    }

    fn merge_parts(&mut self, kind: ResourceType, chosen: &[SegmentId]) -> Result<(), Error> {
        let parts = &mut self.parts[slot(kind)];
        let is_chosen = |part: &Part| chosen.contains(&part.segment.segment_id());
        let sources: Vec<(&Segment, &RoaringBitmap)> = parts
            .iter()
            .filter(|part| is_chosen(part))
            .map(|part| (part.segment.as_ref(), part.dead.as_ref()))
            .collect();
        let merged = merge(
            self.registry.dir(),
            &sources,
            self.texts[slot(kind)].as_deref(),
            self.registry.durability().clone(),
            None,
        )?;
        let merged = merged.map(|id| self.registry.open(id)).transpose()?;
        parts.retain(|part| !is_chosen(part));
        parts.extend(merged.map(|segment| Part::new(segment, RoaringBitmap::new())));
        Ok(())
    }

    pub(super) fn parts_mut(&mut self, kind: ResourceType) -> &mut Vec<Part> {
        &mut self.parts[slot(kind)]
    }

    pub(super) fn meta(&self) -> (u128, &[u8]) {
        (self.meta.digest, &self.meta.bytes)
    }

    /// `None` when it is too large for the format.
    pub(super) fn encode(&self, head: &Head) -> Option<Vec<u8>> {
        let entries = |parts: &'_ [Part]| {
            let entries = parts
                .iter()
                .map(|part| (part.segment.segment_id(), part.dead.clone()));
            entries.collect::<Vec<_>>()
        };
        let [collections, offerings] = [entries(&self.parts[0]), entries(&self.parts[1])];
        let parts = [&collections, &offerings]
            .map(|parts| parts.iter().map(|(id, dead)| (*id, dead.as_ref())));
        file::encode(head, self.meta.digest, parts)
    }

    /// What the generation is to say of itself, when it is published at `published` (Unix seconds).
    pub(super) fn head(&self, number: u64, epoch: u64, published: u64) -> Head {
        let (opening, changed) = match &self.base {
            None => (number, Changed::all(number)),
            Some(base) if expiry(base.published) < expiry(published) => {
                (base.number, base.changed.followed_by(number, &self.touched))
            }
            Some(base) => (
                base.opening,
                base.changed.followed_by(number, &self.touched),
            ),
        };
        Head {
            number,
            epoch,
            published,
            opening,
            changed: Arc::new(changed),
        }
    }

    pub(super) fn into_generation(self, head: Head) -> Generation {
        Generation::new(head, self.meta, self.parts)
    }
}

fn meta(bytes: &[u8]) -> Meta {
    Meta {
        digest: file::digest(bytes),
        bytes: bytes.into(),
    }
}

/// Marks the documents of a part that the newer segment replaces: walks the smaller of both and looks up in the larger.
fn kill_replaced(part: &mut Part, newer: &Segment) {
    let older = Arc::clone(&part.segment);
    let mut kill = |ordinal: u32| {
        if !part.dead.contains(ordinal) {
            Arc::make_mut(&mut part.dead).insert(ordinal);
        }
    };
    if newer.len() <= older.len() {
        let ids = (0..newer.len()).map(|ordinal| newer.id(ordinal));
        ids.filter_map(|id| older.find(id)).for_each(kill);
    } else {
        for ordinal in 0..older.len() {
            if newer.find(older.id(ordinal)).is_some() {
                kill(ordinal);
            }
        }
    }
}

/// The segments to merge next, with at most `most` live documents; `None` when all is well.
pub(super) fn choose(parts: &[Part], most: u64) -> Option<Vec<SegmentId>> {
    let mut tiers: Vec<(Tier<'_>, Vec<SegmentId>, u64)> = Vec::new();
    for part in parts {
        let id = part.segment.segment_id();
        let live = part.live();
        if part.dead.len() * 2 > u64::from(part.segment.len()) && live <= most {
            return Some(vec![id]);
        }
        let tier = Tier::of(part);
        match tiers.iter_mut().find(|(known, ..)| *known == tier) {
            Some((_, members, documents)) => {
                members.push(id);
                *documents += live;
            }
            None => tiers.push((tier, vec![id], live)),
        }
    }
    let full = tiers
        .into_iter()
        .find(|(_, members, documents)| members.len() > TIER_SEGMENTS && *documents <= most);
    full.map(|(_, members, _)| members)
}

/// Segments that may be merged with each other: of like size, and of one default language.
#[derive(PartialEq)]
struct Tier<'a> {
    size: u32,
    language: Option<&'a LanguageTag>,
}

impl<'a> Tier<'a> {
    fn of(part: &'a Part) -> Self {
        Self {
            size: (part.live() / SMALL_DOCUMENTS)
                .checked_ilog10()
                .map_or(0, |tens| tens + 1),
            language: part.segment.languages().first(),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn tiers_begin_at_powers_of_ten_from_a_thousand_on() {
        let size = |live: u64| {
            (live / super::SMALL_DOCUMENTS)
                .checked_ilog10()
                .map_or(0, |tens| tens + 1)
        };
        let sizes = [1, 999, 1_000, 9_999, 10_000, 100_000, 1_100_000].map(size);
        assert_eq!(sizes, [0, 0, 1, 1, 2, 3, 4]);
    }
}
