//! Time and chance, passed in so that tests need none.

use std::{
    pin::Pin,
    time::{Duration, SystemTime},
};

/// What the client needs of the world besides the network.
pub trait Time: Send + Sync {
    /// The present moment.
    fn now(&self) -> SystemTime;

    /// Ends after `wait`.
    fn sleep(&self, wait: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// Evenly from 0 to 1.
    fn chance(&self) -> f64;
}

/// The machine's clock and randomness.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemTimes;

impl Time for SystemTimes {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn sleep(&self, wait: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(wait))
    }

    fn chance(&self) -> f64 {
        // Without randomness the longest wait is the safe one.
        getrandom::u32().map_or(1.0, |number| f64::from(number) / f64::from(u32::MAX))
    }
}
