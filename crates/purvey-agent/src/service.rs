//! One Service.

use crate::agent::Settings;
use crate::list::List;
use crate::transport::{Class, Fetch, Fetched, Operation as Budget};
use crate::{Code, Error, Issue, document};
use purvey_odp::collection::TerseCollection;
use purvey_odp::decode::Bounds;
use purvey_odp::identity::{LocalId, ServiceOrigin};
use purvey_odp::offering::TerseOffering;
use purvey_odp::service::{Operation, ServiceDocument};
use std::fmt;
use std::sync::Arc;
use url::Url;

/// The path of every Service Document (ODP §2).
pub(crate) const WELL_KNOWN: &str = "/.well-known/odp";

/// A Service whose document was read. Cheap to clone.
#[derive(Clone)]
pub struct Service {
    inner: Arc<Inner>,
}

struct Inner {
    settings: Arc<Settings>,
    origin: ServiceOrigin,
    document: ServiceDocument,
    language: Option<String>,
    issues: Vec<Issue>,
}

impl Service {
    pub(crate) async fn open(
        settings: Arc<Settings>,
        origin: &ServiceOrigin,
    ) -> Result<Self, Error> {
        let fetched = fetch_document(&settings, origin).await?;
        let origin = ServiceOrigin::from_url(&fetched.url, settings.local)
            .map_err(|invalid| document::invalid(&fetched, &invalid))?;
        let value = document::read(&fetched, Bounds::SERVICE_DOCUMENT)?;
        let (read, dropped) = ServiceDocument::receive(value)
            .map_err(|invalid| document::invalid(&fetched, &invalid))?;
        Ok(Self {
            inner: Arc::new(Inner {
                settings,
                origin,
                document: read,
                language: document::language(&fetched),
                issues: dropped.into_iter().map(Issue::from).collect(),
            }),
        })
    }

    /// The Service's identity (ODP §1).
    pub fn origin(&self) -> &ServiceOrigin {
        &self.inner.origin
    }

    /// What the Service says about itself (ODP §2). [`Agent::service`](crate::Agent::service) reads it anew.
    pub fn document(&self) -> &ServiceDocument {
        &self.inner.document
    }

    /// The `Content-Language` that the document came with.
    pub fn content_language(&self) -> Option<&str> {
        self.inner.language.as_deref()
    }

    /// What was dropped from the document because this version does not know it (ODP §9).
    pub fn issues(&self) -> &[Issue] {
        &self.inner.issues
    }

    /// Every Collection (`list-collections`).
    pub fn collections(&self) -> List<TerseCollection> {
        List::get(self, Operation::ListCollections, Ok(None))
    }

    /// Every Offering (`list-offerings`).
    pub fn offerings(&self) -> List<TerseOffering> {
        List::get(self, Operation::ListOfferings, Ok(None))
    }

    /// The direct members of one Collection (`list-collection-offerings`). What is no identifier fails when the first page is
    /// asked for.
    pub fn collection_offerings(&self, collection: &str) -> List<TerseOffering> {
        let id = identifier(collection).map(Some);
        List::get(self, Operation::ListCollectionOfferings, id)
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// The URL of an advertised operation.
    pub(crate) fn url(&self, operation: Operation, id: Option<&LocalId>) -> Result<Url, Error> {
        let name = operation.as_str();
        if self.inner.document.operation(operation).is_none() {
            let message = format!("The Service does not advertise {name}.");
            return Err(Error::new(Code::NotAdvertised, message));
        }
        let base = &self.inner.document.http().endpoint_base;
        let path = base.path(operation, id).ok_or_else(|| {
            let message = format!("{name} was asked for with an identifier too many or too few.");
            Error::new(Code::InvalidRequest, message)
        })?;
        let mut url = self.inner.origin.as_url().clone();
        url.set_path(&path);
        Ok(url)
    }

    /// Fetches from the Service, in the languages that were asked for.
    pub(crate) async fn fetch(&self, budget: &Budget, mut fetch: Fetch) -> Result<Fetched, Error> {
        let settings = self.settings();
        fetch.accept_language.clone_from(&settings.accept_language);
        settings.transport.fetch(budget, fetch).await
    }
}

/// Fetches the Service Document at an origin.
pub(crate) async fn fetch_document(
    settings: &Settings,
    origin: &ServiceOrigin,
) -> Result<Fetched, Error> {
    let mut url = origin.as_url().clone();
    url.set_path(WELL_KNOWN);
    let mut fetch = Fetch::get(url, Class::ServiceDocument);
    fetch.accept_language.clone_from(&settings.accept_language);
    let budget = settings.operation();
    settings.transport.fetch(&budget, fetch).await
}

/// The identifier that a caller names.
pub(crate) fn identifier(text: &str) -> Result<LocalId, Error> {
    LocalId::parse(text).map_err(|invalid| {
        let reason = invalid.violations().first();
        let reason = reason.map_or("", |violation| violation.reason.as_str());
        let message = format!("{text:?} is not an identifier. {reason}");
        Error::new(Code::InvalidRequest, message)
    })
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service")
            .field("origin", &self.inner.origin.as_str())
            .finish_non_exhaustive()
    }
}
