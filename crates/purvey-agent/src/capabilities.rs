//! What a search can use: advertised inline or behind links, whole or not at all (ODP §5).

use crate::service::Service;
use crate::transport::{Class, Fetch, Operation as Budget};
use crate::{Code, Error, Issue, IssueCode, Scope, document};
use purvey_odp::capability::{
    CapabilitySource, Definition, EffectiveCapabilities, Fetched, Issue as Ineffective, Kind,
    LinkedSource, Scope as Advertiser, ScopeCapabilities, SearchCapabilities,
};
use purvey_odp::decode::Bounds;
use purvey_odp::identity::LocalId;
use purvey_odp::normalise::{self, Dropped};
use purvey_odp::page::PageEnvelope;
use purvey_odp::reference::ResourceReference;
use purvey_odp::service::Operation;
use serde_json::Value;
use std::collections::HashSet;

/// The filters and sorts that a search can use, and why others cannot be used.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Capabilities {
    /// What survived. Text search needs none of it.
    pub effective: EffectiveCapabilities,
    /// What did not. Pointers lead into the document that advertises, the Service's or the Collection's, as the message says.
    pub issues: Vec<Issue>,
}

impl Service {
    /// What a search over the whole Service can use, or one that names `collection`. Linked sources are fetched, each whole or
    /// not at all: what fails costs that source alone.
    ///
    /// # Errors
    /// What fetching the named Collection brings; nothing without one.
    pub async fn capabilities(&self, collection: Option<&str>) -> Result<Capabilities, Error> {
        let collection = collection.map(crate::service::identifier).transpose()?;
        self.effective(collection.as_ref()).await
    }

    pub(crate) async fn effective(
        &self,
        collection: Option<&LocalId>,
    ) -> Result<Capabilities, Error> {
        let budget = self.settings().operation();
        let of_searches = |issue: &&Issue| matches!(issue.scope, Scope::Filters | Scope::Sorts);
        let mut reader = Reader {
            service: self,
            budget: &budget,
            causes: Vec::new(),
            issues: self.issues().iter().filter(of_searches).cloned().collect(),
        };
        let advertised = self.document().search_capabilities();
        let service = reader
            .scope(Advertiser::Service, advertised, &ScopeCapabilities::NONE)
            .await;
        let mut scoped = None;
        // A Service that shows no Collection by itself advertises nothing at one either.
        let operation = self.document().operation(Operation::GetCollection);
        if let (Some(id), Some(_)) = (collection, operation) {
            let found = self.fetch_collection(&budget, id).await?;
            let advertised = found.collection.search_capabilities();
            let read = reader
                .scope(Advertiser::Collection, advertised, &service)
                .await;
            scoped = Some(read);
            reader
                .issues
                .extend(found.issues.iter().filter(of_searches).cloned());
        }
        let Reader {
            causes, mut issues, ..
        } = reader;
        let effective = EffectiveCapabilities::merge(service, scoped);
        issues.extend(
            effective
                .issues()
                .iter()
                .map(|issue| ineffective(issue, &causes)),
        );
        Ok(Capabilities { effective, issues })
    }
}

/// The failed request behind a source that could not be had.
type Cause = (Advertiser, Kind, Error);

struct Reader<'a> {
    service: &'a Service,
    budget: &'a Budget,
    causes: Vec<Cause>,
    issues: Vec<Issue>,
}

/// Why a linked source could not be had.
struct Lost {
    reason: String,
    cause: Option<Error>,
}

impl From<Error> for Lost {
    fn from(error: Error) -> Self {
        Self {
            reason: error.message().to_owned(),
            cause: Some(error),
        }
    }
}

impl<E: std::error::Error> From<(&'static str, E)> for Lost {
    fn from((what, error): (&'static str, E)) -> Self {
        Self {
            reason: format!("{what}{error}"),
            cause: None,
        }
    }
}

impl Reader<'_> {
    /// Both sources of one advertisement, where `earlier` is applied before them.
    async fn scope(
        &mut self,
        advertiser: Advertiser,
        advertised: Option<&SearchCapabilities>,
        earlier: &ScopeCapabilities,
    ) -> ScopeCapabilities {
        let Some(advertised) = advertised else {
            return ScopeCapabilities::NONE;
        };
        let mut read = ScopeCapabilities::from(advertised);
        if let Some(CapabilitySource::Linked(href)) = advertised.filters() {
            let normalise = normalise::filter_page;
            read.filters = self
                .source(advertiser, href, &earlier.filters, normalise)
                .await;
        }
        if let Some(CapabilitySource::Linked(href)) = advertised.sorts() {
            let normalise = normalise::sort_page;
            read.sorts = self
                .source(advertiser, href, &earlier.sorts, normalise)
                .await;
        }
        read
    }

    async fn source<T: Definition + Clone>(
        &mut self,
        advertiser: Advertiser,
        href: &ResourceReference,
        earlier: &Fetched<T>,
        normalise: fn(&mut Value) -> Vec<Dropped>,
    ) -> Fetched<T> {
        let earlier = match earlier {
            Fetched::Definitions(definitions) => definitions.as_slice(),
            _ => &[],
        };
        let before = self.issues.len();
        match self.pages(href, earlier, normalise).await {
            Ok(definitions) => Fetched::Definitions(definitions),
            Err(Lost { reason, cause }) => {
                // What was dropped from a source that is not used at all is of no interest.
                self.issues.truncate(before);
                let cause = cause.map(|cause| (advertiser, T::KIND, cause));
                self.causes.extend(cause);
                Fetched::Failed(reason)
            }
        }
    }

    async fn pages<T: Definition + Clone>(
        &mut self,
        href: &ResourceReference,
        earlier: &[T],
        normalise: fn(&mut Value) -> Vec<Dropped>,
    ) -> Result<Vec<T>, Lost> {
        let origin = self.service.origin();
        if !href.is_same_origin(origin) {
            return Err(Lost {
                reason: "The link leads to another origin.".to_owned(),
                cause: None,
            });
        }
        let mut source = LinkedSource::new(earlier);
        let mut visited = HashSet::new();
        let mut url = href.resolve(origin);
        loop {
            visited.insert(url.clone());
            let fetch = Fetch::get(url.clone(), Class::Definitions);
            let fetched = self.service.fetch(self.budget, fetch).await?;
            let mut value = document::read(&fetched, Bounds::PAGE)?;
            let dropped = normalise(&mut value);
            let page = PageEnvelope::validate(value, origin, T::read)
                .map_err(|invalid| ("A page is invalid: ", invalid))?;
            let next = page.next.map(|next| next.resolve(origin));
            source
                .push(page.items, next.is_some())
                .map_err(|fault| ("", fault))?;
            self.issues.extend(dropped.into_iter().map(|dropped| Issue {
                scope: scope_of(T::KIND),
                ..Issue::from(dropped)
            }));
            match next {
                None => return source.finish().map_err(|fault| ("", fault).into()),
                Some(next) if next == fetched.url || visited.contains(&next) => {
                    let message = "The page's next leads back to a page that was fetched before.";
                    return Err(document::discontinued(&fetched, message).into());
                }
                Some(next) => url = next,
            }
        }
    }
}

fn scope_of(kind: Kind) -> Scope {
    match kind {
        Kind::Filters => Scope::Filters,
        Kind::Sorts => Scope::Sorts,
    }
}

fn ineffective(issue: &Ineffective, causes: &[Cause]) -> Issue {
    let mut cause = None;
    let (kind, code, message) = match issue {
        Ineffective::Source {
            scope,
            kind,
            reason,
        } => {
            let found = causes.iter().find(|(s, k, _)| s == scope && k == kind);
            cause = found.map(|(.., error)| error.clone());
            let code = match &cause {
                Some(error) if *error.code() == Code::ResponseLimitExceeded => {
                    IssueCode::ResponseLimitExceeded
                }
                Some(_) => IssueCode::Unavailable,
                None => IssueCode::Invalid,
            };
            let message = format!(
                "The {} of the {} are not used: {reason}",
                kind.as_str(),
                scope.as_str()
            );
            (*kind, code, message)
        }
        Ineffective::Overflow { scope, kind } => (
            *kind,
            IssueCode::Overflow,
            format!(
                "The {} of the {} are more than a search can have.",
                kind.as_str(),
                scope.as_str()
            ),
        ),
        Ineffective::Conflict { kind, id } => (
            *kind,
            IssueCode::Conflict,
            format!("{id} is published by the Service and by the Collection."),
        ),
        Ineffective::SortReference { id, filter_id } => (
            Kind::Sorts,
            IssueCode::SortReference,
            format!("{id} orders by {filter_id}, which is not effective."),
        ),
        // The protocol library may learn of further reasons.
        other => (Kind::Filters, IssueCode::Invalid, other.to_string()),
    };
    Issue {
        scope: scope_of(kind),
        pointer: format!("/search_capabilities/{}", kind.as_str()),
        code,
        message,
        cause,
    }
}
