//! Lists: their pages, their parameters, and how they are served.

use super::documents::Refusal;
use super::pages::Kind;
use super::probe::{Ask, Exhausted, Probe};
use super::rules;
use super::traversal::{Sequence, Traversal};
use http::header;
use purvey_odp::identity::LocalId;
use purvey_odp::limits;
use purvey_odp::offering::Representation;
use purvey_odp::problem::In;
use purvey_odp::service::{Authentication, Operation, ServiceDocument};
use url::Url;

/// What the lists of the whole Service hold, as far as they were read.
pub(super) struct Lists {
    pub(super) offerings: Traversal,
    pub(super) collections: Traversal,
}

pub(super) async fn check(
    probe: &mut Probe<'_>,
    document: &ServiceDocument,
) -> Result<Lists, Exhausted> {
    use Representation::Terse;
    probe.step("the list of Offerings");
    let operation = Operation::ListOfferings;
    let offerings = list(probe, document, operation, Kind::Offerings(Terse)).await?;
    probe.step("the list of Collections");
    let operation = Operation::ListCollections;
    let collections = list(probe, document, operation, Kind::Collections(Terse)).await?;
    Ok(Lists {
        offerings,
        collections,
    })
}

async fn list(
    probe: &mut Probe<'_>,
    document: &ServiceDocument,
    operation: Operation,
    kind: Kind,
) -> Result<Traversal, Exhausted> {
    match probe.admitted(document, operation, None).await? {
        Some(ask) => probe.list(&ask, kind, document).await,
        None => Ok(Traversal::default()),
    }
}

/// Pages that are read one item at a time.
const SMALL_PAGES: usize = 4;

impl Probe<'_> {
    /// The URL of an operation that is advertised.
    pub(super) fn operation(
        &self,
        document: &ServiceDocument,
        operation: Operation,
        id: Option<&LocalId>,
    ) -> Option<Url> {
        document.operation(operation)?;
        let path = document.http().endpoint_base.path(operation, id)?;
        let mut url = self.origin.as_url().clone();
        url.set_path(&path);
        Some(url)
    }

    /// The request of an operation that is advertised and to be had; looks at what it says about authentication.
    pub(super) async fn admitted(
        &mut self,
        document: &ServiceDocument,
        operation: Operation,
        id: Option<&LocalId>,
    ) -> Result<Option<Ask>, Exhausted> {
        match self.operation(document, operation, id) {
            Some(url) => self.admit(document, operation, Ask::get(url)).await,
            None => Ok(None),
        }
    }

    /// The same for a request that is ready.
    pub(super) async fn admit(
        &mut self,
        document: &ServiceDocument,
        operation: Operation,
        ask: Ask,
    ) -> Result<Option<Ask>, Exhausted> {
        let Some(descriptor) = document.operation(operation) else {
            return Ok(None);
        };
        let required = descriptor.authentication == Authentication::Required;
        let Some(reply) = self.ask(ask.clone().anonymous()).await? else {
            return Ok(None);
        };
        let demanded = matches!(reply.status.as_u16(), 401..=403);
        let rule = match required {
            true => &rules::AUTHENTICATION_REQUIRED,
            false => &rules::AUTHENTICATION_NOT_REQUIRED,
        };
        self.hold(rule, &reply, demanded == required, || {
            let said = descriptor.authentication.as_str();
            format!(
                "Authentication is {said}; without it the status is {}.",
                reply.status
            )
        });
        if reply.status.as_u16() == 401 {
            let told = reply.header(header::WWW_AUTHENTICATE).is_some();
            self.hold(&rules::AUTHENTICATION_CHALLENGE, &reply, told, || {
                "There is no WWW-Authenticate.".to_owned()
            });
            self.problem(&reply, None);
        }
        if demanded && !self.is_authenticated() {
            let name = operation.as_str();
            self.skip(format!(
                "{name}: it asks for authentication, and no token was given."
            ));
            return Ok(None);
        }
        Ok(Some(ask))
    }

    /// Everything that holds for a list.
    pub(super) async fn list(
        &mut self,
        ask: &Ask,
        kind: Kind,
        document: &ServiceDocument,
    ) -> Result<Traversal, Exhausted> {
        let small = self.read_list(ask, kind, 1, SMALL_PAGES).await?;
        self.continuation(&small, kind).await?;
        let pages = self.extent.pages;
        let large = self.read_list(ask, kind, limits::PAGE_ITEMS, pages).await?;
        if !small.pages.is_empty() && !large.pages.is_empty() {
            let (few, many) = (small.ids(), large.ids());
            let same = many.starts_with(&few);
            self.hold_at(&rules::PAGE_ORDER, small.request(), "/items", same, || {
                let many = many.get(..few.len()).unwrap_or(&many);
                format!("One by one: {few:?}; in large pages: {many:?}.")
            });
        }
        self.delivery(&ask.clone().query("limit=2"), document)
            .await?;
        self.parameters(ask).await?;
        Ok(large)
    }

    /// Reads a list without asking what holds for the list itself.
    pub(super) async fn read_list(
        &mut self,
        ask: &Ask,
        kind: Kind,
        limit: usize,
        pages: usize,
    ) -> Result<Traversal, Exhausted> {
        let query = match kind {
            Kind::Collections(Representation::Full) | Kind::Offerings(Representation::Full) => {
                format!("limit={limit}&representation=full")
            }
            _ => format!("limit={limit}"),
        };
        let sequence = Sequence {
            ask: ask.clone().query(&query),
            kind,
            limit,
            pages,
            status: &rules::LIST_STATUS,
        };
        self.traverse(sequence).await
    }

    async fn delivery(&mut self, ask: &Ask, document: &ServiceDocument) -> Result<(), Exhausted> {
        let Some(reply) = self.ask(ask.clone()).await? else {
            return Ok(());
        };
        if reply.status.as_u16() != 200 {
            return Ok(());
        }
        let etag = reply.header(header::ETAG).is_some();
        self.hold(&rules::PAGE_ETAG, &reply, etag, || {
            "There is no ETag.".to_owned()
        });
        self.language(&reply, document.localizations().tags(), None);
        self.conditional(ask, &reply).await?;
        self.head(ask, &reply).await?;
        self.method_refused(ask).await?;
        let html = ask.clone().header(header::ACCEPT, "text/html");
        let refusal = Refusal::new(&rules::HTTP_NOT_ACCEPTABLE, &[406]);
        self.refused(html, refusal).await?;
        Ok(())
    }

    async fn parameters(&mut self, ask: &Ask) -> Result<(), Exhausted> {
        for limit in ["0", "101", "abc"] {
            let ask = ask.clone().query(&format!("limit={limit}"));
            let refusal = Refusal {
                param: Some((In::Query, "limit")),
                ..Refusal::new(&rules::LIST_LIMIT, &[400])
            };
            self.refused(ask, refusal).await?;
        }
        for query in [
            "representation=brief",
            "representation=terse&representation=full",
        ] {
            let refusal = Refusal {
                param: Some((In::Query, "representation")),
                ..Refusal::new(&rules::REPRESENTATION_INVALID, &[400])
            };
            self.refused(ask.clone().query(query), refusal).await?;
        }
        Ok(())
    }
}
