//! What tests of the platform share.

pub(crate) mod postgres;

use purvey_work::{Clock, Store, Timestamp};
use std::sync::atomic::{AtomicI64, Ordering};

/// Runs a test on each store that is there.
pub(crate) fn on_each_store(test: impl AsyncFn(Store)) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(test(Store::in_memory().unwrap()));
    if let Some(schema) = postgres::Schema::fresh() {
        let store = Store::postgres(&schema.url()).unwrap();
        runtime.block_on(test(store));
    }
}

/// A clock that a test sets; it begins at 2026-01-01T12:00:00Z.
pub(crate) struct SetClock(AtomicI64);

impl SetClock {
    pub(crate) fn new() -> Self {
        Self(AtomicI64::new(1_767_268_800_000))
    }

    pub(crate) fn pass(&self, seconds: i64) {
        self.0.fetch_add(seconds * 1_000, Ordering::SeqCst);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}
