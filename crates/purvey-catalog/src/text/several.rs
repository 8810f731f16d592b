//! The best documents for several words, without a close look at those that cannot be among them.

use super::cursor::Word;
use super::index::Part;
use super::plan::Kind;
use super::query::Pair;
use super::search::TextSearch;
use super::set::{each, has, put_window, take};
use super::sift::Sift;
use super::top::Top;
use crate::search::Bitset;
use std::io;

/// Adds the best documents of a part that are in `among`.
pub(super) fn best<'q>(
    search: &'q TextSearch,
    part: &'q Part,
    words: Vec<Word<'q>>,
    pairs: &[Pair],
    among: &Bitset,
    top: &mut Top,
) -> io::Result<()> {
    let fields = search.weights.len();
    let mut sifted = Several {
        sift: Sift::new(&words, part, true)?,
        scores: vec![0.0; words.len()],
        most: vec![0.0; words.len()],
        is_in: vec![u64::MAX; words.len()],
        codes: vec![0; fields],
        places: (Vec::new(), Vec::new()),
        search,
        part,
        words,
        pairs,
    };
    sifted.run(among, top)
}

/// The bit of a field; fields beyond the 63rd share one.
fn bit(field: usize) -> u64 {
    1 << field.min(63)
}

struct Several<'a, 'q> {
    search: &'q TextSearch,
    part: &'q Part,
    words: Vec<Word<'q>>,
    sift: Sift<'q>,
    pairs: &'a [Pair],
    /// What each word counts in the present document.
    scores: Vec<f32>,
    /// What each word counts there at most.
    most: Vec<f32>,
    /// For each word the fields in which it may have a form there, as bits.
    is_in: Vec<u64>,
    /// The code of the length of each field there.
    codes: Vec<u8>,
    places: (Vec<u32>, Vec<u32>),
}

impl Several<'_, '_> {
    fn run(&mut self, among: &Bitset, top: &mut Top) -> io::Result<()> {
        let completed_most = self.completed_most();
        loop {
            if completed_most < top.floor() {
                self.sift.forget_completions();
                self.words.iter_mut().for_each(|word| word.completed = None);
            }
            let Some((base, found)) = self.sift.next(self.part, Some(among)) else {
                return Ok(());
            };
            for doc in each(&found, base) {
                let words = self.rate(doc);
                let pairs = self.pairs_most();
                if words + pairs >= top.floor() {
                    self.look(doc, words, pairs, top)?;
                }
            }
        }
    }

    /// What documents that have a completion instead of the last word count at most. Completions are nobody's neighbours.
    fn completed_most(&self) -> f32 {
        let Some((last, others)) = self.words.split_last() else {
            return 0.0;
        };
        let weights: f32 = self.search.weights.iter().sum();
        let pairs = self.pairs.iter().take(self.pairs.len().saturating_sub(1));
        let completed = last.completed.as_ref().map_or(0.0, |c| c.most);
        let others = others.iter().map(|word| word.most).sum::<f32>();
        completed + others + weights * pairs.map(|pair| pair.worth).sum::<f32>()
    }

    /// Finds what each word counts in a document at most, by where it is and how long the fields are; tells the sum.
    fn rate(&mut self, doc: u32) -> f32 {
        for (code, field) in self.codes.iter_mut().zip(&self.part.fields) {
            *code = field.lengths.fieldnorm_id(doc);
        }
        for fed in &self.sift.fed {
            let (Some(word), Some(most), Some(is_in)) = (
                self.words.get(fed.word),
                self.most.get_mut(fed.word),
                self.is_in.get_mut(fed.word),
            ) else {
                continue;
            };
            (*most, *is_in) = (0.0, 0);
            for (field, forms) in fed.forms.iter().enumerate() {
                if has(forms, doc)
                    && let Some(bound) = word.fields.get(field)
                    && let Some(lengths) = self.search.lengths.get(field)
                    && let Some(repeated) = fed.repeated.get(field)
                    && let Some(code) = self.codes.get(field)
                {
                    *is_in |= bit(field);
                    *most += bound.at(lengths, *code, has(repeated, doc));
                }
            }
            if *is_in == 0
                && let Some(completed) = &word.completed
            {
                let is_in = |field| fed.completions.get(field).is_some_and(|c| has(c, doc));
                let score = completed.score_in(self.search, self.part, doc, is_in);
                *most = score.unwrap_or_default();
            }
        }
        for number in &self.sift.others {
            if let (Some(word), Some(most)) = (self.words.get(*number), self.most.get_mut(*number))
            {
                let completed = word.completed.as_ref().map_or(0.0, |c| c.most);
                *most = word.most.max(completed);
            }
        }
        self.most.iter().sum()
    }

    /// The fields in which both words of a pair may be, as bits.
    fn both_in(&self, pair: &Pair) -> u64 {
        let is_in = |word| self.is_in.get(word).copied().unwrap_or_default();
        is_in(pair.left) & is_in(pair.left + 1)
    }

    /// What neighbours in the present document count at most, by what is in which field.
    fn pairs_most(&self) -> f32 {
        let mut sum = 0.0;
        for pair in self.pairs {
            let both = self.both_in(pair);
            if both == 0 {
                continue;
            }
            for (field, weight) in self.search.weights.iter().enumerate() {
                if both & bit(field) != 0 {
                    sum += pair.worth * weight;
                }
            }
        }
        sum
    }

    /// Scores a document, unless it turns out that it cannot be among the best.
    fn look(&mut self, doc: u32, words: f32, pairs: f32, top: &mut Top) -> io::Result<()> {
        let floor = top.floor();
        let mut most = words + pairs;
        let fed = self.sift.fed.iter().map(|fed| &fed.word);
        for number in fed.chain(&self.sift.others) {
            let (Some(word), Some(bound), Some(score)) = (
                self.words.get_mut(*number),
                self.most.get(*number),
                self.scores.get_mut(*number),
            ) else {
                return Ok(());
            };
            let is_in = self.is_in.get(*number).copied().unwrap_or_default();
            let may_be_in = |field| is_in & bit(field) != 0;
            let found = match word.score(doc, may_be_in)? {
                Some(found) => Some(found),
                None => {
                    let completed = word.completed.as_ref();
                    completed.and_then(|c| c.score(self.search, self.part, doc))
                }
            };
            let Some(found) = found else {
                return Ok(());
            };
            *score = found;
            most += found - bound;
            if most < floor {
                return Ok(());
            }
        }
        // In the order of the query, so that rounding is the same wherever a document is.
        let mut score: f32 = self.scores.iter().sum();
        if pairs > 0.0 {
            score += self.neighbours(doc)?;
        }
        top.add(score, self.part.base + doc);
        Ok(())
    }

    /// What the neighbours of the query that are neighbours in the present document count.
    fn neighbours(&mut self, doc: u32) -> io::Result<f32> {
        let mut sum = 0.0;
        for pair in self.pairs {
            for (field, weight) in self.search.weights.iter().enumerate() {
                if self.both_in(pair) & bit(field) == 0 {
                    continue;
                }
                let (before, after) = self.words.split_at_mut(pair.left + 1);
                if let (Some(left), Some(right)) = (before.last_mut(), after.first_mut())
                    && are_neighbours(left, right, pair, (field, doc), &mut self.places)?
                {
                    sum += pair.worth * weight;
                }
            }
        }
        Ok(sum)
    }
}

/// Adds the documents of a part that have all words to a set with a bit for each document.
pub(super) fn matching(part: &Part, words: &mut [Word<'_>], set: &mut [u64]) -> io::Result<()> {
    let mut sift = Sift::new(words, part, false)?;
    while let Some((base, mut found)) = sift.next(part, None) {
        for number in &sift.others {
            let Some(word) = words.get_mut(*number) else {
                continue;
            };
            let before = found;
            for doc in each(&before, base) {
                if word.score(doc, |_| true)?.is_none()
                    && !word.completed.as_ref().is_some_and(|c| c.contains(doc))
                {
                    take(&mut found, doc);
                }
            }
        }
        put_window(set, part.base + base, &found);
    }
    Ok(())
}

/// Whether two words, which stand at one document, follow each other in a field.
fn are_neighbours<'q>(
    left: &mut Word<'q>,
    right: &mut Word<'q>,
    pair: &Pair,
    (field, doc): (usize, u32),
    (lefts, rights): &mut (Vec<u32>, Vec<u32>),
) -> io::Result<bool> {
    lefts.clear();
    rights.clear();
    let (mut has_left, mut has_right) = (false, false);
    for (word, has) in [(&mut *left, &mut has_left), (&mut *right, &mut has_right)] {
        for source in word.at(field, doc) {
            match source.kind {
                Kind::Own => *has = true,
                Kind::Joined(first, last) if first <= pair.numbers.0 && pair.numbers.1 <= last => {
                    return Ok(true);
                }
                Kind::Joined(..) => {}
            }
        }
    }
    if !has_left || !has_right {
        return Ok(false);
    }
    for (word, places) in [(left, &mut *lefts), (right, &mut *rights)] {
        for source in word.at(field, doc) {
            if source.kind == Kind::Own {
                source.places(places)?;
            }
        }
    }
    Ok(lefts
        .iter()
        .any(|place| rights.contains(&(place + pair.distance))))
}
