//! Forms of a word: the word itself and its stems.

use super::words::fold;
use purvey_odp::language::LanguageTag;
use std::borrow::Cow;
use std::collections::HashMap;
use tantivy::tokenizer::{
    Language, RawTokenizer, Stemmer, StopWordFilter, TextAnalyzer, TokenStream,
};

/// Stems that are remembered at a time.
const KNOWN: usize = 16_384;

/// The stemmer that fits a language.
pub(super) fn language(tag: &LanguageTag) -> Option<Language> {
    let primary = tag.as_str().split('-').next()?.to_ascii_lowercase();
    Some(match primary.as_str() {
        "ar" => Language::Arabic,
        "da" => Language::Danish,
        "nl" => Language::Dutch,
        "en" => Language::English,
        "fi" => Language::Finnish,
        "fr" => Language::French,
        "de" => Language::German,
        "el" => Language::Greek,
        "hu" => Language::Hungarian,
        "it" => Language::Italian,
        "nb" | "nn" | "no" => Language::Norwegian,
        "pt" => Language::Portuguese,
        "ro" => Language::Romanian,
        "ru" => Language::Russian,
        "es" => Language::Spanish,
        "sv" => Language::Swedish,
        "ta" => Language::Tamil,
        "tr" => Language::Turkish,
        _ => return None,
    })
}

/// Finds the forms of words, for one thread at a time.
#[derive(Clone, Default)]
pub(super) struct Stems {
    stemmer: Option<TextAnalyzer>,
    stop: Option<TextAnalyzer>,
    known: HashMap<Box<str>, Box<str>>,
}

impl Stems {
    pub(super) fn new(tag: &LanguageTag) -> Self {
        let Some(language) = language(tag) else {
            return Self::default();
        };
        let raw = || TextAnalyzer::builder(RawTokenizer::default());
        Self {
            stemmer: Some(raw().filter(Stemmer::new(language)).build()),
            stop: StopWordFilter::new(language).map(|stop| raw().filter(stop).build()),
            known: HashMap::new(),
        }
    }

    /// Whether a normalised word is a stop word.
    pub(super) fn is_stop_word(&mut self, word: &str) -> bool {
        let stop = self.stop.as_mut();
        stop.is_some_and(|stop| !stop.token_stream(word).advance())
    }

    /// Tells the forms of a normalised word, the word itself first, none twice. Words that share a form find each other. An accented word has the stem of what it is
    /// without accents too, so that whoever leaves them out finds it.
    pub(super) fn forms(&mut self, word: &str, mut each: impl FnMut(&str)) {
        let exact = fold(word);
        if exact.is_empty() {
            return;
        }
        each(&exact);
        if self.stemmer.is_none() || exact.bytes().any(|byte| byte.is_ascii_digit()) {
            return;
        }
        let stem = self.stem(word).to_owned();
        if !stem.is_empty() && stem != *exact {
            each(&stem);
        }
        if let Cow::Owned(bare) = &exact
            && bare != word
        {
            let other = self.stem(bare);
            if !other.is_empty() && other != bare && other != stem {
                each(other);
            }
        }
    }

    /// The stem without accents.
    fn stem(&mut self, word: &str) -> &str {
        if self.known.len() >= KNOWN {
            self.known.clear();
        }
        if !self.known.contains_key(word) {
            let mut stem = Cow::Borrowed(word);
            if let Some(stemmer) = &mut self.stemmer {
                let mut stream = stemmer.token_stream(word);
                if stream.advance() {
                    stem = fold(&stream.token().text).into_owned().into();
                }
            }
            self.known.insert(word.into(), stem.into());
        }
        self.known.get(word).map_or("", |stem| stem)
    }
}
