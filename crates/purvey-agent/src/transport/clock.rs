//! Time and chance, so that tests can bring their own.

use futures_util::future::BoxFuture;
use std::time::{Duration, SystemTime};

/// The time of day, waiting, and chance.
pub trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> SystemTime;

    /// Waits; for retries.
    fn sleep(&self, wait: Duration) -> BoxFuture<'static, ()>;

    /// A number drawn evenly from 0 up to 1; for the jitter of retries.
    fn chance(&self) -> f64;
}

/// The machine's clock and randomness.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn sleep(&self, wait: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(wait))
    }

    fn chance(&self) -> f64 {
        // Without randomness the longest wait is the safe one.
        getrandom::u32().map_or(1.0, |drawn| f64::from(drawn) / f64::from(u32::MAX))
    }
}
