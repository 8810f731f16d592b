//! The Agent role of ODP 1.0: discover and read any Service, and not be hurt by one.
//!
//! ```
//! # use futures_util::future::BoxFuture;
//! # use purvey_agent::transport::{Fetch, Fetched, Operation, Transport};
//! # use purvey_agent::Error;
//! # struct Shop;
//! # impl Transport for Shop {
//! #     fn fetch<'a>(&'a self, _: &'a Operation, fetch: Fetch) -> BoxFuture<'a, Result<Fetched, Error>> {
//! #         let body = match fetch.url.path() {
//! #             "/.well-known/odp" => r#"{"odp_version": "1.0", "name": "Shop", "description": "Lamps.", "language": "en",
//! #                 "localizations": ["en"], "http": {"endpoint_base": "/odp"}, "operations": [
//! #                 {"name": "list-offerings", "authentication": "not-required"},
//! #                 {"name": "get-offering", "authentication": "not-required"},
//! #                 {"name": "search-offerings", "authentication": "not-required"}],
//! #                 "search_capabilities": {"filters": {"inline": [{"id": "height", "title": "Height", "description": "In cm.",
//! #                 "type": "integer", "operators": ["lte"]}]}}}"#,
//! #             "/odp/offerings/lamp" => r#"{"odp_version": "1.0", "id": "lamp", "name": "Lamp"}"#,
//! #             _ => r#"{"odp_version": "1.0", "items": [{"id": "lamp", "name": "Lamp"}]}"#,
//! #         };
//! #         let mut headers = http::HeaderMap::new();
//! #         headers.insert("content-type", http::HeaderValue::from_static("application/odp+json"));
//! #         let fetched = Fetched { status: http::StatusCode::OK, headers, body: body.into(), url: fetch.url, from_cache: false };
//! #         Box::pin(async { Ok(fetched) })
//! #     }
//! # }
//! # fn main() -> Result<(), Error> {
//! # let transport = Shop;
//! # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
//! # runtime.block_on(async {
//! use futures_util::StreamExt;
//! use purvey_agent::Agent;
//! use purvey_odp::filter::Operator;
//!
//! // Without a transport of its own, the Agent uses the network, guarded and cached.
//! let agent = Agent::builder().transport(transport).languages(["de", "en"]).build()?;
//! let service = agent.service("https://shop.example").await?;
//! assert_eq!(service.document().name().as_str(), "Shop");
//!
//! // Items come as they are wanted; no page is fetched that nobody asked for.
//! let mut lamps = service.search().query("lamp").filter("height", Operator::Lte, 40).limit(10).stream();
//! while let Some(lamp) = lamps.next().await {
//!     // With its attributes held to their schema, and its Actions made ready. What fails is an issue beside the rest.
//!     let lamp = service.get_offering(lamp?.id().as_str()).await?;
//!     assert!(lamp.issues.is_empty());
//! }
//!
//! // What the Service would refuse is refused here, at the same place and for the same reason.
//! let error = service.search().filter("width", Operator::Lte, 40).collect().await.unwrap_err();
//! assert_eq!(error.code().as_str(), "INVALID_REQUEST");
//! assert_eq!(error.invalid_params()[0].name(), "/filters/0/id");
//! # Ok(()) })
//! # }
//! ```
//!
//! [`transport`] is the only way out: every address is checked before it is connected to, every byte and second is bounded, and
//! a response is a 2xx within its limits or a typed [`Error`].
#![forbid(unsafe_code)]

mod action;
mod agent;
pub mod cache;
mod capabilities;
pub mod challenge;
pub mod check;
mod document;
mod enrich;
mod error;
mod fanout;
mod hierarchy;
mod intent;
mod issue;
mod item;
mod list;
mod page;
mod raw;
mod retrieve;
mod schema;
mod search;
mod service;
mod supporting;
pub mod transport;

pub use action::{Answer, ChallengeHandler, Input, ResolvedAction};
pub use agent::{Agent, AgentBuilder};
pub use capabilities::Capabilities;
pub use enrich::EnrichedOffering;
pub use error::{Code, Error};
pub use fanout::Found;
pub use hierarchy::CollectionTree;
pub use intent::Intent;
pub use issue::{Issue, IssueCode, Scope};
pub use item::Item;
pub use list::{Items, List};
pub use page::{Page, Pages};
pub use retrieve::EnrichedCollection;
pub use schema::{Mismatch, Schema};
pub use search::{CollectionSearch, OfferingSearch, Refinement};
pub use service::Service;
