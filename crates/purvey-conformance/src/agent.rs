//! The Agent in front of a [`Peer`].

use crate::case::Fault;
use crate::peer::Peer;
use futures_util::future::BoxFuture;
use purvey_agent::transport::{Clock, Guarded, GuardedBuilder, Transport};
use purvey_agent::{Agent, AgentBuilder, Service};
use purvey_odp::identity::LocalDevelopment;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A clock that moves only while something waits, and then at once.
#[derive(Clone, Debug, Default)]
pub struct WaitingClock(Arc<AtomicU64>);

impl Clock for WaitingClock {
    fn now(&self) -> SystemTime {
        let waited = Duration::from_millis(self.0.load(Ordering::SeqCst));
        UNIX_EPOCH + Duration::from_secs(crate::service::NOW) + waited
    }

    fn sleep(&self, wait: Duration) -> BoxFuture<'static, ()> {
        let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        self.0.fetch_add(wait, Ordering::SeqCst);
        Box::pin(async {})
    }

    fn chance(&self) -> f64 {
        0.5
    }
}

/// The real transport, allowed to reach a [`Peer`].
pub fn guarded() -> GuardedBuilder {
    Guarded::builder()
        .local_development(LocalDevelopment::Allowed)
        .clock(WaitingClock::default())
}

/// The transport that was set up.
///
/// # Errors
/// When the machine lacks what it takes.
pub fn built(transport: GuardedBuilder) -> Result<Guarded, Fault> {
    transport.build().map_err(Fault::of("transport"))
}

/// An Agent to be set up, allowed to reach a [`Peer`].
pub fn builder(transport: impl Transport + 'static) -> AgentBuilder {
    Agent::builder()
        .transport(transport)
        .local_development(true)
}

/// Does something at the Service that a peer is, by an Agent with this transport.
///
/// # Errors
/// Those of the work, and when there is no Service.
pub fn visit<T>(
    peer: &Peer,
    transport: GuardedBuilder,
    work: impl AsyncFnOnce(Service) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let agent = builder(built(transport)?);
    let agent = agent.build().map_err(Fault::of("Agent"))?;
    run(async {
        let service = agent.service(peer.origin()?.as_str()).await;
        work(service.map_err(Fault::of("Service"))?).await
    })
}

/// Does asynchronous work to its end.
///
/// # Errors
/// Those of the work.
pub fn run<T>(work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Fault::of("runtime"))?;
    runtime.block_on(work)
}
