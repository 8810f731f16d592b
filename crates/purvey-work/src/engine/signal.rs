//! What a worker is told while it works.

use super::time::Sleeper;
use crate::{clock::Timestamp, runs::Lease};
use tokio::sync::watch;

/// Why a worker has to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// A caller cancelled the run.
    Cancel,
    /// The run is another's, or may be by now: nothing more may be done for it.
    Lost,
    /// The node stops: the run goes on elsewhere.
    HandOver,
}

/// What the keeper tells a worker.
#[derive(Clone, Debug)]
pub(super) struct Signal {
    pub(super) lease: Lease,
    /// Until when the lease holds for certain.
    pub(super) until: Timestamp,
    stop: Option<Stop>,
}

impl Signal {
    pub(super) fn new(lease: Lease, until: Timestamp) -> Self {
        Self {
            lease,
            until,
            stop: None,
        }
    }

    /// Stops the worker; the first reason counts, but for the loss of the lease.
    pub(super) fn stop(&mut self, stop: Stop) {
        if self.stop.is_none() || stop == Stop::Lost {
            self.stop = Some(stop);
        }
    }
}

/// Waits until the worker has to stop.
pub(super) async fn stopped(signal: &mut watch::Receiver<Signal>, time: &dyn Sleeper) -> Stop {
    loop {
        let (stop, until) = {
            let now = signal.borrow_and_update();
            (now.stop, now.until)
        };
        if let Some(stop) = stop {
            return stop;
        }
        tokio::select! {
            changed = signal.changed() => {
                if changed.is_err() {
                    return Stop::Lost;
                }
            }
            () = time.sleep_until(until) => {
                if signal.borrow().until <= time.now() {
                    return Stop::Lost;
                }
            }
        }
    }
}
