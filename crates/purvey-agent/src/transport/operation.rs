//! The budget of one operation.

use purvey_retry::{Budget, Decision, Failure, Policy};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// What one operation may spend on retries, nested requests included (ODP §8), and when it has to be over.
#[derive(Debug)]
pub struct Operation {
    policy: Policy,
    budget: Mutex<Budget>,
}

impl Operation {
    /// An operation that has spent nothing and has no deadline.
    pub fn new(policy: &Policy) -> Self {
        Self {
            policy: policy.clone(),
            budget: Mutex::new(Budget::new()),
        }
    }

    /// An operation that has to be over at `deadline`.
    pub fn with_deadline(policy: &Policy, deadline: SystemTime) -> Self {
        Self {
            policy: policy.clone(),
            budget: Mutex::new(Budget::new().with_deadline(deadline)),
        }
    }

    /// What has been spent so far.
    pub fn budget(&self) -> Budget {
        *self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides about a retry, and spends it in the same step, since requests of one operation may run side by side.
    pub(crate) fn decide(
        &self,
        failure: Failure,
        retry_after: Option<&str>,
        chance: f64,
        now: SystemTime,
    ) -> Decision {
        let mut budget = self.budget.lock().unwrap_or_else(PoisonError::into_inner);
        let decision = self
            .policy
            .decide(failure, retry_after, &budget, chance, now);
        if let Decision::Wait(wait) = decision {
            budget.spend(wait);
        }
        decision
    }
}
