//! How time passes for the engine: the one place where it waits.

use crate::clock::{Clock, SystemClock, Timestamp};
use futures_util::future::BoxFuture;
use std::time::Duration;

/// The longest sleep without a look at the clock, which may be set meanwhile.
const NAP: Duration = Duration::from_secs(1);

/// A clock that can be waited for.
pub trait Sleeper: Clock {
    /// Waits until the clock shows `moment` or later.
    fn sleep_until(&self, moment: Timestamp) -> BoxFuture<'_, ()>;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemSleeper;

impl Clock for SystemSleeper {
    fn now(&self) -> Timestamp {
        SystemClock.now()
    }
}

impl Sleeper for SystemSleeper {
    fn sleep_until(&self, moment: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            loop {
                let left = moment.since(self.now());
                if left.is_zero() {
                    return;
                }
                tokio::time::sleep(left.min(NAP)).await;
            }
        })
    }
}
