//! `purvey collections` and `purvey offerings`

use super::{
    connect::Connect,
    fault::{self, Typed},
    listing::{Extent, Listing, extend},
    progress::Progress,
    row::Row,
    tree,
};
use crate::failure::Failure;
use purvey_agent::{Pages, Service};
use std::{ops::ControlFlow, process::ExitCode};

/// Which Collections.
#[derive(Debug, clap::Args)]
pub(crate) struct Collections {
    /// The Service
    #[arg(value_name = "ORIGIN")]
    origin: String,
    /// Search for this text instead of listing
    #[arg(value_name = "QUERY")]
    query: Option<String>,
    /// Only direct children of this Collection
    #[arg(long = "in", value_name = "COLLECTION", conflicts_with = "roots")]
    within: Option<String>,
    /// Only Collections without a parent
    #[arg(long)]
    roots: bool,
    /// Show all Collections under their parents
    #[arg(long, conflicts_with_all = ["query", "within", "roots", "limit", "all", "page_size", "full", "json"])]
    tree: bool,
    #[command(flatten)]
    extent: Extent,
    #[command(flatten)]
    connect: Connect,
}

/// Which Offerings.
#[derive(Debug, clap::Args)]
pub(crate) struct Offerings {
    /// The Service
    #[arg(value_name = "ORIGIN")]
    origin: String,
    /// Only direct members of this Collection
    #[arg(long = "in", value_name = "COLLECTION")]
    within: Option<String>,
    #[command(flatten)]
    extent: Extent,
    #[command(flatten)]
    connect: Connect,
}

impl Collections {
    pub(super) async fn run(self) -> Result<ExitCode, Failure> {
        let (service, progress) = self.connect.service(&self.origin).await?;
        if self.tree {
            return tree::show(&service, &progress).await;
        }
        let run = Run {
            service: &service,
            progress: &progress,
            extent: &self.extent,
            typed: Typed {
                query: self.query.clone(),
                within: self.within.clone(),
                ..Typed::default()
            },
        };
        if self.query.is_none() && self.within.is_none() && !self.roots {
            let list = extend!(service.collections(), self.extent);
            return match self.extent.full {
                true => run.show(list.full().pages()).await,
                false => run.show(list.pages()).await,
            };
        }
        let mut search = service.search_collections();
        if let Some(query) = &self.query {
            search = search.query(query);
        }
        if let Some(id) = &self.within {
            search = search.children_of(id);
        }
        if self.roots {
            search = search.roots();
        }
        let search = extend!(search, self.extent);
        match self.extent.full {
            true => run.show(search.full().pages()).await,
            false => run.show(search.pages()).await,
        }
    }
}

impl Offerings {
    pub(super) async fn run(self) -> Result<ExitCode, Failure> {
        let (service, progress) = self.connect.service(&self.origin).await?;
        let list = match &self.within {
            Some(id) => service.collection_offerings(id),
            None => service.offerings(),
        };
        let list = extend!(list, self.extent);
        let run = Run {
            service: &service,
            progress: &progress,
            extent: &self.extent,
            typed: Typed {
                within: self.within,
                ..Typed::default()
            },
        };
        match self.extent.full {
            true => run.show(list.full().pages()).await,
            false => run.show(list.pages()).await,
        }
    }
}

/// Showing one list.
struct Run<'a> {
    service: &'a Service,
    progress: &'a Progress,
    extent: &'a Extent,
    typed: Typed,
}

impl Run<'_> {
    async fn show<T: Row>(&self, mut pages: Pages<T>) -> Result<ExitCode, Failure> {
        let mut listing = Listing::new(self.extent.json, false);
        let origin = self.service.origin().as_str();
        loop {
            let page = pages.next_page().await;
            let page = page.map_err(|error| fault::failure_of(&error, &self.typed))?;
            let Some(page) = page else { break };
            if let ControlFlow::Break(()) = listing.page(self.progress, origin, &page, T::json)? {
                return Ok(ExitCode::SUCCESS);
            }
        }
        self.progress.aside(|| listing.finish(self.extent.limit()));
        Ok(ExitCode::SUCCESS)
    }
}
