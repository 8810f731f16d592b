//! Text indexes for tests, and what they must find, worked out from the documented rules by other means.
#![allow(dead_code, reason = "each test program uses a part")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

pub(crate) mod oracle;

use purvey_catalog::fs::Durability;
use purvey_catalog::search::{Bitset, Resume, TextMatch};
use purvey_catalog::text::{Analyzer, TextConfig, TextIndex, TextSearch, TextSegment, TextWriter};
use purvey_odp::language::LanguageTag;
use roaring::RoaringBitmap;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

/// A document: for each field its texts.
pub(crate) type Doc = Vec<Vec<String>>;

pub(crate) fn config(language: &str, weights: &[f32]) -> TextConfig {
    TextConfig {
        language: LanguageTag::parse(language).unwrap(),
        weights: weights.to_vec(),
    }
}

pub(crate) fn write(path: &Path, config: &TextConfig, docs: &[Doc]) {
    let analyzer = Analyzer::new(config);
    let mut writer = TextWriter::create(path, config, Durability::Off).unwrap();
    for doc in docs {
        let fields: Vec<Vec<&str>> = doc
            .iter()
            .map(|texts| texts.iter().map(String::as_str).collect())
            .collect();
        writer.push(analyzer.prepare(&fields)).unwrap();
    }
    writer.finish().unwrap();
}

/// An index alone, searchable.
pub(crate) fn search(index: Arc<TextIndex>, config: &TextConfig) -> TextSearch {
    let segment = TextSegment::new(index, &RoaringBitmap::new());
    TextSearch::new(vec![segment], config)
}

/// Documents in segments, searchable.
pub(crate) struct Indexed {
    pub(crate) search: TextSearch,
    /// The first document of each segment, and the number of all.
    pub(crate) firsts: Vec<usize>,
    dir: TempDir,
    config: TextConfig,
    dead: Vec<usize>,
}

impl Indexed {
    /// One segment for each length; the lengths sum up to the documents.
    pub(crate) fn new(config: &TextConfig, docs: &[Doc], lens: &[usize]) -> Self {
        Self::without(config, docs, lens, &[])
    }

    /// The same, some of the documents being dead.
    pub(crate) fn without(
        config: &TextConfig,
        docs: &[Doc],
        lens: &[usize],
        dead: &[usize],
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut firsts = vec![0];
        for (at, len) in lens.iter().enumerate() {
            let first = *firsts.last().unwrap();
            write(
                &dir.path().join(format!("{at}.text")),
                config,
                &docs[first..first + len],
            );
            firsts.push(first + len);
        }
        assert_eq!(firsts.last(), Some(&docs.len()));
        let mut indexed = Self {
            search: TextSearch::new(Vec::new(), config),
            firsts,
            dir,
            config: config.clone(),
            dead: dead.to_vec(),
        };
        indexed.reopen();
        indexed
    }

    /// Opens the files again.
    pub(crate) fn reopen(&mut self) {
        let segments = (0..self.firsts.len() - 1).map(|at| {
            let path = self.dir.path().join(format!("{at}.text"));
            let index = TextIndex::open(&path).unwrap();
            assert_eq!(index.config_digest(), self.config.digest());
            let (first, next) = (self.firsts[at], self.firsts[at + 1]);
            let dead = self.dead.iter().filter(|n| (first..next).contains(*n));
            let dead: RoaringBitmap = dead.map(|n| (*n - first) as u32).collect();
            TextSegment::new(Arc::new(index), &dead)
        });
        self.search = TextSearch::new(segments.collect(), &self.config);
    }

    pub(crate) fn len(&self, segment: usize) -> u32 {
        (self.firsts[segment + 1] - self.firsts[segment]) as u32
    }

    fn is_alive(&self, number: usize) -> bool {
        !self.dead.contains(&number)
    }

    /// All living documents that match, by number.
    pub(crate) fn matching(&self, query: &str) -> Vec<usize> {
        let query = self.search.query(query).unwrap();
        let mut found = Vec::new();
        for segment in 0..self.firsts.len() - 1 {
            let matching = query.matching(segment).unwrap();
            assert_eq!(matching.len(), self.len(segment));
            found.extend(matching.iter().map(|n| self.firsts[segment] + n as usize));
        }
        found.retain(|number| self.is_alive(*number));
        found
    }

    /// Matching documents by number, best first, equals by number; at most `limit`.
    pub(crate) fn best(&self, query: &str, limit: usize) -> Vec<(f32, usize)> {
        self.page(query, None, limit, |_| true)
    }

    /// The same from after a document on, among some documents.
    pub(crate) fn page(
        &self,
        query: &str,
        after: Option<(f32, usize)>,
        limit: usize,
        among: impl Fn(usize) -> bool,
    ) -> Vec<(f32, usize)> {
        let query = self.search.query(query).unwrap();
        let mut found = Vec::new();
        for segment in 0..self.firsts.len() - 1 {
            let first = self.firsts[segment];
            let len = self.len(segment);
            let mut set = Bitset::new(len);
            (0..len)
                .filter(|n| among(first + *n as usize) && self.is_alive(first + *n as usize))
                .for_each(|n| set.insert(n));
            let resume = after.map(|(score, last)| Resume {
                score,
                next: (last + 1).saturating_sub(first).min(len as usize) as u32,
            });
            let best = query.best(segment, &set, resume, limit).unwrap();
            assert!(best.len() <= limit);
            found.extend(best.iter().map(|(score, n)| (*score, first + *n as usize)));
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        found.truncate(limit);
        found
    }

    /// Numbers of the matching documents, best first.
    pub(crate) fn order(&self, query: &str) -> Vec<usize> {
        self.best(query, 1_000).iter().map(|(_, n)| *n).collect()
    }
}

/// Documents with one field and one text.
pub(crate) fn texts(texts: &[&str]) -> Vec<Doc> {
    texts
        .iter()
        .map(|text| vec![vec![(*text).to_owned()]])
        .collect()
}

/// An index of one segment over documents with one field and one text.
pub(crate) fn index(language: &str, documents: &[&str]) -> Indexed {
    Indexed::new(
        &config(language, &[1.0]),
        &texts(documents),
        &[documents.len()],
    )
}
