//! Identifiers that a search does not have, and those that may have been meant.

use purvey_agent::Capabilities;

/// How alike two identifiers are that one was mistaken for the other, from 0 to 1.
const ALIKE: f64 = 0.75;
/// Identifiers that are suggested at most.
const SUGGESTIONS: usize = 3;

/// An identifier that a search does not have.
pub(super) struct Unknown<'a> {
    pub(super) id: &'a str,
    pub(super) kind: Kind,
}

/// What it should have been the identifier of.
pub(super) enum Kind {
    Filter,
    Refinement,
    Sort,
}

impl Unknown<'_> {
    /// The identifiers that are most like it among what a search can use.
    pub(super) fn near<'a>(&self, found: &'a Capabilities) -> Vec<&'a str> {
        near(self.id, &self.candidates(found))
    }

    fn candidates<'a>(&self, found: &'a Capabilities) -> Vec<&'a str> {
        let (filters, sorts) = (
            found.effective.filters().iter(),
            found.effective.sorts().iter(),
        );
        match self.kind {
            Kind::Filter => filters.map(|filter| filter.id().as_str()).collect(),
            Kind::Refinement => filters
                .filter(|filter| filter.is_refinable())
                .map(|filter| filter.id().as_str())
                .collect(),
            Kind::Sort => sorts.map(|sort| sort.id().as_str()).collect(),
        }
    }
}

/// The candidates that are most like `id`.
fn near<'a>(id: &str, candidates: &[&'a str]) -> Vec<&'a str> {
    let id = id.to_lowercase();
    let likeness = |candidate: &str| strsim::jaro_winkler(&id, &candidate.to_lowercase());
    let mut scored: Vec<_> = candidates
        .iter()
        .map(|candidate| (likeness(candidate), *candidate))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.truncate(SUGGESTIONS);
    scored.into_iter().map(|(_, candidate)| candidate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_identifiers_are_suggested_and_others_are_not() {
        let ids = ["price", "price-type", "level", "duration"];
        assert_eq!(near("prise", &ids), ["price", "price-type"]);
        assert_eq!(near("LEVEL", &ids), ["level"]);
        assert_eq!(near("durations", &ids), ["duration"]);
        assert!(near("colour", &ids).is_empty());
    }
}
