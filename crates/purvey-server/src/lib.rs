//! Purvey's HTTP surfaces: the ODP Service, the operator's catalog writes, the Work API, health.
//!
//! [`Server`] owns the sockets: TLS, timeouts, connection cap, stopping. Every request then passes one hand-written front
//! (request id, bounds on load, panics) and goes either to the ODP paths, which depend on the manifest in force, or to an axum
//! router for the rest. [`router`] is the same without sockets.
//!
//! Failures have one table per surface: `odp::problem` (`INVALID_REQUEST` style) and `v1::problem` (`request.invalid` style).
#![forbid(unsafe_code)]

mod account;
mod body;
mod config;
mod encoding;
mod etag;
mod front;
mod head;
mod odp;
mod published;
mod rate;
mod request_id;
mod searches;
mod serve;
mod site;
mod tls;
mod v1;
mod wire;

pub use config::{AdminToken, AdminTokenError, ServerConfig, TlsFiles};
pub use published::publish_agents;
pub use serve::{ServeError, Server};

use purvey_catalog::catalog::Catalog;
use purvey_work::Platform;

/// Every response of this crate.
type Response = http::Response<axum::body::Body>;

/// What a server serves.
#[derive(Clone)]
#[non_exhaustive]
pub struct Surfaces {
    /// The catalog, as an ODP Service.
    pub catalog: Catalog,
    /// The run platform under `/v1`; without it only the catalog's writes are there.
    pub work: Option<Platform>,
}

impl From<Catalog> for Surfaces {
    fn from(catalog: Catalog) -> Self {
        Self {
            catalog,
            work: None,
        }
    }
}

impl Surfaces {
    /// The run platform too.
    #[must_use]
    pub fn with_work(self, platform: Platform) -> Self {
        Self {
            work: Some(platform),
            ..self
        }
    }
}

/// The whole service without sockets, for tests and adapters: no connection cap, no timeouts of headers, one client for the
/// request rate. The catalog's indexer is the caller's to start.
pub fn router(surfaces: impl Into<Surfaces>, config: ServerConfig) -> axum::Router {
    axum::Router::new().fallback_service(front::Front::new(config, surfaces.into()))
}
