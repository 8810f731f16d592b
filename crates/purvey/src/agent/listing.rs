//! How items are shown as their pages come: rows for people, lines of JSON for programs.

use super::{notes, progress::Progress, row::Row};
use crate::{
    failure::{Failure, say},
    output,
    table::Table,
};
use purvey_agent::Page;
use serde_json::{Value, json};
use std::{collections::HashSet, ops::ControlFlow};

/// How much of a list or a search is wanted, and in which form.
#[derive(Debug, clap::Args)]
pub(super) struct Extent {
    /// Results to show at most
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Show every result, however many there are
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    /// Results that a page should have, 1 through 100 [default: 100, or fewer when fewer are wanted]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=100))]
    page_size: Option<u8>,
    /// Ask for full representations
    #[arg(long)]
    pub(super) full: bool,
    /// Print a line of JSON for each result
    #[arg(long)]
    pub(super) json: bool,
}

impl Extent {
    /// Results to show at most; nothing for all.
    pub(super) fn limit(&self) -> Option<usize> {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        (!self.all).then_some(limit)
    }

    /// Results on a page; nothing for the usual number.
    pub(super) fn page_size(&self) -> Option<usize> {
        self.page_size.map(usize::from)
    }
}

/// Sets how much a list or search fetches.
macro_rules! extend {
    ($list:expr, $extent:expr) => {{
        let mut list = $list;
        if let Some(size) = $extent.page_size() {
            list = list.page_size(size);
        }
        match $extent.limit() {
            Some(limit) => list.limit(limit),
            None => list.all(),
        }
    }};
}
pub(super) use extend;

/// Where the items go.
pub(super) struct Listing {
    json: bool,
    /// Several Services: each row says from which one it is.
    named: bool,
    table: Option<Table>,
    shown: usize,
    /// The Services that have more than was shown.
    more: HashSet<String>,
}

impl Listing {
    pub(super) fn new(json: bool, named: bool) -> Self {
        Self {
            json,
            named,
            table: None,
            shown: 0,
            more: HashSet::new(),
        }
    }

    /// Shows a page that came from `service`; says to stop when nobody reads any more.
    pub(super) fn page<T: Row>(
        &mut self,
        progress: &Progress,
        service: &str,
        page: &Page<T>,
        line: impl Fn(&T) -> Value,
    ) -> Result<ControlFlow<()>, Failure> {
        self.shown += page.items.len();
        match page.has_more {
            true => self.more.insert(service.to_owned()),
            false => self.more.remove(service),
        };
        progress.at(self.shown);
        let text = match self.json {
            true => page
                .items
                .iter()
                .map(|item| output::json_line(&line(item)))
                .collect(),
            false => self.rows(service, &page.items),
        };
        progress.aside(|| {
            notes::issues(service, &page.issues);
            output::write(text)
        })
    }

    fn rows<T: Row>(&mut self, service: &str, items: &[T]) -> String {
        if items.is_empty() {
            return String::new();
        }
        let named = self.named;
        let header = || {
            let first = named.then_some("SERVICE");
            let header: Vec<_> = first.into_iter().chain(T::HEADER.iter().copied()).collect();
            Table::new(&header).keeping(1 + usize::from(named))
        };
        let rows = items.iter().map(|item| {
            let first = named.then(|| service.to_owned());
            first.into_iter().chain(item.cells()).collect()
        });
        self.table.get_or_insert_with(header).portion(rows)
    }

    /// Says what the rows do not.
    pub(super) fn finish(&self, limit: Option<usize>) {
        if self.shown == 0 {
            say(format_args!("nothing found"));
        } else if limit.is_some() && !self.more.is_empty() {
            say(format_args!(
                "{} shown, and there are more: --limit N or --all shows them",
                self.shown
            ));
        }
    }
}

/// A result of a search across Services.
pub(super) fn found<T: Row>(service: &str, item: &T) -> Value {
    json!({"service": service, T::KIND: item.json()})
}
