//! A straightforward Tantivy program: one aggregation for each facet, paging by offset.

use crate::Outcome;
use crate::ask::{Answer, Ask, Counts, Engine, Facet, PAGE, Raw, first};
use crate::records::{Package, days};
use std::ops::Bound;
use std::path::Path;
use tantivy::aggregation::AggregationCollector;
use tantivy::aggregation::agg_req::Aggregations;
use tantivy::collector::TopDocs;
use tantivy::query::{AllQuery, BooleanQuery, Query, QueryParser, RangeQuery, TermQuery};
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, STORED, STRING, Schema, TEXT, Value,
};
use tantivy::{Index, IndexReader, IndexWriter, Order, TantivyDocument, Term};

/// Values that an aggregation keeps: above the cardinality of every facet, or counts would be wrong.
const VALUES: u32 = 1_000_000;

struct Fields {
    id: Field,
    registry: Field,
    name: Field,
    summary: Field,
    version: Field,
    major: Field,
    updated: Field,
    downloads: Field,
}

pub(crate) struct Plain {
    index: Index,
    reader: IndexReader,
    fields: Fields,
}

impl Plain {
    /// In memory: the best case for it.
    pub(crate) fn build(records: &Path) -> Outcome<Self> {
        let mut schema = Schema::builder();
        let fields = Fields {
            id: schema.add_text_field("id", STRING | STORED | FAST),
            registry: schema.add_text_field("registry", STRING | FAST),
            name: schema.add_text_field("name", TEXT),
            summary: schema.add_text_field("summary", TEXT),
            version: schema.add_text_field("version", STRING | FAST),
            major: schema.add_i64_field("major", INDEXED | FAST),
            updated: schema.add_i64_field("updated", INDEXED | FAST),
            downloads: schema.add_i64_field("downloads", INDEXED | FAST),
        };
        let index = Index::create_in_ram(schema.build());
        let mut writer: IndexWriter = index.writer_with_num_threads(2, 400_000_000)?;
        crate::records::each(records, |package| {
            writer.add_document(fields.document(&package))?;
            Ok(())
        })?;
        writer.commit()?;
        // One segment, the best case for it.
        let segments = index.searchable_segment_ids()?;
        writer.merge(&segments).wait()?;
        writer.wait_merging_threads()?;
        let reader = index.reader()?;
        Ok(Self {
            index,
            reader,
            fields,
        })
    }

    fn query(&self, ask: &Ask, without: Option<Facet>) -> Outcome<Box<dyn Query>> {
        let mut all: Vec<Box<dyn Query>> = Vec::new();
        if let Some(text) = ask.text {
            let fields = vec![self.fields.name, self.fields.summary];
            let mut parser = QueryParser::for_index(&self.index, fields);
            parser.set_conjunction_by_default();
            parser.set_field_boost(self.fields.name, 3.0);
            all.push(parser.parse_query(text)?);
        }
        if let Some(registry) = ask.registry.filter(|_| without != Some(Facet::Registry)) {
            let term = Term::from_field_text(self.fields.registry, registry);
            all.push(Box::new(TermQuery::new(term, IndexRecordOption::Basic)));
        }
        let from = ask.updated_from.as_deref().and_then(days);
        if let Some(from) = from.filter(|_| without != Some(Facet::Updated)) {
            all.push(at_least(self.fields.updated, from));
        }
        if let Some(from) = ask.downloads_from {
            all.push(at_least(self.fields.downloads, from));
        }
        if let Some(from) = ask.major_from.filter(|_| without != Some(Facet::Major)) {
            all.push(at_least(self.fields.major, from));
        }
        Ok(match all.len() {
            0 => Box::new(AllQuery),
            1 => all.remove(0),
            _ => Box::new(BooleanQuery::intersection(all)),
        })
    }
}

fn at_least(field: Field, from: i64) -> Box<dyn Query> {
    let from = Bound::Included(Term::from_field_i64(field, from));
    Box::new(RangeQuery::new(from, Bound::Unbounded))
}

impl Fields {
    fn document(&self, package: &Package) -> TantivyDocument {
        let mut document = TantivyDocument::new();
        document.add_text(self.id, &package.id);
        document.add_text(self.registry, &package.registry);
        document.add_text(self.name, &package.name);
        document.add_text(self.summary, &package.summary);
        if !package.version.is_empty() {
            document.add_text(self.version, &package.version);
        }
        let updated = package.updated.as_deref().and_then(days);
        for (field, value) in [
            (self.major, package.major),
            (self.updated, updated),
            (self.downloads, package.downloads),
        ] {
            if let Some(value) = value {
                document.add_i64(field, value);
            }
        }
        document
    }
}

impl Engine for Plain {
    fn name(&self) -> &'static str {
        "plain Tantivy"
    }

    fn answer(&mut self, ask: &Ask) -> Outcome<Raw> {
        let searcher = self.reader.searcher();
        let query = self.query(ask, None)?;
        let top = TopDocs::with_limit(PAGE).and_offset(ask.page * PAGE);
        let addresses: Vec<tantivy::DocAddress> = if ask.most_downloaded {
            let top = top.order_by_fast_field::<i64>("downloads", Order::Desc);
            let found = searcher.search(&query, &top)?;
            found.into_iter().map(|(_, address)| address).collect()
        } else if ask.text.is_some() {
            let found = searcher.search(&query, &top.order_by_score())?;
            found.into_iter().map(|(_, address)| address).collect()
        } else {
            let top = top.order_by_string_fast_field("id", Order::Asc);
            let found = searcher.search(&query, &top)?;
            found.into_iter().map(|(_, address)| address).collect()
        };
        let mut answer = Answer::default();
        for address in addresses {
            let document: TantivyDocument = searcher.doc(address)?;
            let id = document
                .get_first(self.fields.id)
                .and_then(|id| id.as_str());
            answer.ids.push(id.unwrap_or_default().to_owned());
        }
        for facet in ask.facets {
            let query = self.query(ask, Some(*facet))?;
            let request: Aggregations = serde_json::from_value(serde_json::json!({
                "values": {"terms": {"field": facet.name(), "size": VALUES, "segment_size": VALUES}}
            }))?;
            let collector = AggregationCollector::from_aggs(request, Default::default());
            let result = serde_json::to_value(searcher.search(&query, &collector)?)?;
            let mut counts: Counts = Vec::new();
            for bucket in result["values"]["buckets"].as_array().into_iter().flatten() {
                let key = match &bucket["key"] {
                    serde_json::Value::String(text) => text.clone(),
                    number => format!("{}", number.as_f64().unwrap_or_default() as i64),
                };
                counts.push((key, bucket["doc_count"].as_u64().unwrap_or_default()));
            }
            answer.facets.push(first(counts));
        }
        Ok(Raw::Answer(answer))
    }
}
