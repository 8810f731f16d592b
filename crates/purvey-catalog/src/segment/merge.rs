//! Merging segments: bytes are copied, never rendered again.

use super::place::sum;
use super::{Region, Segment, SegmentId, SegmentWriter, TextPlan, Variant};
use crate::Error;
use crate::fs::Durability;
use crate::search::Columns;
use purvey_odp::language::LanguageTag;
use roaring::RoaringBitmap;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes read ahead for each part of each source.
const AHEAD_BYTES: u64 = 128 * 1024;
/// Stands for a document that is not copied.
const GONE: u32 = u32::MAX;

/// Writes the live documents of `sources` (each with its dead) into one new segment; `None` when nothing is alive.
/// No id may be alive in two sources. With a plan the texts are indexed again, from the Full items that are copied anyway.
/// Setting `stop` ends it with [`Error::NotWritten`].
pub(crate) fn merge(
    dir: &Path,
    sources: &[(&Segment, &RoaringBitmap)],
    texts: Option<&TextPlan>,
    durability: Durability,
    stop: Option<&AtomicBool>,
) -> Result<Option<SegmentId>, Error> {
    let mut table: Vec<LanguageTag> = Vec::new();
    let mut languages = Vec::new();
    for (segment, _) in sources {
        let mapped: Vec<u16> = segment
            .languages()
            .iter()
            .map(|tag| place(&mut table, tag))
            .collect();
        languages.push(mapped);
    }
    let mut writer = SegmentWriter::create(dir, &table, durability)?;
    if let Some(plan) = texts {
        writer.index_text(plan)?;
    }
    let mut heads: Vec<Head<'_>> = sources
        .iter()
        .map(|(segment, dead)| Head::new(segment, dead))
        .collect();
    // Source and ordinal of each document.
    let mut origins: Vec<(u32, u32)> = Vec::new();
    while let Some(at) = smallest(&heads) {
        if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return Err(Error::NotWritten {
                detail: "merging was stopped".to_owned(),
            });
        }
        origins.push((at as u32, heads[at].next));
        let head = &mut heads[at];
        let (segment, ordinal) = (head.segment, head.next);
        let map = |language: u16| {
            languages[at]
                .get(usize::from(language))
                .copied()
                .unwrap_or(u16::MAX)
        };
        let (terse, full, sums) = head.copier.document(ordinal)?;
        let language = segment.named_language(ordinal).map(map);
        let text = texts.map(|plan| {
            let full = serde_json::from_slice(full).map_err(|_| segment.damaged(ordinal))?;
            Ok::<_, Error>(plan.prepare(&full))
        });
        let new = writer.push_document(segment.id(ordinal), terse, full, language, sums)?;
        if let Some(text) = text {
            writer.push_text(text?)?;
        }
        for (place, language) in segment.variant_languages(ordinal).enumerate() {
            let (terse, full, sums) = head.copier.variant(ordinal, place)?;
            let language = map(language);
            writer.push_variant(
                new,
                &Variant {
                    language,
                    terse,
                    full,
                },
                sums,
            )?;
        }
        head.moved[ordinal as usize] = new;
        head.advance();
    }
    if writer.is_empty() {
        return Ok(None);
    }
    let mut postings: BTreeMap<String, RoaringBitmap> = BTreeMap::new();
    for head in &heads {
        for (collection, members) in head.segment.all_postings() {
            let moved = members.iter().map(|ordinal| head.moved[ordinal as usize]);
            let moved: RoaringBitmap = moved.filter(|ordinal| *ordinal != GONE).collect();
            if !moved.is_empty() {
                *postings.entry(collection.to_owned()).or_default() |= moved;
            }
        }
    }
    writer.set_postings(postings);
    if sources.iter().all(|(segment, _)| segment.has_columns()) {
        let columns: Result<Vec<_>, Error> = sources
            .iter()
            .map(|(segment, _)| segment.columns())
            .collect();
        let columns = columns?;
        let columns: Vec<&Columns> = columns.iter().map(AsRef::as_ref).collect();
        writer.set_columns(Columns::merge(&columns, &origins)?);
    }
    writer.finish().map(Some)
}

fn place(table: &mut Vec<LanguageTag>, tag: &LanguageTag) -> u16 {
    let at = table
        .iter()
        .position(|known| known == tag)
        .unwrap_or_else(|| {
            table.push(tag.clone());
            table.len() - 1
        });
    u16::try_from(at).unwrap_or(u16::MAX)
}

fn smallest(heads: &[Head<'_>]) -> Option<usize> {
    let alive = heads
        .iter()
        .enumerate()
        .filter(|(_, head)| head.next < head.segment.len());
    alive
        .min_by(|(_, a), (_, b)| a.segment.id(a.next).cmp(b.segment.id(b.next)))
        .map(|(at, _)| at)
}

struct Head<'a> {
    segment: &'a Segment,
    dead: &'a RoaringBitmap,
    next: u32,
    moved: Vec<u32>,
    copier: Copier<'a>,
}

impl<'a> Head<'a> {
    fn new(segment: &'a Segment, dead: &'a RoaringBitmap) -> Self {
        let mut head = Self {
            segment,
            dead,
            next: 0,
            moved: vec![GONE; segment.len() as usize],
            copier: Copier::new(segment),
        };
        head.skip();
        head
    }

    fn advance(&mut self) {
        self.next += 1;
        self.skip();
    }

    fn skip(&mut self) {
        while self.next < self.segment.len() && self.dead.contains(self.next) {
            self.next += 1;
        }
    }
}

/// Reads a segment from front to back with few reads and checks every sum.
pub(super) struct Copier<'a> {
    segment: &'a Segment,
    terse: Window<'a>,
    full: Window<'a>,
    variant_terse: Window<'a>,
    variant_full: Window<'a>,
}

/// Terse and Full, and the sums of Full and Terse.
type Copied<'c> = (&'c [u8], &'c [u8], (u32, u32));

impl<'a> Copier<'a> {
    pub(super) fn new(segment: &'a Segment) -> Self {
        Self {
            segment,
            terse: Window::new(segment),
            full: Window::new(segment),
            variant_terse: Window::new(segment),
            variant_full: Window::new(segment),
        }
    }

    /// A document in its own language. Ordinals must not go back.
    pub(super) fn document(&mut self, ordinal: u32) -> Result<Copied<'_>, Error> {
        let terse = self.terse.item(Region::Terse, ordinal)?;
        let full = self.full.item(Region::Full, ordinal)?;
        checked(self.segment, ordinal, None, terse, full)
    }

    /// A variant of the document that was read last.
    pub(super) fn variant(&mut self, ordinal: u32, at: usize) -> Result<Copied<'_>, Error> {
        let place = |region| self.segment.place(region, ordinal, Some(at));
        let terse = self.variant_terse.get(place(Region::Terse)?.span)?;
        let full = self.variant_full.get(place(Region::Full)?.span)?;
        checked(self.segment, ordinal, Some(at), terse, full)
    }
}

fn checked<'c>(
    segment: &Segment,
    ordinal: u32,
    variant: Option<usize>,
    terse: &'c [u8],
    full: &'c [u8],
) -> Result<Copied<'c>, Error> {
    let sums = segment.sums_of(ordinal, variant);
    if (sum(full), sum(terse)) == sums {
        return Ok((terse, full, sums));
    }
    Err(segment.damaged(ordinal))
}

/// A part of a file, read ahead.
struct Window<'a> {
    segment: &'a Segment,
    span: Range<u64>,
    bytes: Vec<u8>,
}

impl<'a> Window<'a> {
    fn new(segment: &'a Segment) -> Self {
        Self {
            segment,
            span: 0..0,
            bytes: Vec::new(),
        }
    }

    fn get(&mut self, wanted: Range<u64>) -> Result<&[u8], Error> {
        if wanted.start < self.span.start || wanted.end > self.span.end {
            let ahead = (wanted.start + AHEAD_BYTES).min(self.segment.disk_bytes());
            self.span = wanted.start..wanted.end.max(ahead);
            self.bytes.clear();
            self.segment.read(&self.span, &mut self.bytes)?;
        }
        let start = (wanted.start - self.span.start) as usize;
        Ok(&self.bytes[start..start + (wanted.end - wanted.start) as usize])
    }

    /// An item, after a look at the comma that pages take over from the file.
    fn item(&mut self, region: Region, ordinal: u32) -> Result<&[u8], Error> {
        let span = self.segment.span(region, ordinal, ordinal);
        if ordinal == 0 {
            return self.get(span);
        }
        let segment = self.segment;
        match self.get(span.start - 1..span.end)?.split_first() {
            Some((b',', item)) => Ok(item),
            _ => Err(segment.damaged(ordinal)),
        }
    }
}
