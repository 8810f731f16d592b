//! Names to addresses, every one of them checked.

use super::address::Destination;
use crate::{Code, Error};
use futures_util::future::BoxFuture;
use purvey_odp::identity::LocalDevelopment;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Finds the addresses of a name. Whatever it answers is checked; a resolver can make no address permitted.
pub trait Resolve: Send + Sync {
    /// All addresses of `name`.
    ///
    /// # Errors
    /// When the name has none, or cannot be looked up.
    fn resolve(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// The resolver of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let name = name.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Stands between the client and a resolver: an answer with an address that is not permitted never becomes a connection.
pub(super) struct Guard {
    pub(super) resolver: Arc<dyn Resolve>,
    pub(super) local: LocalDevelopment,
}

impl reqwest::dns::Resolve for Guard {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let destination = Destination::of_name(name.as_str(), self.local);
        let found = self.resolver.resolve(name.as_str());
        Box::pin(async move {
            let found = found.await.map_err(|error| {
                let why = format!("The host {} cannot be resolved: {error}", name.as_str());
                Error::new(Code::NameNotResolved, why)
            })?;
            let checked = destination.check(&found)?;
            // Port 0 stands for the URL's.
            let addresses: Vec<_> = checked
                .addresses()
                .iter()
                .map(|address| SocketAddr::new(*address, 0))
                .collect();
            let addresses: reqwest::dns::Addrs = Box::new(addresses.into_iter());
            Ok(addresses)
        })
    }
}
