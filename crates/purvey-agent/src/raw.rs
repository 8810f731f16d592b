//! Documents as they come, for who wants to see what a Service really says.

use crate::Error;
use crate::agent::{Agent, parse_origin};
use crate::service::{Service, fetch_document, identifier};
use crate::transport::{Class, Fetch, Fetched};
use purvey_odp::identity::ResourceType;
use purvey_odp::service::Operation;

impl Agent {
    /// The Service Document at `origin` as it came: within its byte limit and of its media type, but neither read nor checked.
    ///
    /// # Errors
    /// As [`service`](Self::service), but for what is wrong with the document.
    pub async fn get_raw(&self, origin: &str) -> Result<Fetched, Error> {
        let origin = parse_origin(origin, self.settings.local)?;
        fetch_document(&self.settings, &origin).await
    }
}

impl Service {
    /// The Full Representation of one Collection or Offering as it came: within its byte limit and of its media type, but
    /// neither read nor checked (`get-collection`, `get-offering`).
    ///
    /// # Errors
    /// As [`get_collection`](Self::get_collection), but for what is wrong with the document.
    pub async fn get_raw(&self, resource: ResourceType, id: &str) -> Result<Fetched, Error> {
        let (operation, class) = match resource {
            ResourceType::Collection => (Operation::GetCollection, Class::Collection),
            ResourceType::Offering => (Operation::GetOffering, Class::Offering),
        };
        let url = self.url(operation, Some(&identifier(id)?))?;
        let budget = self.settings().operation();
        self.fetch(&budget, Fetch::get(url, class)).await
    }
}
