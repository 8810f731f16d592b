//! One search over many Services.

use crate::agent::Agent;
use crate::search::OfferingSearch;
use crate::{Error, Service};
use async_stream::stream;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use purvey_odp::offering::TerseOffering;
use std::sync::Arc;

/// What comes from one of many Services.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Found {
    /// A result.
    Offering {
        /// The Service that offers it: with the Offering's identifier, its identity.
        service: Service,
        /// The result.
        offering: Box<TerseOffering>,
    },
    /// The Service cannot be searched, or its results end here. What came from it stays, and the others go on.
    Failed {
        /// The origin as it was given.
        origin: String,
        /// Why.
        error: Error,
    },
}

impl Agent {
    /// Searches the Services at `origins`, some at the same time, each with the search that `plan` makes of an empty one.
    /// Results and failures come as they come, those of one Service in its order. The limit of the search is one for each
    /// Service; take from the stream what is wanted in all, and drop it: what was not asked for is not fetched.
    ///
    /// Services call and write things in their own ways: an [`Intent`](crate::Intent) becomes for each what its definitions
    /// say. A search that a Service would refuse fails for that Service alone.
    pub fn search_across<S: Into<String>>(
        &self,
        origins: impl IntoIterator<Item = S>,
        plan: impl Fn(OfferingSearch) -> OfferingSearch + Send + Sync + 'static,
    ) -> BoxStream<'static, Found> {
        let agent = self.clone();
        let plan = Arc::new(plan);
        let origins: Vec<String> = origins.into_iter().map(Into::into).collect();
        let services = self.settings.services;
        stream::iter(origins)
            .flat_map_unordered(services, move |origin| {
                let (agent, plan) = (agent.clone(), plan.clone());
                search(agent, origin, move |search| plan(search))
            })
            .boxed()
    }
}

fn search(
    agent: Agent,
    origin: String,
    plan: impl Fn(OfferingSearch) -> OfferingSearch + Send + 'static,
) -> BoxStream<'static, Found> {
    stream! {
        let service = match agent.service(&origin).await {
            Ok(service) => service,
            Err(error) => {
                yield Found::Failed { origin, error };
                return;
            }
        };
        let mut results = plan(service.search()).stream();
        while let Some(result) = results.next().await {
            match result {
                Ok(offering) => yield Found::Offering {
                    service: service.clone(),
                    offering: Box::new(offering),
                },
                Err(error) => {
                    yield Found::Failed { origin, error };
                    return;
                }
            }
        }
    }
    .boxed()
}
