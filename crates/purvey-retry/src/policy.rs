//! What is transient, and how much may be spent on it.

use crate::Budget;
use std::time::{Duration, SystemTime};

/// How an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Failure {
    /// A response with this HTTP status.
    Status(u16),
    /// No response: the connection failed, or was lost before its end.
    Connection,
}

/// Whether a failure may be retried at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// Never.
    Never,
    /// Only when the response says when, in `Retry-After`.
    WhenTold,
    /// When the response says; with backoff when it does not.
    Backoff,
}

/// Exponential backoff with full jitter: before retry *n* (from 0) the wait is drawn evenly from zero up to
/// `min(cap, base × 2ⁿ)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Longest wait before the first retry.
    pub base: Duration,
    /// Longest wait before any retry.
    pub cap: Duration,
}

/// What is transient, and how much one operation may spend on it.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Most retries of one operation.
    pub retries: u32,
    /// Longest waiting over one operation, all its retries together.
    pub waiting: Duration,
    /// Waits without `Retry-After`.
    pub backoff: Backoff,
    /// Which failures are transient.
    pub rule: fn(Failure) -> Rule,
}

/// What to do after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Decision {
    /// Wait so long, then try again; [`Budget::spend`] the wait.
    Wait(Duration),
    /// Give the failure to the caller.
    GiveUp(Reason),
}

/// Why there is no further retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The failure is not transient.
    NotTransient,
    /// The response does not say when to try again, and the rule asks for that.
    NotTold,
    /// All retries are spent.
    Retries,
    /// The wait does not fit into what is left of the waiting.
    Waiting,
    /// The wait would reach past the operation's deadline.
    Deadline,
}

impl Default for Policy {
    /// The policy of [`Policy::reads`].
    fn default() -> Self {
        Self::reads()
    }
}

impl Policy {
    /// ODP's policy for reads (ODP §8): at most 3 retries and 30 s of waiting; 429 when it carries `Retry-After`, 503 with or
    /// without; nothing else. Backoff from at most 500 ms up to at most 8 s.
    pub const fn reads() -> Self {
        Self {
            retries: 3,
            waiting: Duration::from_secs(30),
            backoff: Backoff {
                base: Duration::from_millis(500),
                cap: Duration::from_secs(8),
            },
            rule: |failure| match failure {
                Failure::Status(429) => Rule::WhenTold,
                Failure::Status(503) => Rule::Backoff,
                _ => Rule::Never,
            },
        }
    }

    /// No retry of anything.
    pub const fn never() -> Self {
        Self {
            retries: 0,
            waiting: Duration::ZERO,
            rule: |_| Rule::Never,
            ..Self::reads()
        }
    }

    /// What to do after `failure`, whose response carried the field `retry_after`.
    ///
    /// `chance` is drawn evenly from 0 to 1 (anything outside counts as 1) and decides the wait when the response does not. A
    /// wait that the response asks for is never shortened: it fits into what is left, or the failure goes to the caller at once.
    pub fn decide(
        &self,
        failure: Failure,
        retry_after: Option<&str>,
        budget: &Budget,
        chance: f64,
        now: SystemTime,
    ) -> Decision {
        let rule = (self.rule)(failure);
        if rule == Rule::Never {
            return Decision::GiveUp(Reason::NotTransient);
        }
        if budget.retries() >= self.retries {
            return Decision::GiveUp(Reason::Retries);
        }
        let left = self.waiting.saturating_sub(budget.waited());
        let told = retry_after.and_then(|field| crate::retry_after(field, now));
        let wait = match (told, rule) {
            (Some(wait), _) => wait,
            (None, Rule::WhenTold) => return Decision::GiveUp(Reason::NotTold),
            (None, _) if left.is_zero() => return Decision::GiveUp(Reason::Waiting),
            (None, _) => self.backoff.wait(budget.retries(), chance).min(left),
        };
        if wait > left {
            return Decision::GiveUp(Reason::Waiting);
        }
        let late = budget.deadline().is_some_and(|deadline| {
            now.checked_add(wait)
                .is_none_or(|resumed| resumed >= deadline)
        });
        if late {
            return Decision::GiveUp(Reason::Deadline);
        }
        Decision::Wait(wait)
    }
}

impl Backoff {
    /// The wait before retry `retry` (from 0), for a `chance` from 0 to 1.
    fn wait(&self, retry: u32, chance: f64) -> Duration {
        let factor = 2_u32.saturating_pow(retry);
        let ceiling = self.base.saturating_mul(factor).min(self.cap);
        let chance = if (0.0..=1.0).contains(&chance) {
            chance
        } else {
            1.0
        };
        // Cannot overflow, since the factor is at most 1.
        ceiling.mul_f64(chance)
    }
}
