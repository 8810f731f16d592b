//! The best documents of a part, without a look at those that cannot be among them.

use super::cursor::{Word, has_bit};
use super::index::Part;
use super::plan::Kind;
use super::search::{Pair, TextSearch};
use crate::search::{Bitset, Resume};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::io;
use tantivy::TERMINATED;

/// Bounds are added up in another order than scores, so they may be smaller by a rounding error.
const ROUNDING: f32 = 1.000_1;

/// Postings of a word that are gone through in the time that one of its documents is sought.
const FILL_FACTOR: u64 = 16;

/// The best documents so far.
pub(super) struct Top {
    limit: usize,
    resume: Option<Resume>,
    /// The worst is on top.
    documents: BinaryHeap<Ranked>,
}

#[derive(Clone, Copy, PartialEq)]
struct Ranked {
    score: f32,
    ordinal: u32,
}

impl Eq for Ranked {}

impl Ord for Ranked {
    /// The better is the lesser.
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = other.score.total_cmp(&self.score);
        by_score.then(self.ordinal.cmp(&other.ordinal))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Top {
    pub(super) fn new(limit: usize, resume: Option<Resume>) -> Self {
        Self {
            limit,
            resume,
            documents: BinaryHeap::new(),
        }
    }

    /// Whether a document that scores no more than this may be among the best.
    pub(super) fn can_take(&self, most: f32) -> bool {
        !self
            .threshold()
            .is_some_and(|threshold| is_hopeless(most, threshold))
    }

    /// The score of the worst, when there is no room for more.
    fn threshold(&self) -> Option<f32> {
        let worst = self.documents.peek();
        worst
            .filter(|_| self.documents.len() >= self.limit)
            .map(|worst| worst.score)
    }

    /// Adds a document; tells whether it is among the best.
    fn add(&mut self, score: f32, ordinal: u32) -> bool {
        let is_admitted = self.resume.is_none_or(|r| r.admits(score, ordinal));
        let new = Ranked { score, ordinal };
        let worst = self.documents.peek();
        let beats = self.documents.len() < self.limit || worst.is_some_and(|worst| new < *worst);
        if !is_admitted || !beats {
            return false;
        }
        self.documents.push(new);
        if self.documents.len() > self.limit {
            self.documents.pop();
        }
        true
    }

    pub(super) fn into_sorted(self) -> Vec<(f32, u32)> {
        let documents = self.documents.into_sorted_vec();
        documents.iter().map(|d| (d.score, d.ordinal)).collect()
    }
}

/// Whether nothing that scores `most` at most, save for rounding, is as good as the threshold.
fn is_hopeless(most: f32, threshold: f32) -> bool {
    most * ROUNDING < threshold
}

/// Adds the best documents of a part that are in `among` to `top`.
pub(super) fn best(
    search: &TextSearch,
    part: &Part,
    words: Vec<Word<'_>>,
    pairs: &[Pair],
    among: &Bitset,
    top: &mut Top,
) -> io::Result<()> {
    let mut order: Vec<usize> = (0..words.len()).collect();
    order.sort_by_key(|at| words.get(*at).map(|word| word.cost));
    let Some((lead, others)) = order.split_first() else {
        return Ok(());
    };
    let pairs_most =
        pairs.iter().map(|pair| pair.worth).sum::<f32>() * search.weights.iter().sum::<f32>();
    let mut walk = Walk {
        scores: vec![0.0; words.len()],
        rest: rest(&words, others, pairs_most),
        words,
        lead: *lead,
        others,
        pairs,
        weights: &search.weights,
        essential: Vec::new(),
        spare: 0.0,
        places: (Vec::new(), Vec::new()),
    };
    if others.is_empty() {
        walk.run(part, among, top)
    } else {
        walk.sift(part, among, top)
    }
}

/// For each place in the order of the other words, and for its end: what the words from there on and the pairs count at most.
fn rest(words: &[Word<'_>], others: &[usize], pairs: f32) -> Vec<f32> {
    let mut rest = vec![pairs];
    let mut sum = pairs;
    for at in others.iter().rev() {
        sum += words.get(*at).map_or(0.0, |word| word.most);
        rest.push(sum);
    }
    rest.reverse();
    rest
}

struct Walk<'a, 'q> {
    words: Vec<Word<'q>>,
    /// The rarest word, whose documents are walked through.
    lead: usize,
    /// The other words, rarest first.
    others: &'a [usize],
    rest: Vec<f32>,
    pairs: &'a [Pair],
    weights: &'a [f32],
    /// What each word counts in the present document.
    scores: Vec<f32>,
    /// Sources of the rarest word without which a document is not among the best.
    essential: Vec<usize>,
    /// What its other sources count at most.
    spare: f32,
    places: (Vec<u32>, Vec<u32>),
}

/// What the look at a document led to.
enum Step {
    /// The best are as before.
    Same,
    Added,
}

impl Walk<'_, '_> {
    fn run(&mut self, part: &Part, among: &Bitset, top: &mut Top) -> io::Result<()> {
        self.split(top.threshold());
        let mut from = 0;
        loop {
            let doc = self.next(from);
            if doc == TERMINATED {
                return Ok(());
            }
            if !among.contains(part.base + doc) {
                match among.iter_from(part.base + doc).next() {
                    Some(next) => from = next - part.base,
                    None => return Ok(()),
                }
                if from >= part.documents {
                    return Ok(());
                }
                continue;
            }
            if let Some(threshold) = top.threshold()
                && let Some(next) = self.skip(doc, threshold)
            {
                from = next;
                continue;
            }
            if let Step::Added = self.look(part, doc, top)? {
                self.split(top.threshold());
            }
            from = doc + 1;
        }
    }

    /// Looks at the documents that have all words, sifted word by word.
    fn sift(&mut self, part: &Part, among: &Bitset, top: &mut Top) -> io::Result<()> {
        let Some(lead) = self.words.get(self.lead) else {
            return Ok(());
        };
        let mut documents = lead.documents(part.documents)?;
        documents.retain(|doc| among.contains(part.base + doc));
        for word in self.others.iter().filter_map(|at| self.words.get(*at)) {
            // Otherwise it is cheaper to look the word up document by document.
            if word.cost <= documents.len() as u64 * FILL_FACTOR {
                let set = word.set(part.documents)?;
                documents.retain(|doc| has_bit(&set, *doc));
            }
        }
        for doc in documents {
            self.look(part, doc, top)?;
        }
        Ok(())
    }

    /// Decides which sources are essential.
    fn split(&mut self, threshold: Option<f32>) {
        self.essential.clear();
        self.spare = 0.0;
        let rest = self.rest.first().copied().unwrap_or_default();
        let Some(lead) = self.words.get(self.lead) else {
            return;
        };
        let mut order: Vec<(f32, usize, usize)> = Vec::with_capacity(lead.sources.len());
        let sources = lead.sources.iter().enumerate();
        order.extend(sources.map(|(at, source)| (source.weight, source.number, at)));
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.2.cmp(&b.2)));
        let mut fields = vec![0.0; self.weights.len()];
        for (weight, number, at) in order {
            // Of the sources in one field the best counts, and weights ascend.
            let field = fields.get_mut(number);
            let before = field.as_deref().copied().unwrap_or_default();
            let spare = self.spare + weight - before;
            let is_spare = threshold.is_some_and(|t| is_hopeless(spare + rest, t));
            if self.essential.is_empty() && is_spare {
                self.spare = spare;
                if let Some(field) = field {
                    *field = weight;
                }
            } else {
                self.essential.push(at);
            }
        }
    }

    /// The first document from `from` on that an essential source has.
    fn next(&mut self, from: u32) -> u32 {
        let Some(lead) = self.words.get_mut(self.lead) else {
            return TERMINATED;
        };
        let mut next = TERMINATED;
        for at in &self.essential {
            if let Some(source) = lead.sources.get_mut(*at) {
                next = next.min(source.seek(from));
            }
        }
        next
    }

    /// Where to go on when neither `doc` nor its neighbours can be among the best.
    fn skip(&mut self, doc: u32, threshold: f32) -> Option<u32> {
        let rest = self.rest.first().copied().unwrap_or_default();
        let lead = self.words.get_mut(self.lead)?;
        let mut most = self.spare + rest;
        let mut next = TERMINATED;
        for at in &self.essential {
            let source = lead.sources.get_mut(*at)?;
            if source.doc() == doc {
                let (bound, last) = source.bound();
                most += bound;
                next = next.min(last.saturating_add(1));
            } else {
                next = next.min(source.doc());
            }
        }
        if is_hopeless(most, threshold) {
            return Some(next.max(doc + 1));
        }
        // The essential sources are there already: what they count is known for little.
        let mut most = self.spare + rest;
        for at in &self.essential {
            let source = lead.sources.get(*at)?;
            if source.doc() == doc {
                most += source.score();
            }
        }
        is_hopeless(most, threshold).then_some(doc + 1)
    }

    fn look(&mut self, part: &Part, doc: u32, top: &mut Top) -> io::Result<Step> {
        let threshold = top.threshold();
        let hopeless = |most| threshold.is_some_and(|t| is_hopeless(most, t));
        let mut sum = 0.0;
        let order = std::iter::once(&self.lead).chain(self.others);
        for (at, rest) in order.zip(&self.rest) {
            let (Some(word), Some(score)) = (self.words.get_mut(*at), self.scores.get_mut(*at))
            else {
                return Ok(Step::Same);
            };
            let Some(found) = word.score(doc) else {
                return Ok(Step::Same);
            };
            *score = found;
            sum += found;
            if hopeless(sum + rest) {
                return Ok(Step::Same);
            }
        }
        // In the order of the query, so that rounding is the same wherever a document is.
        let mut score: f32 = self.scores.iter().sum();
        if !self.pairs.is_empty() && !hopeless(score + self.neighbours_most(doc)) {
            score += self.neighbours(doc)?;
        }
        Ok(if top.add(score, part.base + doc) {
            Step::Added
        } else {
            Step::Same
        })
    }

    /// What neighbours in a document may count at most, by what is in which field.
    fn neighbours_most(&mut self, doc: u32) -> f32 {
        let mut sum = 0.0;
        for pair in self.pairs {
            for (field, weight) in self.weights.iter().enumerate() {
                let mut both = self.words.iter_mut().skip(pair.left).take(2);
                if both.all(|word| word.at(field, doc).next().is_some()) {
                    sum += pair.worth * weight;
                }
            }
        }
        sum
    }

    /// What the neighbours of the query that are neighbours in the present document count.
    fn neighbours(&mut self, doc: u32) -> io::Result<f32> {
        let mut sum = 0.0;
        for pair in self.pairs {
            let (before, after) = self.words.split_at_mut(pair.left + 1);
            let (Some(left), Some(right)) = (before.last_mut(), after.first_mut()) else {
                continue;
            };
            for (field, weight) in self.weights.iter().enumerate() {
                if are_neighbours(left, right, pair, (field, doc), &mut self.places)? {
                    sum += pair.worth * weight;
                }
            }
        }
        Ok(sum)
    }
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
                Kind::Joined(..) | Kind::Completion => {}
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
