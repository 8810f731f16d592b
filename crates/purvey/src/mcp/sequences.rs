//! Traversals that a model can go on with.

use purvey_agent::{Error, Item, Pages, Refinement};
use purvey_odp::collection::TerseCollection;
use purvey_odp::offering::{Placement, TerseOffering};
use purvey_odp::refinement::RefinementBucket;
use rmcp::model::JsonObject;
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

/// The call that began a traversal; one like it can go on with it.
pub(super) struct Call {
    pub(super) tool: String,
    pub(super) origin: String,
    /// The tool's own arguments.
    pub(super) arguments: JsonObject,
}

/// Why a traversal does not go on.
pub(super) enum NoSuch {
    /// There is none of that name.
    Name,
    /// It is not of this tool and origin.
    Call,
    /// This argument was another one.
    Argument(String),
}

/// A traversal: what came and was not handed out, and what is still to come.
pub(super) struct Sequence {
    call: Call,
    /// Most items of a result unless a call says otherwise.
    pub(super) limit: usize,
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
    pub(super) fn new(call: Call, limit: usize, source: Source) -> Self {
        Self {
            call,
            limit,
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

    /// Takes out a traversal that a call goes on with: by the same tool and origin, with the same arguments as far as there
    /// are some. Nothing is taken out for another call.
    pub(super) fn take(&mut self, name: &str, call: &Call) -> Result<Sequence, NoSuch> {
        let mut open = self.open.iter().enumerate();
        let found = open.find(|(_, (known, _))| known == name);
        let (index, (_, Sequence { call: first, .. })) = found.ok_or(NoSuch::Name)?;
        if (&first.tool, &first.origin) != (&call.tool, &call.origin) {
            return Err(NoSuch::Call);
        }
        let mut given = call.arguments.iter();
        if let Some((name, _)) = given.find(|(n, value)| first.arguments.get(*n) != Some(*value)) {
            return Err(NoSuch::Argument(name.clone()));
        }
        let taken = self.open.remove(index);
        taken.map(|(_, sequence)| sequence).ok_or(NoSuch::Name)
    }
}
