//! Views: a generation as one caller sees it.
//!
//! A view has the segments and the number of its generation; what the caller may not see is dead in it, so that lists, retrievals and counts
//! follow by themselves. Documents that name a hidden Collection are tainted: they are delivered without that name, rendered again.

use super::touch::audiences;
use super::{Generation, Part, slot};
use crate::Error;
use crate::access::{self, Access};
use crate::manifest::Manifest;
use crate::render;
use crate::search::{Column, ColumnName, Columns, ColumnsWriter, Mapping};
use crate::segment::codec::corrupt;
use crate::segment::{Region, SegmentId};
use parking_lot::Mutex;
use purvey_odp::identity::ResourceType;
use purvey_odp::language::LanguageTag;
use purvey_odp::offering::Representation;
use roaring::RoaringBitmap;
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;

/// Views of one generation that are kept: a busy Service has few kinds of callers.
const KEPT: usize = 32;

/// The member by which a resource names Collections.
pub(super) const fn naming(kind: ResourceType) -> &'static str {
    match kind {
        ResourceType::Collection => "parent_ids",
        ResourceType::Offering => "collection_ids",
    }
}

/// What a view hides beyond its dead.
#[derive(Debug)]
pub(super) struct Sight {
    manifest: Arc<Manifest>,
    /// Collections that exist and are not seen.
    hidden: HashSet<String>,
    /// The dead of each part without what is hidden only since the first page.
    dead_before: [Vec<Arc<RoaringBitmap>>; 2],
}

/// The views of a generation that were asked for, the last used last.
#[derive(Debug, Default)]
pub(super) struct Views(Mutex<Vec<View>>);

#[derive(Debug)]
struct View {
    access: Access,
    since: Since,
    generation: Arc<Generation>,
}

/// What a newer generation hides: the segments that an older one has not, with the number of hidden documents in each. Within a segment these
/// only become fewer, so that equal numbers are the same documents.
type Since = Vec<(SegmentId, u64)>;

impl Generation {
    /// Whether somebody may not see all of it.
    pub fn is_restricted(&self) -> bool {
        *self
            .restricted
            .get_or_init(|| self.parts.iter().flatten().any(Part::is_restricted))
    }

    /// What a caller sees of it. Where the caller has read before, `now` is the current generation: what is in it and hidden from the
    /// caller there is hidden here too.
    pub fn view(
        self: &Arc<Self>,
        access: &Access,
        manifest: &Arc<Manifest>,
        now: &Self,
    ) -> Arc<Self> {
        if !self.is_restricted() && !now.is_restricted() {
            return Arc::clone(self);
        }
        let since = self.since(access, now);
        // Held while one is made: many callers wait for the same.
        let mut views = self.views.0.lock();
        let is_same = |view: &View| view.access == *access && view.since == since;
        let view = match views.iter().position(is_same) {
            Some(at) => views.remove(at),
            None => View {
                access: access.clone(),
                generation: Arc::new(self.look(access, manifest, now)),
                since,
            },
        };
        let generation = Arc::clone(&view.generation);
        if views.len() >= KEPT {
            views.remove(0);
        }
        views.push(view);
        generation
    }

    fn since(&self, access: &Access, now: &Self) -> Since {
        if now.number() == self.number() {
            return Since::new();
        }
        let newer = self
            .parts
            .iter()
            .zip(&now.parts)
            .flat_map(|(old, new)| newer(old, new));
        newer
            .map(|part| (part.segment.segment_id(), part.hidden(access).len()))
            .filter(|(_, hidden)| *hidden > 0)
            .collect()
    }

    /// Whether this Collection exists and the caller of this view does not see it.
    pub(crate) fn hides(&self, collection: &str) -> bool {
        let sight = self.sight.as_ref();
        sight.is_some_and(|sight| sight.hidden.contains(collection))
    }

    /// The languages that what is seen here is written in, those of the manifest first.
    pub fn languages(&self, manifest: &Manifest) -> Arc<[LanguageTag]> {
        let found = self.languages.get_or_init(|| {
            let mut languages: Vec<LanguageTag> = manifest.languages().cloned().collect();
            for part in self.parts.iter().flatten() {
                part.add_languages(&mut languages);
            }
            languages.into()
        });
        Arc::clone(found)
    }

    /// The dead of each part that have no part in scores. What was hidden since the first page has: were it left out, the order would be another than that in which
    /// the first page left off.
    pub(super) fn unscored(&self, kind: ResourceType) -> Vec<Arc<RoaringBitmap>> {
        match &self.sight {
            Some(sight) => sight.dead_before[slot(kind)].clone(),
            None => dead(&self.parts[slot(kind)]),
        }
    }

    /// The columns to search in: those of the segment, in a view without values that name hidden Collections.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the columns or a document cannot be read; [`Error::Io`].
    pub(super) fn columns_of(
        &self,
        part: &Part,
        kind: ResourceType,
    ) -> Result<Arc<Columns>, Error> {
        let stored = part.segment.columns()?;
        match (&self.sight, kind) {
            (Some(sight), ResourceType::Offering) if !part.tainted.is_empty() => {
                sight.columns(part, &stored).map(Arc::new)
            }
            _ => Ok(stored),
        }
    }

    /// The audiences of a document, ascending; empty when everybody sees it, or when there is no such document.
    pub(crate) fn audience(&self, kind: ResourceType, id: &str) -> Vec<&str> {
        let Some((part, ordinal)) = self.find(kind, id) else {
            return Vec::new();
        };
        audiences(&part.segment, ordinal)
    }

    fn look(&self, access: &Access, manifest: &Arc<Manifest>, now: &Self) -> Self {
        let mut parts = self.parts.clone();
        for part in parts.iter_mut().flatten() {
            part.bury(part.hidden(access));
        }
        let dead_before = [dead(&parts[0]), dead(&parts[1])];
        if now.number() != self.number() {
            for ((parts, old), new) in parts.iter_mut().zip(&self.parts).zip(&now.parts) {
                bury_hidden_since(parts, newer(old, new), access);
            }
        }
        let mut hidden = HashSet::new();
        let collections = slot(ResourceType::Collection);
        for (all, seen) in self.parts[collections].iter().zip(&parts[collections]) {
            let gone = seen.dead.as_ref() - all.dead.as_ref();
            hidden.extend(
                gone.iter()
                    .map(|ordinal| seen.segment.id(ordinal).to_owned()),
            );
        }
        for part in parts.iter_mut().flatten() {
            let mut tainted = RoaringBitmap::new();
            for named in hidden.iter().filter_map(|id| part.segment.postings(id)) {
                tainted |= named;
            }
            tainted -= part.dead.as_ref();
            part.tainted = Arc::new(tainted);
        }
        Self {
            sight: Some(Sight {
                manifest: Arc::clone(manifest),
                hidden,
                dead_before,
            }),
            ..Self::new(self.head.clone(), self.meta.clone(), parts)
        }
    }
}

fn dead(parts: &[Part]) -> Vec<Arc<RoaringBitmap>> {
    parts.iter().map(|part| Arc::clone(&part.dead)).collect()
}

/// The segments of a newer generation that an older one has not. What a segment that both have hides is hidden in both.
fn newer<'a>(old: &'a [Part], new: &'a [Part]) -> impl Iterator<Item = &'a Part> {
    new.iter().filter(|part| {
        let id = part.segment.segment_id();
        !old.iter().any(|old| old.segment.segment_id() == id)
    })
}

/// Buries in `parts` what is alive in one of the `newer` segments and hidden from the caller there.
fn bury_hidden_since<'a>(
    parts: &mut [Part],
    newer: impl Iterator<Item = &'a Part>,
    access: &Access,
) {
    for newer in newer {
        for ordinal in newer.hidden(access) {
            let id = newer.segment.id(ordinal);
            for part in parts.iter_mut() {
                if let Some(at) = part.find_live(id) {
                    Arc::make_mut(&mut part.dead).insert(at);
                }
            }
        }
    }
}

impl Part {
    fn is_restricted(&self) -> bool {
        let restricted = self.segment.postings(access::RESTRICTED);
        restricted.is_some_and(|restricted| !restricted.is_subset(&self.dead))
    }

    /// The live documents that a caller may not see.
    fn hidden(&self, access: &Access) -> RoaringBitmap {
        let Some(restricted) = self.segment.postings(access::RESTRICTED) else {
            return RoaringBitmap::new();
        };
        let mut hidden = restricted - self.dead.as_ref();
        for audience in access.audiences() {
            if let Some(seen) = self.segment.postings(&access::posting(audience)) {
                hidden -= seen;
            }
        }
        hidden
    }

    fn bury(&mut self, hidden: RoaringBitmap) {
        if !hidden.is_empty() {
            *Arc::make_mut(&mut self.dead) |= hidden;
        }
    }

    /// Adds the languages of live documents that `languages` lacks.
    fn add_languages(&self, languages: &mut Vec<LanguageTag>) {
        let table = self.segment.languages();
        let mut wanted: Vec<bool> = table.iter().map(|tag| !languages.contains(tag)).collect();
        let mut missing = wanted.iter().filter(|wanted| **wanted).count();
        // The table's first is also that of documents which name none.
        for (ordinal, language) in self.segment.named_entries() {
            if missing == 0 {
                return;
            }
            let at = usize::from(language);
            if wanted.get(at) == Some(&true) && !self.dead.contains(ordinal) {
                wanted[at] = false;
                missing -= 1;
                languages.push(table[at].clone());
            }
        }
    }

    /// An item as this view shows it, where that is not as it is stored: `variant` is its place among the variants, or its own language.
    pub(super) fn redacted(
        &self,
        sight: Option<&Sight>,
        kind: ResourceType,
        representation: Representation,
        ordinal: u32,
        variant: Option<usize>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let Some(sight) = sight.filter(|_| self.tainted.contains(ordinal)) else {
            return Ok(None);
        };
        let full = self.redacted_full(sight, kind, ordinal, variant)?;
        Ok(Some(match representation {
            Representation::Full => render::bytes(&full),
            Representation::Terse => sight.manifest.terse(kind).render(&full),
        }))
    }

    /// The Full form without the names of hidden Collections.
    pub(super) fn redacted_full(
        &self,
        sight: &Sight,
        kind: ResourceType,
        ordinal: u32,
        variant: Option<usize>,
    ) -> Result<Value, Error> {
        let segment = &self.segment;
        let mut text = Vec::new();
        segment.append(&segment.place(Region::Full, ordinal, variant)?, &mut text)?;
        let mut full: Value = serde_json::from_slice(&text)
            .map_err(|e| corrupt(segment.path(), format!("{}: {e}", segment.id(ordinal))))?;
        sight.redact(kind, &mut full);
        Ok(full)
    }
}

impl Sight {
    /// The columns of a segment with what is shown of its tainted documents.
    fn columns(&self, part: &Part, stored: &Columns) -> Result<Columns, Error> {
        let naming = self
            .manifest
            .columns()
            .iter()
            .filter(|m| m.names_collections());
        let (mut derived, mut again) = (Vec::new(), Vec::new());
        for mapping in naming.clone() {
            let hidden = self.hidden.iter().map(String::as_str);
            match (stored.get(mapping.name()), mapping.collection_texts(hidden)) {
                (None, _) => {}
                (Some(column), Some(gone)) => {
                    derived.push((mapping.name().clone(), Arc::new(column.without(&gone)?)));
                }
                (Some(_), None) => again.push(mapping.clone()),
            }
        }
        let again = self.mapped_again(part, stored, &again)?;
        derived.extend(again.iter().map(share));
        let kept = stored.iter().map(share);
        let kept = kept.filter(|(name, _)| !naming.clone().any(|m| m.name() == name));
        Ok(Columns::new(stored.documents(), kept.chain(derived)))
    }

    /// The columns of these mappings, with the values of tainted documents mapped again from what is shown of them.
    fn mapped_again(
        &self,
        part: &Part,
        stored: &Columns,
        mappings: &[Mapping],
    ) -> Result<Columns, Error> {
        if mappings.is_empty() {
            return Ok(Columns::new(stored.documents(), []));
        }
        let mut writer = ColumnsWriter::new(mappings);
        for ordinal in part.tainted.iter() {
            writer.push(&part.redacted_full(self, ResourceType::Offering, ordinal, None)?)?;
        }
        let again = writer.finish()?;
        let is_mapped = |name: &ColumnName| mappings.iter().any(|m| m.name() == name);
        let before = stored.iter().map(share).filter(|(name, _)| is_mapped(name));
        let before = Columns::new(stored.documents(), before);
        let mut next = 0;
        let source = |ordinal| {
            if !part.tainted.contains(ordinal) {
                return (0, ordinal);
            }
            next += 1;
            (1, next - 1)
        };
        let sources: Vec<(u32, u32)> = (0..stored.documents()).map(source).collect();
        Columns::merge(&[&before, &again], &sources)
    }

    fn redact(&self, kind: ResourceType, full: &mut Value) {
        let Value::Object(map) = full else { return };
        let Some(Value::Array(ids)) = map.get_mut(naming(kind)) else {
            return;
        };
        ids.retain(|id| id.as_str().is_none_or(|id| !self.hidden.contains(id)));
        if ids.is_empty() {
            map.shift_remove(naming(kind));
        }
    }
}

fn share((name, column): (&ColumnName, &Arc<Column>)) -> (ColumnName, Arc<Column>) {
    (name.clone(), Arc::clone(column))
}
