//! Validation of a deployed Service: every advertised operation and its failures, seen from outside.
//!
//! Nothing is ever written and no Action is invoked. The methods are `GET`, `HEAD`, the `POST` of searches, and `PROPFIND`,
//! which reads and which no Service has. Requests go one after the other, each within the guards of the transport.

mod capabilities;
mod collections;
mod documents;
mod filters;
mod list;
mod outcome;
mod pages;
mod probe;
mod refinements;
mod refusals;
mod retrieve;
mod rules;
mod search;
mod service;
mod sorts;
mod traversal;

pub use outcome::{Finding, Outcome, Severity};
pub use probe::Progress;
pub use rules::Rule;

use crate::Error;
use crate::transport::Guarded;
use probe::{Exhausted, Probe};
use std::sync::Arc;

/// How far a check goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Most requests in all. Default 1,000.
    pub requests: usize,
    /// Most pages of one traversal. Default 20.
    pub pages: usize,
    /// How many resources of each kind, and how many definitions, are looked at closely. Default 12.
    pub samples: usize,
}

impl Default for Extent {
    fn default() -> Self {
        Self {
            requests: 1_000,
            pages: 20,
            samples: 12,
        }
    }
}

/// Every rule that is looked at, in the order of the check.
pub fn rules() -> &'static [&'static Rule] {
    rules::ALL
}

/// Checks the Service at `origin`. Whatever is wrong with it is a finding; credentials of the transport go with all requests
/// but those that a Service has to answer to anybody. `watch` is told of each request before it leaves.
///
/// # Errors
/// [`InvalidRequest`](crate::Code::InvalidRequest) when `origin` is no origin, or http without local development.
pub async fn check(
    transport: Arc<Guarded>,
    origin: &str,
    extent: Extent,
    watch: &mut (dyn FnMut(Progress) + Send),
) -> Result<Outcome, Error> {
    let origin = crate::agent::parse_origin(origin, transport.local_development())?;
    let mut probe = Probe::new(transport, origin, extent, watch);
    if let Err(Exhausted) = all(&mut probe).await {
        probe.exhausted();
    }
    Ok(probe.finish())
}

async fn all(probe: &mut Probe<'_>) -> Result<(), Exhausted> {
    let Some(document) = service::check(probe).await? else {
        return Ok(());
    };
    let lists = list::check(probe, &document).await?;
    retrieve::check(probe, &document, &lists).await?;
    collections::check(probe, &document, &lists).await?;
    let capabilities = capabilities::check(probe, &document, &lists).await?;
    search::check(probe, &document, &lists, &capabilities).await
}
