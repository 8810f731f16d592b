//! The best documents for a single word.

use super::completions::PartCompletions;
use super::cursor::{Source, Word};
use super::index::Part;
use super::search::TextSearch;
use super::set::{Bits, each, has};
use super::sift::{Fed, piece};
use super::top::Top;
use crate::search::Bitset;
use std::io;
use tantivy::TERMINATED;

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
    word: &Word<'_>,
    completions: &PartCompletions,
    among: &Bitset,
    top: &mut Top,
) -> io::Result<()> {
    let Some(completed) = &word.completed else {
        return Ok(());
    };
    if completed.most < top.floor() {
        return Ok(());
    }
    let is_in = |fed: &Fed<'_>, field: usize, doc| {
        let found: Option<&Bits> = fed.completions.get(field);
        found.is_some_and(|found| has(found, doc))
    };
    let mut fed = Fed::open(0, word, search.weights.len())?;
    let mut last = 0;
    let ceilings = completions.ceilings(part, completed.worth, |doc| {
        completed.score(search, part, doc).unwrap_or_default()
    });
    for (ceiling, base) in ceilings.iter().copied() {
        let start = part.base + base;
        if ceiling <= 0.0 || !top.can_take(ceiling, 0) {
            return Ok(());
        }
        if !top.can_take(ceiling, start) {
            continue;
        }
        // Windows of one ceiling are in order, others are not.
        if base < last {
            fed = Fed::open(0, word, search.weights.len())?;
        }
        last = base;
        let mut found = piece(among, start);
        fed.sift(base, &mut found);
        for forms in &fed.forms {
            found.iter_mut().zip(forms).for_each(|(a, b)| *a &= !b);
        }
        for doc in each(&found, base) {
            if let Some(score) =
                completed.score_in(search, part, doc, |field| is_in(&fed, field, doc))
            {
                top.add(score, part.base + doc);
            }
        }
    }
    Ok(())
}
