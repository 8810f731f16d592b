//! Traversals that a model can go on with.

use purvey_agent::{Error, Item, Pages, Refinement};
use purvey_odp::collection::TerseCollection;
use purvey_odp::offering::{Placement, TerseOffering};
use purvey_odp::refinement::RefinementBucket;
use serde_json::{Value, json};
use std::collections::VecDeque;

/// Traversals that are open at the same time; the one that was left alone longest goes first.
const OPEN: usize = 64;

/// What is still to come.
pub(super) enum Source {
    Offerings(Pages<TerseOffering>),
    Collections(Pages<TerseCollection>),
    /// Nothing but what is waiting already.
    Nothing,
}

/// A traversal: what came and was not handed out, and what is still to come.
pub(super) struct Sequence {
    /// The Service that it is of.
    pub(super) origin: String,
    pub(super) waiting: VecDeque<Value>,
    pub(super) source: Source,
}

/// What else stood on the first page of a search.
#[derive(Default)]
pub(super) struct Beside {
    pub(super) refinements: Vec<Value>,
    pub(super) auth_expands: bool,
}

impl Sequence {
    pub(super) fn new(origin: &str, source: Source) -> Self {
        Self {
            origin: origin.to_owned(),
            waiting: VecDeque::new(),
            source,
        }
    }

    /// Fetches a page unless something is waiting. An empty page need not be the last, but is never asked past here.
    pub(super) async fn fill(&mut self) -> Result<Beside, Error> {
        if !self.waiting.is_empty() {
            return Ok(Beside::default());
        }
        match &mut self.source {
            Source::Offerings(pages) => {
                let (items, beside, more) =
                    next(pages, |item| item.into_value(Placement::Embedded)).await?;
                self.take(items, more);
                Ok(beside)
            }
            Source::Collections(pages) => {
                let (items, beside, more) =
                    next(pages, |item| item.into_value(Placement::Embedded)).await?;
                self.take(items, more);
                Ok(beside)
            }
            Source::Nothing => Ok(Beside::default()),
        }
    }

    fn take(&mut self, items: Vec<Value>, more: bool) {
        self.waiting.extend(items);
        if !more {
            self.source = Source::Nothing;
        }
    }

    /// Whether nothing is left.
    pub(super) fn is_over(&self) -> bool {
        self.waiting.is_empty() && matches!(self.source, Source::Nothing)
    }
}

async fn next<T: Item>(
    pages: &mut Pages<T>,
    value: impl Fn(T) -> Value,
) -> Result<(Vec<Value>, Beside, bool), Error> {
    let Some(page) = pages.next_page().await? else {
        return Ok((Vec::new(), Beside::default(), false));
    };
    let beside = Beside {
        refinements: page.refinements.iter().map(refinement).collect(),
        auth_expands: page.auth_expands,
    };
    let items = page.items.into_iter().map(value).collect();
    Ok((items, beside, page.has_more))
}

fn refinement(refinement: &Refinement) -> Value {
    let values: Vec<_> = refinement
        .values
        .iter()
        .map(RefinementBucket::to_value)
        .collect();
    json!({
        "filter_id": refinement.definition.id().as_str(),
        "title": refinement.definition.title().as_str(),
        "values": values,
    })
}

/// Traversals under the names that were given for them.
#[derive(Default)]
pub(super) struct Sequences {
    given: u64,
    open: VecDeque<(String, Sequence)>,
}

impl Sequences {
    /// Keeps a traversal; gives its name.
    pub(super) fn keep(&mut self, sequence: Sequence) -> String {
        self.given += 1;
        let name = format!("c{}", self.given);
        self.put_back(name.clone(), sequence);
        name
    }

    /// Keeps a traversal under a name that it had.
    pub(super) fn put_back(&mut self, name: String, sequence: Sequence) {
        if self.open.len() >= OPEN {
            self.open.pop_front();
        }
        self.open.push_back((name, sequence));
    }

    /// Takes a traversal of this Service out.
    pub(super) fn take(&mut self, name: &str, origin: &str) -> Option<Sequence> {
        let found = |(n, sequence): &(String, Sequence)| n == name && sequence.origin == origin;
        let index = self.open.iter().position(found)?;
        self.open.remove(index).map(|(_, sequence)| sequence)
    }
}
