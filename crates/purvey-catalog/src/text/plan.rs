//! What a query asks for, before any index is looked at.

use super::analyzer::{compound, join};
use super::stems::Stems;
use super::words::{Word, cut, normalise, words};
use super::{PREFIX_CHARS, QUERY_WORDS};

/// What a stem counts, when the word itself counts 1.
const STEM: f32 = 0.8;

/// What a word counts that is written as one with its neighbour.
const JOINED: f32 = 0.6;

/// What a completion counts.
pub(super) const COMPLETION: f32 = 0.5;

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
    /// As what the last word begins.
    Completion,
}

/// A word of the query, or one character or pair of an unspaced run.
struct Unit<'a> {
    text: &'a str,
    position: u32,
    /// Its place among the words; nothing for pieces of runs.
    word: Option<usize>,
    is_stop_word: bool,
}

/// The words that a query wants, in their order.
pub(super) fn plan(stems: &mut Stems, query: &str) -> Vec<Wanted> {
    let normalised = normalise(query);
    let words = words(&normalised);
    let units = units(stems, &words);
    let has_others = units.iter().any(|unit| !unit.is_stop_word);
    let mut wanted: Vec<Wanted> = Vec::new();
    for (number, unit) in units.iter().enumerate() {
        if wanted.len() == QUERY_WORDS {
            break;
        }
        if unit.is_stop_word && has_others {
            continue;
        }
        let mut next = want(stems, &words, unit, number);
        let exact = next.forms.first().filter(|form| form.kind == Kind::Own);
        let Some(exact) = exact else {
            continue;
        };
        if number + 1 == units.len()
            && unit.word.is_some()
            && exact.text.chars().count() >= PREFIX_CHARS
        {
            next.prefix = Some(exact.text.clone());
        }
        // The same word again wants nothing more, and as a prefix less.
        if wanted
            .iter()
            .all(|known| known.forms.first() != next.forms.first())
        {
            wanted.push(next);
        }
    }
    wanted
}

fn units<'a>(stems: &mut Stems, words: &[Word<'a>]) -> Vec<Unit<'a>> {
    let mut units = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if word.unspaced {
            pieces(&mut units, word);
            continue;
        }
        let in_compound = word.linked || words.get(at + 1).is_some_and(|next| next.linked);
        units.push(Unit {
            text: word.text,
            position: word.position,
            word: Some(at),
            is_stop_word: !in_compound && stems.is_stop_word(word.text),
        });
    }
    units
}

/// The pairs of a run, or its only character.
fn pieces<'a>(units: &mut Vec<Unit<'a>>, run: &Word<'a>) {
    let starts: Vec<usize> = run.text.char_indices().map(|(start, _)| start).collect();
    let ends = starts.iter().skip(2).copied().chain([run.text.len()]);
    for ((start, end), position) in starts.iter().zip(ends).zip(run.position..) {
        units.push(Unit {
            text: run.text.get(*start..end).unwrap_or_default(),
            position,
            word: None,
            is_stop_word: false,
        });
    }
}

fn want(stems: &mut Stems, words: &[Word<'_>], unit: &Unit<'_>, number: usize) -> Wanted {
    let mut forms = Vec::new();
    let Some(at) = unit.word else {
        forms.push(Form {
            text: unit.text.to_owned(),
            factor: 1.0,
            kind: Kind::Own,
        });
        return Wanted {
            forms,
            prefix: None,
            position: unit.position,
            number,
        };
    };
    add(&mut forms, stems, unit.text, Kind::Own);
    let neighbours = [
        at.checked_sub(1).map(|before| (before, at)),
        Some((at, at + 1)),
    ];
    for (first, second) in neighbours.into_iter().flatten() {
        if let (Some(left), Some(right)) = (words.get(first), words.get(second))
            && left.joins(right)
        {
            // Neighbours that can be joined are no runs, so numbers follow each other.
            let start = number + first - at;
            let kind = Kind::Joined(start, start + 1);
            let joined = [left.text, right.text].concat();
            add(&mut forms, stems, cut(&joined), kind);
        }
    }
    let before = words.get(..=at).unwrap_or_default().iter().rev();
    let back = before.take_while(|word| word.linked).count();
    if let Some(whole) = compound(words, at - back) {
        let start = number - back;
        let kind = Kind::Joined(start, start + whole.len() - 1);
        add(&mut forms, stems, cut(&join(whole)), kind);
    }
    Wanted {
        forms,
        prefix: None,
        position: unit.position,
        number,
    }
}

fn add(forms: &mut Vec<Form>, stems: &mut Stems, word: &str, kind: Kind) {
    let mut factor = match kind {
        Kind::Own => 1.0,
        Kind::Joined(..) => JOINED,
        Kind::Completion => COMPLETION,
    };
    let mut is_first = true;
    stems.forms(word, |text| {
        if !forms.iter().any(|form| form.text == text) {
            forms.push(Form {
                text: text.to_owned(),
                factor,
                kind,
            });
        }
        if is_first {
            factor *= STEM;
            is_first = false;
        }
    });
}
