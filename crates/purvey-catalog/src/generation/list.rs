//! Listing: a merge by id over the segments of a generation, each page read with few reads.

use super::Part;
use super::view::Sight;
use crate::Error;
use crate::segment::{Place, Region, Segment};
use purvey_odp::identity::ResourceType;
use purvey_odp::language::LanguageTag;
use purvey_odp::offering::Representation;
use std::ops::Range;

/// Unwanted bytes between two wanted items that are cheaper to read than to skip.
const GAP_BYTES: u64 = 8 * 1024;
/// Room for the end of a page with a usual `next`.
const END_BYTES: usize = 512;

/// What a listing covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListScope<'a> {
    /// Every document of the kind.
    All,
    /// The direct members of this Collection.
    Collection(&'a str),
}

/// A stretch of a listing, in ascending byte order of ids.
#[derive(Debug, Clone, Copy)]
pub struct ListQuery<'a> {
    /// Kind of resource.
    pub kind: ResourceType,
    /// Which of them.
    pub scope: ListScope<'a>,
    /// The id after which to begin; `None` begins at the first.
    pub after: Option<&'a str>,
    /// Most items.
    pub limit: usize,
    /// Most bytes of all items with the commas between them. The first item is delivered in any case.
    pub max_bytes: usize,
    /// Which representation.
    pub representation: Representation,
    /// Languages in order of preference; each item comes in the first that it has, else in its own.
    pub preferred: &'a [LanguageTag],
}

/// What a stretch held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListOutcome {
    /// Items appended.
    pub count: usize,
    /// The id of the last of them.
    pub last_id: Option<String>,
    /// Whether there are items after it.
    pub more: bool,
    /// Languages of the items, each once, in order of appearance.
    pub languages: Vec<LanguageTag>,
}

/// Which form of one document to deliver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Choice {
    /// The place among its variants; `None` is its own language.
    pub(super) variant: Option<usize>,
    /// Whether its language has to be put into the item.
    pub(super) splice: bool,
    /// Index in the segment's language table.
    pub(super) language: u16,
}

/// RFC 4647 Lookup over the documents of one segment.
pub(super) struct Lookup<'a> {
    segment: &'a Segment,
    /// The preferred languages that the segment has, as indexes into its table.
    wanted: Vec<u16>,
    /// The member that tells the default language, when the response is negotiated to another.
    splice: Option<String>,
}

impl<'a> Lookup<'a> {
    pub(super) fn new(segment: &'a Segment, preferred: &[LanguageTag]) -> Self {
        let table = segment.languages();
        let default = table.first();
        let foreign = preferred
            .first()
            .is_some_and(|first| Some(first) != default);
        let splice = default
            .filter(|_| foreign)
            .map(|tag| format!("\"language\":\"{}\",", tag.as_str()));
        let places = preferred
            .iter()
            .filter_map(|tag| table.iter().position(|known| known == tag));
        let mut wanted: Vec<u16> = places.filter_map(|at| u16::try_from(at).ok()).collect();
        if !segment.names_languages() {
            // Nothing goes past the language that every document has.
            let end = wanted
                .iter()
                .position(|at| *at == 0)
                .unwrap_or(wanted.len());
            wanted.truncate(end);
        }
        if !segment.has_variants() {
            wanted.clear();
        }
        Self {
            segment,
            wanted,
            splice,
        }
    }

    pub(super) fn splice(&self) -> &str {
        self.splice.as_deref().unwrap_or_default()
    }

    pub(super) fn choose(&self, ordinal: u32) -> Choice {
        let named = self.segment.named_language(ordinal);
        let own = named.unwrap_or_default();
        for wanted in self
            .wanted
            .iter()
            .copied()
            .take_while(|wanted| *wanted != own)
        {
            let variant = self
                .segment
                .variant_languages(ordinal)
                .position(|language| language == wanted);
            if variant.is_some() {
                return Choice {
                    variant,
                    splice: false,
                    language: wanted,
                };
            }
        }
        Choice {
            variant: None,
            splice: named.is_none() && self.splice.is_some(),
            language: own,
        }
    }
}

/// The live documents of one segment from some place on.
struct Head<'a> {
    part: &'a Part,
    lookup: Lookup<'a>,
    members: Option<roaring::bitmap::Iter<'a>>,
    /// The ordinal at the front; `None` at the end.
    next: Option<u32>,
}

impl<'a> Head<'a> {
    /// `None` when nothing of the segment is wanted.
    fn new(part: &'a Part, query: &ListQuery<'_>) -> Option<Self> {
        let start = query
            .after
            .map_or(0, |after| part.segment.seek_after(after));
        let members = match query.scope {
            ListScope::All => None,
            ListScope::Collection(collection) => {
                let mut members = part.segment.postings(collection)?.iter();
                members.advance_to(start);
                Some(members)
            }
        };
        let mut head = Self {
            part,
            lookup: Lookup::new(&part.segment, query.preferred),
            members,
            next: None,
        };
        head.seek(start);
        head.next.is_some().then_some(head)
    }

    /// Goes to the first wanted document from `ordinal` on.
    fn seek(&mut self, ordinal: u32) {
        let part = self.part;
        self.next = match &mut self.members {
            None => Some(part.next_live(ordinal)).filter(|at| *at < part.segment.len()),
            Some(members) => loop {
                match members.next() {
                    Some(at) if part.dead.contains(at) => members.advance_to(part.end_of_dead(at)),
                    next => break next,
                }
            },
        };
    }

    fn id(&self) -> Option<&'a str> {
        self.next.map(|at| self.part.segment.id(at))
    }
}

/// An item to deliver.
struct Pick {
    head: usize,
    ordinal: u32,
    choice: Choice,
    /// Where its text lies.
    place: Place,
    /// Its text, where the view shows another.
    redacted: Option<Vec<u8>>,
}

pub(super) fn list(
    parts: &[Part],
    sight: Option<&Sight>,
    query: &ListQuery<'_>,
    out: &mut Vec<u8>,
) -> Result<ListOutcome, Error> {
    let mut heads: Vec<Head<'_>> = parts
        .iter()
        .filter_map(|part| Head::new(part, query))
        .collect();
    let (picks, more) = pick(&mut heads, sight, query)?;
    let bytes: usize = picks.iter().map(|pick| pick.place.len() + 1).sum();
    // Some room for the end of the page, so that it does not move the items.
    out.reserve(bytes + END_BYTES);
    let mut rest = picks.as_slice();
    let mut scratch = Vec::new();
    while !rest.is_empty() {
        let (run, after) = rest.split_at(run_len(rest));
        if rest.len() < picks.len() {
            out.push(b',');
        }
        append_run(&heads, run, out, &mut scratch)?;
        rest = after;
    }
    let mut languages: Vec<LanguageTag> = Vec::new();
    let mut seen = Vec::new();
    for pick in &picks {
        let key = (pick.head, pick.choice.language);
        if !seen.contains(&key) {
            seen.push(key);
            let table = heads[pick.head].part.segment.languages();
            languages.extend(
                table
                    .get(usize::from(key.1))
                    .filter(|tag| !languages.contains(tag))
                    .cloned(),
            );
        }
    }
    let last_id = picks
        .last()
        .map(|pick| heads[pick.head].part.segment.id(pick.ordinal).to_owned());
    Ok(ListOutcome {
        count: picks.len(),
        last_id,
        more,
        languages,
    })
}

/// Chooses the items; also tells whether there are more.
fn pick(
    heads: &mut [Head<'_>],
    sight: Option<&Sight>,
    query: &ListQuery<'_>,
) -> Result<(Vec<Pick>, bool), Error> {
    let region = Region::from(query.representation);
    let mut picks = Vec::with_capacity(query.limit.min(128));
    let mut bytes = 0;
    while let Some((first, bound)) = smallest(heads) {
        // Everything below the smallest id of the other segments comes from this one: one comparison for each.
        while let Some(ordinal) = heads[first].next {
            let head = &mut heads[first];
            let segment = &head.part.segment;
            if bound.is_some_and(|bound| segment.id(ordinal) >= bound) {
                break;
            }
            let choice = head.lookup.choose(ordinal);
            let place = segment.place(region, ordinal, choice.variant)?;
            let splice = if choice.splice {
                head.lookup.splice().len()
            } else {
                0
            };
            if picks.len() >= query.limit {
                return Ok((picks, true));
            }
            let redacted = head.part.redacted(
                sight,
                query.kind,
                query.representation,
                ordinal,
                choice.variant,
            )?;
            let item = redacted.as_ref().map_or(place.len(), Vec::len);
            let len = item + splice + usize::from(!picks.is_empty());
            if !picks.is_empty() && bytes + len > query.max_bytes {
                return Ok((picks, true));
            }
            bytes += len;
            picks.push(Pick {
                head: first,
                ordinal,
                choice,
                place,
                redacted,
            });
            head.seek(ordinal + 1);
        }
    }
    Ok((picks, false))
}

/// The segment with the smallest id at its front, and the smallest id among the others.
fn smallest<'a>(heads: &[Head<'a>]) -> Option<(usize, Option<&'a str>)> {
    let mut first: Option<(usize, &str)> = None;
    let mut bound = None;
    for (at, head) in heads.iter().enumerate() {
        let Some(id) = head.id() else { continue };
        match first {
            Some((_, smaller)) if smaller < id => {
                if bound.is_none_or(|bound| id < bound) {
                    bound = Some(id);
                }
            }
            _ => {
                bound = first.map(|(_, id)| id);
                first = Some((at, id));
            }
        }
    }
    first.map(|(at, _)| (at, bound))
}

/// How many picks from the front are worth one read.
fn run_len(picks: &[Pick]) -> usize {
    let joined = |pair: &[Pick]| {
        let (a, b) = (&pair[0], &pair[1]);
        a.head == b.head
            && a.redacted.is_none()
            && b.redacted.is_none()
            && a.choice.variant.is_none() == b.choice.variant.is_none()
            && a.place.span.end <= b.place.span.start
            && b.place.span.start - a.place.span.end <= GAP_BYTES
    };
    1 + picks.windows(2).take_while(|pair| joined(pair)).count()
}

fn append_run(
    heads: &[Head<'_>],
    run: &[Pick],
    out: &mut Vec<u8>,
    scratch: &mut Vec<u8>,
) -> Result<(), Error> {
    let (Some(first), Some(last)) = (run.first(), run.last()) else {
        return Ok(());
    };
    let head = &heads[first.head];
    if let Some(item) = &first.redacted {
        append(head, first, item, out);
        return Ok(());
    }
    let segment = &head.part.segment;
    let span = first.place.span.start..last.place.span.end;
    let plain = |pick: &Pick| pick.choice.variant.is_none() && !pick.choice.splice;
    if run.iter().all(plain) && (last.ordinal - first.ordinal) as usize == run.len() - 1 {
        let start = out.len();
        segment.read(&span, out)?;
        return check_run(segment, run, out.get(start..).unwrap_or_default());
    }
    scratch.clear();
    segment.read(&span, scratch)?;
    for (at, pick) in run.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        let text = text(&span, scratch, pick);
        segment.check(&pick.place, text)?;
        append(head, pick, text, out);
    }
    Ok(())
}

/// The text of a pick in what was read from `span`.
fn text<'b>(span: &Range<u64>, read: &'b [u8], pick: &Pick) -> &'b [u8] {
    let start = (pick.place.span.start - span.start) as usize;
    read.get(start..start + pick.place.len())
        .unwrap_or_default()
}

/// Checks neighbours that are delivered as they were read, with the commas between them.
fn check_run(segment: &Segment, run: &[Pick], mut read: &[u8]) -> Result<(), Error> {
    for (at, pick) in run.iter().enumerate() {
        let comma = usize::from(at > 0);
        let (before, rest) = read.split_at(comma.min(read.len()));
        if comma > 0 && before != b"," {
            return Err(segment.damaged(pick.ordinal));
        }
        let (item, rest) = rest.split_at(pick.place.len().min(rest.len()));
        segment.check(&pick.place, item)?;
        read = rest;
    }
    Ok(())
}

fn append(head: &Head<'_>, pick: &Pick, item: &[u8], out: &mut Vec<u8>) {
    if pick.choice.splice {
        out.push(b'{');
        out.extend(head.lookup.splice().as_bytes());
        out.extend(&item[1..]);
    } else {
        out.extend(item);
    }
}
