//! From the texts of a document to what is indexed.

use super::TextConfig;
use super::numbers::{Number, PARTS, unhyphenated};
use super::stems::Stems;
use super::words::{Word, cut, fold, normalise, words};
use parking_lot::Mutex;
use tantivy::schema::Field;
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

/// Texts of at most so many words are names: their neighbours are joined.
const NAME_WORDS: usize = 4;

/// Places between two texts of a field, more than any query has words, so that no phrase spans them.
const GAP: usize = 256;

/// Before a form: it stands at the same place as the form before.
const SAME: char = '\u{1}';
/// Before a form: it stands at the next place.
const NEXT: char = '\u{2}';
/// Before a form: another text of the field begins.
const TEXT: char = '\u{3}';

/// The analyzed text of one document; made by any thread, in any order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// For each field its forms, a mark of their place before each.
    fields: Vec<String>,
}

impl Prepared {
    pub(super) fn fields(&self) -> usize {
        self.fields.len()
    }
}

/// Analyzes texts; shared by threads.
pub struct Analyzer {
    origin: Stems,
    /// What is at rest. Stems remember words, so they are used again.
    idle: Mutex<Vec<Stems>>,
}

impl Analyzer {
    /// For the language of a configuration.
    pub fn new(config: &TextConfig) -> Self {
        Self {
            origin: Stems::new(&config.language),
            idle: Mutex::default(),
        }
    }

    /// Analyzes the texts of a document: for each field, in the configuration's order, all its texts.
    pub fn prepare(&self, fields: &[Vec<&str>]) -> Prepared {
        self.with_stems(|stems| Prepared {
            fields: fields.iter().map(|texts| encode(stems, texts)).collect(),
        })
    }

    pub(super) fn with_stems<T>(&self, work: impl FnOnce(&mut Stems) -> T) -> T {
        let idle = self.idle.lock().pop();
        let mut stems = idle.unwrap_or_else(|| self.origin.clone());
        let done = work(&mut stems);
        self.idle.lock().push(stems);
        done
    }
}

fn encode(stems: &mut Stems, texts: &[&str]) -> String {
    let mut out = String::new();
    for text in texts {
        if !out.is_empty() {
            out.push(TEXT);
        }
        let normalised = normalise(text);
        let words = words(&normalised);
        let is_name = words.len() <= NAME_WORDS;
        let mut number: Option<Number<'_, '_>> = None;
        let mut part = 0;
        for (at, word) in words.iter().enumerate() {
            if word.unspaced {
                encode_run(&mut out, word.text);
                continue;
            }
            out.push(NEXT);
            put_forms(&mut out, stems, word.text);
            if let Some(marked) = word.marked {
                put(&mut out, &fold(marked));
            }
            if let Some(next) = words.get(at + 1)
                && (next.linked() || is_name)
                && word.joins(next)
            {
                put_forms(&mut out, stems, cut(&[word.text, next.text].concat()));
            }
            if let Some(whole) = compound(&words, at) {
                put_forms(&mut out, stems, cut(&join(whole)));
            }
            if let Some((_, whole)) = unhyphenated(&words, at) {
                put(&mut out, &whole);
            }
            part += 1;
            if number.as_ref().is_none_or(|number| part == number.len()) {
                (number, part) = (Number::at(&words, at), 0);
            }
            if let Some(number) = &number {
                for end in part + 2..=number.len().min(part + PARTS) {
                    put(&mut out, &number.spelled(part..end));
                }
            }
        }
    }
    out
}

/// A run as single characters and pairs.
fn encode_run(out: &mut String, run: &str) {
    let mut ends = run.char_indices().map(|(start, c)| start + c.len_utf8());
    let _ = ends.next();
    for (start, c) in run.char_indices() {
        out.push(NEXT);
        out.push(c);
        if let Some(pair) = ends.next().and_then(|end| run.get(start..end)) {
            out.push(SAME);
            out.push_str(pair);
        }
    }
}

fn put_forms(out: &mut String, stems: &mut Stems, word: &str) {
    stems.forms(word, |form| put(out, form));
}

fn put(out: &mut String, form: &str) {
    out.push(SAME);
    out.push_str(form);
}

/// The words of the compound that begins at a word, when they are three or more and can be joined.
pub(super) fn compound<'a, 'w>(words: &'a [Word<'w>], at: usize) -> Option<&'a [Word<'w>]> {
    let first = words.get(at).filter(|word| !word.linked())?;
    let rest = words.get(at + 1..)?;
    let linked = rest.iter().take_while(|word| word.linked()).count();
    let whole = words.get(at..=at + linked)?;
    let joins = whole.len() > 2
        && !first.unspaced
        && !whole.iter().any(|word| word.unspaced)
        && whole.iter().any(Word::has_letter);
    joins.then_some(whole)
}

pub(super) fn join(words: &[Word<'_>]) -> String {
    words.iter().map(|word| word.text).collect()
}

type Enumerated<'a> = std::iter::Enumerate<std::slice::Iter<'a, String>>;

impl tantivy::Document for Prepared {
    type Value<'a> = &'a str;
    type FieldsValuesIter<'a> =
        std::iter::Map<Enumerated<'a>, fn((usize, &'a String)) -> (Field, &'a str)>;

    fn iter_fields_and_values(&self) -> Self::FieldsValuesIter<'_> {
        let fields = self.fields.iter().enumerate();
        fields.map(|(at, forms)| (Field::from_field_id(at as u32), forms.as_str()))
    }
}

/// Hands the index the forms that were prepared.
#[derive(Clone)]
pub(super) struct Forms;

impl Tokenizer for Forms {
    type TokenStream<'a> = FormStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> FormStream<'a> {
        FormStream {
            rest: text,
            token: Token::default(),
        }
    }
}

pub(super) struct FormStream<'a> {
    rest: &'a str,
    token: Token,
}

impl TokenStream for FormStream<'_> {
    fn advance(&mut self) -> bool {
        // Marks are single bytes. The first place is zero, and a token begins at the last.
        let mut marks = 0;
        for mark in self.rest.bytes().take_while(|byte| *byte <= TEXT as u8) {
            let step = match char::from(mark) {
                SAME => 0,
                NEXT => 1,
                _ => GAP,
            };
            self.token.position = self.token.position.wrapping_add(step);
            marks += 1;
        }
        let rest = self.rest.get(marks..).unwrap_or_default();
        let end = rest.bytes().position(|byte| byte <= TEXT as u8);
        let (form, rest) = rest.split_at(end.unwrap_or(rest.len()));
        self.rest = rest;
        self.token.text.clear();
        self.token.text.push_str(form);
        !form.is_empty()
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}
