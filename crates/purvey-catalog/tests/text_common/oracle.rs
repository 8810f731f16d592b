//! The documented rules, for a language without stemmer, over text of ASCII and Han characters.

use super::Doc;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
struct Token {
    text: String,
    place: i64,
    /// Tied to the token before by connectors alone.
    tied: bool,
    han: bool,
}

fn tokens(text: &str) -> Vec<Token> {
    let class = |c: char| match c {
        c if c.is_ascii_alphanumeric() => 'w',
        '\u{4e00}'..='\u{9fff}' => 'h',
        '-' | '_' | '.' | '/' | '@' | ':' | '\'' => 'c',
        _ => 'o',
    };
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
        let before = |back: usize| at.checked_sub(back).map(|at| pieces[at].0);
        let tied = before(1) == Some('c') && matches!(before(2), Some('w' | 'h'));
        found.push(Token {
            text: piece.clone(),
            place,
            tied,
            han: *class == 'h',
        });
        place += if *class == 'h' {
            piece.chars().count() as i64
        } else {
            1
        };
    }
    found
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
    let starts: Vec<usize> = (0..tokens.len()).filter(|at| !tokens[*at].tied).collect();
    let ends = starts.iter().skip(1).copied().chain([tokens.len()]);
    starts
        .iter()
        .copied()
        .zip(ends.map(|end| end.wrapping_sub(1)))
        .collect()
}

/// What is indexed of a text: words and places.
fn indexed(text: &str) -> Vec<(String, i64)> {
    let tokens = tokens(text);
    let mut out = Vec::new();
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
        if let Some(pair) = tokens.get(at..at + 2)
            && (pair[1].tied || tokens.len() <= 4)
            && joinable(pair)
        {
            out.push((joined(pair), token.place));
        }
    }
    for (first, last) in compounds(&tokens) {
        if last >= first + 2 && joinable(&tokens[first..=last]) {
            out.push((joined(&tokens[first..=last]), tokens[first].place));
        }
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

fn query(text: &str) -> Vec<Word> {
    let tokens = tokens(text);
    let mut words: Vec<Word> = Vec::new();
    let mut numbers = Vec::new();
    for token in &tokens {
        numbers.push(words.len());
        if token.han {
            let chars: Vec<char> = token.text.chars().collect();
            let pieces: Vec<String> = if chars.len() == 1 {
                vec![token.text.clone()]
            } else {
                chars.windows(2).map(|pair| pair.iter().collect()).collect()
            };
            for (n, own) in pieces.into_iter().enumerate() {
                words.push(Word {
                    own,
                    joins: vec![],
                    prefix: false,
                    place: token.place + n as i64,
                    number: words.len(),
                });
            }
        } else {
            words.push(Word {
                own: token.text.clone(),
                joins: vec![],
                prefix: false,
                place: token.place,
                number: words.len(),
            });
        }
    }
    let pairs = (1..tokens.len()).map(|last| (last - 1, last));
    let whole = compounds(&tokens)
        .into_iter()
        .filter(|(first, last)| last - first >= 2 && !tokens.is_empty());
    let spans: Vec<_> = pairs.chain(whole).collect();
    for (first, last) in spans {
        if joinable(&tokens[first..=last]) {
            for at in first..=last {
                let join = (joined(&tokens[first..=last]), numbers[first], numbers[last]);
                words[numbers[at]].joins.push(join);
            }
        }
    }
    if let (Some(word), Some(token)) = (words.last_mut(), tokens.last()) {
        word.prefix = !token.han && word.own.chars().count() >= 3;
    }
    let mut seen = BTreeSet::new();
    words.retain(|word| seen.insert(word.own.clone()));
    words.truncate(32);
    words
}

/// What the documents hold, as the rules have it.
pub(crate) struct Oracle {
    /// By document and field: the places of each word.
    docs: Vec<Vec<BTreeMap<String, Vec<i64>>>>,
    weights: Vec<f64>,
    averages: Vec<f64>,
}

impl Oracle {
    pub(crate) fn new(docs: &[Doc], weights: &[f32]) -> Self {
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
        let docs: Vec<Vec<_>> = docs
            .iter()
            .map(|doc| doc.iter().map(field).collect())
            .collect();
        let average = |field: usize| {
            let lengths: usize = docs.iter().map(|doc| length(&doc[field])).sum();
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
        let spellings: Vec<Vec<(String, f64)>> = words.iter().map(|w| self.spellings(w)).collect();
        let rareness: Vec<f64> = spellings.iter().map(|s| self.rareness(s)).collect();
        let mut found = BTreeMap::new();
        'docs: for (number, doc) in self.docs.iter().enumerate() {
            let mut score = 0.0;
            for (spellings, rareness) in spellings.iter().zip(&rareness) {
                // A completion counts where the word itself is nowhere.
                let has = |completed: bool| {
                    let mut tried = spellings.iter().filter(|s| (s.1 == 0.5) == completed);
                    tried.any(|s| doc.iter().any(|places| places.contains_key(&s.0)))
                };
                let completed = !has(false);
                let is_there = !completed || has(true);
                for (field, places) in doc.iter().enumerate() {
                    let norm = 1.2 * (0.25 + 0.75 * length(places) as f64 / self.averages[field]);
                    let mut best = 0.0_f64;
                    for (spelling, factor) in spellings {
                        if (*factor == 0.5) != completed {
                            continue;
                        }
                        if let Some(places) = places.get(spelling) {
                            let f = if completed { 1.0 } else { places.len() as f64 };
                            best = best.max(factor * 2.2 * f / (f + norm));
                        }
                    }
                    score += rareness * self.weights[field] * best;
                }
                if !is_there {
                    continue 'docs;
                }
            }
            for (at, pair) in words.windows(2).enumerate() {
                for (field, places) in doc.iter().enumerate() {
                    if are_neighbours(&pair[0], &pair[1], places) {
                        score += 0.25 * (rareness[at] + rareness[at + 1]) * self.weights[field];
                    }
                }
            }
            found.insert(number, score);
        }
        found
    }

    fn spellings(&self, word: &Word) -> Vec<(String, f64)> {
        let mut spellings = vec![(word.own.clone(), 1.0)];
        spellings.extend(word.joins.iter().map(|(join, ..)| (join.clone(), 0.6)));
        if word.prefix {
            let fields = self.docs.iter().flatten();
            let all: BTreeSet<&String> = fields.flat_map(BTreeMap::keys).collect();
            let longer: Vec<_> = all
                .into_iter()
                .filter(|w| w.starts_with(&word.own) && spellings.iter().all(|s| s.0 != **w))
                .collect();
            assert!(
                longer.len() <= 64,
                "a vocabulary for which completions need no choice"
            );
            spellings.extend(longer.into_iter().map(|w| (w.clone(), 0.5)));
        }
        spellings
    }

    fn rareness(&self, spellings: &[(String, f64)]) -> f64 {
        let count = |spelling: &str, field: usize| {
            self.docs
                .iter()
                .filter(|doc| doc[field].contains_key(spelling))
                .count()
        };
        let fields = 0..self.weights.len();
        let most = |completed: bool| {
            let tried = spellings.iter().filter(|s| (s.1 == 0.5) == completed);
            let counts = tried.flat_map(|s| fields.clone().map(|field| count(&s.0, field)));
            counts.max().unwrap_or(0)
        };
        let n = if most(false) > 0 {
            most(false)
        } else {
            most(true)
        } as f64;
        let all = self.docs.len() as f64;
        (1.0 + (all - n + 0.5) / (n + 0.5)).ln()
    }
}

fn length(places: &BTreeMap<String, Vec<i64>>) -> usize {
    places.values().map(Vec::len).sum()
}

fn are_neighbours(left: &Word, right: &Word, places: &BTreeMap<String, Vec<i64>>) -> bool {
    let as_one = left.joins.iter().any(|(join, first, last)| {
        *first <= left.number && right.number <= *last && places.contains_key(join)
    });
    let at = |word: &Word| places.get(&word.own).cloned().unwrap_or_default();
    let rights = at(right);
    as_one
        || at(left)
            .iter()
            .any(|place| rights.contains(&(place + right.place - left.place)))
}
