//! From text to words.

use super::WORD_CHARS;
use std::borrow::Cow;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// A word, or a run of characters of a script that does not space its words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    /// Its place, counted in words; a run takes one place for each of its characters.
    pub(super) position: u32,
    /// What ties it to the word before.
    pub(super) tie: Tie,
    pub(super) unspaced: bool,
    /// The word with the marks that make another of it: `c++`, `c#`, `.net`.
    pub(super) marked: Option<&'a str>,
}

/// What lies between two words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Tie {
    /// Something else than connectors, or nothing.
    None,
    /// Connectors, hyphens alone.
    Hyphens,
    /// Connectors.
    Connectors,
}

impl Word<'_> {
    /// Whether only connectors lie between the word before and this.
    pub(super) fn linked(&self) -> bool {
        self.tie != Tie::None
    }

    /// Whether it is no other word without its marks: those before a word are passed over where they tie it to another.
    pub(super) fn insists(&self) -> bool {
        let before = self.marked.is_some_and(|marked| marked.starts_with('.'));
        self.marked.is_some() && !(before && self.linked())
    }

    /// Whether it can be joined with a neighbour.
    pub(super) fn joins(&self, other: &Self) -> bool {
        !self.unspaced && !other.unspaced && (self.has_letter() || other.has_letter())
    }

    pub(super) fn has_letter(&self) -> bool {
        self.text.chars().any(char::is_alphabetic)
    }
}

/// Lower case, compatibly composed, without characters that only steer the layout.
pub(super) fn normalise(text: &str) -> Cow<'_, str> {
    if !text.is_ascii() {
        let visible = text.chars().filter(|c| !is_invisible(*c));
        return visible.nfkc().flat_map(char::to_lowercase).nfkc().collect();
    }
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return text.to_ascii_lowercase().into();
    }
    text.into()
}

fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{200c}' | '\u{200d}' | '\u{2060}' | '\u{feff}'
    )
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Spaced,
    Unspaced,
    Connector,
    Other,
}

fn kind(c: char) -> Kind {
    match c {
        'a'..='z' | '0'..='9' | 'A'..='Z' => Kind::Spaced,
        '-' | '_' | '.' | '/' | '@' | ':' | '\'' | '\u{2019}' | '\u{2010}' => Kind::Connector,
        _ if c.is_ascii() => Kind::Other,
        _ if !c.is_alphanumeric() && !is_combining_mark(c) => Kind::Other,
        _ if is_unspaced(c) => Kind::Unspaced,
        _ => Kind::Spaced,
    }
}

/// Thai, Lao, Burmese, Khmer, Hangul, Han, Kana, Bopomofo.
fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0xe00..=0xeff | 0x1000..=0x109f | 0x1780..=0x17ff
        | 0x1100..=0x11ff | 0xac00..=0xd7ff
        | 0x3005..=0x3007 | 0x3041..=0x318f | 0x31a0..=0x31ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff
        | 0x1aff0..=0x1b16f | 0x20000..=0x323af)
}

/// What lies before a word.
#[derive(Clone, Copy, PartialEq)]
enum Gap {
    Nothing,
    Hyphens,
    Connectors,
    Other,
}

/// The words of normalised text, in order.
pub(super) fn words(normalised: &str) -> Vec<Word<'_>> {
    let mut words = Words {
        text: normalised,
        found: Vec::new(),
        position: 0,
        open: None,
        gap: Gap::Other,
    };
    for (at, c) in normalised.char_indices() {
        words.step(at, c);
    }
    words.close(normalised.len());
    words.found
}

struct Words<'a> {
    text: &'a str,
    found: Vec<Word<'a>>,
    position: u32,
    /// Where the word that is being read begins.
    open: Option<(usize, Kind)>,
    gap: Gap,
}

impl Words<'_> {
    fn step(&mut self, at: usize, c: char) {
        let kind = kind(c);
        if self.open.is_some_and(|(_, open)| open == kind) {
            return;
        }
        self.close(at);
        match kind {
            Kind::Spaced | Kind::Unspaced => self.open = Some((at, kind)),
            Kind::Connector => {
                self.gap = match (self.gap, c) {
                    (Gap::Other, _) => Gap::Other,
                    (Gap::Nothing | Gap::Hyphens, '-' | '\u{2010}') => Gap::Hyphens,
                    _ => Gap::Connectors,
                }
            }
            Kind::Other => self.gap = Gap::Other,
        }
    }

    fn close(&mut self, end: usize) {
        let Some((start, kind)) = self.open.take() else {
            return;
        };
        let unspaced = kind == Kind::Unspaced;
        let mut text = self.text.get(start..end).unwrap_or_default();
        if !unspaced {
            text = cut(text);
        }
        let tie = match std::mem::replace(&mut self.gap, Gap::Other) {
            Gap::Hyphens => Tie::Hyphens,
            Gap::Connectors => Tie::Connectors,
            Gap::Nothing | Gap::Other => Tie::None,
        };
        // Marks that have nothing to be on are no word.
        if text.chars().all(is_combining_mark) {
            return;
        }
        self.found.push(Word {
            text,
            position: self.position,
            tie,
            unspaced,
            marked: marked(self.text, start, end).filter(|_| !unspaced),
        });
        self.position += if unspaced {
            text.chars().count() as u32
        } else {
            1
        };
        self.gap = Gap::Nothing;
    }
}

/// The word at a place with the marks that make another of it: two plus signs after a word, a number sign after a single letter, a full stop before a word.
fn marked(text: &str, start: usize, end: usize) -> Option<&str> {
    let word = text.get(start..end)?;
    if word.len() > WORD_CHARS || !word.starts_with(char::is_alphabetic) {
        return None;
    }
    let after = text.get(end..)?;
    if after.starts_with("++") && !after.starts_with("+++") {
        return text.get(start..end + 2);
    }
    let follows = |c: char| c == '#' || matches!(kind(c), Kind::Spaced | Kind::Unspaced);
    if word.chars().nth(1).is_none()
        && let Some(after) = after.strip_prefix('#')
        && !after.starts_with(follows)
    {
        return text.get(start..=end);
    }
    let before = text.get(..start)?.strip_suffix('.')?;
    let is_single = !before.ends_with('.');
    is_single.then(|| text.get(start - 1..end)).flatten()
}

/// The part of a word that counts.
pub(super) fn cut(word: &str) -> &str {
    match word.char_indices().nth(WORD_CHARS) {
        Some((end, _)) => word.get(..end).unwrap_or(word),
        None => word,
    }
}

/// A normalised word without accents; empty when it was nothing but marks.
pub(super) fn fold(word: &str) -> Cow<'_, str> {
    if word.is_ascii() {
        return word.into();
    }
    let mut base = ' ';
    let bare = word.nfkd().filter(|c| {
        if is_combining_mark(*c) {
            return !is_accent(*c, base);
        }
        base = *c;
        true
    });
    let mut folded = String::with_capacity(word.len());
    for c in bare.nfc() {
        match plain(c) {
            Some(plain) => folded.push_str(plain),
            None => folded.push(c),
        }
    }
    folded.into()
}

/// Whether a mark is passed over. In most scripts marks are letters in their own right, as й is another letter than и.
fn is_accent(mark: char, base: char) -> bool {
    match u32::from(mark) {
        0x300..=0x36f => {
            !matches!(base, '\u{400}'..='\u{52f}')
                || matches!((base, mark), ('е', '\u{308}') | (_, '\u{300}' | '\u{301}'))
        }
        0x591..=0x5c7 | 0x610..=0x61a | 0x64b..=0x65f | 0x670 | 0x6d6..=0x6ed => true,
        0x1ab0..=0x1aff | 0x1dc0..=0x1dff | 0x20d0..=0x20ff => true,
        0xfe00..=0xfe0f | 0xfe20..=0xfe2f => true,
        _ => false,
    }
}

/// Letters that are written otherwise without their stroke, loop or tie.
fn plain(c: char) -> Option<&'static str> {
    Some(match c {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'ł' => "l",
        'đ' | 'ð' => "d",
        'þ' => "th",
        'ħ' => "h",
        'ı' => "i",
        'ŋ' => "n",
        'ŧ' => "t",
        'ς' => "σ",
        _ => return None,
    })
}
