//! What the tests of segments and generations share: small documents and a model that says what they must look like.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use purvey_catalog::generation::{
    Generation, GenerationBuilder, Generations, IndexLock, ListQuery, ListScope,
};
use purvey_catalog::segment::{Entry, SegmentWriter, Variant};
use purvey_odp::identity::ResourceType;
use purvey_odp::language::LanguageTag;
use purvey_odp::offering::Representation;
use std::collections::BTreeMap;

pub const LANGUAGES: [&str; 4] = ["en", "fr", "de", "pt-BR"];

pub fn tags(names: &[&str]) -> Vec<LanguageTag> {
    names
        .iter()
        .map(|name| LanguageTag::parse(name).unwrap())
        .collect()
}

/// A document; languages are indexes into [`LANGUAGES`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doc {
    pub id: String,
    pub revision: u32,
    pub own: Option<u16>,
    pub translations: Vec<u16>,
    pub collections: Vec<String>,
    pub padding: usize,
}

impl Doc {
    pub fn new(id: impl Into<String>, revision: u32) -> Self {
        Self {
            id: id.into(),
            revision,
            own: None,
            translations: Vec::new(),
            collections: Vec::new(),
            padding: 0,
        }
    }

    /// The item in one language; `None` names no language.
    pub fn item(&self, language: Option<u16>, representation: Representation) -> String {
        let language = language.map_or(String::new(), |at| {
            format!("\"language\":\"{}\",", LANGUAGES[usize::from(at)])
        });
        let more = match representation {
            Representation::Terse => String::new(),
            Representation::Full => format!(",\"description\":\"{}\"", "x".repeat(self.padding)),
        };
        format!(
            "{{{language}\"id\":\"{}\",\"revision\":{}{more}}}",
            self.id, self.revision
        )
    }

    /// The item and its language that a request with these preferences gets.
    pub fn expected(
        &self,
        preferred: &[&str],
        representation: Representation,
    ) -> (String, &'static str) {
        let own = LANGUAGES[usize::from(self.own.unwrap_or(0))];
        for wanted in preferred {
            if wanted.eq_ignore_ascii_case(own) {
                break;
            }
            let has = |at: &&u16| LANGUAGES[usize::from(**at)].eq_ignore_ascii_case(wanted);
            if let Some(at) = self.translations.iter().find(has) {
                return (
                    self.item(Some(*at), representation),
                    LANGUAGES[usize::from(*at)],
                );
            }
        }
        let item = self.item(self.own, representation);
        let foreign = preferred.first().is_some_and(|first| *first != "en");
        if foreign && self.own.is_none() {
            return (item.replacen('{', "{\"language\":\"en\",", 1), "en");
        }
        (item, own)
    }

    pub fn push(&self, writer: &mut SegmentWriter) {
        let texts: Vec<[String; 2]> = self
            .translations
            .iter()
            .map(|at| {
                [Representation::Terse, Representation::Full].map(|form| self.item(Some(*at), form))
            })
            .collect();
        let variants: Vec<Variant<'_>> = self
            .translations
            .iter()
            .zip(&texts)
            .map(|(language, [terse, full])| Variant {
                language: *language,
                terse: terse.as_bytes(),
                full: full.as_bytes(),
            })
            .collect();
        let postings: Vec<&str> = self.collections.iter().map(String::as_str).collect();
        writer
            .push(&Entry {
                id: &self.id,
                terse: self.item(self.own, Representation::Terse).as_bytes(),
                full: self.item(self.own, Representation::Full).as_bytes(),
                variants: &variants,
                language: self.own,
                postings: &postings,
            })
            .unwrap();
    }
}

pub type Model = BTreeMap<String, Doc>;

/// Writes documents (of one id each) as one segment and adds it.
pub fn add(
    generations: &Generations,
    lock: &IndexLock,
    builder: &mut GenerationBuilder,
    docs: &Model,
) {
    let mut writer = generations.segment_writer(lock, &tags(&LANGUAGES)).unwrap();
    for doc in docs.values() {
        doc.push(&mut writer);
    }
    builder
        .add_segment(ResourceType::Offering, writer.finish().unwrap())
        .unwrap();
}

/// Publishes the present documents plus these.
pub fn publish(generations: &Generations, number: u64, docs: &[Doc]) {
    let lock = generations.lock().unwrap();
    let mut builder = generations.builder(&lock).unwrap();
    let docs = docs
        .iter()
        .map(|doc| (doc.id.clone(), doc.clone()))
        .collect();
    add(generations, &lock, &mut builder, &docs);
    builder.set_meta(format!("manifest {number}").as_bytes());
    generations.publish(&lock, builder, number, 1).unwrap();
}

/// All items of a listing, page by page, and the languages that the pages named.
pub fn traverse(
    generation: &Generation,
    scope: ListScope<'_>,
    limit: usize,
    max_bytes: usize,
    representation: Representation,
    preferred: &[&str],
) -> (Vec<String>, Vec<String>) {
    let preferred = tags(preferred);
    let (mut items, mut languages) = (Vec::new(), Vec::new());
    let mut after: Option<String> = None;
    loop {
        let mut out = b"[".to_vec();
        let query = ListQuery {
            kind: ResourceType::Offering,
            scope,
            after: after.as_deref(),
            limit,
            max_bytes,
            representation,
            preferred: &preferred,
        };
        let outcome = generation.list(&query, &mut out).unwrap();
        out.push(b']');
        let page: Vec<String> = raw_items(&out);
        assert_eq!(page.len(), outcome.count);
        assert!(outcome.count <= limit);
        assert!(outcome.count > 0 || !outcome.more);
        assert!(outcome.count <= 1 || out.len() - 2 <= max_bytes);
        items.extend(page);
        languages.extend(outcome.languages.iter().map(|tag| tag.as_str().to_owned()));
        if !outcome.more {
            break;
        }
        after = outcome.last_id;
    }
    languages.sort();
    languages.dedup();
    (items, languages)
}

/// Splits a list of flat objects without parsing them: the exact bytes matter.
fn raw_items(bytes: &[u8]) -> Vec<String> {
    let parsed: Vec<serde_json::Value> = serde_json::from_slice(bytes).unwrap();
    let text = std::str::from_utf8(&bytes[1..bytes.len() - 1]).unwrap();
    let items: Vec<String> = text
        .split_inclusive('}')
        .map(|item| item.trim_start_matches(',').to_owned())
        .collect();
    assert_eq!(items.len(), parsed.len());
    items
}

/// Checks everything that can be listed or got against the model.
pub fn check(generation: &Generation, model: &Model) {
    assert_eq!(generation.count(ResourceType::Offering), model.len() as u64);
    for representation in [Representation::Terse, Representation::Full] {
        for preferred in [
            &[][..],
            &["en"],
            &["fr"],
            &["FR", "de"],
            &["de", "en", "fr"],
            &["pt-BR", "de", "fr"],
        ] {
            for collection in [None, Some("a"), Some("b"), Some("none")] {
                let scope = collection.map_or(ListScope::All, ListScope::Collection);
                let docs = model.values().filter(|doc| {
                    collection
                        .is_none_or(|wanted| doc.collections.iter().any(|member| member == wanted))
                });
                let expected: Vec<(String, &str)> = docs
                    .map(|doc| doc.expected(preferred, representation))
                    .collect();
                let mut languages: Vec<&str> =
                    expected.iter().map(|(_, language)| *language).collect();
                languages.sort_unstable();
                languages.dedup();
                let items: Vec<&str> = expected.iter().map(|(item, _)| item.as_str()).collect();
                for (limit, max_bytes) in [(1, 1), (3, 1 << 20), (7, 200), (100, 1 << 20)] {
                    let listed = traverse(
                        generation,
                        scope,
                        limit,
                        max_bytes,
                        representation,
                        preferred,
                    );
                    assert_eq!(listed.0, items);
                    assert_eq!(listed.1, languages);
                }
            }
            for doc in model.values() {
                let (item, language) = doc.expected(preferred, representation);
                let got = generation
                    .get(
                        ResourceType::Offering,
                        &doc.id,
                        representation,
                        &tags(preferred),
                    )
                    .unwrap()
                    .unwrap();
                assert_eq!(String::from_utf8(got.bytes).unwrap(), item);
                assert_eq!(got.language.unwrap().as_str(), language);
            }
        }
    }
}
