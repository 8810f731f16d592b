//! The thread that keeps the newest generation current: own changes at once, those of other processes by polling.

use super::{Inner, Options};
use crate::error::Error;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// While the catalog is over its disk budget, publications are this many times rarer.
const OVER_BUDGET: u32 = 25;
/// Longest pause after failures.
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);
/// How often lapsed generations are collected when nothing is published.
const COLLECT: Duration = Duration::from_secs(30);

/// Pause after a large merge that came to nothing.
const MERGE_BACKOFF: Duration = Duration::from_secs(60);

/// The running thread; stops when dropped.
#[derive(Debug)]
pub(super) struct Background {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// `wake` carries a message after each own commit; the thread ends by itself when the catalog is gone.
    pub(super) fn start(inner: &Arc<Inner>, wake: Receiver<()>) -> Result<Self, Error> {
        let (stop, stopped) = bounded(1);
        inner.generations.defer_merges(true);
        let inner = Arc::downgrade(inner);
        let thread = std::thread::Builder::new()
            .name("catalog-indexer".to_owned())
            .spawn(move || run(&inner, &wake, &stopped))
            .map_err(Error::io("catalog-indexer"))?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // A panic in there has been printed already; nothing depends on the thread any more.
            let _ = thread.join();
        }
    }
}

/// Large merges, one at a time, beside the publications that they would delay. Holds nothing of the catalog but its generations.
#[derive(Default)]
struct Merger {
    stop: Arc<AtomicBool>,
    /// Ends with whether it went well.
    thread: Option<JoinHandle<bool>>,
    /// Not before then.
    next: Option<Instant>,
}

impl Merger {
    /// Begins a merge when one is due and none is under way.
    fn start_if_due(&mut self, catalog: &Inner) {
        if let Some(thread) = self.thread.take_if(|thread| thread.is_finished())
            && !thread.join().unwrap_or(false)
        {
            self.next = Some(Instant::now() + MERGE_BACKOFF);
        }
        let is_early = self.next.is_some_and(|next| Instant::now() < next);
        if self.thread.is_some() || is_early || !catalog.generations.wants_merge() {
            return;
        }
        let generations = Arc::clone(&catalog.generations);
        let manifest = Arc::clone(&catalog.current.load().manifest);
        let stop = Arc::clone(&self.stop);
        let merge = move || {
            let texts = |kind| Arc::clone(manifest.text_plan(kind));
            match generations.merge_apart(texts, &stop) {
                // Another process may be at it.
                Ok(merged) => merged,
                Err(_) if stop.load(Ordering::Relaxed) => true,
                Err(error) => {
                    tracing::error!(%error, "segments could not be merged");
                    false
                }
            }
        };
        let thread = std::thread::Builder::new().name("catalog-merger".to_owned());
        match thread.spawn(merge) {
            Ok(thread) => self.thread = Some(thread),
            Err(error) => tracing::error!(%error, "no thread to merge segments with"),
        }
    }
}

impl Drop for Merger {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic in there has been printed already.
            let _ = thread.join();
        }
    }
}

fn run(inner: &Weak<Inner>, wake: &Receiver<()>, stop: &Receiver<()>) {
    let mut merger = Merger::default();
    let mut failures = 0;
    let mut collected = Instant::now();
    loop {
        let Some(catalog) = inner.upgrade() else {
            return;
        };
        let options = catalog.options.clone();
        let pause = match catalog.advance() {
            Ok(false) => {
                failures = 0;
                if collected.elapsed() >= COLLECT {
                    collected = Instant::now();
                    if let Err(error) = catalog.collect() {
                        tracing::warn!(%error, "lapsed generations could not be collected");
                    }
                }
                Duration::ZERO
            }
            Ok(true) => {
                failures = 0;
                interval(&catalog, &options)
            }
            Err(_) if catalog.stop.load(Ordering::Relaxed) => return,
            Err(error) => {
                failures += 1;
                tracing::error!(%error, failures, "changes could not be published; trying again");
                let pause = Duration::from_millis(250) * 2_u32.saturating_pow(failures.min(7));
                pause.min(LONGEST_BACKOFF)
            }
        };
        merger.start_if_due(&catalog);
        drop(catalog);
        // No shorter than the pause, whatever wakes; then until something wakes, or the poll is due.
        if !pause.is_zero()
            && matches!(
                stop.recv_timeout(pause),
                Err(RecvTimeoutError::Disconnected) | Ok(())
            )
        {
            return;
        }
        crossbeam_channel::select! {
            recv(wake) -> message => if message.is_err() { return },
            recv(stop) -> _ => return,
            default(options.poll_interval) => {}
        }
    }
}

fn interval(catalog: &Inner, options: &Options) -> Duration {
    let over = options.disk_budget.is_some_and(|budget| {
        catalog
            .generations
            .disk_bytes()
            .is_ok_and(|used| used > budget)
    });
    options.publish_interval * if over { OVER_BUDGET } else { 1 }
}
