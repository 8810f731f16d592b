//! A clock that begins at noon of 2026-01-01, goes on by itself, and can be put forward.

use purvey_work::{Clock, Timestamp, engine::Sleeper};
use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

/// 2026-01-01T12:00:00Z.
const NOON: i64 = 1_767_268_800_000;

#[derive(Clone)]
pub(crate) struct Time {
    begun: Instant,
    shift: Arc<AtomicI64>,
}

impl Time {
    pub(crate) fn noon() -> Self {
        Self {
            begun: Instant::now(),
            shift: Arc::default(),
        }
    }

    /// Puts the clock forward. Not while a run is worked on: its lease would be over.
    pub(crate) fn pass(&self, time: Duration) {
        let millis = i64::try_from(time.as_millis()).unwrap();
        self.shift.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for Time {
    fn now(&self) -> Timestamp {
        let gone = i64::try_from(self.begun.elapsed().as_millis()).unwrap();
        Timestamp::from_millis(NOON + gone + self.shift.load(Ordering::SeqCst))
    }
}

impl Sleeper for Time {
    fn sleep_until(&self, moment: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            loop {
                let left = moment.since(self.now());
                if left.is_zero() {
                    return;
                }
                tokio::time::sleep(left.min(Duration::from_millis(10))).await;
            }
        })
    }
}
