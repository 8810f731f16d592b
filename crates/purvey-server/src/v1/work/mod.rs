//! The Work API (Work §11): what comes in, what goes out; everything is decided by the platform.

mod artifacts;
mod call;
mod content;
mod events;
mod query;
mod routes;
mod threads;
mod triggers;

use crate::{AdminToken, ServerConfig};
use purvey_work::Platform;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

pub(super) use routes::router;

/// Largest JSON body, in bytes.
const BODY_BYTES: usize = 4 * 1_024 * 1_024;

/// What every handler works with.
#[derive(Clone)]
pub(super) struct Work {
    platform: Platform,
    config: Arc<ServerConfig>,
    /// Cancelled once the server stops and nothing may wait for news any more.
    closing: CancellationToken,
}

impl Work {
    pub(super) fn new(
        platform: Platform,
        config: Arc<ServerConfig>,
        closing: CancellationToken,
    ) -> Self {
        Self {
            platform,
            config,
            closing,
        }
    }

    fn operator(&self) -> Option<&AdminToken> {
        self.config.admin_token.as_ref()
    }
}
