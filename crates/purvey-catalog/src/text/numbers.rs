//! Numbers of several parts: versions, dates, addresses. They are one thing, however their parts are tied.

use super::words::{Tie, Word, cut};
use std::ops::Range;

/// Parts of a number that are taken together; of longer ones each so many that follow each other.
pub(super) const PARTS: usize = 4;

/// Words that are the parts of one number: `1.2.3`, `2024-01-15`; the first may be letters with a number, as in `v1.2.3`.
pub(super) struct Number<'a, 'w>(&'a [Word<'w>]);

impl<'a, 'w> Number<'a, 'w> {
    /// The number that begins at a word: two parts at least.
    pub(super) fn at(words: &'a [Word<'w>], first: usize) -> Option<Self> {
        let rest = words.get(first + 1..)?;
        digits(words.get(first)?)?;
        let goes_on = |word: &&Word<'_>| word.linked() && is_number(word.text);
        let parts = 1 + rest.iter().take_while(goes_on).count();
        let number = words.get(first..first + parts)?;
        (parts > 1).then_some(Self(number))
    }

    /// Its parts.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The letters that it begins with.
    pub(super) fn letters(&self) -> &'w str {
        let first = self.0.first().map_or("", |word| word.text);
        first.trim_end_matches(|c: char| c.is_ascii_digit())
    }

    /// Some of its parts, as they are found however they are tied.
    pub(super) fn spelled(&self, parts: Range<usize>) -> String {
        let words = self.0.get(parts.clone()).unwrap_or_default();
        let mut spelled = String::new();
        for (at, word) in words.iter().enumerate() {
            if at == 0 {
                spelled.push_str(digits(word).unwrap_or(word.text));
            } else {
                spelled.push('.');
                spelled.push_str(word.text);
            }
        }
        cut(&spelled).to_owned()
    }
}

/// Of words that nothing but hyphens ties, none of them with a letter, the first of which begins a compound: all of them written as one.
pub(super) fn unhyphenated(words: &[Word<'_>], first: usize) -> Option<(usize, String)> {
    let begin = words.get(first).filter(|word| !word.linked())?;
    let rest = words.get(first + 1..)?;
    let linked = rest.iter().take_while(|word| word.linked()).count();
    let others = rest.get(..linked)?;
    let joins = linked > 0
        && is_number(begin.text)
        && others
            .iter()
            .all(|word| word.tie == Tie::Hyphens && is_number(word.text));
    joins.then(|| {
        let parts = std::iter::once(begin).chain(others);
        let whole: String = parts.map(|word| word.text).collect();
        (linked + 1, cut(&whole).to_owned())
    })
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The digits that a word ends with, when there is nothing but letters before.
fn digits<'w>(word: &Word<'w>) -> Option<&'w str> {
    let letters = word.text.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = word.text.get(letters.len()..)?;
    let is_one = !digits.is_empty() && letters.chars().all(char::is_alphabetic);
    (is_one && !word.unspaced).then_some(digits)
}
