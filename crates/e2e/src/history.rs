//! What one writer did to its part of the catalog, and which states of it may be found after a crash.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Which Offerings there are, each with the version it shows.
pub type State = BTreeMap<String, u64>;

/// One change of one Offering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The Offering.
    pub id: String,
    /// Its new version; `None`: removed.
    pub to: Option<u64>,
    /// The server said no (busy): it must never be seen.
    pub refused: bool,
}

/// How far a writer has come, in changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Sent: these and no later ones may be there.
    pub sent: usize,
    /// Acknowledged: these must be there.
    pub acknowledged: usize,
    /// Acknowledged as published: these must be served at once.
    pub published: usize,
}

impl Progress {
    /// How many may be in force, given that `at_least` are.
    #[must_use]
    pub fn from(self, at_least: usize) -> RangeInclusive<usize> {
        at_least..=self.sent
    }
}

/// The changes of one writer, which alone writes its Offerings, one request after the other.
#[derive(Clone, Debug)]
pub struct History {
    /// The Offerings of this writer.
    pub ids: Vec<String>,
    /// What they were before the first change.
    pub start: State,
    /// What was sent, in order.
    pub changes: Vec<Change>,
    /// How far it has come.
    pub progress: Progress,
    /// The last version given out.
    pub version: u64,
}

impl History {
    /// A writer of these Offerings, which all are there in one version.
    #[must_use]
    pub fn new(ids: Vec<String>, version: u64) -> Self {
        let start = ids.iter().map(|id| (id.clone(), version)).collect();
        Self {
            ids,
            start,
            changes: Vec::new(),
            progress: Progress::default(),
            version,
        }
    }

    /// The state once this many changes are in force.
    #[must_use]
    pub fn after(&self, changes: usize) -> State {
        let mut state = self.start.clone();
        self.changes[..changes]
            .iter()
            .for_each(|change| apply(&mut state, change));
        state
    }

    /// How many changes make up this writer's part of an observed state. Panics when no number of the range does: something
    /// was lost, or is half there.
    pub fn explain(&self, observed: &State, range: RangeInclusive<usize>) -> usize {
        let own: State = self
            .ids
            .iter()
            .filter_map(|id| observed.get(id).map(|version| (id.clone(), *version)))
            .collect();
        let mut state = self.after(*range.start());
        let mut differences = difference(&state, &own);
        for count in range.clone() {
            if count > *range.start() {
                apply(&mut state, &self.changes[count - 1]);
            }
            if state == own {
                return count;
            }
            let now = difference(&state, &own);
            if now.len() < differences.len() {
                differences = now;
            }
        }
        panic!(
            "no state after {range:?} changes is what was found; the nearest differs in {differences:?}"
        )
    }

    /// The server was killed, and this many changes turned out to be in force: the others never will be.
    pub fn resolve(&mut self, changes: usize) {
        self.changes[changes..]
            .iter_mut()
            .for_each(|change| change.refused = true);
        let all = self.changes.len();
        self.progress = Progress {
            sent: all,
            acknowledged: all,
            ..self.progress
        };
    }

    /// Makes this many changes the past: what a restarted server goes on from.
    pub fn settle(&mut self, changes: usize) {
        self.start = self.after(changes);
        self.changes.clear();
        self.progress = Progress::default();
    }
}

fn apply(state: &mut State, change: &Change) {
    match change.to {
        _ if change.refused => {}
        Some(version) => {
            state.insert(change.id.clone(), version);
        }
        None => {
            state.remove(&change.id);
        }
    }
}

/// What differs: id, expected, found.
fn difference(expected: &State, found: &State) -> Vec<(String, Option<u64>, Option<u64>)> {
    let mut ids: Vec<&String> = expected.keys().chain(found.keys()).collect();
    ids.sort();
    ids.dedup();
    let versions = ids.into_iter().map(|id| {
        (
            id.clone(),
            expected.get(id).copied(),
            found.get(id).copied(),
        )
    });
    versions
        .filter(|(_, expected, found)| expected != found)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history() -> History {
        let mut history = History::new(vec!["a".to_owned(), "b".to_owned()], 1);
        for (id, to, refused) in [
            ("a", Some(2), false),
            ("b", Some(9), true),
            ("b", None, false),
        ] {
            history.changes.push(Change {
                id: id.to_owned(),
                to,
                refused,
            });
        }
        history
    }

    fn state(entries: &[(&str, u64)]) -> State {
        entries
            .iter()
            .map(|(id, version)| ((*id).to_owned(), *version))
            .collect()
    }

    #[test]
    fn a_prefix_explains_a_state() {
        let history = history();
        assert_eq!(
            history.explain(&state(&[("a", 2), ("b", 1), ("other", 7)]), 1..=3),
            1
        );
        assert_eq!(history.explain(&state(&[("a", 2)]), 1..=3), 3);
    }

    #[test]
    #[should_panic(expected = "no state after 1..=3 changes")]
    fn a_lost_change_is_no_prefix() {
        history().explain(&state(&[("a", 1), ("b", 1)]), 1..=3);
    }

    #[test]
    #[should_panic(expected = "no state after 0..=3 changes")]
    fn half_a_prefix_is_none() {
        history().explain(&state(&[("a", 1)]), 0..=3);
    }
}
