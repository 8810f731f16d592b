//! The documented rules, for a language without stemmer, over text of ASCII and Han characters.

use super::Doc;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
struct Token {
    text: String,
    place: i64,
    /// What ties it to the token before: connectors alone.
    tie: Option<String>,
    han: bool,
    marked: Option<String>,
}

fn class(c: char) -> char {
    match c {
        c if c.is_ascii_alphanumeric() => 'w',
        '\u{4e00}'..='\u{9fff}' => 'h',
        '-' | '_' | '.' | '/' | '@' | ':' | '\'' => 'c',
        _ => 'o',
    }
}

fn tokens(text: &str) -> Vec<Token> {
    let mut pieces: Vec<(char, String)> = Vec::new();
    for c in text.to_lowercase().chars() {
        let class = class(c);
        match pieces.last_mut() {
            Some((last, piece)) if *last == class => piece.push(c),
            _ => pieces.push((class, c.to_string())),
        }
    }
    let mut found = Vec::new();
    let mut place = 0;
    for (at, (class, piece)) in pieces.iter().enumerate() {
        if !matches!(class, 'w' | 'h') {
            continue;
        }
        let before = |back: usize| at.checked_sub(back).map(|at| &pieces[at]);
        let tie = before(1).filter(|(class, _)| *class == 'c');
        let tie = tie.filter(|_| before(2).is_some_and(|(class, _)| matches!(class, 'w' | 'h')));
        found.push(Token {
            text: piece.clone(),
            place,
            tie: tie.map(|(_, connectors)| connectors.clone()),
            han: *class == 'h',
            marked: marked(&pieces, at),
        });
        place += if *class == 'h' {
            piece.chars().count() as i64
        } else {
            1
        };
    }
    found
}

/// `c++`, `c#`, `.net`.
fn marked(pieces: &[(char, String)], at: usize) -> Option<String> {
    let (class, word) = &pieces[at];
    if *class == 'h' || word.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let after: String = pieces[at + 1..].iter().map(|(_, p)| p.as_str()).collect();
    let pluses = after.chars().take_while(|c| *c == '+').count();
    if pluses == 2 {
        return Some(format!("{word}++"));
    }
    let next = after.chars().nth(1).map(self::class);
    if word.len() == 1
        && after.starts_with('#')
        && !after.starts_with("##")
        && !matches!(next, Some('w' | 'h'))
    {
        return Some(format!("{word}#"));
    }
    let before = at.checked_sub(1).map_or("", |at| pieces[at].1.as_str());
    (before.ends_with('.') && !before.ends_with("..")).then(|| format!(".{word}"))
}

fn lettered(token: &Token) -> bool {
    token.text.bytes().any(|b| b.is_ascii_alphabetic())
}

fn joinable(tokens: &[Token]) -> bool {
    tokens.iter().all(|t| !t.han) && tokens.iter().any(lettered)
}

fn joined(tokens: &[Token]) -> String {
    tokens.iter().map(|t| t.text.as_str()).collect()
}

/// Compounds as first and last token.
fn compounds(tokens: &[Token]) -> Vec<(usize, usize)> {
    let starts: Vec<usize> = (0..tokens.len())
        .filter(|at| tokens[*at].tie.is_none())
        .collect();
    let ends = starts.iter().skip(1).copied().chain([tokens.len()]);
    starts
        .iter()
        .copied()
        .zip(ends.map(|end| end.wrapping_sub(1)))
        .collect()
}

/// Compounds that can be written as one: of three words and more with a letter, or of numbers that hyphens tie.
fn wholes(tokens: &[Token]) -> Vec<(usize, usize)> {
    let is_one = |(first, last): &(usize, usize)| {
        let parts = &tokens[*first..=*last];
        let is_phone = last > first
            && parts.iter().all(|part| number(&part.text))
            && parts[1..]
                .iter()
                .all(|part| part.tie.as_ref().unwrap().chars().all(|c| c == '-'));
        is_phone || last - first >= 2 && joinable(parts)
    };
    let all = if tokens.is_empty() {
        vec![]
    } else {
        compounds(tokens)
    };
    all.into_iter().filter(is_one).collect()
}

fn number(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

/// The parts that a token and those after it are of a number.
fn parts(tokens: &[Token], first: usize) -> Vec<String> {
    let text = &tokens[first].text;
    let digits = text.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (letters, start) = text.split_at(text.len() - digits);
    if tokens[first].han || start.is_empty() || !letters.bytes().all(|b| b.is_ascii_alphabetic()) {
        return vec![];
    }
    let mut parts = vec![start.to_owned()];
    for token in &tokens[first + 1..] {
        if token.tie.is_none() || !number(&token.text) {
            break;
        }
        parts.push(token.text.clone());
    }
    if parts.len() == 1 { vec![] } else { parts }
}

/// What is indexed of a text: words and places.
fn indexed(text: &str) -> Vec<(String, i64)> {
    let tokens = tokens(text);
    let mut out = Vec::new();
    let mut after_number = 0;
    for (at, token) in tokens.iter().enumerate() {
        if token.han {
            let chars: Vec<char> = token.text.chars().collect();
            for (n, c) in chars.iter().enumerate() {
                out.push((c.to_string(), token.place + n as i64));
                if let Some(next) = chars.get(n + 1) {
                    out.push((format!("{c}{next}"), token.place + n as i64));
                }
            }
            continue;
        }
        out.push((token.text.clone(), token.place));
        out.extend(token.marked.clone().map(|marked| (marked, token.place)));
        if let Some(pair) = tokens.get(at..at + 2)
            && (pair[1].tie.is_some() || tokens.len() <= 4)
            && joinable(pair)
        {
            out.push((joined(pair), token.place));
        }
        if at >= after_number {
            let parts = parts(&tokens, at);
            for first in 0..parts.len() {
                for last in first + 1..parts.len().min(first + 4) {
                    let place = tokens[at + first].place;
                    out.push((parts[first..=last].join("."), place));
                }
            }
            after_number = at + parts.len();
        }
    }
    for (first, last) in wholes(&tokens) {
        out.push((joined(&tokens[first..=last]), tokens[first].place));
    }
    out
}

struct Word {
    own: String,
    /// Other spellings, and which neighbours of the query each covers.
    joins: Vec<(String, usize, usize)>,
    prefix: bool,
    place: i64,
    number: usize,
}

/// What a query wants at one place: the first and the last token that it stands for, and whether these are joined with others.
struct Want {
    own: String,
    place: i64,
    tokens: (usize, usize),
    is_word: bool,
    is_number: bool,
}

fn wants(tokens: &[Token]) -> Vec<Want> {
    let mut wants = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let want = |own: String, place: i64, is_word| Want {
            own,
            place,
            tokens: (at, at),
            is_word,
            is_number: false,
        };
        let parts = parts(tokens, at);
        if !parts.is_empty() {
            let letters = token.text.trim_end_matches(|c: char| c.is_ascii_digit());
            if !letters.is_empty() && letters != "v" {
                wants.push(want(token.text.clone(), token.place, true));
            }
            let len = parts.len();
            for (n, parts) in parts.windows(len.min(4)).enumerate() {
                wants.push(Want {
                    tokens: (at, at + len - 1),
                    is_number: true,
                    ..want(parts.join("."), token.place + n as i64, false)
                });
            }
            at += len;
            continue;
        }
        if token.han {
            let chars: Vec<char> = token.text.chars().collect();
            let len = chars.len().min(2);
            for (n, piece) in chars.windows(len).enumerate() {
                let own = piece.iter().collect();
                wants.push(want(own, token.place + n as i64, false));
            }
        } else {
            let marked = token.marked.clone();
            let marked = marked.filter(|m| !(m.starts_with('.') && token.tie.is_some()));
            wants.push(match marked {
                // With its mark it stands for nothing else.
                Some(marked) => want(marked, token.place, false),
                None => want(token.text.clone(), token.place, true),
            });
        }
        at += 1;
    }
    wants
}

fn query(text: &str) -> Vec<Word> {
    let tokens = tokens(text);
    let wants = wants(&tokens);
    let covers = |first: usize, last: usize| {
        let of = |token: usize| {
            let mut numbers = (0..wants.len()).filter(|n| {
                let (first, last) = wants[*n].tokens;
                (first..=last).contains(&token)
            });
            let first = numbers.next().unwrap();
            (first, numbers.next_back().unwrap_or(first))
        };
        (of(first).0, of(last).1)
    };
    let pairs = (1..tokens.len()).map(|last| (last - 1, last));
    let pairs: Vec<_> = pairs
        .filter(|(first, last)| joinable(&tokens[*first..=*last]))
        .collect();
    let wholes = wholes(&tokens);
    let mut words: Vec<Word> = Vec::new();
    for (number, want) in wants.iter().enumerate() {
        let (first, last) = want.tokens;
        let pair = |(a, b): &&(usize, usize)| match want.is_number {
            true => (*a, *b) == (first, last),
            false => *a == first || *b == first,
        };
        let whole = |(a, b): &&(usize, usize)| *a <= first && last <= *b;
        let spans = pairs.iter().filter(pair).chain(wholes.iter().filter(whole));
        let joins = spans.map(|(a, b)| {
            let (first, last) = covers(*a, *b);
            (joined(&tokens[*a..=*b]), first, last)
        });
        words.push(Word {
            own: want.own.clone(),
            joins: match want.is_word || want.is_number {
                true => joins.collect(),
                false => vec![],
            },
            prefix: false,
            place: want.place,
            number,
        });
    }
    if let (Some(word), Some(want)) = (words.last_mut(), wants.last()) {
        let (at, _) = want.tokens;
        let is_word = !want.is_number && !tokens[at].han;
        word.prefix = is_word && word.own.chars().count() >= 3;
    }
    let mut seen = BTreeSet::new();
    words.retain(|word| seen.insert(word.own.clone()));
    words.truncate(32);
    words
}

/// What the documents hold, as the rules have it.
pub(crate) struct Oracle {
    /// By document and field: the places of each word.
    docs: BTreeMap<usize, Vec<BTreeMap<String, Vec<i64>>>>,
    weights: Vec<f64>,
    averages: Vec<f64>,
}

impl Oracle {
    /// Of documents, some of which are dead and as if they had never been.
    pub(crate) fn new(docs: &[Doc], dead: &[usize], weights: &[f32]) -> Self {
        let field = |texts: &Vec<String>| {
            let mut places: BTreeMap<String, Vec<i64>> = BTreeMap::new();
            for (at, text) in texts.iter().enumerate() {
                for (word, place) in indexed(text) {
                    places
                        .entry(word)
                        .or_default()
                        .push(at as i64 * 1_000_000 + place);
                }
            }
            places
        };
        let docs = docs.iter().enumerate();
        let docs = docs.filter(|(number, _)| !dead.contains(number));
        let docs: BTreeMap<usize, Vec<_>> = docs
            .map(|(number, doc)| (number, doc.iter().map(field).collect()))
            .collect();
        let average = |field: usize| {
            let lengths: usize = docs.values().map(|doc| length(&doc[field])).sum();
            lengths as f64 / docs.len() as f64
        };
        Self {
            averages: (0..weights.len()).map(average).collect(),
            weights: weights.iter().map(|weight| f64::from(*weight)).collect(),
            docs,
        }
    }

    /// Documents that match and what they score, by number.
    pub(crate) fn scores(&self, text: &str) -> BTreeMap<usize, f64> {
        let words = query(text);
        if words.is_empty() {
            return BTreeMap::new();
        }
        let spellings: Vec<Vec<(String, f64)>> = words.iter().map(spellings).collect();
        let rareness: Vec<f64> = spellings
            .iter()
            .map(|s| self.rareness(self.most(s)))
            .collect();
        let begun: Vec<BTreeSet<usize>> = words.iter().map(|word| self.begun(word)).collect();
        let mut found = BTreeMap::new();
        'docs: for (number, doc) in &self.docs {
            let mut score = 0.0;
            for (at, (word, spellings)) in words.iter().zip(&spellings).enumerate() {
                let mut is_there = false;
                for (field, places) in doc.iter().enumerate() {
                    let mut best = 0.0_f64;
                    for (spelling, factor) in spellings {
                        if let Some(here) = places.get(spelling) {
                            is_there = true;
                            best = best.max(factor * self.share(field, places, here.len()));
                        }
                    }
                    score += rareness[at] * self.weights[field] * best;
                }
                if is_there {
                    continue;
                }
                // A completion counts where the word itself is nowhere.
                if !begun[at].contains(number) {
                    continue 'docs;
                }
                let rareness = self.rareness(begun[at].len()).min(rareness[at]);
                for (field, places) in doc.iter().enumerate() {
                    if places.keys().any(|w| w.starts_with(&word.own)) {
                        score +=
                            0.5 * rareness * self.weights[field] * self.share(field, places, 1);
                    }
                }
            }
            for (at, pair) in words.windows(2).enumerate() {
                for (field, places) in doc.iter().enumerate() {
                    if are_neighbours(&pair[0], &pair[1], places) {
                        score += 0.25 * (rareness[at] + rareness[at + 1]) * self.weights[field];
                    }
                }
            }
            found.insert(*number, score);
        }
        found
    }

    /// Documents with a word that begins as the last of a query.
    fn begun(&self, word: &Word) -> BTreeSet<usize> {
        let begins = |doc: &[BTreeMap<String, Vec<i64>>]| {
            let mut words = doc.iter().flat_map(BTreeMap::keys);
            words.any(|found| found.starts_with(&word.own))
        };
        let docs = self.docs.iter();
        let begun = docs.filter(|(_, doc)| word.prefix && begins(doc));
        begun.map(|(number, _)| *number).collect()
    }

    fn share(&self, field: usize, places: &BTreeMap<String, Vec<i64>>, occurs: usize) -> f64 {
        let norm = 1.2 * (0.25 + 0.75 * length(places) as f64 / self.averages[field]);
        let f = occurs as f64;
        2.2 * f / (f + norm)
    }

    /// Documents that have the most frequent spelling in the field where most have it.
    fn most(&self, spellings: &[(String, f64)]) -> usize {
        let count = |spelling: &str, field: usize| {
            let docs = self.docs.values();
            docs.filter(|doc| doc[field].contains_key(spelling)).count()
        };
        let fields = 0..self.weights.len();
        let counts = spellings
            .iter()
            .flat_map(|s| fields.clone().map(|field| count(&s.0, field)));
        counts.max().unwrap_or(0)
    }

    fn rareness(&self, documents: usize) -> f64 {
        let (n, all) = (documents as f64, self.docs.len() as f64);
        (1.0 + (all - n + 0.5) / (n + 0.5)).ln()
    }
}

fn spellings(word: &Word) -> Vec<(String, f64)> {
    let joins = word.joins.iter().map(|(join, ..)| (join.clone(), 0.6));
    std::iter::once((word.own.clone(), 1.0))
        .chain(joins)
        .collect()
}

fn length(places: &BTreeMap<String, Vec<i64>>) -> usize {
    places.values().map(Vec::len).sum()
}

fn are_neighbours(left: &Word, right: &Word, places: &BTreeMap<String, Vec<i64>>) -> bool {
    // What insists on its mark or is a number may be in a join of what stands beside it that does not stand for it.
    let is_there = |word: &Word| spellings(word).iter().any(|(s, _)| places.contains_key(s));
    if !is_there(left) || !is_there(right) {
        return false;
    }
    let mut joins = left.joins.iter().chain(&right.joins);
    let as_one = joins.any(|(join, first, last)| {
        *first <= left.number && right.number <= *last && places.contains_key(join)
    });
    let at = |word: &Word| places.get(&word.own).cloned().unwrap_or_default();
    let rights = at(right);
    as_one
        || at(left)
            .iter()
            .any(|place| rights.contains(&(place + right.place - left.place)))
}
