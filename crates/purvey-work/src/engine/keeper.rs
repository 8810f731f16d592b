//! What a node does beside its runs: it keeps their leases, hears of cancellations, and ends what nobody works on.

use super::{Node, SOONER, note, signal::Stop};
use crate::{
    clock::Timestamp,
    error::Error,
    runs::{self, Lease, Renewal},
};
use std::{sync::Arc, time::Duration};

/// How often a node looks whether runs of its own were cancelled.
const LOOK: Duration = Duration::from_millis(500);
/// How often leases are renewed: twice may fail before one is lost.
const RENEW: Duration = Duration::from_secs(5);
/// How often a node looks for runs that nobody works on.
const SWEEP: Duration = Duration::from_secs(1);

impl Node {
    /// Keeps leases and hears of cancellations, for as long as the node lives.
    pub(super) async fn keep_leases(self: Arc<Self>) {
        let mut renewed = self.parts.time.now();
        loop {
            self.sleep(LOOK).await;
            let now = self.parts.time.now();
            if now.since(renewed) >= RENEW {
                renewed = now;
                self.renew().await;
            }
            self.look_for_cancels().await;
        }
    }

    fn leases(&self) -> Vec<Lease> {
        let working = self.working.lock();
        let leases = working.values().map(|worker| worker.borrow().lease.clone());
        let mut leases: Vec<_> = leases.collect();
        // Rows are locked in the order in which the sweep locks them.
        leases.sort_unstable_by_key(|lease| lease.run);
        leases
    }

    async fn renew(&self) {
        let leases = self.leases();
        if leases.is_empty() {
            return;
        }
        let all = leases.clone();
        let renewals = self.write(None, move |session, cx| {
            let mut renewals = Vec::with_capacity(all.len());
            for lease in &all {
                match runs::renew(session, cx, lease) {
                    Ok(renewal) => renewals.push(Some(renewal)),
                    Err(Error::LeaseLost) => renewals.push(None),
                    Err(error) => return Err(error),
                }
            }
            Ok((cx.now, renewals))
        });
        // Without an answer each worker stops by itself when its lease runs out.
        let Some((at, renewals)) = note("leases cannot be renewed", renewals.await) else {
            return;
        };
        for (lease, renewal) in leases.iter().zip(renewals) {
            self.tell(lease, at, renewal);
        }
    }

    fn tell(&self, lease: &Lease, at: Timestamp, renewal: Option<Renewal>) {
        let working = self.working.lock();
        let Some(worker) = working.get(&lease.run) else {
            return;
        };
        worker.send_modify(|signal| {
            if signal.lease.attempt != lease.attempt {
                return;
            }
            match renewal {
                None => signal.stop(Stop::Lost),
                Some(renewal) => {
                    signal.until = at.after(runs::LEASE).before(SOONER);
                    if renewal.cancel {
                        signal.stop(Stop::Cancel);
                    }
                }
            }
        });
    }

    async fn look_for_cancels(&self) {
        if self.working.lock().is_empty() {
            return;
        }
        let node = self.name.clone();
        let store = &self.parts.store;
        let cancelled = store
            .read(move |session| runs::to_cancel(session, &node))
            .await;
        for run in note("cancellations cannot be read", cancelled)
            .into_iter()
            .flatten()
        {
            if let Some(worker) = self.working.lock().get(&run) {
                worker.send_modify(|signal| signal.stop(Stop::Cancel));
            }
        }
    }

    /// Ends runs whose time is over and whose workers are gone, and gives free slots on, for as long as the node lives.
    pub(super) async fn sweep(self: Arc<Self>) {
        loop {
            self.sleep(SWEEP).await;
            let found = self.write(None, runs::to_sweep).await;
            let mut workspaces = note("runs cannot be swept", found).unwrap_or_default();
            while let Some(workspace) = workspaces.pop() {
                let more = self
                    .write(Some(workspace), move |session, cx| {
                        runs::sweep(session, cx, workspace)
                    })
                    .await;
                if note("a workspace cannot be swept", more) == Some(true) {
                    workspaces.push(workspace);
                }
            }
        }
    }
}
