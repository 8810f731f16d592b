//! The Agent role of ODP 1.0: discover and read any Service, and not be hurt by one.
//!
//! [`transport`] is the only way out: every address is checked before it is connected to, every byte and second is bounded, and
//! a response is a 2xx within its limits or a typed [`Error`].
#![forbid(unsafe_code)]

mod action;
mod agent;
pub mod cache;
mod capabilities;
pub mod challenge;
mod document;
mod enrich;
mod error;
mod fanout;
mod hierarchy;
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

pub use action::{Answer, Input, ResolvedAction};
pub use agent::{Agent, AgentBuilder};
pub use capabilities::Capabilities;
pub use enrich::EnrichedOffering;
pub use error::{Code, Error};
pub use fanout::Found;
pub use hierarchy::CollectionTree;
pub use issue::{Issue, IssueCode, Scope};
pub use item::Item;
pub use list::{Items, List};
pub use page::{Page, Pages};
pub use retrieve::EnrichedCollection;
pub use schema::Schema;
pub use search::{CollectionSearch, OfferingSearch, Refinement};
pub use service::Service;
