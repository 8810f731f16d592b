//! One segment for each kind of resource, from the rows that changed.

use crate::access;
use crate::error::Error;
use crate::generation::{GenerationBuilder, Generations, IndexLock};
use crate::manifest::Manifest;
use crate::pipeline;
use crate::record::Record;
use crate::render::{Rendered, render};
use crate::search::{ColumnsWriter, Mapping};
use crate::segment::{Entry, SegmentId, SegmentWriter, Variant};
use crate::store::{FILE, Read, RowRef};
use crate::text::Prepared;
use purvey_odp::identity::ResourceType;
use purvey_odp::language::LanguageTag;
use purvey_odp::value::Scalar;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of records handed to a worker at once: bounds memory whatever their sizes.
const CHUNK_BYTES: usize = 256 * 1024;
/// Records handed to a worker at once.
const CHUNK: usize = 256;
/// Rows below which threads cost more than they bring.
const FEW: u64 = 64;

/// What building needs besides the rows.
pub(super) struct Job<'a> {
    pub(super) generations: &'a Generations,
    pub(super) lock: &'a IndexLock,
    pub(super) manifest: &'a Manifest,
    /// Set from outside when nobody wants the result any more.
    pub(super) stop: &'a AtomicBool,
}

/// A row to render; without a body its document goes.
struct Change {
    id: String,
    body: Option<Vec<u8>>,
}

/// A rendered row; without a document it goes.
struct Outcome {
    id: String,
    document: Option<Document>,
}

struct Document {
    rendered: Rendered,
    language: Option<LanguageTag>,
    /// Of an Offering, the mapped sets of all filters.
    values: Vec<Vec<Scalar>>,
    text: Prepared,
}

impl Job<'_> {
    /// Brings everything that changed after `since` into `builder`; with 0, everything that exists.
    pub(super) fn build(
        &self,
        read: &Read<'_>,
        builder: &mut GenerationBuilder,
        since: u64,
    ) -> Result<(), Error> {
        for kind in [ResourceType::Collection, ResourceType::Offering] {
            let mut output = Output {
                job: self,
                builder,
                kind,
                segment: None,
            };
            if read.changed(kind, since)? <= FEW {
                rows(read, kind, since, |row| {
                    output.take(self.render(kind, Change::of(row))?)
                })?;
            } else {
                self.build_in_parallel(read, since, &mut output)?;
            }
            output.finish()?;
        }
        Ok(())
    }

    fn build_in_parallel(
        &self,
        read: &Read<'_>,
        since: u64,
        output: &mut Output<'_>,
    ) -> Result<(), Error> {
        let kind = output.kind;
        pipeline::feed_here(
            pipeline::workers(),
            |feed| {
                let mut chunk = Vec::with_capacity(CHUNK);
                let mut bytes = 0;
                let mut wanted = true;
                rows(read, kind, since, |row| {
                    bytes += row.body.map_or(0, <[u8]>::len);
                    chunk.push(Change::of(row));
                    if wanted && (chunk.len() == CHUNK || bytes >= CHUNK_BYTES) {
                        bytes = 0;
                        wanted =
                            feed.push(std::mem::replace(&mut chunk, Vec::with_capacity(CHUNK)));
                    }
                    // Nobody consumes after a failure, which is reported in place of this.
                    if wanted && !self.stop.load(Ordering::Relaxed) {
                        Ok(())
                    } else {
                        Err(Error::NotWritten {
                            detail: "indexing was stopped".to_owned(),
                        })
                    }
                })?;
                feed.push(chunk);
                Ok(())
            },
            |chunk: Vec<Change>| {
                let render = |change| self.render(kind, change);
                chunk.into_iter().map(render).collect::<Vec<_>>()
            },
            |outcomes| {
                for outcome in outcomes {
                    output.take(outcome?)?;
                }
                Ok(true)
            },
        )
    }

    fn render(&self, kind: ResourceType, change: Change) -> Result<Outcome, Error> {
        let Change { id, body } = change;
        let document = body.map(|body| self.document(kind, &body));
        let document = document.transpose().map_err(|detail| Error::Corrupt {
            path: FILE.into(),
            detail: format!("the {kind} {id}: {detail}"),
        })?;
        Ok(Outcome { id, document })
    }

    fn document(&self, kind: ResourceType, body: &[u8]) -> Result<Document, String> {
        let value = serde_json::from_slice(body).map_err(|e| e.to_string())?;
        let record = Record::from_stored(value, kind).map_err(|e| e.to_string())?;
        let rendered = render(&record, self.manifest);
        let language = if rendered.has_language {
            let own = record
                .language()
                .unwrap_or(self.manifest.language().as_str());
            Some(LanguageTag::parse(own).map_err(|e| e.to_string())?)
        } else {
            None
        };
        let full = record.full(self.manifest.language());
        let mappings = columns(self.manifest, kind).iter();
        let values = mappings.map(|mapping| mapping.values(&full)).collect();
        Ok(Document {
            rendered,
            language,
            values,
            text: self.manifest.text_plan(kind).prepare(&full),
        })
    }
}

/// The search columns of a kind.
fn columns(manifest: &Manifest, kind: ResourceType) -> &[Mapping] {
    match kind {
        ResourceType::Offering => manifest.columns(),
        ResourceType::Collection => &[],
    }
}

/// With `since` 0 every live row, else every changed one, in id order.
fn rows(
    read: &Read<'_>,
    kind: ResourceType,
    since: u64,
    each: impl FnMut(RowRef<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    if since == 0 {
        read.live(kind, each)
    } else {
        read.changes(kind, since, each)
    }
}

impl Change {
    fn of(row: RowRef<'_>) -> Self {
        Self {
            id: row.id.to_owned(),
            body: row.body.map(<[u8]>::to_vec),
        }
    }
}

/// Where the documents of one kind go.
struct Output<'a> {
    job: &'a Job<'a>,
    builder: &'a mut GenerationBuilder,
    kind: ResourceType,
    /// Begun with the first document, so that deletions alone make no segment.
    segment: Option<Growing<'a>>,
}

/// A segment in the making.
struct Growing<'a> {
    writer: SegmentWriter,
    columns: ColumnsWriter<'a>,
}

impl<'a> Output<'a> {
    fn take(&mut self, outcome: Outcome) -> Result<(), Error> {
        let Some(document) = outcome.document else {
            self.builder.kill(self.kind, &outcome.id);
            return Ok(());
        };
        let segment = match &mut self.segment {
            Some(segment) => segment,
            None => self.segment.insert(Growing::begin(self.job, self.kind)?),
        };
        segment.push(&outcome.id, document)
    }

    /// Adds the segment, whose documents replace those with the same ids.
    fn finish(self) -> Result<(), Error> {
        match self.segment {
            Some(segment) => self.builder.add_segment(self.kind, segment.finish()?),
            None => Ok(()),
        }
    }
}

impl<'a> Growing<'a> {
    fn begin(job: &Job<'a>, kind: ResourceType) -> Result<Self, Error> {
        let manifest = job.manifest;
        let languages: Vec<LanguageTag> = manifest.languages().cloned().collect();
        let mut writer = job.generations.segment_writer(job.lock, &languages)?;
        writer.index_text(manifest.text_plan(kind))?;
        Ok(Self {
            writer,
            columns: ColumnsWriter::new(columns(manifest, kind)),
        })
    }

    fn push(&mut self, id: &str, document: Document) -> Result<(), Error> {
        let Document {
            rendered,
            language,
            values,
            text,
        } = document;
        let writer = &mut self.writer;
        let language = language
            .as_ref()
            .map(|tag| writer.language(tag))
            .transpose()?;
        let mut variants = Vec::with_capacity(rendered.variants.len());
        for (tag, terse, full) in &rendered.variants {
            variants.push(Variant {
                language: writer.language(tag)?,
                terse,
                full,
            });
        }
        let audience = rendered.audience.iter().map(|name| access::posting(name));
        let restricted = (!rendered.audience.is_empty()).then(|| access::RESTRICTED.to_owned());
        let reserved: Vec<String> = restricted.into_iter().chain(audience).collect();
        let postings = rendered.collections.iter().chain(&reserved);
        let postings: Vec<&str> = postings.map(String::as_str).collect();
        writer.push(&Entry {
            id,
            terse: &rendered.terse,
            full: &rendered.full,
            variants: &variants,
            language,
            postings: &postings,
        })?;
        writer.push_text(text)?;
        self.columns.push_values(&values)
    }

    fn finish(mut self) -> Result<SegmentId, Error> {
        self.writer.set_columns(self.columns.finish()?);
        self.writer.finish()
    }
}
