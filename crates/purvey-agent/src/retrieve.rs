//! One Collection or one Offering by its identifier.

use crate::enrich::EnrichedOffering;
use crate::service::{Service, identifier};
use crate::transport::{Class, Fetch, Fetched, Operation as Budget};
use crate::{Error, Issue, document};
use purvey_odp::collection::Collection;
use purvey_odp::decode::Bounds;
use purvey_odp::identity::LocalId;
use purvey_odp::normalise;
use purvey_odp::offering::{Offering, Placement, Representation};
use purvey_odp::report::Invalid;
use purvey_odp::service::Operation;

/// A Collection, and what of it could not be used.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EnrichedCollection {
    /// The Full Representation.
    pub collection: Collection,
    /// The `Content-Language` that it came with.
    pub content_language: Option<String>,
    /// What was dropped because this version does not know it (ODP §9); pointers lead into the document as it was received.
    pub issues: Vec<Issue>,
}

impl Service {
    /// The Full Representation of one Collection (`get-collection`).
    ///
    /// # Errors
    /// [`NotAdvertised`](crate::Code::NotAdvertised), [`InvalidRequest`](crate::Code::InvalidRequest) for what is no
    /// identifier, [`InvalidDocument`](crate::Code::InvalidDocument) for a document that breaks a rule or has another
    /// identifier, and what the Service answers.
    pub async fn get_collection(&self, id: &str) -> Result<EnrichedCollection, Error> {
        let budget = self.settings().operation();
        self.fetch_collection(&budget, &identifier(id)?).await
    }

    /// The Full Representation of one Offering (`get-offering`), with its schema and its Actions: what they refer to is fetched
    /// within the same operation, and whatever fails there is an issue beside the rest.
    ///
    /// # Errors
    /// As [`get_collection`](Self::get_collection). What the Offering refers to never makes the operation fail.
    pub async fn get_offering(&self, id: &str) -> Result<EnrichedOffering, Error> {
        let budget = self.settings().operation();
        let id = identifier(id)?;
        let fetched = self
            .fetch_resource(&budget, Operation::GetOffering, &id, Class::Offering)
            .await?;
        let mut value = document::read(&fetched, Bounds::RESOURCE)?;
        let received = crate::enrich::Received::of(&value);
        let dropped = normalise::offering(&mut value, Representation::Full);
        let offering = Offering::validate(value, Placement::TopLevel)
            .map_err(|invalid| document::invalid(&fetched, &invalid))?;
        same(&fetched, offering.id(), &id)?;
        let issues = dropped.into_iter().map(Issue::from).collect();
        let mut enriched = self
            .enrich_within(&budget, offering, &received, issues)
            .await;
        enriched.content_language = document::language(&fetched);
        Ok(enriched)
    }

    pub(crate) async fn fetch_collection(
        &self,
        budget: &Budget,
        id: &LocalId,
    ) -> Result<EnrichedCollection, Error> {
        let fetched = self
            .fetch_resource(budget, Operation::GetCollection, id, Class::Collection)
            .await?;
        let mut value = document::read(&fetched, Bounds::RESOURCE)?;
        let dropped = normalise::collection(&mut value);
        let collection = Collection::validate(value, Placement::TopLevel)
            .map_err(|invalid| document::invalid(&fetched, &invalid))?;
        same(&fetched, collection.id(), id)?;
        Ok(EnrichedCollection {
            collection,
            content_language: document::language(&fetched),
            issues: dropped.into_iter().map(Issue::from).collect(),
        })
    }

    async fn fetch_resource(
        &self,
        budget: &Budget,
        operation: Operation,
        id: &LocalId,
        class: Class,
    ) -> Result<Fetched, Error> {
        let url = self.url(operation, Some(id))?;
        self.fetch(budget, Fetch::get(url, class)).await
    }
}

/// A document must be of the resource that was asked for: its identity is part of what the answer means.
fn same(fetched: &Fetched, found: &LocalId, asked: &LocalId) -> Result<(), Error> {
    if found == asked {
        return Ok(());
    }
    let rule = format!("Must be {asked}, which was asked for.");
    Err(document::invalid(fetched, &Invalid::one("/id", rule)))
}
