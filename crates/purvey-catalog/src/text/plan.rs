//! What a query asks for, before any index is looked at.

use super::analyzer::{compound, join};
use super::numbers::{Number, PARTS, unhyphenated};
use super::stems::Stems;
use super::words::{Word, cut, fold, normalise, words};
use super::{PREFIX_CHARS, QUERY_CHARS, QUERY_WORDS};
use std::borrow::Cow;

/// What a stem counts, when the word itself counts 1.
const STEM: f32 = 0.8;

/// What a word counts that is written as one with its neighbour.
const JOINED: f32 = 0.6;

/// A word that must be in some field.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// What it may be there, none twice.
    pub(super) forms: Vec<Form>,
    /// What a word may begin with instead.
    pub(super) prefix: Option<String>,
    /// Its place in the query, counted as in texts.
    pub(super) position: u32,
    /// Its number in the query, counted before any is passed over.
    pub(super) number: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Form {
    pub(super) text: String,
    pub(super) factor: f32,
    pub(super) kind: Kind,
}

/// How a form stands for a word of the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Alone.
    Own,
    /// For the words of the query from one number through another, written as one.
    Joined(usize, usize),
}

impl Kind {
    /// What the form counts, when the word itself counts 1.
    fn factor(self) -> f32 {
        match self {
            Self::Own => 1.0,
            Self::Joined(..) => JOINED,
        }
    }
}

/// What a query asks for at one place.
struct Unit<'a> {
    text: Cow<'a, str>,
    position: u32,
    source: Source,
    is_stop_word: bool,
}

/// Where a unit comes from.
#[derive(Clone, Copy, PartialEq)]
enum Source {
    /// The word with this place among the words.
    Word(usize),
    /// The word with this place and its marks.
    Marked(usize),
    /// The number whose parts are the words from one place to another, or some of its parts.
    Number(usize, usize),
    /// A character or a pair of a run.
    Run,
}

/// The words that a query wants, in their order.
pub(super) fn plan(stems: &mut Stems, query: &str) -> Vec<Wanted> {
    let end = query.char_indices().nth(QUERY_CHARS).map(|(end, _)| end);
    let normalised = normalise(query.get(..end.unwrap_or(query.len())).unwrap_or(query));
    let words = words(&normalised);
    let units = units(stems, &words);
    let asked = Asked::new(&words, &units);
    let has_others = units.iter().any(|unit| !unit.is_stop_word);
    let mut wanted: Vec<Wanted> = Vec::new();
    for (number, unit) in units.iter().enumerate() {
        if wanted.len() == QUERY_WORDS {
            break;
        }
        if unit.is_stop_word && has_others {
            continue;
        }
        let forms = asked.forms(stems, unit);
        let exact = forms.first().filter(|form| form.kind == Kind::Own);
        let Some(exact) = exact else {
            continue;
        };
        // The same word again wants nothing more, and as a prefix less.
        if wanted
            .iter()
            .any(|known| known.forms.first() == forms.first())
        {
            continue;
        }
        let is_word = matches!(unit.source, Source::Word(_) | Source::Marked(_));
        let may_go_on =
            number + 1 == units.len() && is_word && exact.text.chars().count() >= PREFIX_CHARS;
        wanted.push(Wanted {
            prefix: may_go_on.then(|| exact.text.clone()),
            forms,
            position: unit.position,
            number,
        });
    }
    wanted
}

fn units<'a>(stems: &mut Stems, words: &[Word<'a>]) -> Vec<Unit<'a>> {
    let mut units = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        if let Some(number) = Number::at(words, at) {
            // The letters of a version say nothing; others are a word with the digits after them.
            if !matches!(number.letters(), "" | "v") {
                units.push(unit(word, Source::Word(at)));
            }
            parts(&mut units, word, &number, at);
            at += number.len();
            continue;
        }
        if word.unspaced {
            pieces(&mut units, word);
        } else if let Some(marked) = word.marked.filter(|_| word.insists()) {
            units.push(Unit {
                text: fold(marked),
                ..unit(word, Source::Marked(at))
            });
        } else {
            let in_compound = word.linked() || words.get(at + 1).is_some_and(Word::linked);
            units.push(Unit {
                is_stop_word: !in_compound && stems.is_stop_word(word.text),
                ..unit(word, Source::Word(at))
            });
        }
        at += 1;
    }
    units
}

fn unit<'a>(word: &Word<'a>, source: Source) -> Unit<'a> {
    Unit {
        text: word.text.into(),
        position: word.position,
        source,
        is_stop_word: false,
    }
}

/// A number; of a long one so many parts as are taken together, again and again.
fn parts<'a>(units: &mut Vec<Unit<'a>>, word: &Word<'a>, number: &Number<'_, '_>, at: usize) {
    let together = number.len().min(PARTS);
    for first in 0..=number.len() - together {
        units.push(Unit {
            text: number.spelled(first..first + together).into(),
            position: word.position + first as u32,
            ..unit(word, Source::Number(at, at + number.len() - 1))
        });
    }
}

/// The pairs of a run, or its only character.
fn pieces<'a>(units: &mut Vec<Unit<'a>>, run: &Word<'a>) {
    let starts: Vec<usize> = run.text.char_indices().map(|(start, _)| start).collect();
    let ends = starts.iter().skip(2).copied().chain([run.text.len()]);
    for ((start, end), position) in starts.iter().zip(ends).zip(run.position..) {
        units.push(Unit {
            text: run.text.get(*start..end).unwrap_or_default().into(),
            position,
            ..unit(run, Source::Run)
        });
    }
}

/// The words of a query, and which units stand for each.
struct Asked<'w, 'a> {
    words: &'w [Word<'a>],
    /// For each word the first and the last unit; runs are joined with nothing.
    numbers: Vec<(usize, usize)>,
}

impl<'w, 'a> Asked<'w, 'a> {
    fn new(words: &'w [Word<'a>], units: &[Unit<'_>]) -> Self {
        let mut numbers = vec![(usize::MAX, 0); words.len()];
        for (number, unit) in units.iter().enumerate() {
            let (first, last) = match unit.source {
                Source::Word(at) | Source::Marked(at) => (at, at),
                Source::Number(first, last) => (first, last),
                Source::Run => continue,
            };
            for covered in numbers.iter_mut().take(last + 1).skip(first) {
                *covered = (covered.0.min(number), covered.1.max(number));
            }
        }
        Self { words, numbers }
    }

    /// What a unit may be in a text.
    fn forms(&self, stems: &mut Stems, unit: &Unit<'_>) -> Vec<Form> {
        let mut forms = Vec::new();
        let (first, last) = match unit.source {
            Source::Word(at) => {
                add(&mut forms, stems, &unit.text, Kind::Own);
                (at, at)
            }
            Source::Number(first, last) => {
                add_exact(&mut forms, &unit.text, Kind::Own);
                (first, last)
            }
            Source::Marked(_) | Source::Run => {
                add_exact(&mut forms, &unit.text, Kind::Own);
                return forms;
            }
        };
        // A number has no neighbours but those within.
        let pairs = match unit.source {
            Source::Number(..) if last == first + 1 => first..first + 1,
            Source::Word(at) => at.saturating_sub(1)..at + 1,
            _ => 0..0,
        };
        for left in pairs {
            if let Some(pair) = self.words.get(left..left + 2)
                && let [one, other] = pair
                && one.joins(other)
            {
                self.add_joined(&mut forms, stems, left, pair);
            }
        }
        let before = self.words.get(..=first).unwrap_or_default().iter().rev();
        let start = first - before.take_while(|word| word.linked()).count();
        if let Some(whole) = compound(self.words, start) {
            self.add_joined(&mut forms, stems, start, whole);
        }
        if let Some((parts, whole)) = unhyphenated(self.words, start) {
            add_exact(&mut forms, &whole, self.joined(start, parts));
        }
        forms
    }

    fn add_joined(
        &self,
        forms: &mut Vec<Form>,
        stems: &mut Stems,
        first: usize,
        words: &[Word<'_>],
    ) {
        let kind = self.joined(first, words.len());
        add(forms, stems, cut(&join(words)), kind);
    }

    fn joined(&self, first: usize, words: usize) -> Kind {
        let number = |at: usize| self.numbers.get(at).copied().unwrap_or((usize::MAX, 0));
        Kind::Joined(number(first).0, number(first + words - 1).1)
    }
}

fn add(forms: &mut Vec<Form>, stems: &mut Stems, word: &str, kind: Kind) {
    let mut factor = kind.factor();
    stems.forms(word, |text| {
        put(forms, text, factor, kind);
        factor = kind.factor() * STEM;
    });
}

/// Adds what has no stem.
fn add_exact(forms: &mut Vec<Form>, text: &str, kind: Kind) {
    put(forms, text, kind.factor(), kind);
}

fn put(forms: &mut Vec<Form>, text: &str, factor: f32, kind: Kind) {
    if !forms.iter().any(|form| form.text == text) {
        forms.push(Form {
            text: text.to_owned(),
            factor,
            kind,
        });
    }
}
