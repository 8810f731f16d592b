//! The official Agent SDK as an engine.

use super::{Documents, Engine, Form, NEXT, ORIGIN, Outcome, PAGE, Seen, text};
use async_trait::async_trait;
use odp_agent::{SearchCapabilityCatalog, ServiceClient};
use odp_core::{
    Offering, OfferingPage, Representation, parse_agent_offering,
    parse_agent_offering_search_response,
};
use odp_directory::{HttpRequest, HttpResponse, Transport, TransportError};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The official SDK's client.
pub struct Official(ServiceClient);

#[async_trait]
impl Transport for Documents {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        let path = request.url.strip_prefix(ORIGIN).unwrap_or_default();
        let path = path.split('?').next().unwrap_or_default();
        let body = self
            .body(path)
            .map_err(|message| TransportError { message })?;
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        Ok(HttpResponse {
            body: body.to_vec(),
            headers: BTreeMap::from([
                field("content-type", "application/odp+json"),
                field("cache-control", "no-store"),
            ]),
            status: 200,
        })
    }
}

fn representation(form: Form) -> Representation {
    match form {
        Form::Terse => Representation::Terse,
        Form::Full => Representation::Full,
    }
}

impl Engine for Official {
    type Page = OfferingPage<Offering>;
    type Capabilities = SearchCapabilityCatalog;

    async fn in_memory(documents: Documents) -> Outcome<Self> {
        let client = ServiceClient::with_transport(ORIGIN, Arc::new(documents));
        client.map(Self).map_err(text)
    }

    async fn on_loopback(origin: &str) -> Outcome<Self> {
        ServiceClient::for_local_development(origin)
            .map(Self)
            .map_err(text)
    }

    /// What its client does with a page, but once: the page's own validation leaves the items out.
    fn decode(_: Form, page: &[u8]) -> Outcome<Self::Page> {
        let page = parse_agent_offering_search_response(page).map_err(text)?;
        for offering in &page.items {
            let mut document = offering.clone();
            document.odp_version.clone_from(&page.odp_version);
            let bytes = serde_json::to_vec(&document).map_err(text)?;
            parse_agent_offering(&bytes).map_err(text)?;
        }
        Ok(page)
    }

    /// By a continuation, which spares it the Service Document.
    async fn page(&self, _: Form) -> Outcome<Self::Page> {
        self.0.continue_offerings(NEXT).await.map_err(text)
    }

    async fn traverse(&self, form: Form, mut each: impl FnMut(Self::Page)) -> Outcome<()> {
        let first = self.0.list_offerings(representation(form), PAGE);
        let mut page = first.await.map_err(text)?;
        loop {
            let next = std::mem::take(&mut page.next);
            each(page);
            if next.is_empty() {
                return Ok(());
            }
            page = self.0.continue_offerings(&next).await.map_err(text)?;
        }
    }

    async fn capabilities(&self) -> Outcome<Self::Capabilities> {
        let capabilities = self.0.get_offering_search_capabilities(None);
        capabilities.await.map_err(text)
    }

    fn look(page: &Self::Page, seen: &mut Seen) {
        for offering in &page.items {
            seen.item();
            seen.say((&offering.id, &offering.name, &offering.description));
            for collection in &offering.collection_ids {
                seen.say(collection);
            }
            seen.say(offering.price.as_ref().map(|price| &price.amount));
            seen.say(offering.schema.as_ref().map(|schema| &schema.url));
            seen.say((offering.images.len(), offering.attributes.len()));
            for action in &offering.actions {
                seen.say(&action.id);
            }
        }
    }

    fn look_at_capabilities(capabilities: &Self::Capabilities, seen: &mut Seen) {
        seen.say(capabilities.issues.len());
        for filter in capabilities.filters.values() {
            seen.item();
            seen.say((&filter.id, &filter.title, &filter.description));
            seen.say((filter.operators.len(), filter.unit.is_some()));
        }
        for sort in capabilities.sorts.values() {
            seen.item();
            seen.say((&sort.definition.id, sort.definition.keys.len()));
        }
    }
}
