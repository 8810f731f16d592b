//! Searches run off the request threads, so many at once and no more; a short queue takes what comes in bursts.

use crate::ServerConfig;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{sync::Semaphore, task::spawn_blocking, time::timeout};

/// The bound on searches at work.
pub(crate) struct Searches {
    slots: Arc<Semaphore>,
    waiting: AtomicUsize,
    queue: usize,
    patience: Duration,
}

/// Why a search did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotRun {
    /// The queue was full, or the wait in it too long.
    Busy,
    /// It panicked.
    Broken,
}

impl Searches {
    pub(crate) fn new(config: &ServerConfig) -> Self {
        Self {
            slots: Arc::new(Semaphore::new(config.max_searches.max(1))),
            waiting: AtomicUsize::new(0),
            queue: config.search_queue,
            patience: config.search_wait,
        }
    }

    /// Runs `work` as soon as there is room. Work that has begun ends, and holds its room until then, even if nobody waits for it any
    /// more.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, NotRun> {
        let slots = Arc::clone(&self.slots);
        let slot = match Arc::clone(&slots).try_acquire_owned() {
            Ok(slot) => slot,
            Err(_) => {
                let waiting = Waiting(&self.waiting);
                if self.waiting.fetch_add(1, Ordering::Relaxed) >= self.queue {
                    return Err(NotRun::Busy);
                }
                let slot = timeout(self.patience, slots.acquire_owned()).await;
                drop(waiting);
                // Never closed: only the wait can end without a slot.
                slot.map_err(|_| NotRun::Busy)?.map_err(|_| NotRun::Busy)?
            }
        };
        let span = tracing::Span::current();
        let work = move || {
            let _slot = slot;
            span.in_scope(work)
        };
        spawn_blocking(work).await.map_err(|error| {
            tracing::error!(%error, "a search did not finish");
            NotRun::Broken
        })
    }
}

/// One place in the queue.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn searches(queue: usize, patience: Duration) -> Arc<Searches> {
        Arc::new(Searches::new(&ServerConfig {
            max_searches: 1,
            search_queue: queue,
            search_wait: patience,
            ..ServerConfig::default()
        }))
    }

    /// Begins a search that ends when the sender is dropped, and waits until it is at work.
    async fn hold(searches: &Arc<Searches>) -> mpsc::Sender<()> {
        let (release, held) = mpsc::channel::<()>();
        let (begun, begin) = tokio::sync::oneshot::channel();
        let searches = Arc::clone(searches);
        tokio::spawn(async move {
            let work = move || {
                let _ = begun.send(());
                held.recv().is_err()
            };
            assert_eq!(searches.run(work).await, Ok(true));
        });
        begin.await.unwrap();
        release
    }

    #[tokio::test]
    async fn what_does_not_fit_the_queue_is_refused_and_what_does_runs_later() {
        let searches = searches(1, Duration::from_secs(60));
        let release = hold(&searches).await;
        let queued = tokio::spawn({
            let searches = Arc::clone(&searches);
            async move { searches.run(|| "ran").await }
        });
        while searches.waiting.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(searches.run(|| ()).await, Err(NotRun::Busy));
        drop(release);
        assert_eq!(queued.await.unwrap(), Ok("ran"));
        assert_eq!(searches.run(|| 7).await, Ok(7));
        assert_eq!(searches.waiting.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn a_wait_that_is_too_long_ends_and_so_does_the_place_of_one_who_left() {
        let searches = searches(1, Duration::from_millis(20));
        let release = hold(&searches).await;
        assert_eq!(searches.run(|| ()).await, Err(NotRun::Busy));
        let left = searches.run(|| ());
        assert!(timeout(Duration::from_millis(1), left).await.is_err());
        assert_eq!(searches.waiting.load(Ordering::Relaxed), 0);
        drop(release);
    }

    #[tokio::test]
    async fn a_panic_frees_its_place() {
        let searches = searches(0, Duration::ZERO);
        for _ in 0..3 {
            let broken: Result<(), _> = searches.run(|| panic!("of a test")).await;
            assert_eq!(broken, Err(NotRun::Broken));
        }
        assert_eq!(searches.run(|| 1).await, Ok(1));
    }
}
