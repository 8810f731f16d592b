//! Our Agent as an engine.

use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use interop::agents::{Documents, Engine, Form, ORIGIN, Outcome, PAGE, Seen, text};
use purvey_agent::transport::{Fetch, Fetched, Operation, Transport};
use purvey_agent::{Agent, Capabilities, Code, Error, Page, Service};
use purvey_odp::decode::{Bounds, decode};
use purvey_odp::identity::{LocalDevelopment, ServiceOrigin};
use purvey_odp::normalise;
use purvey_odp::offering::{Offering, Placement, Representation, TerseOffering};
use purvey_odp::page::PageEnvelope;
use purvey_odp::price::PriceKind;
use std::collections::BTreeMap;

/// Our Agent, with a Service that it knows.
pub(crate) struct Ours {
    agent: Agent,
    service: Service,
}

/// Items in either representation.
pub(crate) enum Items {
    Terse(Vec<TerseOffering>),
    Full(Vec<Offering>),
}

struct InMemory(BTreeMap<String, bytes::Bytes>);

impl Transport for InMemory {
    fn fetch<'a>(
        &'a self,
        _: &'a Operation,
        fetch: Fetch,
    ) -> BoxFuture<'a, Result<Fetched, Error>> {
        let fetched = match self.0.get(fetch.url.path()) {
            Some(body) => {
                let mut headers = HeaderMap::new();
                let media = HeaderValue::from_static("application/odp+json");
                headers.insert(header::CONTENT_TYPE, media);
                Ok(Fetched {
                    status: StatusCode::OK,
                    headers,
                    body: body.clone(),
                    url: fetch.url,
                    from_cache: false,
                })
            }
            None => Err(Error::new(Code::InvalidConfiguration, "Nothing is there.")),
        };
        Box::pin(async { fetched })
    }
}

impl Engine for Ours {
    type Page = Items;
    type Capabilities = Capabilities;

    async fn in_memory(documents: Documents) -> Outcome<Self> {
        let bodies = documents.0.into_iter();
        let transport = InMemory(bodies.map(|(path, body)| (path, body.into())).collect());
        let agent = Agent::builder().transport(transport).build();
        Self::of(agent.map_err(text)?, ORIGIN).await
    }

    async fn on_loopback(origin: &str) -> Outcome<Self> {
        let agent = Agent::builder().local_development(true).build();
        Self::of(agent.map_err(text)?, origin).await
    }

    fn decode(form: Form, page: &[u8]) -> Outcome<Self::Page> {
        let origin = ServiceOrigin::parse(ORIGIN, LocalDevelopment::Refused).map_err(text)?;
        let mut value = decode(page, Bounds::PAGE).map_err(text)?;
        match form {
            Form::Terse => {
                normalise::offering_page(&mut value, Representation::Terse);
                let page = PageEnvelope::validate(value, &origin, |report, place, value| {
                    TerseOffering::read(report, place, value, Placement::Embedded)
                });
                page.map(|page| Items::Terse(page.items)).map_err(text)
            }
            Form::Full => {
                normalise::offering_page(&mut value, Representation::Full);
                let page = PageEnvelope::validate(value, &origin, |report, place, value| {
                    Offering::read(report, place, value, Placement::Embedded)
                });
                page.map(|page| Items::Full(page.items)).map_err(text)
            }
        }
    }

    async fn page(&self, form: Form) -> Outcome<Self::Page> {
        let list = self.service.offerings().all().page_size(PAGE);
        match form {
            Form::Terse => list.first_page().await.map(terse).map_err(text),
            Form::Full => list.full().first_page().await.map(full).map_err(text),
        }
    }

    async fn traverse(&self, form: Form, mut each: impl FnMut(Self::Page)) -> Outcome<()> {
        let list = self.service.offerings().all().page_size(PAGE);
        match form {
            Form::Terse => {
                let mut pages = list.pages();
                while let Some(page) = pages.next_page().await.map_err(text)? {
                    each(terse(page));
                }
            }
            Form::Full => {
                let mut pages = list.full().pages();
                while let Some(page) = pages.next_page().await.map_err(text)? {
                    each(full(page));
                }
            }
        }
        Ok(())
    }

    async fn capabilities(&self) -> Outcome<Self::Capabilities> {
        let service = self.agent.service(ORIGIN).await.map_err(text)?;
        service.capabilities(None).await.map_err(text)
    }

    fn look(page: &Self::Page, seen: &mut Seen) {
        macro_rules! look {
            ($items:ident, $actions:expr) => {
                for offering in $items {
                    seen.item();
                    let description = offering.description().map_or("", |text| text.as_str());
                    seen.say((
                        offering.id().as_str(),
                        offering.name().as_str(),
                        description,
                    ));
                    for collection in offering.collection_ids() {
                        seen.say(collection.as_str());
                    }
                    seen.say(offering.price().map(|price| match price.kind() {
                        PriceKind::Fixed { amount, .. } => amount.as_str(),
                        _ => "",
                    }));
                    seen.say(offering.schema().map(|schema| schema.url.as_str()));
                    seen.say((offering.images().len(), offering.attributes().len()));
                    $actions(offering, &mut *seen);
                }
            };
        }
        match page {
            Items::Terse(items) => look!(items, |_: &TerseOffering, _: &mut Seen| {}),
            Items::Full(items) => look!(items, |offering: &Offering, seen: &mut Seen| {
                for action in offering.actions() {
                    seen.say(action.id.as_str());
                }
            }),
        }
    }

    fn look_at_capabilities(capabilities: &Self::Capabilities, seen: &mut Seen) {
        seen.say(capabilities.issues.len());
        for filter in capabilities.effective.filters() {
            seen.item();
            let description = filter.description().as_str();
            seen.say((filter.id().as_str(), filter.title().as_str(), description));
            seen.say((filter.operators().len(), filter.unit().is_some()));
        }
        for sort in capabilities.effective.sorts() {
            seen.item();
            seen.say((sort.id().as_str(), sort.keys().len()));
        }
    }
}

impl Ours {
    async fn of(agent: Agent, origin: &str) -> Outcome<Self> {
        let service = agent.service(origin).await.map_err(text)?;
        Ok(Self { agent, service })
    }
}

fn terse(page: Page<TerseOffering>) -> Items {
    Items::Terse(page.items)
}

fn full(page: Page<Offering>) -> Items {
    Items::Full(page.items)
}
