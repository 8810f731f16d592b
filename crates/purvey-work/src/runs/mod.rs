//! The life of a run (Work §3–5): admitted, queued, promoted, claimed by a worker under a lease, checkpointed step by step, paused, ended.
//!
//! Every function decides within the one transaction of its [`Session`], at the moment of its [`Cx`]. Rows are locked in one order
//! everywhere, so that no two transactions wait for each other: workspace, run, ledger.
//!
//! A run holds a slot from its promotion to its end, whoever works on it. A worker holds a lease on it, ended by the lease's time or by the
//! next attempt; whatever a worker writes names its attempt, and a stale one is answered [`Error::LeaseLost`].

mod admit;
mod cancel;
mod claim;
mod event;
mod facts;
mod finish;
mod insert;
mod live;
mod promote;
mod read;
mod slots;
mod start;
mod sweep;
#[cfg(test)]
mod tests;
mod together;
mod work;

pub(crate) use admit::admit;
pub(crate) use cancel::{cancel, workspace_of};
pub(crate) use claim::{
    Claim, KeptStep, Renewal, claim, disown, expire_leases, release, renew, to_cancel,
};
pub(crate) use finish::{Outcome, finish, hold_workspace};
pub(crate) use live::Lease;
pub(crate) use read::{EventData, Filter, events, list, run, steps};
pub(crate) use start::{Admission, By, Start, Target};
pub(crate) use sweep::{promote_waiting, prune, sweep, to_sweep};
pub(crate) use together::{Last, What, Write, alone, together};
pub(crate) use work::{
    Begun, CallOf, StepDone, begin_call, begin_step, checkpoint, keep, pause, settle_call,
};
#[cfg(test)]
pub(crate) use {read::turn, work::Paused};

#[cfg(doc)]
use crate::{clock::Cx, sql::Session};
use crate::{error::Error, sql::Param};
use std::time::Duration;

/// How long a lease holds without being renewed.
pub(crate) const LEASE: Duration = Duration::from_secs(15);
/// How often a run's worker may be lost before the run fails.
pub(crate) const CRASHES: i64 = 5;
/// How often in a row a provider may limit the same step before the run fails.
pub(crate) const LIMITED: i64 = 5;
/// The longest wait for a provider's limit.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(15 * 60);
/// The topic that tells workers that there may be something to claim.
pub(crate) const CLAIMABLE: &str = "claimable";

/// A parameter that may be null.
fn text(value: Option<&str>) -> Param<'_> {
    value.map_or(Param::Null, Param::Text)
}

/// The text that a structured value is kept as.
fn json<T: serde::Serialize>(value: &T) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::Store {
        detail: error.to_string(),
    })
}
