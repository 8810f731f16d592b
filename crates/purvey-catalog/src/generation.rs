//! Generations: immutable, numbered snapshots of the index.
//!
//! Generation *n* holds exactly the changes up to sequence number *n*. It is an opaque manifest blob and, for each kind of resource, a list of
//! segments with their dead; a document is alive in exactly one of them.

mod apart;
mod builder;
mod changed;
mod collect;
mod file;
mod items;
mod list;
mod lock;
mod pins;
mod search;
mod store;
mod touch;
mod view;

pub use builder::GenerationBuilder;
pub use collect::Collected;
pub(crate) use items::Wanted;
pub use list::{ListOutcome, ListQuery, ListScope};
pub use lock::IndexLock;
pub use pins::{PIN_GRACE_SECONDS, PIN_STEP_SECONDS};
pub(crate) use search::Scope;
pub use store::Generations;

use crate::Error;
use crate::access::Access;
use crate::segment::Segment;
use changed::Changed;
use purvey_odp::identity::ResourceType;
use purvey_odp::language::LanguageTag;
use purvey_odp::offering::Representation;
use roaring::RoaringBitmap;
use std::sync::{Arc, OnceLock};
use view::{Sight, Views};

/// One generation, open. Cheap to share; stays readable after it was collected.
#[derive(Debug)]
pub struct Generation {
    head: Head,
    meta: Meta,
    parts: [Vec<Part>; 2],
    /// Of a view, what it hides.
    sight: Option<Sight>,
    views: Views,
    restricted: OnceLock<bool>,
    languages: OnceLock<Arc<[LanguageTag]>>,
    lazy: search::Lazy,
}

/// What a generation says of itself.
#[derive(Debug, Clone)]
struct Head {
    number: u64,
    epoch: u64,
    /// Unix second of its publication; 0 when its file does not say.
    published: u64,
    /// The generation that was current when continuations took the time of expiry that they had at the publication.
    opening: u64,
    changed: Arc<Changed>,
}

/// The manifest blob with the name under which generations share it.
#[derive(Debug, Clone)]
struct Meta {
    digest: u128,
    bytes: Arc<[u8]>,
}

/// A segment as one generation sees it.
#[derive(Debug, Clone)]
struct Part {
    segment: Arc<Segment>,
    dead: Arc<RoaringBitmap>,
    /// In a view, the live documents that are delivered otherwise than they are stored.
    tainted: Arc<RoaringBitmap>,
}

/// A document found by id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The JSON text.
    pub bytes: Vec<u8>,
    /// Its language; `None` when the segment was written without languages.
    pub language: Option<LanguageTag>,
}

const fn slot(kind: ResourceType) -> usize {
    match kind {
        ResourceType::Collection => 0,
        ResourceType::Offering => 1,
    }
}

impl Generation {
    fn new(head: Head, meta: Meta, parts: [Vec<Part>; 2]) -> Self {
        Self {
            head,
            meta,
            parts,
            sight: None,
            views: Views::default(),
            restricted: OnceLock::new(),
            languages: OnceLock::new(),
            lazy: search::Lazy::default(),
        }
    }

    /// The sequence number of the last change that it holds.
    pub fn number(&self) -> u64 {
        self.head.number
    }

    /// The newest generation up to this one that changed something which the caller sees.
    pub fn changed_for(&self, access: &Access) -> u64 {
        self.head.changed.of(access)
    }

    /// Changes when everything was rebuilt.
    pub fn epoch(&self) -> u64 {
        self.head.epoch
    }

    /// The manifest blob, as given to [`GenerationBuilder::set_meta`].
    pub fn meta(&self) -> &[u8] {
        &self.meta.bytes
    }

    /// Tells blobs apart without comparing them: equal for equal blobs.
    pub fn meta_digest(&self) -> u128 {
        self.meta.digest
    }

    /// Documents of a kind.
    pub fn count(&self, kind: ResourceType) -> u64 {
        self.parts[slot(kind)].iter().map(Part::live).sum()
    }

    /// Direct members of a Collection, or its children.
    pub fn count_members(&self, kind: ResourceType, collection: &str) -> u64 {
        if self.hides(collection) {
            return 0;
        }
        let parts = self.parts[slot(kind)].iter();
        parts
            .filter_map(|part| {
                let members = part.segment.postings(collection)?;
                Some(members.len() - members.intersection_len(&part.dead))
            })
            .sum()
    }

    /// Segments that a kind consists of.
    pub fn segments(&self, kind: ResourceType) -> impl ExactSizeIterator<Item = &Arc<Segment>> {
        self.parts[slot(kind)].iter().map(|part| &part.segment)
    }

    /// Whether a document exists.
    pub fn contains(&self, kind: ResourceType, id: &str) -> bool {
        self.find(kind, id).is_some()
    }

    /// One document in item form (without `odp_version`), in the best language: the first of `preferred` that it has, else its own.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when its bytes are not those that were written; [`Error::Io`].
    pub fn get(
        &self,
        kind: ResourceType,
        id: &str,
        representation: Representation,
        preferred: &[LanguageTag],
    ) -> Result<Option<Item>, Error> {
        self.get_with_head(kind, id, representation, preferred, b"{")
    }

    /// As [`Self::get`], with `head` for the brace that the item begins with.
    pub(crate) fn get_with_head(
        &self,
        kind: ResourceType,
        id: &str,
        representation: Representation,
        preferred: &[LanguageTag],
        head: &[u8],
    ) -> Result<Option<Item>, Error> {
        let Some((part, ordinal)) = self.find(kind, id) else {
            return Ok(None);
        };
        let lookup = list::Lookup::new(&part.segment, preferred);
        let choice = lookup.choose(ordinal);
        let splice = if choice.splice { lookup.splice() } else { "" };
        let mut bytes = [head, splice.as_bytes()].concat();
        let sight = self.sight.as_ref();
        if let Some(item) = part.redacted(sight, kind, representation, ordinal, choice.variant)? {
            bytes.extend(item.get(1..).unwrap_or_default());
        } else {
            let segment = &part.segment;
            let place = segment.place(representation.into(), ordinal, choice.variant)?;
            bytes.reserve(place.len());
            segment.append_without_brace(&place, &mut bytes)?;
        }
        let language = part
            .segment
            .languages()
            .get(usize::from(choice.language))
            .cloned();
        Ok(Some(Item { bytes, language }))
    }

    fn find(&self, kind: ResourceType, id: &str) -> Option<(&Part, u32)> {
        self.parts[slot(kind)]
            .iter()
            .find_map(|part| Some((part, part.find_live(id)?)))
    }

    /// Appends a stretch of the listing to `out`, as `item,item`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when bytes of an item are not those that were written; [`Error::Io`]. `out` is then undefined.
    pub fn list(&self, query: &ListQuery<'_>, out: &mut Vec<u8>) -> Result<ListOutcome, Error> {
        list::list(
            &self.parts[slot(query.kind)],
            self.sight.as_ref(),
            query,
            out,
        )
    }

    /// Reads every item of every segment and checks it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] with the first damaged document; [`Error::Io`].
    pub fn verify(&self) -> Result<(), Error> {
        self.parts
            .iter()
            .flatten()
            .try_for_each(|part| part.segment.verify())
    }
}

impl Part {
    fn new(segment: Arc<Segment>, dead: RoaringBitmap) -> Self {
        Self {
            segment,
            dead: Arc::new(dead),
            tainted: Arc::default(),
        }
    }

    fn live(&self) -> u64 {
        u64::from(self.segment.len()) - self.dead.len()
    }

    fn find_live(&self, id: &str) -> Option<u32> {
        self.segment
            .find(id)
            .filter(|ordinal| !self.dead.contains(*ordinal))
    }

    /// First live ordinal that is not before `ordinal`; the segment's length when there is none.
    fn next_live(&self, mut ordinal: u32) -> u32 {
        while self.dead.contains(ordinal) {
            ordinal = self.end_of_dead(ordinal);
        }
        ordinal.min(self.segment.len())
    }

    /// The ordinal after the run of dead that `ordinal` belongs to, or one within that run.
    fn end_of_dead(&self, ordinal: u32) -> u32 {
        let mut dead = self.dead.iter();
        dead.advance_to(ordinal);
        dead.next_range()
            .map_or(ordinal, |run| *run.end())
            .saturating_add(1)
    }
}
