//! Searches: what the caller means, said in the words that a Service understands (ODP §5).

use crate::Error;
use crate::intent::Intent;
use crate::list::{extent, results};
use crate::page::{Extent, Pages, Start};
use crate::service::Service;
use crate::transport::{Class, Fetch};
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use purvey_odp::capability::EffectiveCapabilities;
use purvey_odp::collection::{Collection, TerseCollection};
use purvey_odp::filter::{FilterDefinition, Operator};
use purvey_odp::identity::LocalId;
use purvey_odp::limits;
use purvey_odp::offering::{Offering, Representation, TerseOffering};
use purvey_odp::refinement::{RefinementBucket, RefinementGroup};
use purvey_odp::report::Invalid;
use purvey_odp::request::{CollectionSearchRequest, OfferingSearchRequest, ResolvedSearch};
use purvey_odp::service::Operation;
use purvey_odp::version::{self, ProtocolVersion};
use serde_json::{Map, Value, json};
use std::marker::PhantomData;

/// Counted values of one filter, with the definition that says what they are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refinement {
    /// The filter, as it was effective for the search.
    pub definition: FilterDefinition,
    /// Its values, 1 through 32, each with the number of Offerings of the whole result.
    pub values: Vec<RefinementBucket>,
}

impl Refinement {
    pub(crate) fn join(groups: Vec<RefinementGroup>, requested: &[FilterDefinition]) -> Vec<Self> {
        let joined = groups.into_iter().filter_map(|group| {
            let definition = requested.iter().find(|d| d.id() == group.filter_id())?;
            Some(Self {
                definition: definition.clone(),
                values: group.values().to_vec(),
            })
        });
        joined.collect()
    }
}

/// The first request of a search, made when it is needed.
pub(crate) trait Opening: Send + Sync {
    /// The request, and the filters that it asks to refine by.
    fn open(&self) -> BoxFuture<'_, Result<(Fetch, Vec<FilterDefinition>), Error>>;
}

/// A search for Offerings that was not asked for yet.
///
/// Filters, sorts and refinements are named by the identifiers that the Service advertises, and checked against what is
/// effective before anything is sent: what the Service would refuse is refused here, at the same place and for the same
/// reason. A search by text alone needs nothing of that and is sent at once.
#[derive(Clone, Debug)]
#[must_use = "nothing is fetched before an item or a page is awaited"]
pub struct OfferingSearch<T = TerseOffering> {
    service: Service,
    extent: Extent,
    body: Map<String, Value>,
    filters: Vec<Wanted>,
    item: PhantomData<fn() -> T>,
}

/// A condition, in the Service's words or in the caller's.
#[derive(Clone, Debug)]
enum Wanted {
    Expression(Value),
    Intent(Intent),
}

/// A search for Collections that was not asked for yet.
#[derive(Clone, Debug)]
#[must_use = "nothing is fetched before an item or a page is awaited"]
pub struct CollectionSearch<T = TerseCollection> {
    service: Service,
    extent: Extent,
    body: Map<String, Value>,
    item: PhantomData<fn() -> T>,
}

extent!(OfferingSearch);
results!(OfferingSearch);
extent!(CollectionSearch);
results!(CollectionSearch);

fn body() -> Map<String, Value> {
    let version = json!(ProtocolVersion::V1_0.to_string());
    Map::from_iter([(version::MEMBER.to_owned(), version)])
}

/// Appends to an array of the body, which is made when it is not there.
fn append(body: &mut Map<String, Value>, member: &str, value: Value) {
    let list = body.entry(member).or_insert_with(|| json!([]));
    if let Value::Array(items) = list {
        items.push(value);
    }
}

impl Service {
    /// A search for Offerings (`search-offerings`); it needs a query or a filter.
    pub fn search(&self) -> OfferingSearch {
        OfferingSearch {
            service: self.clone(),
            extent: Extent::of(self.settings()),
            body: body(),
            filters: Vec::new(),
            item: PhantomData,
        }
    }

    /// A search for Collections (`search-collections`); it needs a query or a place.
    pub fn search_collections(&self) -> CollectionSearch {
        CollectionSearch {
            service: self.clone(),
            extent: Extent::of(self.settings()),
            body: body(),
            item: PhantomData,
        }
    }
}

impl<T> OfferingSearch<T> {
    /// Text to search for, 1 through 256 code points; the Service decides what it means.
    pub fn query(mut self, text: impl Into<String>) -> Self {
        self.body.insert("query".into(), text.into().into());
        self
    }

    /// A condition that every result fulfils, beside the others, at most 32. `value` is of the filter's type; an array of them
    /// for [`Operator::In`], a boolean for [`Operator::Exists`].
    pub fn filter(self, id: &str, operator: Operator, value: impl Into<Value>) -> Self {
        self.filter_named(id, operator.as_str(), value)
    }

    /// Like [`filter`](Self::filter), with the operator by name.
    pub fn filter_named(mut self, id: &str, operator: &str, value: impl Into<Value>) -> Self {
        let expression = json!({"id": id, "operator": operator, "value": value.into()});
        self.filters.push(Wanted::Expression(expression));
        self
    }

    /// A condition in the caller's words, which the Service's definitions make an expression of. It counts as one of the 32.
    pub fn want(mut self, intent: Intent) -> Self {
        self.filters.push(Wanted::Intent(intent));
        self
    }

    /// The advertised order of the results; the Service's own unless set.
    pub fn sort(mut self, id: &str) -> Self {
        self.body.insert("sort".into(), id.into());
        self
    }

    /// Asks for the counted values of a refinable filter, at most 16 of them; see [`Page::refinements`](crate::Page).
    pub fn refine(mut self, id: &str) -> Self {
        append(&mut self.body, "refinements", id.into());
        self
    }

    /// Only direct members of this Collection, whose own filters and sorts can then be used too.
    pub fn in_collection(mut self, id: &str) -> Self {
        self.body.insert("collection_id".into(), id.into());
        self
    }

    /// Members of the Collections below the named one too. Their filters and sorts are not added.
    pub fn descendants(mut self) -> Self {
        self.body.insert("include_descendants".into(), true.into());
        self
    }

    /// Checks the search without sending it; it fetches what is advertised when that is needed. Gives what filters, sort and
    /// refinements mean.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::Code::InvalidRequest) with the parameters that the Service would name,
    /// [`NotAdvertised`](crate::Code::NotAdvertised), and what fetching the named Collection brings.
    pub async fn check(&self) -> Result<ResolvedSearch, Error> {
        self.prepare().await.map(|(_, resolved)| resolved)
    }

    async fn prepare(&self) -> Result<(OfferingSearchRequest, ResolvedSearch), Error> {
        // Before anything is fetched for it.
        self.service.url(Operation::SearchOfferings, None)?;
        let mut effective = None;
        // What an intent comes to is in the definitions; anything else shows its faults without them.
        if self.filters.iter().any(|f| matches!(f, Wanted::Intent(_))) {
            let collection = self.body.get("collection_id").and_then(Value::as_str);
            let collection = collection.and_then(|id| LocalId::parse(id).ok());
            effective = Some(self.service.effective(collection.as_ref()).await?.effective);
        }
        let request = self.request(effective.as_ref())?;
        let plain = request.filters().is_empty()
            && request.sort().is_none()
            && request.refinements().is_empty();
        let effective = match effective {
            Some(effective) => effective,
            None if plain => EffectiveCapabilities::default(),
            None => {
                let collection = request.collection_id();
                self.service.effective(collection).await?.effective
            }
        };
        let resolved = request.resolve(&effective).map_err(refused)?;
        Ok((request, resolved))
    }

    fn request(
        &self,
        effective: Option<&EffectiveCapabilities>,
    ) -> Result<OfferingSearchRequest, Error> {
        let mut body = self.body.clone();
        body.insert("limit".into(), json!(self.extent.first_limit()));
        let none = EffectiveCapabilities::default();
        let effective = effective.unwrap_or(&none);
        for filter in &self.filters {
            let expression = match filter {
                Wanted::Expression(expression) => expression.clone(),
                Wanted::Intent(intent) => intent.expression(effective),
            };
            append(&mut body, "filters", expression);
        }
        OfferingSearchRequest::validate(Value::Object(body)).map_err(refused)
    }

    fn of<U>(self) -> OfferingSearch<U> {
        OfferingSearch {
            service: self.service,
            extent: self.extent,
            body: self.body,
            filters: self.filters,
            item: PhantomData,
        }
    }
}

impl OfferingSearch<TerseOffering> {
    /// Full Representations, as they are: see [`Service::enrich`] for what they refer to.
    pub fn full(self) -> OfferingSearch<Offering> {
        self.of()
    }
}

impl<T: crate::item::Item> OfferingSearch<T> {
    /// The pages, one by one.
    pub fn pages(self) -> Pages<T> {
        let (service, extent) = (self.service.clone(), self.extent);
        Pages::new(service, extent, Start::Search(Box::new(self)))
    }
}

impl<T: crate::item::Item> Opening for OfferingSearch<T> {
    fn open(&self) -> BoxFuture<'_, Result<(Fetch, Vec<FilterDefinition>), Error>> {
        async move {
            let (request, resolved) = self.prepare().await?;
            let fetch = post(
                &self.service,
                Operation::SearchOfferings,
                T::REPRESENTATION,
                &request.to_value(),
            )?;
            Ok((fetch, resolved.refinements().to_vec()))
        }
        .boxed()
    }
}

impl<T> CollectionSearch<T> {
    /// Text to search for, 1 through 256 code points; the Service decides what it means.
    pub fn query(mut self, text: impl Into<String>) -> Self {
        self.body.insert("query".into(), text.into().into());
        self
    }

    /// Only Collections without a parent.
    pub fn roots(mut self) -> Self {
        self.body.insert("parent_id".into(), Value::Null);
        self
    }

    /// Only direct children of this Collection.
    pub fn children_of(mut self, id: &str) -> Self {
        self.body.insert("parent_id".into(), id.into());
        self
    }

    fn request(&self) -> Result<CollectionSearchRequest, Error> {
        let mut body = self.body.clone();
        body.insert("limit".into(), json!(self.extent.first_limit()));
        CollectionSearchRequest::validate(Value::Object(body)).map_err(refused)
    }
}

impl CollectionSearch<TerseCollection> {
    /// Full Representations.
    pub fn full(self) -> CollectionSearch<Collection> {
        CollectionSearch {
            service: self.service,
            extent: self.extent,
            body: self.body,
            item: PhantomData,
        }
    }
}

impl<T: crate::item::Item> CollectionSearch<T> {
    /// The pages, one by one.
    pub fn pages(self) -> Pages<T> {
        let (service, extent) = (self.service.clone(), self.extent);
        Pages::new(service, extent, Start::Search(Box::new(self)))
    }
}

impl<T: crate::item::Item> Opening for CollectionSearch<T> {
    fn open(&self) -> BoxFuture<'_, Result<(Fetch, Vec<FilterDefinition>), Error>> {
        async move {
            let operation = Operation::SearchCollections;
            self.service.url(operation, None)?;
            let body = self.request()?.to_value();
            let fetch = post(&self.service, operation, T::REPRESENTATION, &body)?;
            Ok((fetch, Vec::new()))
        }
        .boxed()
    }
}

#[expect(clippy::needless_pass_by_value, reason = "as map_err has it")]
fn refused(invalid: Invalid) -> Error {
    Error::invalid_request(&invalid)
}

fn post(
    service: &Service,
    operation: Operation,
    representation: Representation,
    body: &Value,
) -> Result<Fetch, Error> {
    let mut url = service.url(operation, None)?;
    if representation == Representation::Full {
        url.set_query(Some("representation=full"));
    }
    let body = Bytes::from(body.to_string());
    if body.len() > limits::REQUEST_BYTES {
        let rule = format!("Must not have more than {} bytes.", limits::REQUEST_BYTES);
        return Err(Error::invalid_request(&Invalid::one("", rule)));
    }
    Ok(Fetch::post(url, Class::Search, body))
}
