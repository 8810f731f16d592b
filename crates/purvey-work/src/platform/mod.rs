//! The whole platform behind one type: what the server, the engine and the command line call (Work §11).
//!
//! Each method is one call of the Work API, judged for its [`Principal`] and done in one transaction.

mod administration;
mod agents;
mod artifacts;
mod runs;
mod threads;
mod triggers;

use crate::{
    access::Principal,
    artifacts::{Blobs, UploadLimits},
    clock::{Chance, Clock, Cx, SystemChance, SystemClock},
    error::Error,
    id::{AgentId, WorkspaceId},
    identity::tokens,
    runs::{Admission, Start, admit},
    sql::{Gate, Session, Store},
};
use parking_lot::Mutex;
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

pub use administration::Bootstrapped;
pub use artifacts::Uploaded;
pub use runs::{RunFilter, Started, Watched};
pub use threads::Sent;

/// The run platform. Clones share everything.
#[derive(Clone)]
pub struct Platform(Arc<Inner>);

struct Inner {
    store: Store,
    clock: Arc<dyn Clock>,
    chance: Arc<dyn Chance>,
    providers: BTreeSet<String>,
    blobs: Blobs,
    uploads: UploadLimits,
    /// Where starts gather.
    starts: Gate<Start, Admission>,
    /// The workspaces of agents, which never change.
    homes: Mutex<HashMap<AgentId, WorkspaceId>>,
}

/// What a [`Platform`] is made of besides its store.
#[derive(Clone)]
#[non_exhaustive]
pub struct PlatformOptions {
    /// What time it is. Default: the machine's clock.
    pub clock: Arc<dyn Clock>,
    /// Where randomness comes from. Default: the operating system.
    pub chance: Arc<dyn Chance>,
    /// Names of the providers that agents may name. Default: `echo` alone.
    pub providers: BTreeSet<String>,
    /// Where the bytes of artifacts are kept. Default: nowhere, so that uploads fail.
    pub blobs: Blobs,
    /// What bounds uploads.
    pub uploads: UploadLimits,
}

impl Default for PlatformOptions {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            chance: Arc::new(SystemChance),
            providers: BTreeSet::from(["echo".to_owned()]),
            blobs: Blobs::nowhere(),
            uploads: UploadLimits::default(),
        }
    }
}

impl Platform {
    /// The platform over a store.
    #[must_use]
    pub fn new(store: Store, options: PlatformOptions) -> Self {
        let PlatformOptions {
            clock,
            chance,
            providers,
            blobs,
            uploads,
        } = options;
        let starts = {
            let (clock, chance) = (clock.clone(), chance.clone());
            Gate::new(store.clone(), move |session, starts| {
                let cx = Cx {
                    now: clock.now(),
                    chance: &*chance,
                };
                admit(session, cx, starts)
            })
        };
        Self(Arc::new(Inner {
            store,
            clock,
            chance,
            providers,
            blobs,
            uploads,
            starts,
            homes: Mutex::default(),
        }))
    }

    /// Where everything is kept.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// Who presents this bearer token; the operator's is not among them.
    ///
    /// # Errors
    /// `auth.invalid`, `auth.revoked`, failures of the store.
    pub async fn authenticate(&self, secret: &str) -> Result<Principal, Error> {
        let (secret, now) = (secret.to_owned(), self.0.clock.now());
        self.0
            .store
            .read(move |session| tokens::authenticate(session, now, &secret))
            .await
    }

    /// One transaction that may write.
    async fn write<T: Send + 'static>(
        &self,
        mut work: impl FnMut(&mut dyn Session, Cx<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let inner = Arc::clone(&self.0);
        self.0
            .store
            .write(move |session| work(session, inner.cx()))
            .await
    }

    /// One state of the store.
    async fn read<T: Send + 'static>(
        &self,
        mut work: impl FnMut(&mut dyn Session, Cx<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let inner = Arc::clone(&self.0);
        self.0
            .store
            .read(move |session| work(session, inner.cx()))
            .await
    }
}

impl Inner {
    fn cx(&self) -> Cx<'_> {
        Cx {
            now: self.clock.now(),
            chance: &*self.chance,
        }
    }
}
