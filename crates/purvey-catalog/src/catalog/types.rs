//! What goes into the facade and what comes out of it.

use crate::access::Access;
use crate::clock::{Clock, SystemClock};
use crate::fs::Durability;
use crate::generation::Generation;
use crate::manifest::Manifest;
use bytes::Bytes;
use purvey_odp::identity::ResourceType;
use purvey_odp::language::{AcceptLanguage, LanguageTag};
use purvey_odp::offering::Representation;
use purvey_odp::report::Violation;
use std::sync::Arc;
use std::time::Duration;

/// How a catalog is opened.
#[derive(Clone)]
pub struct Options {
    /// Where time comes from: cursors and pins expire by it.
    pub clock: Arc<dyn Clock>,
    /// At most one generation is published in this time; default 200 ms.
    pub publish_interval: Duration,
    /// How often other processes' generations and changes are looked for; default 250 ms.
    pub poll_interval: Duration,
    /// Bytes of segments and generations above which publication slows down (a cursor is never broken); default: no budget.
    pub disk_budget: Option<u64>,
    /// How files are made durable; anything but the default is for simulations.
    pub durability: Durability,
    /// How long a write waits for another process's short write before it is [`crate::Error::Busy`]; default 1 s.
    pub busy_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            publish_interval: Duration::from_millis(200),
            poll_interval: Duration::from_millis(250),
            disk_budget: None,
            durability: Durability::default(),
            busy_timeout: Duration::from_secs(1),
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("publish_interval", &self.publish_interval)
            .field("poll_interval", &self.poll_interval)
            .field("disk_budget", &self.disk_budget)
            .field("busy_timeout", &self.busy_timeout)
            .finish_non_exhaustive()
    }
}

/// What one request is answered from: a generation and the manifest in it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The generation.
    pub generation: Arc<Generation>,
    /// Its manifest.
    pub manifest: Arc<Manifest>,
    /// Every language that something seen in it is written in, the Service's own first.
    pub languages: Arc<[LanguageTag]>,
}

/// A list operation; a continuation belongs to exactly one (ODP §3).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Listing {
    /// `list-collections`.
    Collections,
    /// `list-offerings`.
    Offerings,
    /// `list-collection-offerings`: the direct members of the Collection with this id.
    CollectionOfferings(String),
}

/// The first request of a list.
#[derive(Clone, Debug)]
pub struct ListRequest {
    /// What is listed.
    pub operation: Listing,
    /// Terse or Full items.
    pub representation: Representation,
    /// Most items of a page, 1 through 100; `None`: 50. Anything else is refused.
    pub limit: Option<u64>,
    /// The caller's languages.
    pub accept_language: AcceptLanguage,
    /// Who asks.
    pub access: Access,
}

/// One page: a complete response body. The same request on the same generation gives the same bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The body.
    pub bytes: Bytes,
    /// Languages of its items, each once, for `Content-Language`; that of the catalog when there is no item.
    pub languages: Vec<LanguageTag>,
    /// The generation that it comes from.
    pub generation: u64,
}

/// One top-level document: a complete response body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The body.
    pub bytes: Bytes,
    /// Its language, for `Content-Language`.
    pub language: LanguageTag,
    /// The generation that it comes from.
    pub generation: u64,
}

/// What must hold of the stored record for a write to happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precondition {
    /// Nothing.
    #[default]
    None,
    /// It is at this revision.
    IfMatch(u64),
    /// It does not exist.
    IfAbsent,
}

/// A durable write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The first generation that holds it.
    pub generation: u64,
    /// The record's revision; of a deletion, the number of the change.
    pub revision: u64,
    /// Whether the record did not exist before.
    pub created: bool,
    /// What was taken although it may be a typing error, by JSON Pointer ([`crate::record::Record::doubts`]).
    pub warnings: Vec<Violation>,
}

/// A record as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its revision.
    pub revision: u64,
    /// The record as JSON: wire form plus an optional `translations` member.
    pub bytes: Bytes,
}

/// A record to write, in wire form plus an optional `translations` member.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Collection or Offering.
    pub kind: ResourceType,
    /// The record.
    pub value: serde_json::Value,
}

/// Sizes of a catalog.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Stats {
    /// Offerings of the current generation.
    pub offerings: u64,
    /// Collections of the current generation.
    pub collections: u64,
    /// Language tags that the Service offers, its own first.
    pub languages: Vec<String>,
    /// Number of the current generation.
    pub generation: u64,
    /// Number of the newest committed change; larger than `generation` while changes wait for the indexer.
    pub change: u64,
    /// Generations on disk, the current one included, with the Unix second until which each is pinned, if it is.
    pub generations: Vec<(u64, Option<u64>)>,
    /// Bytes of the record store, its log included.
    pub store_bytes: u64,
    /// Bytes of segments and generations.
    pub index_bytes: u64,
}

/// What a check of the whole catalog found.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct CheckReport {
    /// Records compared with the current generation.
    pub records: u64,
    /// Segments whose checksums were verified.
    pub segments: u64,
    /// Committed changes that wait for the indexer; they are not compared.
    pub unindexed: u64,
    /// What is wrong, at most 100 entries; empty: the catalog is whole.
    pub faults: Vec<String>,
}
