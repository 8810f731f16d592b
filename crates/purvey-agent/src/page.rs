//! Traversal, page by page (ODP §3).

use crate::agent::Settings;
use crate::item::Item;
use crate::list::Items;
use crate::search::{Opening, Refinement};
use crate::service::Service;
use crate::transport::{Class, Fetch, Fetched};
use crate::{Code, Error, Issue, document};
use async_stream::try_stream;
use futures_util::StreamExt;
use purvey_odp::decode::Bounds;
use purvey_odp::filter::FilterDefinition;
use purvey_odp::limits;
use purvey_odp::page::{PageEnvelope, Seen, Sequence};
use purvey_odp::refinement;
use purvey_odp::report::{Invalid, Place, Report};
use purvey_odp::shape;
use serde_json::Value;
use std::fmt;
use url::Url;

/// One page of a list or a search. It was valid as a whole before any of it came out.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Page<T> {
    /// The items, at most 100, and no more than are still wanted. An empty page need not be the last.
    pub items: Vec<T>,
    /// Whether the sequence goes on after these items.
    pub has_more: bool,
    /// Whether authentication can bring more items, or more of them.
    pub auth_expands: bool,
    /// Counted values of the filters that a search asked to refine by; only on the first page of a search.
    pub refinements: Vec<Refinement>,
    /// The `Content-Language` that the page came with.
    pub content_language: Option<String>,
    /// What was dropped because this version does not know it (ODP §9); pointers lead into the page as it was received.
    pub issues: Vec<Issue>,
}

/// How much is wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Nothing: everything.
    pub(crate) results: Option<usize>,
    pub(crate) page_size: usize,
    pages: usize,
}

impl Extent {
    pub(crate) fn of(settings: &Settings) -> Self {
        Self {
            results: Some(settings.results),
            page_size: limits::PAGE_ITEMS,
            pages: settings.pages,
        }
    }

    /// What the first request says as `limit`, 1 through 100. A continuation is followed as it is, so what is wanted is asked for
    /// in equal parts: 150 as twice 75, and not as twice 100.
    pub(crate) fn first_limit(&self) -> usize {
        let most = self.page_size.clamp(1, limits::PAGE_ITEMS);
        match self.results {
            Some(results) => {
                let pages = results.div_ceil(most).max(1);
                results.div_ceil(pages).max(1)
            }
            None => most,
        }
    }
}

/// How a traversal begins.
pub(crate) enum Start {
    /// With a request that is ready, or could not be made.
    Get(Result<Box<Fetch>, Error>),
    /// With a search, which may have to learn first what the Service offers.
    Search(Box<dyn Opening>),
}

enum Position {
    Start(Start),
    Next(Url),
    End,
}

/// A traversal. Each page is an operation of its own, with its own retries and deadline.
pub struct Pages<T> {
    service: Service,
    extent: Extent,
    position: Position,
    class: Class,
    taken: usize,
    pages: usize,
    visited: Seen,
    sequence: Sequence,
    item: std::marker::PhantomData<fn() -> T>,
}

impl<T: Item> Pages<T> {
    pub(crate) fn new(service: Service, extent: Extent, start: Start) -> Self {
        Self {
            service,
            extent,
            class: match start {
                Start::Get(_) => Class::Page,
                Start::Search(_) => Class::Search,
            },
            position: Position::Start(start),
            taken: 0,
            pages: 0,
            visited: Seen::default(),
            sequence: Sequence::default(),
            item: std::marker::PhantomData,
        }
    }

    /// The next page; nothing after the last one, and when as many items have come as were wanted.
    ///
    /// # Errors
    /// Whatever made the page fail. When the Service could not be reached or did not answer with success, the traversal stands
    /// where it stood and the same page can be asked for again; after [`Code::InvalidDocument`],
    /// [`Code::InvalidContinuation`] and [`Code::ResponseLimitExceeded`] it is over.
    pub async fn next_page(&mut self) -> Result<Option<Page<T>>, Error> {
        if self.is_satisfied() {
            return Ok(None);
        }
        let (fetch, requested) = match &self.position {
            Position::End => return Ok(None),
            Position::Next(url) => (Fetch::get(url.clone(), self.class), Vec::new()),
            Position::Start(Start::Get(fetch)) => (*fetch.clone()?, Vec::new()),
            Position::Start(Start::Search(search)) => search.open().await?,
        };
        if self.pages >= self.extent.pages {
            self.position = Position::End;
            let message = format!("The sequence has more than {} pages.", self.extent.pages);
            return Err(Error::new(Code::ResponseLimitExceeded, message));
        }
        let budget = self.service.settings().operation();
        if fetch.body.is_none() {
            self.visited.insert(&fetch.url);
        }
        let fetched = self.service.fetch(&budget, fetch).await;
        if let Err(error) = &fetched
            && *error.code() == Code::ResponseLimitExceeded
        {
            self.position = Position::End;
        }
        let fetched = fetched?;
        // Whatever happens to a page that came, this is not its place any more.
        self.position = Position::End;
        let page = self.read(&fetched, &requested)?;
        self.pages += 1;
        Ok(Some(page))
    }

    fn is_satisfied(&self) -> bool {
        self.extent
            .results
            .is_some_and(|results| self.taken >= results)
    }

    fn read(
        &mut self,
        fetched: &Fetched,
        requested: &[FilterDefinition],
    ) -> Result<Page<T>, Error> {
        let mut value = document::read(fetched, Bounds::PAGE)?;
        let issues = T::normalise(&mut value);
        let (envelope, groups) = self
            .validate(value, requested)
            .map_err(|invalid| self.invalid(fetched, &invalid))?;
        self.sequence
            .page(envelope.items.iter().map(Item::id))
            .map_err(|invalid| document::discontinued(fetched, invalid.to_string()))?;
        let next = match &envelope.next {
            Some(next) => Some(self.follow(fetched, next.resolve(self.service.origin()))?),
            None => None,
        };
        let mut items = envelope.items;
        let wanted = self
            .extent
            .results
            .map_or(usize::MAX, |results| results.saturating_sub(self.taken));
        let has_more = next.is_some() || items.len() > wanted;
        items.truncate(wanted);
        self.taken += items.len();
        if let Some(url) = next {
            self.position = Position::Next(url);
        }
        Ok(Page {
            items,
            has_more,
            auth_expands: envelope.auth_expands,
            refinements: Refinement::join(groups, requested),
            content_language: document::language(fetched),
            issues: issues.into_iter().map(Issue::from).collect(),
        })
    }

    fn validate(
        &self,
        value: Value,
        requested: &[FilterDefinition],
    ) -> Result<(PageEnvelope<T>, Vec<refinement::RefinementGroup>), Invalid> {
        let mut report = Report::new();
        let root = Place::ROOT;
        let mut map = shape::object(&mut report, &root, value);
        let envelope = map.as_mut().and_then(|map| {
            PageEnvelope::take(&mut report, &root, map, self.service.origin(), T::read)
        });
        let mut groups = Vec::new();
        // Only a search has the member; elsewhere it is one that the protocol does not define.
        if let (Class::Search, Some(map)) = (self.class, &mut map) {
            groups = shape::optional(
                &mut report,
                &root,
                map,
                "refinements",
                |report, place, v| refinement::read_groups(report, place, v, requested),
            )
            .unwrap_or_default();
        }
        report.finish(envelope.map(|envelope| (envelope, groups)))
    }

    fn invalid(&self, fetched: &Fetched, invalid: &Invalid) -> Error {
        if invalid.violations().iter().all(|v| v.pointer == "/next") {
            return document::discontinued(fetched, invalid.to_string());
        }
        document::invalid(fetched, invalid)
    }

    /// The URL of the next page, which is none that was fetched before.
    fn follow(&mut self, fetched: &Fetched, url: Url) -> Result<Url, Error> {
        let own = url == fetched.url;
        if own || self.visited.contains(&url) {
            let message = "The page's next leads back to a page that was fetched before.";
            return Err(document::discontinued(fetched, message));
        }
        Ok(url)
    }

    pub(crate) async fn first(mut self) -> Result<Page<T>, Error> {
        let page = self.next_page().await?;
        page.ok_or_else(|| Error::new(Code::InvalidRequest, "No item was asked for."))
    }

    /// The items of the pages that are left, as they come.
    pub fn into_items(mut self) -> Items<T> {
        try_stream! {
            while let Some(page) = self.next_page().await? {
                for item in page.items {
                    yield item;
                }
            }
        }
        .boxed()
    }

    /// The items of the pages that are left, together.
    ///
    /// # Errors
    /// The first error.
    pub async fn collect(mut self) -> Result<Vec<T>, Error> {
        let mut items = Vec::new();
        while let Some(page) = self.next_page().await? {
            items.extend(page.items);
        }
        Ok(items)
    }
}

impl<T> fmt::Debug for Pages<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages")
            .field("service", &self.service)
            .field("pages", &self.pages)
            .field("taken", &self.taken)
            .finish_non_exhaustive()
    }
}
