//! What an operation has spent.

use std::time::{Duration, SystemTime};

/// What one operation has spent on retries, nested requests included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    retries: u32,
    waited: Duration,
    deadline: Option<SystemTime>,
}

impl Budget {
    /// Nothing spent, no deadline.
    pub fn new() -> Self {
        Self::default()
    }

    /// So many retries made, and so long waited for them.
    pub fn spent(retries: u32, waited: Duration) -> Self {
        Self {
            retries,
            waited,
            deadline: None,
        }
    }

    /// The same, but no wait may reach past `deadline`.
    #[must_use]
    pub fn with_deadline(self, deadline: SystemTime) -> Self {
        Self {
            deadline: Some(deadline),
            ..self
        }
    }

    /// Notes one retry after a wait of `wait`.
    pub fn spend(&mut self, wait: Duration) {
        self.retries = self.retries.saturating_add(1);
        self.waited = self.waited.saturating_add(wait);
    }

    /// Retries made so far.
    pub fn retries(&self) -> u32 {
        self.retries
    }

    /// Time waited so far, over all retries.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// When the operation has to be over.
    pub fn deadline(&self) -> Option<SystemTime> {
        self.deadline
    }
}
