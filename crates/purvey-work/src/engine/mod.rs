//! The workers of a node: they claim runs that hold a slot, do their steps and end them (Work §3–6).
//!
//! Everything that counts is decided in the store's transactions; what is here can be lost at any moment. A run that was begun goes on
//! from its kept steps, in this process or another: what was kept is never done or paid again, the step that was being done is done
//! again, so a step that acts elsewhere may do so twice, each time under the same `Idempotency-Key`.

mod conversation;
mod files;
mod keeper;
mod output;
mod run;
mod signal;
mod step;
#[cfg(test)]
mod tests;
mod time;
mod tools;

pub use time::{Sleeper, SystemSleeper};
pub use tools::{NoTools, OdpTools, ToolUse, Tools};

use crate::{
    artifacts::{Blobs, UploadLimits},
    clock::{Chance, Cx},
    error::Error,
    id::{RunId, WorkspaceId},
    provider::Providers,
    runs::{self, Begun, Claim, Write},
    sql::{Gate, Session, Store},
};
use futures_util::FutureExt;
use parking_lot::Mutex;
use signal::{Signal, Stop};
use std::{
    collections::HashMap,
    fmt,
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
};

/// How often a node looks for runs when nobody tells it of any.
const LOOK: Duration = Duration::from_millis(250);
/// How much sooner than the store a worker takes its lease to be over: the clocks of nodes differ a little, and stopping takes a moment.
const SOONER: Duration = Duration::from_secs(1);
/// How long a node that stops waits for its workers once they were told to let go.
const LETTING_GO: Duration = Duration::from_secs(5);

/// How a node works.
#[derive(Clone, Copy, Debug)]
pub struct EngineSettings {
    /// Most runs that it works on at once, at least 1; 64 unless set.
    pub workers: usize,
    /// Most steps of one run, uses of tools included, at least 1; 64 unless set.
    pub steps: u32,
    /// Whether no other process works on the store: then every lease at the start is of a process that is gone, and its run is taken up at
    /// once. Off unless set.
    pub alone: bool,
}

impl Default for EngineSettings {
    fn default() -> Self {
        Self {
            workers: 64,
            steps: 64,
            alone: false,
        }
    }
}

/// What an engine is made of.
pub struct EngineParts {
    /// Where runs are.
    pub store: Store,
    /// What runs call.
    pub providers: Providers,
    /// Where the bytes of artifacts are kept, for providers that work on files.
    pub blobs: Blobs,
    /// What bounds the artifacts that runs make.
    pub uploads: UploadLimits,
    /// What models may use.
    pub tools: Arc<dyn Tools>,
    /// What time it is, and how it passes.
    pub time: Arc<dyn Sleeper>,
    /// Where randomness comes from.
    pub chance: Arc<dyn Chance>,
    /// How it works.
    pub settings: EngineSettings,
}

/// The workers of one process. Dropping it stops them at once, which is a crash to their runs; [`Engine::shutdown`] hands them over.
pub struct Engine {
    node: Arc<Node>,
    tasks: Vec<JoinHandle<()>>,
}

/// What the tasks of an engine share.
struct Node {
    /// A new name for each start of a process: leases are told apart by it.
    name: String,
    parts: EngineParts,
    /// Where what workers write most gathers.
    writes: Gate<Write, Begun>,
    /// The runs that are worked on, and how to reach their workers.
    working: Mutex<HashMap<RunId, watch::Sender<Signal>>>,
    /// Wakes who looks for runs, when there is room for one more.
    room: Notify,
    /// Wakes who waits for a worker to end.
    ended: Notify,
    stopping: AtomicBool,
}

impl Engine {
    /// Starts working, within the runtime that this is called in.
    #[must_use]
    pub fn start(parts: EngineParts) -> Self {
        let mut name = [0; 8];
        parts.chance.fill(&mut name);
        let writes = {
            let (time, chance) = (parts.time.clone(), parts.chance.clone());
            Gate::new(parts.store.clone(), move |session, writes| {
                let cx = Cx {
                    now: time.now(),
                    chance: &*chance,
                };
                runs::together(session, cx, writes)
            })
        };
        let node = Arc::new(Node {
            name: name.iter().map(|byte| format!("{byte:02x}")).collect(),
            parts,
            writes,
            working: Mutex::default(),
            room: Notify::new(),
            ended: Notify::new(),
            stopping: AtomicBool::new(false),
        });
        let tasks = vec![
            tokio::spawn(node.clone().look_for_runs()),
            tokio::spawn(node.clone().keep_leases()),
            tokio::spawn(node.clone().sweep()),
        ];
        Self { node, tasks }
    }

    /// Runs that are being worked on here.
    #[must_use]
    pub fn working(&self) -> usize {
        self.node.working.lock().len()
    }

    /// Takes up nothing more; each worker hands its run over when it has ended the step that it is at. For a process that is about to stop
    /// and still answers calls.
    pub fn close(&self) {
        self.node.stopping.store(true, Ordering::Release);
        self.node.room.notify_one();
    }

    /// Stops: takes up nothing more, lets each worker end the step that it is at for as long as `grace`, and hands the runs over. Another
    /// node, or the next process, takes them up at once; no crash is counted.
    pub async fn shutdown(mut self, grace: Duration) {
        self.close();
        let node = self.node.clone();
        let time = node.parts.time.clone();
        let wait = |wait| time.sleep_until(time.now().after(wait));
        tokio::select! {
            () = node.idle() => {}
            () = wait(grace) => {}
        }
        node.tell_all(Stop::HandOver);
        tokio::select! {
            () = node.idle() => {}
            () = wait(LETTING_GO) => {}
        }
        for task in self.tasks.drain(..) {
            task.abort();
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.node.stopping.store(true, Ordering::Release);
        self.node.tell_all(Stop::Lost);
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("node", &self.node.name)
            .finish_non_exhaustive()
    }
}

impl Node {
    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Waits until no run is worked on.
    async fn idle(&self) {
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if self.working.lock().is_empty() {
                return;
            }
            ended.await;
        }
    }

    fn tell_all(&self, stop: Stop) {
        for worker in self.working.lock().values() {
            worker.send_modify(|signal| signal.stop(stop));
        }
    }

    async fn sleep(&self, wait: Duration) {
        let time = &self.parts.time;
        time.sleep_until(time.now().after(wait)).await;
    }

    /// A transaction at this moment, in the workspace's lane if it concerns one.
    async fn write<T: Send + 'static>(
        &self,
        workspace: Option<WorkspaceId>,
        mut job: impl FnMut(&mut dyn Session, Cx<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (time, chance) = (self.parts.time.clone(), self.parts.chance.clone());
        let job = move |session: &mut dyn Session| {
            let cx = Cx {
                now: time.now(),
                chance: &*chance,
            };
            job(session, cx)
        };
        match workspace {
            Some(workspace) => self.parts.store.write_in(&workspace.to_string(), job).await,
            None => self.parts.store.write(job).await,
        }
    }

    /// Claims runs and gives them to workers, for as long as the node lives.
    async fn look_for_runs(self: Arc<Self>) {
        if self.parts.settings.alone {
            let ended = self.write(None, runs::expire_leases).await;
            note("leases of earlier processes cannot be ended", ended);
        }
        let mut news = self.parts.store.hub().watch(runs::CLAIMABLE);
        let mut unclear = false;
        while !self.is_stopping() {
            let free = self.free();
            let mut found = 0;
            if free > 0 {
                let node = self.name.clone();
                let works_on: Vec<_> = self.working.lock().keys().copied().collect();
                let claim = move |session: &mut dyn Session, cx: Cx<'_>| {
                    if unclear {
                        runs::disown(session, cx, &node, &works_on)?;
                    }
                    runs::claim(session, cx, &node, free)
                };
                let claims = self.write(None, claim).await;
                unclear = matches!(claims, Err(Error::Unavailable { .. }));
                for claim in note("runs cannot be claimed", claims).into_iter().flatten() {
                    found += 1;
                    self.clone().work_on(claim);
                }
            }
            // A node that got as much as it asked for looks again once it has room.
            if found == 0 || self.free() == 0 {
                tokio::select! {
                    () = news.changed() => {}
                    () = self.room.notified() => {}
                    () = self.sleep(LOOK) => {}
                }
            }
        }
    }

    fn free(&self) -> usize {
        let busy = self.working.lock().len();
        self.parts.settings.workers.max(1).saturating_sub(busy)
    }

    fn work_on(self: Arc<Self>, claim: Claim) {
        let run = claim.lease.run;
        let until = claim.until.before(SOONER);
        let (sender, signal) = watch::channel(Signal::new(claim.lease.clone(), until));
        // A run is claimed again only when its lease has run out here too: its worker stopped, or is about to.
        if let Some(before) = self.working.lock().insert(run, sender) {
            before.send_modify(|signal| signal.stop(Stop::Lost));
        }
        tokio::spawn(async move {
            let attempt = claim.lease.attempt;
            let work = AssertUnwindSafe(run::work(&self, claim, signal)).catch_unwind();
            if work.await.is_err() {
                // Its lease runs out, which counts as a crash: the run is taken up again, or fails after several.
                tracing::error!(%run, attempt, "a worker panicked");
            }
            let mut working = self.working.lock();
            if working
                .get(&run)
                .is_some_and(|worker| worker.borrow().lease.attempt == attempt)
            {
                working.remove(&run);
            }
            drop(working);
            self.ended.notify_waiters();
            self.room.notify_one();
        });
    }
}

/// Logs a failure that will be met again if it lasts.
fn note<T>(what: &str, result: Result<T, Error>) -> Option<T> {
    result
        .map_err(|error| tracing::warn!(%error, "{what}"))
        .ok()
}
