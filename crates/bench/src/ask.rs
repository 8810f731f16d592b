//! What every engine is asked.

use crate::Outcome;

/// Items of a page.
pub(crate) const PAGE: usize = 50;

/// A facet to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Facet {
    Registry,
    Major,
    Updated,
    Version,
}

impl Facet {
    /// The name of its filter, column and field.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Registry => "registry",
            Self::Major => "major",
            Self::Updated => "updated",
            Self::Version => "version",
        }
    }
}

/// One search. Every condition must hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ask {
    pub text: Option<&'static str>,
    pub registry: Option<&'static str>,
    /// Updated on this day or later.
    pub updated_from: Option<String>,
    pub downloads_from: Option<i64>,
    pub major_from: Option<i64>,
    /// Most downloaded first; else by relevance with text, by id without.
    pub most_downloaded: bool,
    /// Each counts over everything but its own condition.
    pub facets: &'static [Facet],
    /// Pages before the one that is wanted.
    pub page: usize,
}

/// A facet's first values with their counts, by count, then value.
pub(crate) type Counts = Vec<(String, u64)>;

/// What an engine answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub ids: Vec<String>,
    pub facets: Vec<Counts>,
}

/// Something that answers.
pub(crate) trait Engine {
    fn name(&self) -> &'static str;
    /// Prepares what the measurement of `ask` should not include, such as reaching its page by continuations.
    fn prepare(&mut self, _ask: &Ask) -> Outcome<()> {
        Ok(())
    }
    /// What is measured.
    fn answer(&mut self, ask: &Ask) -> Outcome<Raw>;
}

/// An answer as an engine gives it.
pub(crate) enum Raw {
    Answer(Answer),
    /// A complete response body, which is read after the clock has stopped.
    Body(Vec<u8>),
}

/// Orders counts as the protocol's Service does and keeps the first 32.
pub(crate) fn first(mut counts: Counts) -> Counts {
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    counts.truncate(32);
    counts
}
