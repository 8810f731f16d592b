//! `purvey search`

use super::{
    connect::Connect,
    fault::{self, Typed},
    filter::Filter,
    listing::{self, Extent, Listing, extend},
    progress::Progress,
    row::Row,
    unknown::{Kind, Unknown},
};
use crate::{
    failure::{FAILED, Failure, IN_PART},
    output,
    table::Table,
    text,
};
use futures_util::{StreamExt, stream};
use purvey_agent::{Agent, Code, Error, Item, OfferingSearch, Page, Pages, Refinement, Service};
use purvey_odp::{
    identity::ServiceOrigin,
    offering::{Offering, TerseOffering},
    problem::In,
    refinement::RefinementBucket,
};
use serde_json::{Value, json};
use std::{ops::ControlFlow, process::ExitCode, sync::Arc};
use tokio::sync::mpsc;

/// Services that are asked at the same time.
const AT_ONCE: usize = 8;
/// What to search for, and where.
#[derive(Debug, clap::Args)]
pub(crate) struct Search {
    /// The Service
    #[arg(value_name = "ORIGIN")]
    origin: String,
    /// Text to search for; without one, --filter says what is wanted
    #[arg(value_name = "QUERY")]
    query: Option<String>,
    /// Search this Service too, at the same time; may be given several times, and --limit counts for each
    #[arg(long, value_name = "ORIGIN")]
    also: Vec<String>,
    /// A condition that every result fulfils; may be given several times
    ///
    /// `purvey capabilities` lists the filters, their types and operators: eq, in, lt, lte, gt, gte, exists. The value is taken
    /// as it stands, for example name:eq:Oak, as what the filter's type says. `in` takes several values with commas between
    /// them; one with a comma stands in double quotes, in which "" is a quote: kind:in:oak,"a, b". `exists` takes true or
    /// false. Two conditions on one filter make a range: --filter price:gte:10 --filter price:lt:20.
    #[arg(long, value_name = "ID:OPERATOR:VALUE")]
    filter: Vec<Filter>,
    /// Order of the results, one that `purvey capabilities` lists
    #[arg(long, value_name = "ID")]
    sort: Option<String>,
    /// Also count the values of this filter among all results; may be given several times
    #[arg(long, value_name = "ID")]
    refine: Vec<String>,
    /// Only direct members of this Collection, whose own filters and sorts can be used then
    #[arg(long = "in", value_name = "COLLECTION")]
    within: Option<String>,
    /// Members of the Collections below it too
    #[arg(long, requires = "within")]
    descendants: bool,
    #[command(flatten)]
    extent: Extent,
    #[command(flatten)]
    connect: Connect,
}

/// What comes from one of the Services.
enum Event<T> {
    Page(ServiceOrigin, Box<Page<T>>),
    Failed(ServiceOrigin, Failure),
}

impl Search {
    pub(super) async fn run(self) -> Result<ExitCode, Failure> {
        if self.query.is_none() && self.filter.is_empty() {
            return Err(Failure::usage("there is nothing to search for")
                .hint("give a QUERY or a --filter; `purvey offerings` lists everything"));
        }
        let mut origins = Vec::new();
        for text in std::iter::once(&self.origin).chain(&self.also) {
            let origin = self.connect.origin(text)?;
            if !origins.contains(&origin) {
                origins.push(origin);
            }
        }
        match self.extent.full {
            true => {
                self.across::<Offering>(origins, |search| search.full().pages())
                    .await
            }
            false => {
                self.across::<TerseOffering>(origins, OfferingSearch::pages)
                    .await
            }
        }
    }

    async fn across<T: Row>(
        self,
        origins: Vec<ServiceOrigin>,
        pages: fn(OfferingSearch) -> Pages<T>,
    ) -> Result<ExitCode, Failure> {
        let several = origins.len() > 1;
        let services = origins.len();
        let first = origins
            .first()
            .ok_or_else(|| Failure::usage("there is no ORIGIN"))?;
        let agent = self.connect.agent(first)?;
        let progress = Progress::start();
        let search = Arc::new(self);
        let (to, mut events) = mpsc::channel(1);
        let asked = tokio::spawn(ask(agent, search.clone(), origins, pages, to));
        let mut shown = Shown::new(&search, several);
        let mut failures = Vec::new();
        while let Some(event) = events.recv().await {
            match event {
                Event::Page(origin, page) => {
                    if let ControlFlow::Break(()) = shown.page(&progress, origin.as_str(), &page)? {
                        return Ok(ExitCode::SUCCESS);
                    }
                }
                Event::Failed(_, failure) if !several => return Err(failure),
                Event::Failed(origin, failure) => {
                    let failure = failure.about(origin.as_str());
                    progress.aside(|| failure.print());
                    failures.push(failure);
                }
            }
        }
        asked.await.map_err(Failure::new)?;
        if failures.len() == services {
            return Ok(ExitCode::from(common(&failures)));
        }
        shown.finish(&progress)?;
        Ok(match failures.is_empty() {
            true => ExitCode::SUCCESS,
            false => ExitCode::from(IN_PART),
        })
    }

    fn typed(&self) -> Typed {
        Typed {
            query: self.query.clone(),
            filters: self
                .filter
                .iter()
                .map(|filter| filter.text.clone())
                .collect(),
            sort: self.sort.clone(),
            refine: self.refine.clone(),
            within: self.within.clone(),
            action: false,
        }
    }

    /// The search in the words of a Service.
    fn plan(&self, mut search: OfferingSearch) -> OfferingSearch {
        if let Some(query) = &self.query {
            search = search.query(query);
        }
        for filter in &self.filter {
            search = search.want(filter.intent.clone());
        }
        if let Some(sort) = &self.sort {
            search = search.sort(sort);
        }
        for id in &self.refine {
            search = search.refine(id);
        }
        if let Some(id) = &self.within {
            search = search.in_collection(id);
        }
        if self.descendants {
            search = search.descendants();
        }
        extend!(search, self.extent)
    }

    async fn failure(&self, service: &Service, error: &Error) -> Failure {
        let failure = fault::failure_of(error, &self.typed());
        let Some(unknown) = self.unknown(error) else {
            return failure;
        };
        let Ok(found) = service.capabilities(self.within.as_deref()).await else {
            return failure;
        };
        // It may be among what the Service advertises and cannot be used.
        let failure = found.issues.iter().fold(failure, |failure, issue| {
            failure.detail(text::line(&format!("not usable: {issue}")))
        });
        let near = unknown.near(&found);
        match near.is_empty() {
            true => failure.hint("`purvey capabilities ORIGIN` lists what there is"),
            false => failure.hint(format_args!(
                "did you mean {}? `purvey capabilities ORIGIN` lists what there is",
                near.join(" or ")
            )),
        }
    }

    /// The first identifier that is at fault as such.
    fn unknown(&self, error: &Error) -> Option<Unknown<'_>> {
        let refused = *error.code() == Code::InvalidRequest || error.status() == Some(400);
        error
            .invalid_params()
            .iter()
            .filter(|_| refused)
            .find_map(|param| {
                if param.location() != In::Body {
                    return None;
                }
                let mut tokens = param.name().strip_prefix('/')?.split('/');
                let (member, index, last) = (tokens.next()?, tokens.next(), tokens.next());
                let index = index.and_then(|token| token.parse::<usize>().ok());
                let (id, kind) = match (member, index, last) {
                    ("filters", Some(i), Some("id")) => (&self.filter.get(i)?.id, Kind::Filter),
                    ("refinements", Some(i), None) => (self.refine.get(i)?, Kind::Refinement),
                    ("sort", None, None) => (self.sort.as_ref()?, Kind::Sort),
                    _ => return None,
                };
                Some(Unknown { id, kind })
            })
    }
}

/// The exit code that failures have in common.
fn common(failures: &[Failure]) -> u8 {
    let mut codes = failures.iter().map(Failure::code);
    let first = codes.next().unwrap_or(FAILED);
    match codes.all(|code| code == first) {
        true => first,
        false => FAILED,
    }
}

/// Asks every Service, some at the same time, until nobody listens any more.
async fn ask<T: Item>(
    agent: Agent,
    search: Arc<Search>,
    origins: Vec<ServiceOrigin>,
    pages: fn(OfferingSearch) -> Pages<T>,
    to: mpsc::Sender<Event<T>>,
) {
    let each = |origin: ServiceOrigin| {
        let (agent, search, to) = (agent.clone(), search.clone(), to.clone());
        async move {
            if let Err(failure) = ask_one(&agent, &search, &origin, pages, &to).await {
                let _ = to.send(Event::Failed(origin, failure)).await;
            }
        }
    };
    stream::iter(origins)
        .for_each_concurrent(AT_ONCE, each)
        .await;
}

async fn ask_one<T: Item>(
    agent: &Agent,
    search: &Search,
    origin: &ServiceOrigin,
    pages: fn(OfferingSearch) -> Pages<T>,
    to: &mpsc::Sender<Event<T>>,
) -> Result<(), Failure> {
    let service = agent.service(origin.as_str()).await;
    let service = service.map_err(|error| fault::failure(&error))?;
    let mut pages = pages(search.plan(service.search()));
    loop {
        let page = pages.next_page().await;
        let page = match page {
            Ok(page) => page,
            Err(error) => return Err(search.failure(&service, &error).await),
        };
        let Some(page) = page else { return Ok(()) };
        let event = Event::Page(origin.clone(), Box::new(page));
        if to.send(event).await.is_err() {
            return Ok(());
        }
    }
}

/// What has been shown of a search, and what comes after the results.
struct Shown {
    listing: Listing,
    json: bool,
    several: bool,
    limit: Option<usize>,
    refinements: Vec<(String, Refinement)>,
}

impl Shown {
    fn new(search: &Search, several: bool) -> Self {
        Self {
            listing: Listing::new(search.extent.json, several),
            json: search.extent.json,
            several,
            limit: search.extent.limit(),
            refinements: Vec::new(),
        }
    }

    fn page<T: Row>(
        &mut self,
        progress: &Progress,
        service: &str,
        page: &Page<T>,
    ) -> Result<ControlFlow<()>, Failure> {
        let line = |item: &T| listing::found(service, item);
        let listed = self.listing.page(progress, service, page, line)?;
        if !self.json {
            let named = page
                .refinements
                .iter()
                .map(|r| (service.to_owned(), r.clone()));
            self.refinements.extend(named);
            return Ok(listed);
        }
        let lines = page
            .refinements
            .iter()
            .map(|r| output::json_line(&refinement(service, r)));
        let lines: String = lines.collect();
        if listed.is_break() || lines.is_empty() {
            return Ok(listed);
        }
        progress.aside(|| output::write(lines))
    }

    fn finish(&self, progress: &Progress) -> Result<(), Failure> {
        progress.aside(|| {
            self.listing.finish(self.limit);
            let rows: Vec<_> = self
                .refinements
                .iter()
                .flat_map(|(s, r)| self.rows(s, r))
                .collect();
            if rows.is_empty() {
                return Ok(());
            }
            let named = self.several.then_some("SERVICE");
            let header: Vec<_> = named
                .into_iter()
                .chain(["REFINE", "VALUE", "COUNT"])
                .collect();
            output::write(format!("\n{}", Table::new(&header).portion(rows))).map(|_| ())
        })
    }

    fn rows(&self, service: &str, refinement: &Refinement) -> Vec<Vec<String>> {
        let id = refinement.definition.id().as_str();
        let row = |bucket: &RefinementBucket| {
            let value = match bucket.value.to_value() {
                Value::String(text) => text,
                other => other.to_string(),
            };
            let or_more = if bucket.lower_bound { " or more" } else { "" };
            let count = format!("{}{or_more}", bucket.count);
            let named = self.several.then(|| service.to_owned());
            named
                .into_iter()
                .chain([id.to_owned(), value, count])
                .collect()
        };
        refinement.values.iter().map(row).collect()
    }
}

fn refinement(service: &str, refinement: &Refinement) -> Value {
    let values = refinement.values.iter().map(RefinementBucket::to_value);
    json!({
        "service": service,
        "refinement": {
            "filter_id": refinement.definition.id().as_str(),
            "title": refinement.definition.title().as_str(),
            "values": values.collect::<Value>(),
        },
    })
}
