//! The best documents for a single word.

use super::completions::Ranked;
use super::cursor::{Source, Word};
use super::index::Part;
use super::search::TextSearch;
use super::set::{Bits, each, has};
use super::sift::{Fed, piece};
use super::top::Top;
use crate::search::Bitset;
use std::io;
use tantivy::TERMINATED;

/// Completions that are looked at together.
const TOGETHER: usize = 64;

/// Adds the best documents of a part that have a form of the word and are in `among`.
pub(super) fn best(
    search: &TextSearch,
    part: &Part,
    word: &mut Word<'_>,
    among: &Bitset,
    top: &mut Top,
) -> io::Result<()> {
    let mut order: Vec<usize> = (0..word.sources.len()).collect();
    let most = |at: &usize| word.sources.get(*at).map_or(0.0, |source| source.most);
    order.sort_by(|a, b| most(a).total_cmp(&most(b)));
    let mut walk = Walk {
        fields: vec![0.0; search.weights.len()],
        essential: 0,
        spare: 0.0,
        order,
        word,
    };
    walk.run(part, among, top)
}

struct Walk<'a, 'q> {
    word: &'a mut Word<'q>,
    /// The word's sources, those that count least first.
    order: Vec<usize>,
    /// The place in the order from which on sources are essential: a document that has none of them is not among the best.
    essential: usize,
    /// What the other sources count at most, in all and by field.
    spare: f32,
    fields: Vec<f32>,
}

impl<'q> Walk<'_, 'q> {
    fn run(&mut self, part: &Part, among: &Bitset, top: &mut Top) -> io::Result<()> {
        self.split(top.floor());
        let mut from = 0;
        loop {
            let doc = self.next(from)?;
            if doc == TERMINATED {
                return Ok(());
            }
            if !among.contains(part.base + doc) {
                match among.iter_from(part.base + doc).next() {
                    Some(next) if next - part.base < part.documents => from = next - part.base,
                    _ => return Ok(()),
                }
                continue;
            }
            let floor = top.floor();
            if floor > 0.0
                && let Some(next) = self.skip(doc, floor)
            {
                from = next;
                continue;
            }
            if let Some(score) = self.word.score(doc, |_| true)?
                && top.add(score, part.base + doc)
            {
                self.split(top.floor());
            }
            from = doc + 1;
        }
    }

    /// Decides which sources are essential; there are ever fewer.
    fn split(&mut self, floor: f32) {
        while let Some(source) = self
            .order
            .get(self.essential)
            .and_then(|at| self.word.sources.get(*at))
        {
            // Of the sources in one field the best counts, and they ascend.
            let Some(field) = self.fields.get_mut(source.number) else {
                return;
            };
            let spare = self.spare + source.most - *field;
            if spare >= floor {
                return;
            }
            self.spare = spare;
            *field = source.most;
            self.essential += 1;
        }
    }

    fn essential(&mut self) -> impl Iterator<Item = &mut Source<'q>> {
        let essential = self.order.get(self.essential..).unwrap_or_default();
        let sources = self.word.sources.iter_mut().enumerate();
        sources.filter_map(|(at, source)| essential.contains(&at).then_some(source))
    }

    /// The first document from `from` on that an essential source has.
    fn next(&mut self, from: u32) -> io::Result<u32> {
        let mut next = TERMINATED;
        for source in self.essential() {
            next = next.min(source.seek(from)?);
        }
        Ok(next)
    }

    /// Where to go on when neither `doc` nor its neighbours can be among the best.
    fn skip(&mut self, doc: u32, floor: f32) -> Option<u32> {
        let mut most = self.spare;
        let mut next = TERMINATED;
        let mut sources = 0;
        for source in self.essential() {
            sources += 1;
            if source.doc() == doc {
                let (bound, last) = source.bound();
                most += bound;
                next = next.min(last.saturating_add(1));
            } else {
                next = next.min(source.doc());
            }
        }
        if most < floor {
            return Some(next.max(doc + 1));
        }
        let spare = self.spare;
        if sources == 1 {
            let source = self.essential().next()?;
            return match source.seek_score(floor - spare) {
                true => Some(source.doc()).filter(|found| *found > doc),
                false => Some(next),
            };
        }
        // They are there already: what they count is known for little.
        let there = self.essential().filter(|source| source.doc() == doc);
        let most = spare + there.map(|source| source.score()).sum::<f32>();
        (most < floor).then_some(doc + 1)
    }
}

/// Adds the best documents of a part that have no form of the word, but completions.
pub(super) fn complete(
    search: &TextSearch,
    part: &Part,
    word: &mut Word<'_>,
    ranked: &Ranked,
    among: &Bitset,
    top: &mut Top,
) -> io::Result<()> {
    let Some(worth) = word.completed.as_ref().map(|completed| completed.worth) else {
        return Ok(());
    };
    let mut first = ranked.first.iter().copied();
    let mut taken = Vec::new();
    loop {
        // Forms are looked for in the order of documents, so not for one at a time.
        taken.clear();
        let mut is_over = true;
        for (share, doc) in first.by_ref() {
            let score = worth * share;
            if !top.can_take(score, 0) {
                return add_completed(word, part, &mut taken, top);
            }
            // Different shares may be one score, and then the order is another.
            if top.can_take(score, part.base + doc) && among.contains(part.base + doc) {
                taken.push((doc, score));
            }
            if taken.len() == TOGETHER {
                is_over = false;
                break;
            }
        }
        add_completed(word, part, &mut taken, top)?;
        if is_over {
            break;
        }
    }
    match ranked.first.last() {
        Some(last) if ranked.has_more() => {
            complete_after(*last, search, part, word, ranked, among, top)
        }
        _ => Ok(()),
    }
}

/// Adds those of some documents that have no form of the word.
fn add_completed(
    word: &mut Word<'_>,
    part: &Part,
    taken: &mut [(u32, f32)],
    top: &mut Top,
) -> io::Result<()> {
    taken.sort_unstable_by_key(|(doc, _)| *doc);
    word.rewind();
    for (doc, score) in taken {
        if word.score(*doc, |_| true)?.is_none() {
            top.add(*score, part.base + *doc);
        }
    }
    Ok(())
}

/// Adds those that come after a document in the order of completions, window by window.
fn complete_after(
    (last_share, last): (f32, u32),
    search: &TextSearch,
    part: &Part,
    word: &Word<'_>,
    ranked: &Ranked,
    among: &Bitset,
    top: &mut Top,
) -> io::Result<()> {
    let Some(completed) = &word.completed else {
        return Ok(());
    };
    let is_in = |fed: &Fed<'_>, field: usize, doc| {
        let found: Option<&Bits> = fed.completions.get(field);
        found.is_some_and(|found| has(found, doc))
    };
    let mut fed = Fed::open(0, word, search.weights.len())?;
    let mut last_base = 0;
    for (ceiling, base) in ranked.ceilings.iter().copied() {
        let start = part.base + base;
        let ceiling = completed.worth * ceiling.min(last_share);
        if ceiling <= 0.0 || !top.can_take(ceiling, 0) {
            return Ok(());
        }
        if !top.can_take(ceiling, start) {
            continue;
        }
        // Windows of one ceiling are in order, others are not.
        if base < last_base {
            fed = Fed::open(0, word, search.weights.len())?;
        }
        last_base = base;
        let mut found = piece(among, start);
        fed.sift(base, &mut found);
        for forms in &fed.forms {
            found.iter_mut().zip(forms).for_each(|(a, b)| *a &= !b);
        }
        for doc in each(&found, base) {
            if let Some(share) = search.completed(part, doc, |field| is_in(&fed, field, doc))
                && (share < last_share || share == last_share && doc > last)
            {
                top.add(completed.worth * share, part.base + doc);
            }
        }
    }
    Ok(())
}
